//! The time and the epochs of a run under the scheduler shuttle.
//!
//! 1. Time stands still while a thread can run. When all threads wait, the keeper, a thread of the run, moves the time
//!    to the next awaited moment. A scheduler may also run the keeper earlier; then time passes at any moment.
//! 2. Each run has its own epochs, and each of its threads takes part in them. Replaced values are freed as between
//!    real threads, and no value of one run reaches the next run.

use crossbeam_epoch::{Collector, Guard, LocalHandle};
use shuttle::current::me;
use shuttle::scheduler::TaskId;
use shuttle::sync::MutexGuard;
use shuttle::thread::{self, Thread};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LockResult};
use std::time::Duration;

/// The time of the run that this thread of the machine executes. Calls in here are no steps.
#[derive(Default)]
struct Time {
    now: Duration,
    /// The waiters by moment; a number distinguishes waiters of the same moment.
    sleepers: BTreeMap<(Duration, u64), Arc<shuttle::sync::Condvar>>,
    numbered: u64,
    keeper: Option<(TaskId, Thread)>,
    over: bool,
}

std::thread_local! {
    static TIME: RefCell<Time> = RefCell::default();
}

fn time<R>(f: impl FnOnce(&mut Time) -> R) -> R {
    TIME.with(|time| f(&mut time.borrow_mut()))
}

/// Time since the run began.
pub fn now() -> Duration {
    time(|time| time.now)
}

/// The keeper of the current run: the thread that lets time pass. The scheduler runs it when no other thread can run,
/// and now and then.
pub fn keeper() -> Option<TaskId> {
    time(|time| time.keeper.as_ref().map(|(id, _)| *id))
}

/// Lets `d` pass.
pub fn sleep(d: Duration) {
    let (lock, never) = (shuttle::sync::Mutex::new(()), Condvar::new());
    if let Ok(guard) = lock.lock() {
        drop(never.wait_timeout_while(guard, d, |()| true));
    }
}

/// Runs `body` with its own virtual time, and frees at the end everything that `body` replaced.
pub fn run<R>(body: impl FnOnce() -> R) -> R {
    time(|time| *time = Time::default());
    let keeper = thread::spawn(keep);
    let done = body();
    let woken = time(|time| {
        time.over = true;
        time.keeper.take().map(|(_, thread)| thread)
    });
    woken.iter().for_each(Thread::unpark);
    let _ = keeper.join();
    // The last values must be freed within the run, because no step can be made after it.
    (0..64).for_each(|_| pin().flush());
    done
}

fn keep() {
    time(|time| time.keeper = Some((me(), thread::current())));
    while !time(|time| time.over) {
        let next = time(|time| {
            let ((moment, _), sleeper) = time.sleepers.first_key_value()?;
            time.now = time.now.max(*moment);
            Some(Arc::clone(sleeper))
        });
        match next {
            Some(sleeper) => sleeper.notify_all(),
            None => thread::park(),
        }
    }
}

/// Shuttle's, with timeouts in the time of the run.
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(Arc::default())
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        blocked: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait_while(guard, blocked)
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut blocked: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        let (moment, keeper) = time(|time| {
            time.numbered += 1;
            let moment = (time.now.saturating_add(timeout), time.numbered);
            time.sleepers.insert(moment, Arc::clone(&self.0));
            (moment, time.keeper.as_ref().map(|(_, thread)| thread.clone()))
        });
        keeper.iter().for_each(Thread::unpark);
        // The keeper may call before the wait begins. It calls again, until the sleeper takes itself off the list.
        while blocked(&mut guard) && now() < moment.0 {
            guard = self.0.wait(guard)?;
        }
        time(|time| time.sleepers.remove(&moment));
        Ok(guard)
    }
}

shuttle::lazy_static! {
    static ref EPOCHS: Collector = Collector::new();
}

shuttle::thread_local! {
    static PART: LocalHandle = EPOCHS.register();
}

/// Pins the epoch of the run. A step.
pub(crate) fn pin() -> Guard {
    thread::sleep(Duration::ZERO);
    // A thread that ends has lost its part already, and drops what it held.
    PART.try_with(LocalHandle::pin).unwrap_or_else(|_| EPOCHS.register().pin())
}

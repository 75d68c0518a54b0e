//! Runs jobs on threads. Each lane has its own threads, which start when the first job comes.
//!
//! 1. A job is in exactly one place: ready, waiting for its time, or with a thread. Of the ready jobs, owners take turns.
//! 2. A wake that arrives while the job's step runs turns the step's `Wait` into `Again`.
//! 3. A panicking step ends its job only; the thread goes on.
//! 4. A forked child has none of its parent's threads. There the parent's executor takes no jobs, and its end joins no
//!    thread.
//! 5. Jobs wait by the clock of the environment; threads sleep by the machine's clock. The two may drift apart, so a
//!    thread that wakes up reads the environment's clock again.

use super::ready::{Entry, Ready};
use super::{Job, JobExecutor, JobId, Lane, StepBudget, StepResult};
use crate::{Clock, Process};
use ashlar_base::panics::contained;
use ashlar_sync::thread::{self, JoinHandle};
use ashlar_sync::{Mutex, Rank, Signal};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Runs jobs on threads named `ashlar-high-0`, `ashlar-low-0`, …
pub struct ThreadExecutor {
    shared: Arc<Shared>,
    process: Process,
}

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    high: Signal,
    low: Signal,
}

struct State {
    next_id: u64,
    closed: bool,
    high: LaneState,
    low: LaneState,
}

struct LaneState {
    threads_max: usize,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    ready: Ready,
    /// The due time is `None` when only a wake counts.
    waiting: BTreeMap<JobId, (Option<Duration>, Entry)>,
    /// Jobs with a thread, and whether they were woken since the step began.
    stepping: BTreeMap<JobId, bool>,
}

impl LaneState {
    fn new(threads_max: usize) -> Self {
        LaneState {
            threads_max: threads_max.max(1),
            threads: Vec::new(),
            idle: 0,
            ready: Ready::default(),
            waiting: BTreeMap::new(),
            stepping: BTreeMap::new(),
        }
    }

    fn has(&self, id: JobId) -> bool {
        let stands = self.waiting.contains_key(&id) || self.stepping.contains_key(&id);
        stands || self.ready.has(id)
    }

    /// Moves jobs whose time has come to the ready ones.
    fn ripen(&mut self, now: Duration) {
        let ripe = |(due, _): &(Option<Duration>, Entry)| due.is_some_and(|d| d <= now);
        while let Some(id) = self.waiting.iter().find(|(_, w)| ripe(w)).map(|(id, _)| *id) {
            if let Some((_, entry)) = self.waiting.remove(&id) {
                self.ready.push(entry);
            }
        }
    }

    /// How long a thread may sleep until a waiting job is due.
    fn sleep_for(&self, now: Duration) -> Option<Duration> {
        self.waiting.values().filter_map(|(due, _)| *due).min().map(|due| due.saturating_sub(now))
    }
}

impl State {
    fn lane(&mut self, lane: Lane) -> &mut LaneState {
        match lane {
            Lane::High => &mut self.high,
            Lane::Low => &mut self.low,
        }
    }
}

impl Shared {
    fn lane_signal(&self, lane: Lane) -> &Signal {
        match lane {
            Lane::High => &self.high,
            Lane::Low => &self.low,
        }
    }

    /// A thread's life: take a job, step it, put it back.
    fn work(&self, lane: Lane) {
        loop {
            let seen = self.lane_signal(lane).seen();
            let sleep = {
                let mut state = self.state.lock();
                if state.closed {
                    return;
                }
                let l = state.lane(lane);
                let now = self.clock.now();
                l.ripen(now);
                match l.ready.pop() {
                    Some(entry) => {
                        l.stepping.insert(entry.id, false);
                        drop(state);
                        self.step(entry, lane);
                        continue;
                    }
                    None => {
                        l.idle += 1;
                        l.sleep_for(now)
                    }
                }
            };
            self.lane_signal(lane).wait(seen, sleep);
            self.state.lock().lane(lane).idle -= 1;
        }
    }

    fn step(&self, entry: Entry, lane: Lane) {
        let id = entry.id;
        let went_on = run_step(entry);
        let mut state = self.state.lock();
        let closed = state.closed;
        let l = state.lane(lane);
        let woken = l.stepping.remove(&id).unwrap_or(false);
        let Some((entry, wait)) = went_on else { return };
        match wait {
            _ if closed => {
                drop(state);
                abort(entry.job);
            }
            Some(d) if !woken => {
                l.waiting.insert(id, (self.clock.now().checked_add(d), entry));
            }
            _ => l.ready.push(entry),
        }
    }
}

/// Runs one step of a job, outside all locks. `None`: the job is finished, or panicked and was aborted. Otherwise
/// returns its next wait.
fn run_step(mut entry: Entry) -> Option<(Entry, Option<Duration>)> {
    match step_caught(entry.job.as_mut()) {
        Some(StepResult::Again) => Some((entry, None)),
        Some(StepResult::Wait(d)) => Some((entry, Some(d))),
        Some(StepResult::Done) => {
            contained(|| drop(entry.job));
            None
        }
        None => {
            abort(entry.job);
            None
        }
    }
}

/// Runs a step; `None` when it panicked. The job is not stepped again then, so only `abort` sees its broken state.
pub(super) fn step_caught(job: &mut dyn Job) -> Option<StepResult> {
    contained(|| job.step(StepBudget::default()))
}

/// Aborts a job. A panic in `abort` is ignored, because no caller is left to report it to.
pub(super) fn abort(job: Box<dyn Job>) {
    contained(|| job.abort());
}

impl ThreadExecutor {
    /// An executor with up to `high` and `low` threads, at least one of each. A thread starts with the first job of its
    /// lane. Jobs wait by `clock`.
    pub fn new(clock: Arc<dyn Clock>, high: usize, low: usize) -> Self {
        let (high, low) = (LaneState::new(high), LaneState::new(low));
        let state = State { next_id: 0, closed: false, high, low };
        let state = Mutex::new(Rank::Env, state);
        let (high, low) = (Signal::new(None), Signal::new(None));
        let shared = Arc::new(Shared { clock, state, high, low });
        ThreadExecutor { shared, process: Process::current() }
    }

    /// Starts one more thread of `lane` if its jobs have none to wait for. False when the lane has no thread at all.
    fn grow(&self, state: &mut State, lane: Lane) -> bool {
        let l = state.lane(lane);
        if l.threads.len() < l.threads_max && l.idle < l.ready.len() {
            let name = match lane {
                Lane::High => format!("ashlar-high-{}", l.threads.len()),
                Lane::Low => format!("ashlar-low-{}", l.threads.len()),
            };
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name(name).spawn(move || shared.work(lane));
            // The machine has no more threads, so fewer do the work.
            l.threads.extend(started);
        }
        !l.threads.is_empty()
    }
}

impl JobExecutor for ThreadExecutor {
    fn serves(&self) -> bool {
        self.process.is_current()
    }

    fn submit(&self, job: Box<dyn Job>, lane: Lane) -> JobId {
        let mut state = self.shared.state.lock();
        state.next_id += 1;
        let id = JobId(state.next_id);
        if state.closed {
            drop(state);
            abort(job);
            return id;
        }
        let owner = job.owner();
        state.lane(lane).ready.push(Entry { id, owner, job });
        let refused = if self.grow(&mut state, lane) { None } else { state.lane(lane).ready.take(id) };
        drop(state);
        match refused {
            Some(entry) => abort(entry.job),
            None => self.shared.lane_signal(lane).notify(),
        }
        id
    }

    fn wake(&self, id: JobId) {
        let mut state = self.shared.state.lock();
        for lane in [Lane::High, Lane::Low] {
            let l = state.lane(lane);
            if let Some((_, entry)) = l.waiting.remove(&id) {
                l.ready.push(entry);
                self.grow(&mut state, lane);
                drop(state);
                self.shared.lane_signal(lane).notify();
                return;
            }
            if let Some(woken) = l.stepping.get_mut(&id) {
                *woken = true;
                return;
            }
        }
    }

    fn knows(&self, id: JobId) -> bool {
        let mut state = self.shared.state.lock();
        [Lane::High, Lane::Low].into_iter().any(|lane| state.lane(lane).has(id))
    }

    fn width(&self, lane: Lane) -> usize {
        self.shared.state.lock().lane(lane).threads_max
    }

    fn widen(&self, lane: Lane, width: usize) {
        let mut state = self.shared.state.lock();
        let l = state.lane(lane);
        l.threads_max = l.threads_max.max(width);
    }

    fn signal(&self) -> Signal {
        Signal::new(None)
    }

    fn drive(&self, _steps: usize) -> usize {
        0
    }

    fn close(&self) {
        let mut threads = Vec::new();
        let mut left = Vec::new();
        {
            let mut state = self.shared.state.lock();
            state.closed = true;
            for lane in [Lane::High, Lane::Low] {
                let l = state.lane(lane);
                threads.append(&mut l.threads);
                left.extend(l.ready.drain());
                left.extend(std::mem::take(&mut l.waiting).into_values().map(|(_, e)| e));
            }
        }
        self.shared.high.notify();
        self.shared.low.notify();
        let me = thread::current().id();
        for thread in threads {
            // The last handle may be dropped by a job: a thread cannot wait for itself.
            if thread.thread().id() != me {
                let _ = thread.join();
            }
        }
        for entry in left {
            abort(entry.job);
        }
    }
}

impl Drop for ThreadExecutor {
    fn drop(&mut self) {
        if self.serves() {
            self.close();
        } else {
            // A thread that does not exist in this child may hold the lock.
            std::mem::forget(Arc::clone(&self.shared));
        }
    }
}

impl fmt::Debug for ThreadExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadExecutor")
    }
}

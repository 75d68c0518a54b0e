use super::*;
use crate::{Clock, OsClock, SeededRand, VirtualClock};
use ashlar_sync::Waited;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What jobs did, in order.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    aborted: AtomicUsize,
    finished: AtomicUsize,
}

impl Log {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// Does what a closure says, step by step.
struct Scripted<F: FnMut(usize) -> StepResult + Send> {
    /// Its first letter is the owner.
    name: &'static str,
    step: usize,
    script: F,
    log: Arc<Log>,
    signal: Arc<Signal>,
}

impl<F: FnMut(usize) -> StepResult + Send> Job for Scripted<F> {
    fn kind(&self) -> JobKind {
        JobKind::Other(self.name)
    }

    fn owner(&self) -> u64 {
        self.name.bytes().next().map_or(0, u64::from)
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        assert_eq!(budget.bytes, 64 << 10);
        self.log.add(format!("{}{}", self.name, self.step));
        self.step += 1;
        let result = (self.script)(self.step);
        if result == StepResult::Done {
            self.log.finished.fetch_add(1, Ordering::SeqCst);
            self.signal.notify();
        }
        result
    }

    fn abort(self: Box<Self>) {
        self.log.aborted.fetch_add(1, Ordering::SeqCst);
        self.signal.notify();
    }
}

/// An executor, the log of its jobs and the signal they notify.
struct Bench {
    exec: Arc<dyn JobExecutor>,
    log: Arc<Log>,
    signal: Arc<Signal>,
}

impl Bench {
    fn new(exec: Arc<dyn JobExecutor>) -> Bench {
        let signal = Arc::new(exec.signal());
        Bench { exec, log: Arc::default(), signal }
    }

    fn submit(&self, name: &'static str, script: impl FnMut(usize) -> StepResult + Send + 'static) -> JobId {
        self.submit_in(Lane::Low, name, script)
    }

    fn submit_in(
        &self,
        lane: Lane,
        name: &'static str,
        script: impl FnMut(usize) -> StepResult + Send + 'static,
    ) -> JobId {
        let (log, signal) = (Arc::clone(&self.log), Arc::clone(&self.signal));
        self.exec.submit(Box::new(Scripted { name, step: 0, script, log, signal }), lane)
    }

    fn wait_for(&self, what: impl Fn(&Log) -> bool) {
        loop {
            let seen = self.signal.seen();
            if what(&self.log) {
                return;
            }
            let waited = self.signal.wait(seen, Some(Duration::from_secs(20)));
            assert_eq!(waited, Waited::Notified, "after {:?}", self.log.lines());
        }
    }
}

fn both(check: impl Fn(&Bench)) {
    check(&Bench::new(Arc::new(ThreadExecutor::new(Arc::new(OsClock::new()), 1, 2))));
    check(&Bench::new(Arc::new(inline(7).0)));
}

fn inline(seed: u64) -> (InlineExecutor, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::new());
    (InlineExecutor::new(Arc::clone(&clock), SeededRand::new(seed)), clock)
}

fn three_steps(n: usize) -> StepResult {
    if n < 3 { StepResult::Again } else { StepResult::Done }
}

#[test]
fn jobs_run_to_their_end() {
    both(|b| {
        let ids: Vec<_> = (0..5).map(|_| b.submit("j", three_steps)).collect();
        b.submit_in(Lane::High, "h", three_steps);
        assert!(ids.windows(2).all(|w| w[0] < w[1]));
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 6);
        assert_eq!(b.log.lines().len(), 18);
        b.exec.close();
        assert_eq!(b.log.aborted.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn owners_take_turns_however_many_jobs_they_have() {
    let b = Bench::new(Arc::new(ThreadExecutor::new(Arc::new(OsClock::new()), 1, 1)));
    let (go, gate) = std::sync::mpsc::channel::<()>();
    b.submit("gate", move |_| {
        gate.recv().unwrap();
        StepResult::Done
    });
    for _ in 0..8 {
        b.submit("a", three_steps);
    }
    b.submit("b", three_steps);
    go.send(()).unwrap();
    b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 10);
    assert_eq!(b.log.lines()[..7], ["gate0", "a0", "b0", "a0", "b1", "a0", "b2"]);
    assert_eq!(b.log.lines().len(), 28);
}

#[test]
fn a_panic_aborts_that_job_only() {
    both(|b| {
        b.submit("bad", |n| if n == 2 { panic!("on purpose") } else { StepResult::Again });
        b.submit("good", three_steps);
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 1 && log.aborted.load(Ordering::SeqCst) == 1);
        // The thread that caught the panic still works.
        b.submit("late", three_steps);
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 2);
    });
}

#[test]
fn close_aborts_what_is_left_and_what_comes_later() {
    both(|b| {
        b.submit("waits", |_| StepResult::Wait(Duration::MAX));
        b.submit("ends", three_steps);
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 1);
        b.exec.close();
        assert_eq!(b.log.aborted.load(Ordering::SeqCst), 1);
        b.submit("late", three_steps);
        assert_eq!(b.log.aborted.load(Ordering::SeqCst), 2);
        b.exec.close();
        assert_eq!((b.log.aborted.load(Ordering::SeqCst), b.exec.drive(10)), (2, 0));
    });
}

#[test]
fn a_wake_ends_a_wait() {
    both(|b| {
        let id = b.submit("w", |n| if n == 1 { StepResult::Wait(Duration::MAX) } else { StepResult::Done });
        if b.exec.drive(1) == 0 {
            while b.log.lines().is_empty() {
                std::thread::yield_now();
            }
        }
        assert!(b.exec.knows(id), "it waits");
        b.exec.wake(id);
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 1);
        while b.exec.knows(id) {
            std::thread::yield_now();
        }
        b.exec.wake(id);
        b.exec.wake(JobId(999));
        assert!(!b.exec.knows(JobId(999)));
    });
}

#[test]
fn a_wake_during_the_step_is_remembered() {
    both(|b| {
        let exec = Arc::downgrade(&b.exec);
        b.submit("w", move |n| {
            if n > 1 {
                return StepResult::Done;
            }
            exec.upgrade().unwrap().wake(JobId(1));
            StepResult::Wait(Duration::MAX)
        });
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 1);
    });
}

#[test]
fn a_timed_wait_comes_back() {
    both(|b| {
        let wait = Duration::from_millis(5);
        b.submit("t", move |n| if n < 4 { StepResult::Wait(wait) } else { StepResult::Done });
        b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 1);
    });
}

#[test]
fn threads_start_late_have_names_and_lanes() {
    let b = Bench::new(Arc::new(ThreadExecutor::new(Arc::new(OsClock::new()), 1, 2)));
    let names = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(AtomicBool::new(false));
    for lane in [Lane::Low, Lane::Low, Lane::High] {
        let (names, gate) = (Arc::clone(&names), Arc::clone(&gate));
        b.submit_in(lane, "n", move |_| {
            let mut all = names.lock().unwrap();
            all.push(std::thread::current().name().unwrap_or("?").to_owned());
            if all.len() == 3 {
                gate.store(true, Ordering::SeqCst);
            }
            drop(all);
            // All three at once, so that each needs a thread of its own.
            while !gate.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            StepResult::Done
        });
    }
    b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 3);
    let mut names = names.lock().unwrap().clone();
    names.sort();
    assert_eq!(names, ["ashlar-high-0", "ashlar-low-0", "ashlar-low-1"]);
}

#[test]
fn close_waits_for_the_step_that_runs() {
    let b = Bench::new(Arc::new(ThreadExecutor::new(Arc::new(OsClock::new()), 1, 1)));
    let started = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&started);
    b.submit("long", move |_| {
        flag.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(30));
        StepResult::Again
    });
    while !started.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    b.exec.close();
    let steps = b.log.lines().len();
    assert_eq!(b.log.aborted.load(Ordering::SeqCst), 1);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(b.log.lines().len(), steps, "a step began after close");
}

#[test]
fn the_last_handle_may_be_dropped_by_a_job() {
    let exec: Arc<dyn JobExecutor> = Arc::new(ThreadExecutor::new(Arc::new(OsClock::new()), 1, 1));
    let b = Bench { log: Arc::default(), signal: Arc::new(exec.signal()), exec: Arc::clone(&exec) };
    let mut own = Some(exec);
    let (log, signal) = (Arc::clone(&b.log), Arc::clone(&b.signal));
    b.submit("last", move |n| {
        if n < 3 {
            return StepResult::Again;
        }
        std::thread::sleep(Duration::from_millis(20));
        drop(own.take());
        StepResult::Done
    });
    drop(b);
    while log.finished.load(Ordering::SeqCst) == 0 {
        signal.wait(signal.seen(), Some(Duration::from_millis(5)));
    }
}

#[test]
fn inline_runs_only_when_driven_and_jumps_over_time() {
    let (exec, clock) = inline(1);
    let exec = Arc::new(exec);
    let b = Bench::new(Arc::clone(&exec) as _);
    b.submit("a", |n| if n < 3 { StepResult::Wait(Duration::from_secs(100)) } else { StepResult::Done });
    assert!(b.log.lines().is_empty());
    assert_eq!(exec.drive(1), 1);
    assert_eq!((b.log.lines(), clock.now()), (vec!["a0".to_owned()], Duration::ZERO));
    assert_eq!(exec.drive(100), 2);
    assert_eq!((clock.now(), exec.unfinished()), (Duration::from_secs(200), 0));
    assert_eq!(exec.drive(100), 0);
}

#[test]
fn inline_waits_time_out_on_the_virtual_clock_or_are_stuck() {
    let (exec, clock) = inline(1);
    let b = Bench::new(Arc::new(exec));
    assert_eq!(b.signal.wait(b.signal.seen(), None), Waited::Stuck);
    b.submit("idle", |_| StepResult::Wait(Duration::MAX));
    assert_eq!(b.signal.wait(b.signal.seen(), None), Waited::Stuck);
    let hour = Duration::from_secs(3600);
    assert_eq!(b.signal.wait(b.signal.seen(), Some(hour)), Waited::TimedOut);
    assert_eq!(clock.now(), hour);
    // A job that is due later does not stretch the wait.
    b.submit("later", move |n| if n < 3 { StepResult::Wait(hour * 2) } else { StepResult::Done });
    assert_eq!(b.signal.wait(b.signal.seen(), Some(hour)), Waited::TimedOut);
    assert_eq!(clock.now(), hour * 2);
    assert_eq!(b.signal.wait(b.signal.seen(), None), Waited::Notified);
    assert_eq!(clock.now(), hour * 5);
}

#[test]
fn inline_order_is_the_seeds() {
    let order = |seed| {
        let b = Bench::new(Arc::new(inline(seed).0));
        for name in ["a", "b", "c"] {
            b.submit(name, |n| if n < 6 { StepResult::Again } else { StepResult::Done });
        }
        assert_eq!(b.exec.drive(1000), 18);
        b.log.lines()
    };
    assert_eq!(order(3), order(3));
    assert!((0..8).any(|seed| order(seed) != order(3)));
}

#[test]
fn inline_a_step_that_waits_runs_the_others() {
    let b = Bench::new(Arc::new(inline(1).0));
    let (signal, log) = (Arc::clone(&b.signal), Arc::clone(&b.log));
    b.submit("outer", move |_| {
        while log.finished.load(Ordering::SeqCst) == 0 {
            assert_eq!(signal.wait(signal.seen(), None), Waited::Notified);
        }
        StepResult::Done
    });
    b.submit("inner", three_steps);
    b.wait_for(|log| log.finished.load(Ordering::SeqCst) == 2);
    assert_eq!(b.exec.drive(9), 0);
}

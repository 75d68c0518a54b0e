//! Runs one benchmark: its threads, behind a barrier, and a line about how far they are.
//!
//! 1. All threads start together; their clocks start behind the barrier.
//! 2. The writer beside readers stops when all of them have ended, and is not in the figures.
//! 3. The first error of any thread is the answer; the others run to their end.

use crate::flags::Flags;
use crate::meter::{Meter, Wanted, Watched};
use crate::pace::Pace;
use crate::plan::Plan;
use crate::random::Random;
use crate::stats::{Measured, ThreadStats};
use crate::store::Store;
use crate::values::Values;
use crate::worker::Worker;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Clock;
use ashlar_sync::Signal;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// A benchmark shorter than this shows no progress.
const QUIET: Duration = Duration::from_secs(2);
const REFRESH: Duration = Duration::from_millis(200);

/// What does not change from one benchmark to the next.
pub(crate) struct Runner<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) flags: &'a Flags,
    pub(crate) seed: u64,
    pub(crate) values: Values,
    /// Standard error is a terminal that somebody looks at.
    pub(crate) show_progress: bool,
}

/// What the threads of one benchmark share.
struct Shared {
    barrier: Barrier,
    watched: Vec<Watched>,
    pace: Pace,
    readers: AtomicUsize,
    stop: AtomicBool,
    ended: Signal,
}

impl Runner<'_> {
    /// Runs `plan` on `store`. Its threads draw from the streams `stream..`: if every benchmark of a run began with stream 0,
    /// reads would ask for exactly the keys that were written before them, in that order.
    ///
    /// # Errors
    /// The engine's; `Aborted` when a thread panicked.
    pub(crate) fn run(&self, plan: &Plan, store: &dyn Store, stream: u64) -> Result<Measured> {
        let threads = plan.all_threads();
        let shared = Shared {
            barrier: Barrier::new(threads),
            watched: (0..threads).map(|_| Watched::default()).collect(),
            pace: Pace::new(self.flags.benchmark_write_rate_limit, self.clock.now()),
            readers: AtomicUsize::new(plan.threads),
            stop: AtomicBool::new(false),
            ended: Signal::new(None),
        };
        let results = std::thread::scope(|scope| {
            let shared = &shared;
            let handles: Vec<_> = (0..threads)
                .map(|i| self.start(scope, plan, store, shared, (i, stream + i as u64)))
                .collect();
            self.watch(plan, shared);
            handles.into_iter().map(joined).collect::<Result<Vec<_>>>()
        })?;
        let measured = results.into_iter().take(plan.threads).collect();
        Ok(Measured::new(plan.name, ThreadStats::together(measured)))
    }

    fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        plan: &'s Plan,
        store: &'s dyn Store,
        shared: &'s Shared,
        (thread, stream): (usize, u64),
    ) -> ScopedJoinHandle<'s, Result<ThreadStats>> {
        scope.spawn(move || {
            let values = self.values.for_thread(thread);
            let random = Random::new(self.seed, stream);
            shared.barrier.wait();
            // Ends the readers' count and wakes the watcher even if the work panics.
            let is_writer = thread >= plan.threads;
            let _ending = Ending { shared, is_writer };
            let mut worker = Worker {
                store,
                plan,
                clock: self.clock,
                random,
                values,
                pace: &shared.pace,
                check_every: self.flags.ops_between_duration_checks,
                seek_nexts: self.flags.seek_nexts,
                step_back: self.flags.reverse_iterator,
                meter: Meter::begin(self.clock, &shared.watched[thread], thread, self.wanted()),
            };
            if is_writer { worker.write_until(&shared.stop) } else { worker.run() }?;
            worker.meter.stats.end(self.clock.now());
            Ok(worker.meter.stats)
        })
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            histogram: self.flags.histogram,
            interval: self.flags.stats_interval,
            interval_seconds: self.flags.stats_interval_seconds,
        }
    }

    /// Waits for the readers; on a terminal, tells how far they are.
    fn watch(&self, plan: &Plan, shared: &Shared) {
        if !self.show_progress {
            return;
        }
        let start = self.clock.now();
        let mut shown = false;
        loop {
            let seen = shared.ended.seen();
            if shared.readers.load(Ordering::Acquire) == 0 {
                break;
            }
            shared.ended.wait(seen, Some(REFRESH));
            let passed = self.clock.now() - start;
            if passed >= QUIET {
                shown = true;
                let done = shared.watched.iter().take(plan.threads).map(Watched::get).sum();
                eprint!("\r{}\x1b[K", progress(plan, done, passed));
            }
        }
        if shown {
            eprint!("\r\x1b[K");
        }
    }
}

struct Ending<'a> {
    shared: &'a Shared,
    is_writer: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // Release: pairs with the watcher's Acquire.
        if !self.is_writer && self.shared.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.stop.store(true, Ordering::Relaxed);
            self.shared.ended.notify();
        }
    }
}

fn joined(handle: ScopedJoinHandle<'_, Result<ThreadStats>>) -> Result<ThreadStats> {
    handle
        .join()
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Aborted, "a thread of the benchmark panicked")))
}

/// `fillrandom: 1234567 ops, 45 %, 300000 ops/sec`.
fn progress(plan: &Plan, done: u64, passed: Duration) -> String {
    let seconds = passed.as_secs_f64();
    let part = match (plan.count, plan.duration) {
        (_, Some(all)) => seconds / all.as_secs_f64(),
        (Some(count), None) => done as f64 / (count.max(1) as f64 * plan.threads as f64),
        (None, None) => 0.0,
    };
    let percent = (part * 100.0).min(100.0);
    format!("{}: {done} ops, {percent:.0} %, {:.0} ops/sec", plan.name, done as f64 / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_line() {
        let flags = Flags { num: 1000, threads: 2, ..Flags::default() };
        let plan = Plan::new("fillrandom", &flags).unwrap();
        assert_eq!(progress(&plan, 500, Duration::from_secs(2)), "fillrandom: 500 ops, 25 %, 250 ops/sec");
        let timed = Plan::new("readrandom", &Flags { duration: 10, ..flags }).unwrap();
        assert_eq!(progress(&timed, 500, Duration::from_secs(20)), "readrandom: 500 ops, 100 %, 25 ops/sec");
    }
}

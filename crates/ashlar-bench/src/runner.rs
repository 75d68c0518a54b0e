//! Runs the threads of one benchmark and shows their progress.
//!
//! 1. All threads start together at a barrier; their clocks start after it.
//! 2. The thread beside readers stops when all readers have ended, and does not count in the figures.
//! 3. The first error of any thread is the result. The other threads run to their end.

use crate::course::Course;
use crate::flags::Flags;
use crate::lengths::Lengths;
use crate::meter::{Meter, Wanted, Watched};
use crate::pace::Pace;
use crate::plan::Plan;
use crate::random::Random;
use crate::reporter::Reporter;
use crate::say;
use crate::stats::{Measured, ThreadStats};
use crate::store::Store;
use crate::values::Values;
use crate::worker::Worker;
use ashlar_base::stats::Ticks;
use ashlar_base::stats::perf::{Level, Watch};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{Clock, Fs};
use ashlar_sync::Signal;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// A benchmark shorter than this shows no progress.
const QUIET: Duration = Duration::from_secs(2);
const REFRESH: Duration = Duration::from_millis(200);

/// The settings that all benchmarks of a run share.
pub(crate) struct Runner<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) fs: &'a dyn Fs,
    /// The clock that measures the costs of operations.
    pub(crate) ticks: Ticks,
    pub(crate) flags: &'a Flags,
    pub(crate) seed: u64,
    pub(crate) values: Values,
    /// Whether standard error is a terminal.
    pub(crate) show_progress: bool,
}

/// The state that the threads of one benchmark share.
struct Shared {
    barrier: Barrier,
    watched: Vec<Watched>,
    pace: Pace,
    read_pace: Pace,
    readers: AtomicUsize,
    stop: AtomicBool,
    ended: Signal,
}

impl Runner<'_> {
    /// Runs `plan` on `store`. Its threads draw from the streams `stream..`. If every benchmark of a run began with stream 0,
    /// reads would ask for exactly the keys of the preceding writes, in the same order.
    ///
    /// # Errors
    /// The engine's; `Aborted` when a thread panicked.
    pub(crate) fn run(&self, plan: &Plan, store: &dyn Store, stream: u64) -> Result<Measured> {
        let threads = plan.all_threads();
        let shared = Shared {
            barrier: Barrier::new(threads),
            watched: (0..threads).map(|_| Watched::default()).collect(),
            pace: Pace::new(self.flags.benchmark_write_rate_limit, self.clock.now()),
            read_pace: Pace::new(self.flags.benchmark_read_rate_limit, self.clock.now()),
            readers: AtomicUsize::new(plan.threads),
            stop: AtomicBool::new(false),
            ended: Signal::new(None),
        };
        let results = std::thread::scope(|scope| {
            let shared = &shared;
            let handles: Vec<_> = (0..threads)
                .map(|i| self.start(scope, plan, store, shared, (i, stream + i as u64)))
                .collect();
            let watched = self.watch(plan, shared);
            let results = handles.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
            watched.map(|per_second| (results, per_second))
        })?;
        let (results, per_second) = results;
        let measured = results.into_iter().take(plan.threads).collect();
        Ok(Measured { per_second, ..Measured::new(plan.name, ThreadStats::together(measured)) })
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
            let is_beside = thread >= plan.threads;
            let _ending = Ending { shared, is_beside };
            let mut meter = Meter::begin(self.clock, &shared.watched[thread], thread, self.wanted());
            if thread == 0 && self.flags.stats_per_interval > 0 {
                meter = meter.with_statistics(store);
            }
            let mut worker = Worker {
                store,
                plan,
                clock: self.clock,
                random,
                values,
                lengths: Lengths::new(plan.lengths, self.seed, stream),
                pace: &shared.pace,
                read_pace: &shared.read_pace,
                check_every: self.flags.ops_between_duration_checks,
                seek_nexts: self.flags.seek_nexts,
                step_back: self.flags.reverse_iterator,
                scan_distance: self.flags.max_scan_distance,
                multiread_stride: self.flags.multiread_stride,
                block_size: usize::try_from(self.flags.block_size.unwrap_or(4096)).unwrap_or(4096),
                codec: &self.flags.compression_type,
                beside_count: self.flags.finish_after_writes.then(|| self.writes()),
                merge_keys: u64::try_from(self.flags.merge_keys).unwrap_or(self.flags.num).max(1),
                meter,
            };
            let watch = self.watch_cost();
            if is_beside { worker.beside(&shared.stop) } else { worker.run() }?;
            worker.meter.stats.end(self.clock.now());
            if let Some(watch) = watch {
                let message = worker.meter.stats.message.take().unwrap_or_default();
                let text = format!("{message} PERF_CONTEXT:\n{}", watch.seen());
                worker.meter.stats.message = Some(text.trim_start().to_owned());
            }
            Ok(worker.meter.stats)
        })
    }

    /// Counts the costs of this thread's operations, if requested.
    fn watch_cost(&self) -> Option<Watch> {
        let level = u8::try_from(self.flags.perf_level).ok().and_then(Level::from_number)?;
        (level > Level::Disable).then(|| Watch::begin(level, self.ticks.clone()))
    }

    /// The number of writes of a thread.
    fn writes(&self) -> u64 {
        u64::try_from(self.flags.writes).unwrap_or(self.flags.num)
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            histogram: self.flags.histogram,
            interval: self.flags.stats_interval,
            interval_seconds: self.flags.stats_interval_seconds,
        }
    }

    /// Waits for the readers. Shows their progress on a terminal, and writes the file of intervals. Returns the operations of
    /// each second, if a page needs them.
    fn watch(&self, plan: &Plan, shared: &Shared) -> Result<Vec<u64>> {
        let start = self.clock.now();
        let mut reporter = self.reporter(start)?;
        let mut course = self.flags.report.as_ref().map(|_| Course::begin(start));
        if !self.show_progress && reporter.is_none() && course.is_none() {
            return Ok(Vec::new());
        }
        let mut shown = false;
        let mut told = Ok(());
        loop {
            let seen = shared.ended.seen();
            if shared.readers.load(Ordering::Acquire) == 0 {
                break;
            }
            let now = self.clock.now();
            let refresh = self.show_progress.then_some(REFRESH);
            let left =
                [refresh, reporter.as_ref().map(|r| r.left(now)), course.as_ref().map(|c| c.left(now))];
            let wait = left.into_iter().flatten().min().unwrap_or(REFRESH);
            shared.ended.wait(seen, Some(wait));
            let now = self.clock.now();
            let done = |threads| shared.watched.iter().take(threads).map(Watched::get).sum();
            if let Some(reporter) = &mut reporter {
                told = told.and_then(|()| reporter.tell(now, done(plan.all_threads())));
            }
            if let Some(course) = &mut course {
                course.tell(now, done(plan.threads));
            }
            if self.show_progress && now - start >= QUIET {
                shown = true;
                say::part(&format!("\r{}\x1b[K", progress(plan, done(plan.threads), now - start)));
            }
        }
        if shown {
            say::part("\r\x1b[K");
        }
        told.map(|()| course.map_or_else(Vec::new, Course::end))
    }

    fn reporter(&self, now: Duration) -> Result<Option<Reporter>> {
        let seconds = self.flags.report_interval_seconds;
        let path = Path::new(&self.flags.report_file);
        let new = || Reporter::new(self.fs, path, Duration::from_secs(seconds), now);
        if seconds > 0 { new().map(Some) } else { Ok(None) }
    }
}

struct Ending<'a> {
    shared: &'a Shared,
    is_beside: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // Release: pairs with the watcher's Acquire.
        if !self.is_beside && self.shared.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
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

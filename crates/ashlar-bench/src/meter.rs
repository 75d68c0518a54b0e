//! Counts a thread's operations while it works: for its figures, for progress, and for interval lines.

use crate::calendar::Moment;
use crate::say;
use crate::stats::{OpKind, ThreadStats};
use crate::store::Store;
use ashlar_env::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a thread measures besides the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Latencies of single operations. Costs a read of the clock for each operation.
    pub(crate) histogram: bool,
    /// Operations from one interval line to the next; 0: no lines.
    pub(crate) interval: u64,
    /// Seconds from one interval line to the next; 0: no lines. Checked every 1000 operations, or after each with a histogram.
    pub(crate) interval_seconds: u64,
}

/// Has its own cache line, because each thread writes its counter after every operation.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Watched(AtomicU64);

impl Watched {
    /// Operations so far. The value may be a little old.
    pub(crate) fn get(&self) -> u64 {
        // Relaxed: a count.
        self.0.load(Ordering::Relaxed)
    }
}

/// The figures of one thread.
pub(crate) struct Meter<'a> {
    pub(crate) stats: ThreadStats,
    clock: &'a dyn Clock,
    watched: &'a Watched,
    thread: usize,
    wanted: Wanted,
    /// The store whose statistics each interval line prints.
    store: Option<&'a dyn Store>,
    last_op: Duration,
    last_line: (u64, Duration),
}

impl<'a> Meter<'a> {
    /// Starts the measurement now.
    pub(crate) fn begin(clock: &'a dyn Clock, watched: &'a Watched, thread: usize, wanted: Wanted) -> Self {
        let now = clock.now();
        let stats = ThreadStats::begin(now);
        Meter { stats, clock, watched, thread, wanted, store: None, last_op: now, last_line: (0, now) }
    }

    /// Also prints the statistics of `store` with every interval line.
    pub(crate) fn with_statistics(mut self, store: &'a dyn Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Discards the measurement so far.
    pub(crate) fn restart(&mut self) {
        let now = self.clock.now();
        (self.stats, self.last_op, self.last_line) = (ThreadStats::begin(now), now, (0, now));
    }

    /// Records that `n` operations ended together.
    #[inline]
    pub(crate) fn finished(&mut self, n: u64, kind: OpKind) {
        self.stats.done += n;
        self.watched.0.store(self.stats.done, Ordering::Relaxed);
        if self.wanted != Wanted::default() {
            self.more(kind);
        }
    }

    /// Records the end of one operation that took the whole time of the benchmark.
    pub(crate) fn finished_once(&mut self) {
        self.stats.done += 1;
        self.watched.0.store(self.stats.done, Ordering::Relaxed);
    }

    #[cold]
    fn more(&mut self, kind: OpKind) {
        if self.wanted.histogram {
            let now = self.clock.now();
            let micros = u64::try_from((now - self.last_op).as_micros()).unwrap_or(u64::MAX);
            self.stats.histograms.entry(kind).or_default().add(micros);
            self.last_op = now;
        }
        let since = self.stats.done - self.last_line.0;
        let by_count = self.wanted.interval > 0 && since >= self.wanted.interval;
        let look = self.wanted.interval_seconds > 0
            && (self.wanted.histogram || self.stats.done.is_multiple_of(1000));
        if by_count || look {
            let now = self.clock.now();
            if by_count || (now - self.last_line.1).as_secs() >= self.wanted.interval_seconds {
                say::line(&self.line(now));
                if let Some(text) = self.store.and_then(|store| store.property("stats")) {
                    say::line(text.trim_end());
                }
                self.last_line = (self.stats.done, now);
            }
        }
    }

    fn line(&self, now: Duration) -> String {
        let (done, at) = self.last_line;
        let (part, whole) = ((now - at).as_secs_f64(), (now - self.stats.start).as_secs_f64());
        let (ops, total) = (self.stats.done - done, self.stats.done);
        let rate = |n: u64, seconds: f64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        format!(
            "{}  ... thread {}: ({ops},{total}) ops and ({:.1},{:.1}) ops/second in ({part:.6},{whole:.6}) seconds",
            Moment::new(self.clock.unix_micros()).sortable(),
            self.thread,
            rate(ops, part),
            rate(total, whole)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::VirtualClock;

    #[test]
    fn keeps_latencies_and_shows_the_way() {
        let (clock, watched) = (VirtualClock::new(), Watched::default());
        let mut meter = Meter::begin(&clock, &watched, 3, Wanted { histogram: true, ..Wanted::default() });
        for micros in [5, 50] {
            clock.advance(Duration::from_micros(micros));
            meter.finished(1, OpKind::Read);
        }
        assert_eq!((watched.get(), meter.stats.histograms[&OpKind::Read].average()), (2, 27.5));
        clock.advance(Duration::from_secs(2) - Duration::from_micros(55));
        assert_eq!(
            meter.line(clock.now()),
            "2020/01/01-00:00:02  ... thread 3: (2,2) ops and (1.0,1.0) ops/second in (2.000000,2.000000) seconds"
        );
    }
}

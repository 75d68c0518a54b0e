//! Tickers and distributions of one database, or of several that share them.
//!
//! Levels, from least to most; in brackets what each adds:
//! ```text
//! DisableAll < ExceptHistogramOrTimers (tickers) < ExceptTimers (sizes and counts) < ExceptDetailedTimers (times)
//!            < ExceptTimeForMutex (times of compression too) < All
//! ```

use super::counters::Counters;
use super::histogram::{AtomicHistogram, Histogram};
use super::names::{Distribution, Ticker};
use super::ticks::Ticks;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a database counts. The levels are RocksDB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StatsLevel {
    /// Nothing.
    DisableAll,
    /// Tickers only.
    ExceptHistogramOrTimers,
    /// Tickers, and distributions that need no clock.
    ExceptTimers,
    /// Everything except the times of compression and of waiting for locks.
    ExceptDetailedTimers,
    /// Everything except the times of waiting for locks.
    ExceptTimeForMutex,
    /// Everything.
    All,
}

impl StatsLevel {
    const ALL: [StatsLevel; 6] = [
        StatsLevel::DisableAll,
        StatsLevel::ExceptHistogramOrTimers,
        StatsLevel::ExceptTimers,
        StatsLevel::ExceptDetailedTimers,
        StatsLevel::ExceptTimeForMutex,
        StatsLevel::All,
    ];

    /// The level with RocksDB's number, 0 to 5.
    pub fn from_number(number: u8) -> Option<StatsLevel> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

const TICKERS: usize = Ticker::ALL.len();
const DISTRIBUTIONS: usize = Distribution::ALL.len();

/// Tickers and distributions. Counting takes no lock.
pub struct Statistics {
    /// The level as a number. Relaxed: a thread that counts may see a change late.
    level: AtomicU8,
    tickers: Counters<TICKERS>,
    distributions: [OnceLock<AtomicHistogram>; DISTRIBUTIONS],
    ticks: OnceLock<Ticks>,
}

impl Statistics {
    /// All counts at zero, at RocksDB's default level: everything except the times of compression and of waiting for
    /// locks.
    pub fn new() -> Statistics {
        Self::at_level(StatsLevel::ExceptDetailedTimers)
    }

    /// All at zero.
    pub fn at_level(level: StatsLevel) -> Statistics {
        Statistics {
            level: AtomicU8::new(level as u8),
            tickers: Counters::new(),
            distributions: std::array::from_fn(|_| OnceLock::new()),
            ticks: OnceLock::new(),
        }
    }

    /// The current level.
    #[inline]
    pub fn level(&self) -> StatsLevel {
        StatsLevel::from_number(self.level.load(Ordering::Relaxed)).unwrap_or(StatsLevel::All)
    }

    /// Sets the level for counts from now on.
    pub fn set_level(&self, level: StatsLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    #[inline]
    fn counts(&self, level: StatsLevel) -> bool {
        self.level.load(Ordering::Relaxed) >= level as u8
    }

    /// Sets the clock for times. Only the first call has an effect. Without a clock no time is counted.
    #[doc(hidden)]
    pub fn attach(&self, ticks: Ticks) {
        let _ = self.ticks.set(ticks);
    }

    /// Adds to a ticker.
    ///
    /// # Cost
    /// About a nanosecond; see [`Counters`].
    #[inline]
    #[doc(hidden)]
    pub fn add(&self, ticker: Ticker, n: u64) {
        if self.counts(StatsLevel::ExceptHistogramOrTimers) {
            self.tickers.add(ticker as usize, n);
        }
    }

    /// Adds to several tickers; cheaper than one call for each.
    #[inline]
    #[doc(hidden)]
    pub fn add_all<const N: usize>(&self, counts: [(Ticker, u64); N]) {
        if self.counts(StatsLevel::ExceptHistogramOrTimers) {
            self.tickers.add_all(counts.map(|(ticker, n)| (ticker as usize, n)));
        }
    }

    /// Adds 1 to a ticker.
    #[inline]
    #[doc(hidden)]
    pub fn tick(&self, ticker: Ticker) {
        self.add(ticker, 1);
    }

    /// The value of a ticker.
    pub fn ticker(&self, ticker: Ticker) -> u64 {
        self.tickers.sum(ticker as usize)
    }

    /// Adds a size or a number to a distribution.
    #[inline]
    #[doc(hidden)]
    pub fn measure(&self, of: Distribution, value: u64) {
        if self.counts(StatsLevel::ExceptTimers) {
            self.record(of, value);
        }
    }

    /// Starts a timer. Dropping the guard adds the time to the distribution, in the unit of the distribution's name.
    #[inline]
    #[doc(hidden)]
    pub fn time(&self, of: Distribution) -> Option<Timed<'_>> {
        if self.counts(StatsLevel::ExceptDetailedTimers) { self.begin(of) } else { None }
    }

    /// [`Statistics::time`] for work that happens per block: counts only above the default level.
    #[inline]
    #[doc(hidden)]
    pub fn time_in_detail(&self, of: Distribution) -> Option<Timed<'_>> {
        if self.counts(StatsLevel::ExceptTimeForMutex) { self.begin(of) } else { None }
    }

    /// The present time, if times are counted; for callers that cannot hold a guard. See [`Statistics::took`].
    #[inline]
    #[doc(hidden)]
    pub fn now(&self) -> Option<u64> {
        if self.counts(StatsLevel::ExceptDetailedTimers) { self.ticks.get().map(Ticks::now) } else { None }
    }

    /// Adds the time since `start`, which [`Statistics::now`] returned.
    #[inline]
    #[doc(hidden)]
    pub fn took(&self, of: Distribution, start: Option<u64>) {
        if let (Some(from), Some(ticks)) = (start, self.ticks.get()) {
            drop(Timed { statistics: self, ticks, of, from });
        }
    }

    #[cold]
    fn begin(&self, of: Distribution) -> Option<Timed<'_>> {
        let ticks = self.ticks.get()?;
        Some(Timed { statistics: self, ticks, of, from: ticks.now() })
    }

    #[cold]
    fn record(&self, of: Distribution, value: u64) {
        if let Some(cell) = self.distributions.get(of as usize) {
            cell.get_or_init(AtomicHistogram::new).add(value);
        }
    }

    /// The histogram of a distribution.
    pub fn distribution(&self, of: Distribution) -> Histogram {
        let cell = self.distributions.get(of as usize).and_then(OnceLock::get);
        cell.map(AtomicHistogram::snapshot).unwrap_or_default()
    }

    /// Sets every ticker and distribution to zero.
    pub fn reset(&self) {
        self.tickers.reset();
        self.distributions.iter().filter_map(OnceLock::get).for_each(AtomicHistogram::reset);
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Statistics({:?})", self.level())
    }
}

/// The text that RocksDB prints: a line for each ticker, then a line for each distribution.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ticker in Ticker::ALL {
            writeln!(f, "{} COUNT : {}", ticker.name(), self.ticker(*ticker))?;
        }
        for of in Distribution::ALL {
            let h = self.distribution(*of);
            let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| h.percentile(percent));
            writeln!(
                f,
                "{} P50 : {p50:.6} P95 : {p95:.6} P99 : {p99:.6} P100 : {:.6} COUNT : {} SUM : {}",
                of.name(),
                h.max() as f64,
                h.count(),
                h.sum()
            )?;
        }
        Ok(())
    }
}

/// A running timer.
#[derive(Debug)]
pub struct Timed<'a> {
    statistics: &'a Statistics,
    ticks: &'a Ticks,
    of: Distribution,
    from: u64,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let nanos = self.ticks.now().saturating_sub(self.from);
        let unit = if self.of.name().ends_with("nanos") { 1 } else { 1000 };
        self.statistics.record(self.of, nanos / unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    fn stepping() -> Ticks {
        let now = Arc::new(AtomicU64::new(0));
        Ticks::new(move || now.fetch_add(7_000, Ordering::Relaxed))
    }

    #[test]
    fn levels_decide_what_is_counted() {
        let counted = |level| {
            let s = Statistics::at_level(level);
            s.attach(stepping());
            s.tick(Ticker::NumberKeysRead);
            s.measure(Distribution::BytesPerRead, 100);
            drop(s.time(Distribution::DbGetMicros));
            drop(s.time_in_detail(Distribution::CompressionTimesNanos));
            (
                s.ticker(Ticker::NumberKeysRead),
                s.distribution(Distribution::BytesPerRead).sum(),
                s.distribution(Distribution::DbGetMicros).sum(),
                s.distribution(Distribution::CompressionTimesNanos).sum(),
            )
        };
        assert_eq!(counted(StatsLevel::DisableAll), (0, 0, 0, 0));
        assert_eq!(counted(StatsLevel::ExceptHistogramOrTimers), (1, 0, 0, 0));
        assert_eq!(counted(StatsLevel::ExceptTimers), (1, 100, 0, 0));
        assert_eq!(counted(StatsLevel::ExceptDetailedTimers), (1, 100, 7, 0));
        assert_eq!(counted(StatsLevel::All), (1, 100, 7, 7000));
        assert_eq!(StatsLevel::from_number(3), Some(Statistics::new().level()));
        assert_eq!(StatsLevel::from_number(6), None);
    }

    #[test]
    fn the_text_is_the_one_that_scripts_read() {
        let s = Statistics::new();
        s.add(Ticker::BlockCacheMiss, 12);
        [3, 1, 7].into_iter().for_each(|v| s.measure(Distribution::BytesPerRead, v));
        let text = s.to_string();
        assert!(text.starts_with("rocksdb.block.cache.miss COUNT : 12\nrocksdb.block.cache.hit COUNT : 0\n"));
        let line = "rocksdb.bytes.per.read P50 : 2.500000 P95 : 7.000000 P99 : 7.000000 P100 : 7.000000 COUNT : 3 SUM : 11\n";
        assert!(text.contains(line), "{text}");
        let empty = "rocksdb.db.get.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0\n";
        assert!(text.contains(empty), "{text}");
        s.reset();
        assert_eq!(
            (s.ticker(Ticker::BlockCacheMiss), s.distribution(Distribution::BytesPerRead).count()),
            (0, 0)
        );
    }

    #[test]
    fn every_name_is_found_and_no_name_twice() {
        let mut names: Vec<&str> = Ticker::ALL.iter().map(|t| t.name()).collect();
        names.extend(Distribution::ALL.iter().map(|d| d.name()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|n| n.starts_with("rocksdb.")));
        assert!(Ticker::ALL.iter().all(|t| Ticker::named(t.name()) == Some(*t)));
        assert_eq!(Distribution::named("rocksdb.db.get.micros"), Some(Distribution::DbGetMicros));
        assert_eq!(Ticker::named("rocksdb.row.cache.hit"), None);
    }
}

//! The measurements of a loop: the time of each operation, and the operations of each second.
//!
//! 1. [`Meter::ended`] reads the clock once per operation: the end of one is the beginning of the next. So the driver's own
//!    part, the next key and value, is in every latency. [`Meter::ended_due`] counts from a given moment instead.
//! 2. An operation counts in the second in which it ended. The last second, if it is not a whole one, is left out.
//! 3. Each thread has its own meter; they are put together when all have ended.

use ashlar_report::record::{From, Latency};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const HOUR_NANOS: u64 = 3_600_000_000_000;
/// The precision of latencies, in digits.
const DIGITS: u8 = 3;

/// The kinds of operations of a program.
pub trait Kinds: Copy + Send + 'static {
    /// Every kind, in the order of [`Kinds::place`].
    const ALL: &'static [Self];

    /// The place in [`Kinds::ALL`].
    fn place(self) -> usize;

    /// The name in records.
    fn text(self) -> &'static str;
}

/// The operations that ended in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Operations.
    pub ops: u64,
    /// Nanoseconds of the longest operation.
    pub longest: u64,
}

impl Second {
    fn add(&mut self, other: Second) {
        self.ops += other.ops;
        self.longest = self.longest.max(other.longest);
    }
}

/// A loop's own measurements.
#[derive(Clone, Debug)]
pub struct Meter<K> {
    limit: Option<Duration>,
    /// Arrivals per second of an open loop.
    rate: Option<f64>,
    start: Instant,
    last: Instant,
    end: Option<Instant>,
    /// The end of this second.
    turn: Instant,
    second: Second,
    seconds: Vec<Second>,
    seen: Vec<Option<Box<Histogram<u32>>>>,
    kinds: PhantomData<K>,
}

impl<K: Kinds> Meter<K> {
    /// For a loop that the clock ends after `seconds`; 0: never.
    pub fn new(seconds: f64) -> Meter<K> {
        let now = Instant::now();
        Meter {
            limit: (seconds > 0.0).then(|| Duration::from_secs_f64(seconds)),
            rate: None,
            start: now,
            last: now,
            end: None,
            turn: now,
            second: Second::default(),
            seconds: Vec::new(),
            seen: vec![None; K::ALL.len()],
            kinds: PhantomData,
        }
    }

    /// Starts the measurement, after the preparation. Returns the start time.
    pub fn begin(&mut self) -> Instant {
        let now = Instant::now();
        (self.start, self.last, self.turn) = (now, now, now + SECOND);
        self.end = self.limit.map(|limit| now + limit);
        now
    }

    /// The same, of an open loop: latencies count from when an operation was due.
    pub fn begin_paced(&mut self, rate: f64) -> Instant {
        self.rate = Some(rate);
        self.begin()
    }

    /// A call ended that did `n` operations.
    #[inline]
    pub fn ended(&mut self, kind: K, n: u64) {
        let now = Instant::now();
        self.note(kind, n, now, now - self.last);
    }

    /// An operation ended that was due at `due`.
    pub fn ended_due(&mut self, kind: K, due: Instant) {
        let now = Instant::now();
        self.note(kind, 1, now, now.saturating_duration_since(due));
    }

    #[inline]
    fn note(&mut self, kind: K, n: u64, now: Instant, took: Duration) {
        self.last = now;
        if now >= self.turn {
            self.next_second(now);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(HOUR_NANOS);
        self.second.ops += n;
        self.second.longest = self.second.longest.max(nanos);
        match &mut self.seen[kind.place()] {
            Some(seen) => seen.saturating_record(nanos),
            none => {
                *none = first(nanos);
                // Its creation is not part of the next operation.
                self.last = Instant::now();
            }
        }
    }

    /// Seconds without an operation count too.
    #[cold]
    fn next_second(&mut self, now: Instant) {
        while now >= self.turn {
            self.seconds.push(std::mem::take(&mut self.second));
            self.turn += SECOND;
        }
    }

    /// `n` operations ended that were too few to be timed.
    pub fn untimed(&mut self, n: u64) {
        self.second.ops += n;
        self.last = Instant::now();
    }

    /// True when the clock ends the loop. Costs nothing: the clock was read when the operation ended.
    #[inline]
    pub fn over(&self) -> bool {
        self.end.is_some_and(|end| self.last >= end)
    }

    /// From the beginning to the end of the last operation.
    pub fn elapsed(&self) -> Duration {
        self.last - self.start
    }

    /// Two threads together. They began in the same second or little apart; the one that ended earlier has nothing in the
    /// rest of the other's seconds.
    pub fn and(mut self, mut other: Meter<K>) -> Meter<K> {
        self.start = self.start.min(other.start);
        self.last = self.last.max(other.last);
        let whole = self.seconds.len().max(other.seconds.len());
        for meter in [&mut self, &mut other] {
            while meter.seconds.len() < whole {
                meter.seconds.push(std::mem::take(&mut meter.second));
            }
        }
        self.second.add(other.second);
        for (second, more) in self.seconds.iter_mut().zip(&other.seconds) {
            second.add(*more);
        }
        for (seen, more) in self.seen.iter_mut().zip(other.seen) {
            match (seen, more) {
                // Both have the same bounds: adding cannot fail.
                (Some(seen), Some(more)) => drop(seen.add(&*more)),
                (seen, Some(more)) => *seen = Some(more),
                (_, None) => {}
            }
        }
        self
    }

    /// Whole seconds, one after the other.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// The latencies of each kind that occurred.
    pub fn latencies(&self) -> BTreeMap<String, Latency> {
        let kinds = K::ALL.iter().zip(&self.seen);
        kinds
            .filter_map(|(kind, seen)| Some((kind.text().to_owned(), self.latency(seen.as_ref()?))))
            .collect()
    }

    /// Percentiles, in microseconds, of nanoseconds.
    fn latency(&self, seen: &Histogram<u32>) -> Latency {
        let at = |part| seen.value_at_quantile(part) as f64 / 1000.0;
        Latency {
            from: if self.rate.is_some() { From::Intended } else { From::Start },
            rate: self.rate,
            count: seen.len(),
            mean: seen.mean() / 1000.0,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: seen.max() as f64 / 1000.0,
        }
    }
}

/// Shorter waits are spun away: a sleep is not that exact.
const SLEEP_FROM: Duration = Duration::from_micros(300);

/// Waits until `due`, if that is still to come.
pub fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SLEEP_FROM { std::thread::sleep(left - SLEEP_FROM / 2) } else { std::hint::spin_loop() }
    }
}

#[cold]
fn first(nanos: u64) -> Option<Box<Histogram<u32>>> {
    // The bounds are as the library wants them.
    let mut seen = Histogram::new_with_bounds(1, HOUR_NANOS, DIGITS).ok()?;
    seen.saturating_record(nanos);
    Some(Box::new(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Kind {
        Read,
        Write,
    }

    impl Kinds for Kind {
        const ALL: &'static [Kind] = &[Kind::Read, Kind::Write];

        fn place(self) -> usize {
            self as usize
        }

        fn text(self) -> &'static str {
            match self {
                Kind::Read => "read",
                Kind::Write => "write",
            }
        }
    }

    type Meter = super::Meter<Kind>;

    /// A meter that began at `start`, with operations that ended after these milliseconds.
    fn told(start: Instant, ended: &[u64]) -> Meter {
        let mut meter = Meter::new(0.0);
        meter.begin();
        (meter.start, meter.turn) = (start, start + SECOND);
        let mut last = 0;
        for &at in ended {
            meter.note(Kind::Read, 1, start + Duration::from_millis(at), Duration::from_millis(at - last));
            last = at;
        }
        meter.last = start + Duration::from_millis(last);
        meter
    }

    #[test]
    fn a_stall_is_seconds_without_operations_and_the_longest_one() {
        let start = Instant::now();
        let meter = told(start, &[400, 900, 3200, 3300, 4100]);
        let second = |ops, ms: u64| Second { ops, longest: ms * 1_000_000 };
        assert_eq!(meter.seconds(), [second(2, 500), second(0, 0), second(0, 0), second(2, 2300)]);
        let seen = &meter.latencies()["read"];
        assert_eq!((seen.count, seen.from, seen.rate), (5, From::Start, None));
        assert!((seen.max / 2_300_000.0 - 1.0).abs() < 0.002, "{seen:?}");
        assert!((seen.p50 / 500_000.0 - 1.0).abs() < 0.002, "{seen:?}");
        assert_eq!(meter.elapsed(), Duration::from_millis(4100));
    }

    #[test]
    fn threads_are_put_together() {
        let start = Instant::now();
        let both = told(start, &[500, 1500, 2500]).and(told(start, &[900, 1100]));
        assert_eq!(both.seconds().iter().map(|s| s.ops).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(both.seconds()[0].longest, 900_000_000);
        assert_eq!((both.latencies()["read"].count, both.elapsed()), (5, Duration::from_millis(2500)));
        let one = Meter::new(0.0).and(told(start, &[500]));
        assert_eq!(one.latencies().len(), 1);
    }

    #[test]
    fn the_clock_ends_a_loop() {
        let mut meter = Meter::new(0.0);
        meter.begin();
        meter.ended(Kind::Write, 1);
        assert!(!meter.over());
        let mut meter = Meter::new(1e-9);
        meter.begin();
        std::thread::sleep(Duration::from_millis(1));
        meter.ended(Kind::Write, 10);
        assert!(meter.over());
    }

    #[test]
    fn an_open_loop_counts_from_when_it_was_due() {
        let mut meter = Meter::new(0.0);
        let start = meter.begin_paced(100.0);
        std::thread::sleep(Duration::from_millis(5));
        meter.ended_due(Kind::Write, start);
        meter.ended_due(Kind::Write, start + SECOND);
        let seen = &meter.latencies()["write"];
        assert_eq!((seen.count, seen.from, seen.rate), (2, From::Intended, Some(100.0)));
        assert!(seen.max >= 5000.0, "{seen:?}");
    }
}

//! The pace of the whole database, as the write path reads it.

use crate::{Pace, Rates};
use ashlar_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::time::Duration;

/// While compaction work is due, a low-priority write is delayed by this many times the measured cost of its bytes.
const LOW_PRIORITY_FACTOR: f64 = 4.0;

/// The pace of the whole database, as the write path reads it.
#[derive(Debug)]
pub struct Pressure {
    /// Bits of nanoseconds per byte; infinity = stop. Written under the state lock, read as a hint.
    nanos_per_byte: AtomicU64,
    /// Bits of the additional nanoseconds per byte for low-priority writes.
    low_priority_nanos: AtomicU64,
    /// The number of leaders that are delayed or stopped.
    holding: AtomicUsize,
    rates: Mutex<Rates>,
    slowed_micros: AtomicU64,
    stopped_micros: AtomicU64,
    stops: AtomicU64,
}

impl Pressure {
    /// No delay yet.
    #[expect(clippy::new_without_default, reason = "a database has one")]
    pub fn new() -> Self {
        Pressure {
            nanos_per_byte: AtomicU64::new(0),
            low_priority_nanos: AtomicU64::new(0),
            holding: AtomicUsize::new(0),
            rates: Mutex::new(Rank::Leaf, Rates::default()),
            slowed_micros: AtomicU64::new(0),
            stopped_micros: AtomicU64::new(0),
            stops: AtomicU64::new(0),
        }
    }

    /// Records the sums of bytes flushed and compacted up to `now`, and whether a compaction runs; see [`Rates`].
    pub fn measure(&self, now: Duration, sums: (u64, u64), runs: bool) -> Rates {
        let mut rates = self.rates.lock();
        rates.note(now, sums, runs);
        *rates
    }

    /// Sets the additional delay of low-priority writes while background work is `due`.
    pub fn set_low_priority(&self, due: bool, sustained: f64) {
        let nanos = if due { 1e9 / sustained * LOW_PRIORITY_FACTOR } else { 0.0 };
        self.low_priority_nanos.store(nanos.to_bits(), Ordering::Relaxed);
    }

    /// The additional pace of low-priority writes.
    pub fn low_priority_pace(&self) -> Pace {
        Pace::of(f64::from_bits(self.low_priority_nanos.load(Ordering::Relaxed)))
    }

    /// A leader begins or ends waiting.
    pub fn hold(&self, begins: bool) {
        if begins {
            self.holding.fetch_add(1, Ordering::Relaxed);
        } else {
            self.holding.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether a leader waits, and with it all writers behind it.
    pub fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Relaxed) > 0
    }

    /// Sets the slowest of all families' paces.
    pub fn set(&self, paces: impl Iterator<Item = Pace>) {
        let slowest = paces.map(Pace::nanos_per_byte).fold(0.0, f64::max);
        self.nanos_per_byte.store(slowest.to_bits(), Ordering::Relaxed);
    }

    /// The current pace.
    pub fn pace(&self) -> Pace {
        Pace::of(f64::from_bits(self.nanos_per_byte.load(Ordering::Relaxed)))
    }

    /// Records how long writers were held.
    pub fn held(&self, how: Pace, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if how == Pace::Stop {
            self.stops.fetch_add(1, Ordering::Relaxed);
            self.stopped_micros.fetch_add(micros, Ordering::Relaxed);
        } else {
            self.slowed_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// The number of stops, and the times writers spent stopped and slowed.
    pub fn totals(&self) -> (u64, Duration, Duration) {
        let time = |of: &AtomicU64| Duration::from_micros(of.load(Ordering::Relaxed));
        (self.stops.load(Ordering::Relaxed), time(&self.stopped_micros), time(&self.slowed_micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_family_counts() {
        let p = Pressure::new();
        p.set(
            [Pace::Free, Pace::Slow { nanos_per_byte: 5.0 }, Pace::Slow { nanos_per_byte: 2.0 }].into_iter(),
        );
        assert_eq!(p.pace(), Pace::Slow { nanos_per_byte: 5.0 });
        assert_eq!(p.pace().delay(1000), Duration::from_micros(5));
        p.set([Pace::Stop].into_iter());
        assert_eq!(p.pace(), Pace::Stop);
        p.set(std::iter::empty());
        assert_eq!(p.pace(), Pace::Free);
    }
}

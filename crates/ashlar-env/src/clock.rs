//! Time: the machine's clock, and a clock that moves only when a test moves it.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock.
pub trait Clock: Send + Sync + Debug {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;

    /// Microseconds since 1970. May jump.
    fn unix_micros(&self) -> u64;

    /// Lets `d` pass.
    fn sleep(&self, d: Duration);
}

/// 2020-01-01 00:00:00 UTC: where virtual time starts.
const START_UNIX_MICROS: u64 = 1_577_836_800_000_000;

/// A clock that moves only when a caller sleeps on it or advances it. Starts at 2020-01-01.
#[derive(Debug)]
pub struct VirtualClock {
    nanos: AtomicU64,
    unix_micros_at_zero: AtomicU64,
}

impl VirtualClock {
    /// A clock at its start.
    pub fn new() -> Self {
        VirtualClock { nanos: AtomicU64::new(0), unix_micros_at_zero: AtomicU64::new(START_UNIX_MICROS) }
    }

    /// Lets `d` pass at once.
    pub fn advance(&self, d: Duration) {
        let nanos = u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: a clock orders nothing.
        let _ =
            self.nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(nanos)));
    }

    /// Sets the wall clock, backwards too. The monotonic time is not touched.
    pub fn set_unix_micros(&self, micros: u64) {
        let passed = self.nanos.load(Ordering::Relaxed) / 1000;
        self.unix_micros_at_zero.store(micros.wrapping_sub(passed), Ordering::Relaxed);
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn unix_micros(&self) -> u64 {
        let passed = self.nanos.load(Ordering::Relaxed) / 1000;
        self.unix_micros_at_zero.load(Ordering::Relaxed).wrapping_add(passed)
    }

    fn sleep(&self, d: Duration) {
        self.advance(d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_only_when_told() {
        let c = VirtualClock::new();
        let start = c.unix_micros();
        assert_eq!(c.now(), Duration::ZERO);
        c.sleep(Duration::from_secs(3));
        assert_eq!((c.now(), c.unix_micros()), (Duration::from_secs(3), start + 3_000_000));
        c.set_unix_micros(5);
        assert_eq!((c.now(), c.unix_micros()), (Duration::from_secs(3), 5));
        c.advance(Duration::MAX);
        assert_eq!(c.now(), Duration::from_nanos(u64::MAX));
    }
}

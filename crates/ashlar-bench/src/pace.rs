//! A shared limit on the bytes or operations per second of several threads.

use ashlar_env::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A shared limit in bytes per second. Without a limit, a call costs nothing.
#[derive(Debug)]
pub(crate) struct Pace {
    per_second: u64,
    start: Duration,
    taken: AtomicU64,
}

impl Pace {
    /// A limit of `per_second` bytes from `start` on. 0: no limit.
    pub(crate) fn new(per_second: u64, start: Duration) -> Self {
        Pace { per_second, start, taken: AtomicU64::new(0) }
    }

    /// Charges `bytes`, and sleeps until they are due.
    pub(crate) fn take(&self, bytes: u64, clock: &dyn Clock) {
        if self.per_second == 0 {
            return;
        }
        // Relaxed: a count.
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let due = self.start + Duration::from_secs_f64(taken as f64 / self.per_second as f64);
        let wait = due.saturating_sub(clock.now());
        if !wait.is_zero() {
            clock.sleep(wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::VirtualClock;

    #[test]
    fn takes_as_long_as_it_must() {
        let clock = VirtualClock::new();
        let pace = Pace::new(1000, clock.now());
        (0..50).for_each(|_| pace.take(100, &clock));
        // The first 100 are due at once, the last at 4.9 s.
        assert!((clock.now().as_secs_f64() - 4.9).abs() < 1e-6, "{:?}", clock.now());
        let free = Pace::new(0, clock.now());
        free.take(u64::MAX, &clock);
        assert!(clock.now().as_secs_f64() < 5.0);
    }
}

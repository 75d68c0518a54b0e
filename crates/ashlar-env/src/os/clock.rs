//! The machine's clock.

use crate::Clock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The machine's clock. Monotonic time counts from the creation of the value.
#[derive(Debug)]
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        OsClock { start: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for OsClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_micros(&self) -> u64 {
        // A clock set before 1970 reads as 0.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, d: Duration) {
        std::thread::sleep(d);
    }
}

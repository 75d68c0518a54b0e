//! A clock that counts nanoseconds. The caller provides it: this crate has no clock of its own.

use std::fmt;
use std::sync::Arc;

/// Nanoseconds since some fixed moment; never goes back.
#[derive(Clone)]
pub struct Ticks(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Ticks {
    /// The clock that `now` reads.
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Ticks {
        Ticks(Arc::new(now))
    }

    /// What it shows.
    #[inline]
    pub fn now(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticks")
    }
}

//! Until when a write waits for background work.

use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Env;
use ashlar_options::WriteOptions;
use std::time::Duration;

/// Until when a write with a `timeout` waits for background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// A time of the environment's clock.
    at: Duration,
    /// The `timeout` of the write.
    longest: Duration,
}

impl Deadline {
    /// The deadline of a write that begins now. `None`: the write has no `timeout`, or it has `no_slowdown` and never waits.
    #[inline]
    pub fn of(options: WriteOptions, env: &Env) -> Option<Deadline> {
        let longest = options.timeout.filter(|_| !options.no_slowdown)?;
        Some(Deadline { at: env.clock.now().saturating_add(longest), longest })
    }

    /// The deadline, by the environment's clock.
    pub fn at(self) -> Duration {
        self.at
    }

    /// The time from `now` to the deadline; zero after the deadline.
    pub fn left(self, now: Duration) -> Duration {
        self.at.saturating_sub(now)
    }

    /// # Errors
    /// `TimedOut`: a wait until `end` would pass the deadline.
    pub fn check(self, end: Duration) -> Result<()> {
        if end <= self.at { Ok(()) } else { Err(self.passed()) }
    }

    /// The error of a write whose wait would pass the deadline.
    #[cold]
    pub fn passed(self) -> Error {
        self.passed_waiting_for("background work").hint(
            "Compactions or flushes are behind or paused: write it again later, or with a longer timeout",
        )
    }

    /// The error of a write that waited in vain for `what`.
    #[cold]
    pub fn passed_waiting_for(self, what: &str) -> Error {
        let longest = self.longest;
        let text =
            format!("a write would have waited longer than {longest:?} for {what}, and nothing was written");
        Error::new(ErrorKind::TimedOut, text)
    }
}

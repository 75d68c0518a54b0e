//! How a read of a table is done: what enters the cache, what is verified, how long it may take, and whether it may use
//! files.
//!
//! 1. Only a read of a file is gated. A block from the pool passes without a look at the clock.
//! 2. A read of a file that has begun is never interrupted: the limits are compared before it and behind it.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Clock;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a lookup or a cursor reads blocks.
#[derive(Clone, Debug)]
pub struct ReadHow {
    /// Whether blocks read from the file enter the block cache.
    pub fill_cache: bool,
    /// Whether checksums of data blocks and blobs are compared. A block that was read without its checksum is not kept in
    /// the pool, because later reads from the pool count on checked blocks.
    pub verify: bool,
    /// Whether the read must do without files. What is neither in the pool nor part of an open table answers
    /// `Busy(NotCached)`.
    pub cached_only: bool,
    /// How long the read may take; `None`: any time.
    pub limit: Option<Arc<ReadLimit>>,
}

static PLAIN: ReadHow = ReadHow { fill_cache: true, verify: true, cached_only: false, limit: None };

impl Default for ReadHow {
    fn default() -> Self {
        PLAIN.clone()
    }
}

/// The time limits of one read: a get, or all moves of a cursor.
pub struct ReadLimit {
    clock: Arc<dyn Clock>,
    /// The deadline on the monotonic clock.
    until: Option<Duration>,
    /// The longest time for one read of a file.
    each: Option<Duration>,
}

impl ReadLimit {
    /// A limit for a read that begins now. `deadline` is time since 1970. The wall clock is read here only, so a jump of the
    /// wall clock during the read does not move the deadline.
    ///
    /// # Errors
    /// `InvalidArgument`: an `io_timeout` of zero, which no read can keep.
    #[cold]
    pub fn new(
        clock: &Arc<dyn Clock>,
        deadline: Option<Duration>,
        io_timeout: Option<Duration>,
    ) -> Result<Arc<ReadLimit>> {
        if io_timeout.is_some_and(|each| each.is_zero()) {
            return Err(Error::invalid("io_timeout is zero, which no read of a file can keep")
                .hint("Leave io_timeout out for no limit"));
        }
        let left = |at: Duration| at.saturating_sub(Duration::from_micros(clock.unix_micros()));
        let until = deadline.map(|at| clock.now().saturating_add(left(at)));
        Ok(Arc::new(ReadLimit { clock: Arc::clone(clock), until, each: io_timeout }))
    }

    /// # Errors
    /// `TimedOut`: the deadline has passed.
    pub fn check(&self) -> Result<()> {
        match self.until {
            Some(until) if self.clock.now() >= until => {
                Err(Error::new(ErrorKind::TimedOut, "the deadline of the read has passed"))
            }
            _ => Ok(()),
        }
    }

    fn check_took(&self, start: Duration) -> Result<()> {
        let took = self.clock.now().saturating_sub(start);
        match self.each {
            Some(each) if took > each => {
                let text = format!("a read of a file took {took:?}, where io_timeout allows {each:?}");
                Err(Error::new(ErrorKind::TimedOut, text))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for ReadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadLimit(until {:?}, each {:?})", self.until, self.each)
    }
}

impl ReadHow {
    /// The defaults, for the engine's own reads.
    pub fn plain() -> &'static ReadHow {
        &PLAIN
    }

    /// Runs `read`, which reads or opens the file `path`, within the limits.
    ///
    /// # Errors
    /// `Busy(NotCached)`: no file may be read. `TimedOut`: the deadline had passed, or `read` took longer than one read may.
    /// Those of `read`.
    #[inline]
    pub fn in_file<T, P: AsRef<Path>>(
        &self,
        path: impl Fn() -> P,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.cached_only {
            return Err(not_cached().at_path(path().as_ref()));
        }
        let Some(limit) = &self.limit else { return read() };
        let start = limit.clock.now();
        limit.check().map_err(|e| e.at_path(path().as_ref()))?;
        let value = read()?;
        limit.check_took(start).map_err(|e| e.at_path(path().as_ref()))?;
        Ok(value)
    }
}

#[cold]
fn not_cached() -> Error {
    Error::new(
        ErrorKind::Busy(BusyKind::NotCached),
        "the answer needs a file, and the read tier allows the cache only",
    )
    .hint("Read with ReadTier::All")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::VirtualClock;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn limits_are_compared_before_and_behind_a_read() {
        let time = Arc::new(VirtualClock::new());
        let clock: Arc<dyn Clock> = Arc::clone(&time) as _;
        let at = Duration::from_micros(clock.unix_micros()) + ms(10);
        let how = |limit| ReadHow { limit: Some(limit), ..ReadHow::default() };
        let path = || Path::new("f");
        let takes = |how: &ReadHow, d: Duration| {
            how.in_file(path, || {
                time.advance(d);
                Ok(())
            })
        };
        let read = how(ReadLimit::new(&clock, Some(at), Some(ms(7))).unwrap());
        assert!(takes(&read, ms(7)).is_ok());
        // Neither a wall clock that jumps ahead nor one that goes back moves the deadline.
        time.set_unix_micros(u64::MAX / 2);
        assert!(takes(&read, ms(2)).is_ok());
        time.set_unix_micros(0);
        assert_eq!(takes(&read, ms(8)).unwrap_err().kind(), ErrorKind::TimedOut, "8 ms for one read");
        let late = takes(&read, ms(0)).unwrap_err();
        assert_eq!((late.kind(), late.path()), (ErrorKind::TimedOut, Some(Path::new("f"))));
        let passed = how(ReadLimit::new(&clock, Some(Duration::ZERO), None).unwrap());
        assert_eq!(passed.in_file(path, || Ok(())).unwrap_err().kind(), ErrorKind::TimedOut);
        let never = ReadLimit::new(&clock, Some(Duration::MAX), Some(Duration::MAX)).unwrap();
        assert!(takes(&how(never), ms(1 << 30)).is_ok());
        let zero = ReadLimit::new(&clock, None, Some(Duration::ZERO)).unwrap_err();
        assert_eq!(zero.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_read_of_the_cache_only_touches_no_file() {
        let how = ReadHow { cached_only: true, ..ReadHow::default() };
        let refused = how.in_file::<(), _>(|| Path::new("f"), || panic!("reads")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::NotCached));
        assert!(refused.to_string().starts_with("Result incomplete: "), "{refused}");
    }
}

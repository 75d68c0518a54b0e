//! Why writes are refused: a failed log, until the database has resumed, or a close, for good.

use ashlar_base::{Error, Result};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};

/// Whether writes are refused, and why.
pub(super) struct Refusal {
    /// Something is refused: a hint for the write path, exact under the lead, where it is set and lifted.
    any: AtomicBool,
    closed: AtomicBool,
    /// How often it was lifted. Changed under the lock of `cause`.
    resumes: AtomicU64,
    cause: Mutex<Option<Error>>,
}

impl Refusal {
    pub(super) fn new() -> Self {
        Refusal {
            any: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            resumes: AtomicU64::new(0),
            cause: Mutex::new(Rank::Statistics, None),
        }
    }

    /// How often refusing has ended.
    pub(super) fn resumes(&self) -> u64 {
        self.resumes.load(Ordering::Acquire)
    }

    /// Refuses because of `cause`, unless refusing has ended since `resumes` was read: false then.
    pub(super) fn fail(&self, cause: &Error, resumes: u64) -> bool {
        let mut slot = self.cause.lock();
        if self.resumes() != resumes {
            return false;
        }
        slot.get_or_insert_with(|| cause.clone().hint("Writes resume by themselves once the cause is gone"));
        self.any.store(true, Ordering::Release);
        true
    }

    /// Refuses because of `cause`, which no resuming ends.
    pub(super) fn fail_for_good(&self, cause: &Error) {
        *self.cause.lock() = Some(cause.clone());
        self.any.store(true, Ordering::Release);
    }

    /// Ends refusing, but not after a close.
    pub(super) fn lift(&self) {
        let mut slot = self.cause.lock();
        *slot = None;
        self.resumes.fetch_add(1, Ordering::Release);
        self.any.store(self.closed.load(Ordering::Acquire), Ordering::Release);
    }

    /// Refuses everything from now on.
    pub(super) fn close(&self) {
        let _slot = self.cause.lock();
        self.closed.store(true, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// # Errors
    /// The cause of refusing; `Shutdown` after a close.
    pub(super) fn check(&self) -> Result<()> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        self.check_closed()?;
        self.cause.lock().clone().map_or(Ok(()), Err)
    }

    /// # Errors
    /// `Shutdown` after a close.
    pub(super) fn check_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }
}

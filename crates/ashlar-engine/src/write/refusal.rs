//! Why writes are refused: a failed WAL, until the database has resumed, or a close, for good. And the errors of writers.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};

/// Whether writes are refused, and why.
pub(super) struct Refusal {
    /// True if anything is refused. A hint for the write path, exact under the lead, where it is set and cleared.
    any: AtomicBool,
    closed: AtomicBool,
    /// How often a refusal was lifted. Changed under the lock of `cause`.
    resumes: AtomicU64,
    cause: Mutex<Option<Error>>,
}

impl Refusal {
    pub(super) fn new() -> Self {
        Refusal {
            any: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            resumes: AtomicU64::new(0),
            cause: Mutex::new(Rank::Leaf, None),
        }
    }

    /// How often a refusal was lifted.
    pub(super) fn resumes(&self) -> u64 {
        self.resumes.load(Ordering::Acquire)
    }

    /// Refuses with `cause`, unless a refusal was lifted since `resumes` was read: false then.
    pub(super) fn fail(&self, cause: &Error, resumes: u64) -> bool {
        let mut slot = self.cause.lock();
        if self.resumes() != resumes {
            return false;
        }
        slot.get_or_insert_with(|| cause.clone().hint("Writes resume by themselves once the cause is gone"));
        self.any.store(true, Ordering::Release);
        true
    }

    /// Refuses with `cause` for good; resuming does not lift this refusal.
    pub(super) fn fail_for_good(&self, cause: &Error) {
        *self.cause.lock() = Some(cause.clone());
        self.any.store(true, Ordering::Release);
    }

    /// Lifts the refusal, but not after a close.
    pub(super) fn lift(&self) {
        let mut slot = self.cause.lock();
        *slot = None;
        self.resumes.fetch_add(1, Ordering::Release);
        self.any.store(self.closed.load(Ordering::Acquire), Ordering::Release);
    }

    /// Refuses every later write.
    pub(super) fn close(&self) {
        let _slot = self.cause.lock();
        self.closed.store(true, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// # Errors
    /// The cause of the refusal; `Shutdown` after a close.
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

/// The error for writers whose leader panicked; `state` is what the refusal says.
#[cold]
pub(super) fn given_up(state: Result<()>) -> Error {
    match state {
        Ok(()) => {
            Error::new(ErrorKind::Aborted, "the leader of this write's group panicked; nothing was written")
        }
        Err(cause) => Error::new(
            ErrorKind::Indeterminate,
            "the leader of this write's group panicked; the write may or may not be in the WAL",
        )
        .because(cause.without_hint())
        .hint("Close the database, open it again and read the write back"),
    }
}

/// The error of a write that must not wait for background work.
#[cold]
pub(crate) fn stalled() -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Stalled), "the write would have to wait")
        .hint("Write it again later, or without no_slowdown")
}

pub(crate) fn unknown_family(family: FamilyId) -> Error {
    Error::invalid(format!("column family {} does not exist (any more)", family.0))
}

pub(super) fn deletions_used_up(cause: Error) -> Error {
    cause.hint(
        "The space that the WAL reserves for deletions is used up. Drop families or whole files, or free disk space; \
         writes resume by themselves",
    )
}

pub(super) fn indeterminate(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Indeterminate,
        "the WAL failed during this write; the write may or may not be in the WAL",
    )
    .because(cause)
    .hint("Read it back once writes have resumed, or write it again")
}

/// The error of a batch when no sequence numbers are left.
#[cold]
pub(super) fn full() -> Error {
    Error::not_supported("more than 2^56 writes in one database").hint(
        "Copy its keys and values into a new database; if the MANIFEST records more writes than there were, a repair \
         recounts them",
    )
}

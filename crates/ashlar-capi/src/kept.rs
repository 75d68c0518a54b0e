//! What an object keeps from one call for a later one: the first error, and bytes that the caller reads.

use ashlardb::{Error, Reason, Result};
use std::cell::RefCell;

/// The first error of those calls on an object that have no place for an error. A later call returns the error.
#[derive(Debug, Default)]
pub(crate) struct FirstError(RefCell<Option<Error>>);

impl From<Error> for FirstError {
    fn from(e: Error) -> FirstError {
        FirstError(Some(e).into())
    }
}

impl FirstError {
    /// Keeps the error of a call, unless there is an earlier one. An operation beyond the limit of a batch is left out without an
    /// error, as in RocksDB.
    pub(crate) fn note(&self, done: Result<()>) {
        if let Err(e) = done
            && e.reason() != Some(&Reason::BatchFull)
        {
            self.0.borrow_mut().get_or_insert(e);
        }
    }

    /// # Errors
    /// The first error.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.borrow().clone().map_or(Ok(()), Err)
    }

    /// Forgets the error.
    pub(crate) fn clear(&self) {
        self.0.take();
    }
}

/// The bytes that the last call on an object returned.
#[derive(Debug, Default)]
pub(crate) struct Shown(RefCell<Vec<u8>>);

impl Shown {
    /// Keeps the bytes instead of the earlier ones, and returns them.
    ///
    /// # Safety
    /// The object is on one thread. The result is not used after the next call.
    pub(crate) unsafe fn show(&self, bytes: Vec<u8>) -> &[u8] {
        self.0.replace(bytes);
        // SAFETY: only the next call changes the bytes, which the caller does not use then.
        unsafe { &*self.0.as_ptr() }
    }
}

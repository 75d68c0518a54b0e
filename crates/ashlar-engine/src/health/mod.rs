//! What is wrong with the database as a whole, and what still works.
//!
//! | state | entered by | reads | writes | left by |
//! |---|---|---|---|---|
//! | well | | yes | yes | |
//! | soft | a failed flush or compaction with the log intact | yes | yes | the next success of that work |
//! | hard | a failed log or MANIFEST | yes | refused with the cause | opening again |
//! | corrupt | wrong bytes met by background work | yes | refused with the cause | the operator |
//!
//! Severity only rises, except from soft back to well. Beside it a database may be *read-only* from the open on, by
//! request or because it holds what could not be carried along: well or not, it refuses writes and does no background
//! work.

use ashlar_base::{Error, Result};
use ashlar_sync::{Mutex, Rank};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is wrong.
    #[default]
    Well,
    /// Background work failed and is tried again.
    Soft,
    /// Writes are refused until the database is opened again.
    Hard,
    /// Background work met wrong bytes; writes are refused.
    Corrupt,
}

impl Severity {
    fn from_u8(n: u8) -> Severity {
        match n {
            0 => Severity::Well,
            1 => Severity::Soft,
            2 => Severity::Hard,
            _ => Severity::Corrupt,
        }
    }
}

/// The state of health.
#[derive(Debug)]
pub(crate) struct Health {
    /// A copy of the severity for the write path: a hint; the truth is under the lock.
    severity: AtomicU8,
    /// Errors reported so far; a count that orders nothing.
    failures: AtomicU64,
    cause: Mutex<Option<Error>>,
    /// What every write is answered; `None` when writes are taken.
    read_only: Option<Error>,
}

impl Health {
    /// Well. Of a read-only database: with what writes are answered.
    pub(crate) fn new(read_only: Option<Error>) -> Self {
        Health {
            severity: AtomicU8::new(0),
            failures: AtomicU64::new(0),
            cause: Mutex::new(Rank::Statistics, None),
            read_only,
        }
    }

    /// True when the database was opened for reading only: there is no background work.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.is_some()
    }

    pub(crate) fn severity(&self) -> Severity {
        Severity::from_u8(self.severity.load(Ordering::Acquire))
    }

    /// How many errors were reported since the open, those included that changed nothing.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The error that set the present state.
    pub(crate) fn cause(&self) -> Option<Error> {
        self.cause.lock().clone()
    }

    /// Takes in an error of background work or of the log.
    pub(crate) fn report(&self, severity: Severity, cause: &Error) {
        let severity = if cause.is_corruption() { Severity::Corrupt.max(severity) } else { severity };
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut slot = self.cause.lock();
        if severity > self.severity() || slot.is_none() {
            *slot = Some(cause.clone());
            self.severity.store(severity as u8, Ordering::Release);
        }
    }

    /// Background work succeeded: a soft state is over.
    pub(crate) fn recovered(&self) {
        if self.severity() == Severity::Soft {
            let mut slot = self.cause.lock();
            if self.severity() == Severity::Soft {
                *slot = None;
                self.severity.store(Severity::Well as u8, Ordering::Release);
            }
        }
    }

    /// # Errors
    /// The cause, when writes are refused; `NotSupported`: the database is read-only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if let Some(refusal) = &self.read_only {
            return Err(refusal.clone());
        }
        if self.severity() < Severity::Hard {
            return Ok(());
        }
        let cause = self.cause().unwrap_or_else(|| Error::corruption("the database is in an error state"));
        Err(cause
            .hint("Writes are refused since this error; reads go on. Close the database and open it again"))
    }
}

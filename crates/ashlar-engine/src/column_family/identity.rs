//! Which open database a handle belongs to.

use std::fmt;
// Of the process, not of a model: never loom's.
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One open of one database. Two opens in a process never have the same, not even of the same directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DatabaseId(u64);

impl DatabaseId {
    /// An id that no open database of the process has.
    pub(crate) fn fresh() -> Self {
        // Relaxed: the counter orders nothing but itself.
        DatabaseId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database {}", self.0)
    }
}

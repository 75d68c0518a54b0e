//! The engine as a whole, through its public door.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod atomic_flush;
mod blobs;
mod compaction;
mod foreign;
mod gathering;
mod health;
mod limits;
mod manual_wal_flush;
mod merges;
mod observe;
mod places;
mod ranges;
mod read_only;
mod wal_compression;
mod wal_switch;

/// Held by tests that read databases, and by nobody while two runs are compared: when something is freed depends on
/// every reader in the process.
static READERS: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// To be held while a test reads databases beside others.
fn beside_others() -> impl Drop {
    READERS.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// To be held while a run must equal another one.
fn alone() -> impl Drop {
    READERS.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

//! The engine as a whole, through its public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod atomic_flush;
mod blobs;
mod checked_writes;
mod compaction;
mod foreign;
mod gathering;
mod health;
mod limits;
mod manual_wal_flush;
mod mapped_wal;
mod merges;
mod observe;
mod pauses;
mod queue;
mod ranges;
mod read_only;
mod wal_compression;
mod wal_switch;

/// Tests that read databases hold this lock shared; a test that compares two runs holds it alone, because the time at
/// which memory and files are freed depends on every reader in the process.
static READERS: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// Held while a test reads databases beside other tests.
fn beside_others() -> impl Drop {
    READERS.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Held while a run must equal another run.
fn alone() -> impl Drop {
    READERS.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

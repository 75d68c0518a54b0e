//! Live snapshots: the sequence numbers that reads may still use.
//!
//! 1. A snapshot is a sequence number; several snapshots may have the same one.
//! 2. The sequence is read and registered under the list's lock. A thread that asks the list what is still needed
//!    either finds the snapshot, or the snapshot's sequence is at least as new as everything visible at that moment.
//! 3. The lock is a leaf: the only code called under it is the closure that reads the visible sequence.

mod list;

pub use list::{Snapshot, SnapshotList};

//! Live snapshots: which sequence numbers somebody may still read at.
//!
//! 1. A snapshot is a sequence number; several may have the same one.
//! 2. The sequence is read and registered under the list's lock. So whoever asks the list what is still needed either
//!    finds the snapshot, or it is of a later sequence than all that was visible at that moment.
//! 3. The lock is a leaf: nothing is called under it but the closure that reads the visible sequence.

mod list;

pub use list::{Snapshot, SnapshotList};

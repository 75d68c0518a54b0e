//! Live snapshots: the sequence numbers that reads may still use.
//!
//! 1. A snapshot is a sequence number; several snapshots may have the same one.
//! 2. The sequence is read and registered under the list's lock. A thread that asks the list what is still needed
//!    either finds the snapshot, or the snapshot's sequence is at least as new as everything visible at that moment.
//! 3. Under the lock only two kinds of code are called: the closure that reads the visible sequence, and the publication of
//!    a super version in `SnapshotList::keep_views`.
//! 4. A compaction filter removes nothing that the snapshots of the compaction's begin see. A snapshot that is taken later
//!    sees everything that the compaction reads; if the filter removed some of that, the snapshot keeps the super version
//!    from before the installation, and reads it.

mod list;

pub use list::{Snapshot, SnapshotList};

//! Commit: how a batch gets its sequence numbers, its place in the log, and into the memtables.
//!
//! Writers meet in a queue. One of them leads: it takes the batches that wait, and for the whole group *prepares*
//! (everything that can fail: arena space, room in the log's file), *reserves* sequences and log range, *fills* and
//! *publishes* the log with one write, *inserts*, and moves `visible`. Then it hands the lead to the next in the queue.
//! Whoever asked for a sync does it after the group, so that writers behind it are not held up; syncs of several writers
//! coalesce in the log.
//!
//! 1. Sequence order = log order = order of leading. `visible` moves over whole batches only.
//! 2. Between reserve and the move of `visible` nothing can fail except the log itself. If it does, the log is poisoned,
//!    nothing more is committed until everything before is in tables and a new log has begun, and the group's callers
//!    get `Indeterminate`. Their sequences are not used again.
//!    A panic there, of a comparator, has the same end for its callers, but only a new open takes writes again: memtables
//!    may have part of a batch. A panic before anything is reserved answers the followers `Aborted`. In both cases the
//!    lead is handed over.
//! 3. A record is filled only when the file has room for it and, behind it, for deletions; what does not fit is refused, and
//!    nothing of it is left. Deletions use that room up on a full disk.
//! 4. Only the leader touches the current [`WriteSet`]; a switch of memtable or log is done by a leader.
//! 5. No lock is held over I/O: leading is a role, not a lock.
//!
//! Source: RocksDB `db/write_thread.cc` for group commit.

mod committer;
#[cfg(all(test, loom))]
mod models;
mod queue;
mod refusal;
mod set;
mod tally;

pub(crate) use committer::{Committer, WriteHost};
pub(crate) use set::{FamilySlot, WriteSet};
pub(crate) use tally::{GroupSize, WriteTally};

//! Commit: how a batch gets its sequence numbers, its place in the WAL, and into the memtables.
//!
//! One writer at a time has the lead (`queue`). A writer that meets no other takes it with one atomic operation. Others
//! wait in a queue and lend their batches to the leader. The leader takes the waiting batches and, for the whole group
//! (`group`), *prepares* (everything that can fail: arena space), *reserves* sequences, *frames* the records in the WAL (a
//! record that has no space is left out) and *publishes* them with one write, *inserts*, and moves `visible`. Then it
//! passes the lead on. The writer that is next in line looks for its turn for a few microseconds before it sleeps, if there
//! is a processor for that. While that writer sleeps, a running one may lead, and takes the batches of the sleeping along.
//! A writer that requested a sync joins a round of syncs after its group (`sync`, `rounds`). Writers without a sync never
//! wait for one.
//!
//! 1. Sequence order = WAL order = order of leading. `visible` moves over whole batches only.
//! 2. Between the reservation and the move of `visible` nothing can fail except the WAL itself. If the WAL fails,
//!    nothing more is committed until all earlier data is in tables and a new WAL file has begun. The group's callers
//!    get `Indeterminate`. Their sequences are not used again.
//!    A panic there, such as in a comparator, has the same result for the callers. But memtables may then have part of
//!    a batch, so only a new open accepts writes again. After a panic before the reservation the followers get
//!    `Aborted`. In both cases the lead is handed over.
//! 3. A record is filled only when the file has space for it and, behind it, for deletions. A batch that does not fit
//!    is refused and leaves no trace. On a full disk deletions use that space.
//! 4. Only the leader touches the current [`WriteSet`]; a leader performs every switch of memtable or WAL file. So leaders
//!    keep a reference to the set among the state that passes from leader to leader, and count none per group.
//! 5. The engine holds no lock over I/O: leading is a role, not a lock. Only the log writer's own locks (rank `Log`) are
//!    held over its write and its sync.
//! 6. A write with a `timeout` leads alone, because its group would have to fail with it. In the queue it leaves at its
//!    deadline if the leader waits for background work then, or as soon as a later leader does. As the leader it fails
//!    instead of a wait beyond its deadline.
//! 7. A put that meets no other writer allocates nothing: the caller's thread keeps the batch, leaders pass on the rest.
//!
//! Source: RocksDB `db/write_thread.cc` for group commit.

mod committer;
mod group;
#[cfg(all(test, loom))]
mod models;
mod queue;
mod refusal;
mod rounds;
mod set;
mod sync;

pub(crate) use committer::{Asked, Committer, Unfit, WriteHost};
pub(crate) use refusal::{stalled, unknown_family};
pub(crate) use set::{FamilySlot, WriteSet};

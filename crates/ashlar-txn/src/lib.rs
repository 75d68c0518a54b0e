//! Transactions: changes that are read before they are written, locks on keys, and the check for conflicts at the commit.
//!
//! | module | idea |
//! |---|---|
//! | [`ordered`] | a map of keys in the order of a family |
//! | [`merged`] | a cursor with pending changes over it |
//! | [`changes`] | the pending changes of a batch, by family and key |
//! | [`operations`] | a cursor over the operations of a batch on one family |
//! | [`batch`] | the indexed write batch: a write batch that can be read |
//! | [`locks`] | locks on keys and ranges of one database: shared and exclusive, first come first served, with deadlock detection |
//! | `named` | names of transactions, and prepared transactions without a handle |
//! | [`transaction`] | pessimistic and optimistic transactions |
//! | [`locked`] | plain writes that take the locks of their keys |
//! | [`two_phase`] | prepare, and the decision on a prepared transaction |
//!
//! 1. A transaction changes nothing in the database before its commit. The commit writes one batch, which is one record of
//!    the WAL: after a crash all of it is there, or nothing.
//! 2. Every key that a transaction locks or tracks is compared at the commit, under the lead of the writers, with the
//!    newest write to that key. If another write came between, the commit fails with `Busy(Conflict)`. This holds for
//!    plain writes too, which take no locks unless they ask for them ([`locked`]). So no update is lost, whatever else writes. With two-phase commit the check is
//!    at the prepare; a plain write between prepare and commit is overwritten.
//! 3. A lock is released when its transaction ends: by a commit, a rollback or a drop, also by a drop during a panic. The
//!    drop of a prepared transaction ends nothing: it is decided on later, through another handle.
//!
//! Each module uses only modules above it in this table. Source: RocksDB `utilities/transactions/` and
//! `utilities/write_batch_with_index/` for the meaning of the operations.

pub mod ordered;
pub mod merged;
pub mod changes;
pub mod operations;
pub mod batch;
pub mod locks;
mod named;
pub mod transaction;
pub mod locked;
pub mod two_phase;

pub use batch::{IndexedBatch, Pending};
pub use changes::{ChangedIter, Operation, View as ChangesView};
pub use locks::{Deadlock, DeadlockWait, Mode};
pub use merged::MergedIter;
pub use named::end_waits;
pub use operations::{OperationCursor, Operations};
pub use transaction::{Kind, Settings, Transaction};

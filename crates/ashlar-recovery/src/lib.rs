//! Recovery: from a directory to trees and replayed WAL files, with a report of what was found.
//!
//! ```text
//! survey (tree) -> LOCK (engine) -> recover_manifest -> replay_wals (into the engine's memtables)
//! -> UnusedFiles::keep -> first commit (engine) -> settle_identity (tree)
//! ```
//! [`purge_at_open`] comes after the first commit. [`recover_manifest`] and [`replay_wals`] only read. [`UnusedFiles::keep`]
//! writes to `lost/` and nowhere else. The functions of [`ashlar_tree::files`] that write keep to the order above:
//! `create_database` works on a directory that holds no database, and `settle_identity` comes after the first commit.

mod before_commit;
mod foreign;
mod leveldb;
mod prepared;
mod purge;
mod recover;
mod remains;
mod report;
mod sink;
mod two_phase;
mod unused_files;
mod wal_replay;

pub use leveldb::{LEVELDB_UPGRADE_NOTICE, is_leveldb_directory};
pub use prepared::{MAX_NAME_BYTES, MAX_PREPARED_BYTES, PreparedSet, Undecided, put_prepared};
pub use purge::{PurgedAtOpen, purge_at_open};
pub use recover::{
    Families, FamilySpec, Others, Recovered, list_families, logs_needed_from, recover_in, recover_manifest,
};
pub use remains::Remains;
pub use report::{
    DamagedFile, DroppedRange, FamilyReport, RecoveryReport, UndecidedFamily, UndecidedTransaction, WalReport,
};
pub use sink::{BatchPlace, FamilyFilter, ReplaySink, sequenced_ops};
pub use two_phase::{Piece, Prepared};
pub use unused_files::UnusedFiles;
pub use wal_replay::{FoundWals, Policy, ReplayOutcome, replay_found, replay_wals, salvage_wals};

#[cfg(test)]
mod tests;

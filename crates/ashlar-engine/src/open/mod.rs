//! Opening: from a directory to trees and replayed WAL files, with a report of what was found.
//!
//! ```text
//! survey (tree) -> LOCK (db/) -> recover_manifest -> replay_wals (into db/'s memtables) -> first commit (db/) -> settle_identity (tree)
//! ```
//! This module changes nothing: [`recover_manifest`] and [`replay_wals`] only read. The functions of
//! [`ashlar_tree::files`] that write keep to the order above: `create_database` works on a directory that holds no
//! database, and `settle_identity` comes after the first commit.

mod before_commit;
mod foreign;
mod leveldb;
mod recover;
mod remains;
mod report;
mod sink;
mod two_phase;
mod wal_replay;

pub use leveldb::{LEVELDB_UPGRADE_NOTICE, is_leveldb_directory};
pub use recover::{Families, FamilySpec, Others, Recovered, list_families, recover_manifest};
pub(crate) use recover::{logs_needed_from, recover_in};
pub use remains::Remains;
pub use report::{DamagedFile, DroppedRange, FamilyReport, RecoveryReport, WalReport};
pub use sink::{BatchPlace, FamilyFilter, ReplaySink, sequenced_ops};
pub(crate) use wal_replay::{FoundWals, replay_found, salvage_wals};
pub use wal_replay::{Policy, ReplayOutcome, replay_wals};

#[cfg(test)]
mod tests;

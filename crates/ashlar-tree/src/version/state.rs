//! The state in the MANIFEST apart from the tables, per database and per family.
//!
//! The engine does not use some of it (tracked WAL files, low marks of timestamps, cursors). Every MANIFEST that it
//! writes repeats these parts, so that the directory loses nothing.

use super::Version;
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level};
use ashlar_format::version_edit::VersionEdit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The facts of a database that belong to no family.
#[derive(Clone, Debug, Default)]
pub struct DbFacts {
    /// The database id, if the MANIFEST has one.
    pub db_id: Option<String>,
    /// The number of LevelDB's previous log; 0 = none.
    pub prev_log: FileNumber,
    /// WALs below are obsolete for the whole database.
    pub min_log_to_keep: FileNumber,
    /// The highest family id ever used.
    pub max_family: FamilyId,
    /// WALs that the MANIFEST tracks, with their synced size if it was recorded. A WAL with a size must exist and have
    /// at least that many bytes.
    pub tracked_wals: BTreeMap<FileNumber, Option<u64>>,
}

/// What is carried for a family.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// The key after which the next compaction of a level used to continue.
    pub cursors: BTreeMap<Level, InternalKeyBuf>,
    /// History below this timestamp may be dropped.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Whether user-defined timestamps are stored; `None` = the MANIFEST does not say.
    pub persist_udt: Option<bool>,
}

/// A family as the MANIFEST describes it, with its current tree.
#[derive(Clone, Debug)]
pub struct FamilyState {
    /// The id.
    pub id: FamilyId,
    /// The name; `default` for id 0.
    pub name: String,
    /// The comparator's name.
    pub comparator: String,
    /// WALs below hold nothing unflushed of the family.
    pub log_number: FileNumber,
    /// The tree.
    pub version: Arc<Version>,
    /// What is carried.
    pub carried: Carried,
    /// The epoch number of the next flushed or ingested table.
    pub next_epoch: u64,
}

impl DbFacts {
    /// Takes over what an edit of any family says about the database.
    pub(crate) fn absorb(&mut self, edit: &VersionEdit) {
        if let Some(id) = &edit.db_id {
            self.db_id = Some(id.clone());
        }
        if let Some(n) = edit.prev_log_number {
            self.prev_log = n;
        }
        // Old releases put it into the first new file.
        let in_files = edit.added.iter().filter_map(|(_, f)| f.min_log_to_keep);
        for n in edit.min_log_to_keep.into_iter().chain(in_files) {
            self.min_log_to_keep = self.min_log_to_keep.max(n);
        }
        if let Some(id) = edit.max_family {
            self.max_family = self.max_family.max(id);
        }
        if edit.family_add.is_some() {
            self.max_family = self.max_family.max(edit.family);
        }
        for wal in &edit.wal_added {
            let size = self.tracked_wals.entry(wal.number).or_default();
            *size = (*size).max(wal.synced_size);
        }
        if let Some(below) = edit.wal_deleted {
            self.tracked_wals = self.tracked_wals.split_off(&below);
        }
    }
}

impl Carried {
    /// Takes over what an edit of the family carries.
    pub(crate) fn absorb(&mut self, edit: &VersionEdit) {
        for (level, key) in &edit.compact_cursors {
            self.cursors.insert(*level, key.clone());
        }
        if let Some(low) = &edit.full_history_ts_low {
            self.full_history_ts_low = Some(low.clone());
        }
        if edit.comparator.is_some() || edit.persist_udt.is_some() {
            self.persist_udt = edit.persist_udt.or(self.persist_udt);
        }
    }
}

//! What a MANIFEST says, as [`replay_manifest`](super::replay_manifest) reads it.

use super::builder::TreeBuilder;
use super::{Carried, DbFacts};
use ashlar_base::{FamilyId, FileNumber, Result, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A family as read from a MANIFEST; its tree is not checked yet.
#[derive(Clone, Debug, Default)]
pub struct ReplayedFamily {
    /// Its name.
    pub name: String,
    /// The name of its comparator, if the MANIFEST names one.
    pub comparator: Option<String>,
    /// WAL files below this number hold no data of the family that its tables lack.
    pub log_number: FileNumber,
    /// The family's tables and blob files.
    pub tree: TreeBuilder,
    /// Fields that the engine does not know and copies to the next MANIFEST.
    pub carried: Carried,
}

/// Bytes at the end of a MANIFEST that were not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedTail {
    /// The offset of the first unused byte.
    pub offset: u64,
    /// The number of unused bytes.
    pub bytes: u64,
    /// The reason.
    pub reason: String,
}

/// The contents of a MANIFEST.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The file number.
    pub path: PathBuf,
    /// The data about the whole database.
    pub db: DbFacts,
    /// The families that were not dropped.
    pub families: BTreeMap<FamilyId, ReplayedFamily>,
    /// The next file number as read, not yet raised.
    pub next_file: FileNumber,
    /// The newest sequence that the tables may hold.
    pub last_seq: SeqNum,
    /// Records that were applied.
    pub records: u64,
    /// The unused end of the file, if it could not be read.
    pub dropped: Option<DroppedTail>,
    /// The file has edits after its snapshot and the first commit, so it was in use.
    pub was_current: bool,
    /// Ignorable tags that the engine does not know.
    pub unknown_tags: Vec<u32>,
}

impl Replayed {
    /// The smallest WAL file that the database needs.
    pub fn logs_from(&self) -> FileNumber {
        let families = self.families.values().map(|f| f.log_number).min();
        self.db.min_log_to_keep.max(families.unwrap_or_default())
    }

    /// The highest file number that the MANIFEST records, for any purpose.
    pub fn largest_recorded(&self) -> FileNumber {
        let logs = self.families.values().map(|f| f.log_number);
        logs.chain([self.db.prev_log, self.db.min_log_to_keep, self.next_file]).max().unwrap_or_default()
    }
}

impl ReplayedFamily {
    /// Takes over an edit.
    ///
    /// # Errors
    /// As [`TreeBuilder::apply`].
    pub(super) fn absorb(&mut self, edit: &VersionEdit) -> Result<()> {
        self.absorb_scalars(edit);
        self.tree.apply(edit)
    }

    /// Takes over an edit without its files.
    pub(super) fn absorb_scalars(&mut self, edit: &VersionEdit) {
        if let Some(name) = &edit.comparator {
            self.comparator = Some(name.clone());
        }
        if let Some(n) = edit.log_number {
            self.log_number = self.log_number.max(n);
        }
        self.carried.absorb(edit);
    }
}

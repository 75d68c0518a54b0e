//! The edit as a value.

use super::{BlobAddition, BlobGarbage, NewFile, WalAddition};
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, SeqNum};

/// One change of the database's state. `Default` is the edit that changes nothing.
///
/// Fields are in the order of the bytes, apart from those that newer releases added. `None` and empty lists are not
/// written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// Tag 8193: the database id.
    pub db_id: Option<String>,
    /// Tag 1: the comparator's name. Per family.
    pub comparator: Option<String>,
    /// Tag 2: WALs with a smaller number hold nothing unflushed of this family.
    pub log_number: Option<FileNumber>,
    /// Tag 9: a WAL to replay besides the others. Zero in everything but very old LevelDB directories.
    pub prev_log_number: Option<FileNumber>,
    /// Tag 3: every file number in use is smaller.
    pub next_file: Option<FileNumber>,
    /// Tag 203: the highest family id ever used.
    pub max_family: Option<FamilyId>,
    /// Tag 10: WALs with a smaller number are obsolete for the whole database.
    pub min_log_to_keep: Option<FileNumber>,
    /// Tag 4: the highest sequence number known.
    pub last_seq: Option<SeqNum>,
    /// Tag 5: where round-robin compaction goes on, by level.
    pub compact_cursors: Vec<(Level, InternalKeyBuf)>,
    /// Tag 6: tables that leave a level.
    pub deleted: Vec<(Level, FileNumber)>,
    /// Tags 7, 100, 102, 103: tables that enter a level.
    pub added: Vec<(Level, NewFile)>,
    /// Tags 400 and 8194: new blob files.
    pub blob_added: Vec<BlobAddition>,
    /// Tags 401 and 8195: blobs that nothing points to any more, as increments.
    pub blob_garbage: Vec<BlobGarbage>,
    /// Tags 8199 and 8196: WALs that were created or synced.
    pub wal_added: Vec<WalAddition>,
    /// Tags 8200 and 8197: all WALs with smaller numbers are gone.
    pub wal_deleted: Option<FileNumber>,
    /// Tag 200: the family this edit is about; `default` when absent.
    pub family: FamilyId,
    /// Tag 201: creates the family under this name. Names are bytes, mostly UTF-8.
    pub family_add: Option<Vec<u8>>,
    /// Tag 202: drops the family.
    pub family_drop: bool,
    /// Tag 300: part of an atomic group; how many edits of it follow.
    pub atomic_group: Option<u32>,
    /// Tag 8198: history of the family below this timestamp may be dropped.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Tag 8201: whether timestamps of the family go into tables; absent = true.
    pub persist_udt: Option<bool>,
    /// Tag 8202: progress of a remote compaction, not looked into.
    pub compaction_progress: Option<Vec<u8>>,
    /// Tag 8203: bytes of the last MANIFEST that was a snapshot only.
    pub last_manifest_size: Option<u64>,
    /// Tag 4268032, ours: the MANIFEST begins with so many records that were made durable together, before `CURRENT` named
    /// it. In its first record.
    pub beginning: Option<u32>,
    /// Unknown ignorable tags with their payloads. Written last.
    pub ignored: Vec<(u32, Vec<u8>)>,
}

impl VersionEdit {
    /// An edit of `family` that changes nothing yet.
    pub fn of(family: FamilyId) -> Self {
        VersionEdit { family, ..Self::default() }
    }

    /// Adds a table to a level.
    pub fn add_file(&mut self, level: Level, file: NewFile) {
        self.added.push((level, file));
    }

    /// Removes a table from a level.
    pub fn delete_file(&mut self, level: Level, file: FileNumber) {
        self.deleted.push((level, file));
    }

    /// The bytes of the files that the edit adds to the directory. A table that only changes its level is not one of them.
    pub fn bytes_added(&self) -> u64 {
        let is_moved = |number| self.deleted.iter().any(|(_, n)| *n == number);
        let tables = self.added.iter().filter(|(_, file)| !is_moved(file.number)).map(|(_, file)| file.size);
        tables.chain(self.blob_added.iter().map(|blob| blob.bytes)).fold(0, u64::saturating_add)
    }

    /// True when the edit adds, drops or changes a family's tables, blobs or cursors.
    pub fn changes_files(&self) -> bool {
        !(self.added.is_empty()
            && self.deleted.is_empty()
            && self.compact_cursors.is_empty()
            && self.blob_added.is_empty()
            && self.blob_garbage.is_empty())
    }
}

//! The tables of a family, as a list for operators and for compactions by file.
//!
//! Source: RocksDB `include/rocksdb/metadata.h` (`LiveFileMetaData`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::{FileNumber, Level, Result, SeqNum};
use ashlar_format::filename::FileKind;
use ashlar_tree::version::{FileMeta, TableCounts};
use std::path::PathBuf;
use std::sync::Arc;

/// One table of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// The file number in the table's name.
    pub number: FileNumber,
    /// The directory of the table.
    pub dir: PathBuf,
    /// The level of the table.
    pub level: Level,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The smallest user key.
    pub smallest: Vec<u8>,
    /// The largest user key. If a range deletion ends the table, its end key.
    pub largest: Vec<u8>,
    /// The sequences of the oldest and the newest change in the table.
    pub sequences: (SeqNum, SeqNum),
    /// The number of entries, range deletions included; `None`: the table cannot be opened, or does not say.
    pub entries: Option<u64>,
    /// The number of deletions among them.
    pub deletions: Option<u64>,
}

impl LiveFile {
    /// The name of the file in its directory.
    pub fn name(&self) -> String {
        FileKind::Table(self.number).name()
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.dir.join(self.name())
    }
}

impl Db {
    /// The current tables of a family, by level: in level 0 the newest first, in deeper levels by key. (RocksDB:
    /// `GetLiveFilesMetaData`.)
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another database. `Shutdown`.
    /// # Cost
    /// Opens the tables that nothing has opened yet, for their counts.
    pub fn live_files(&self, family: &Family) -> Result<Vec<LiveFile>> {
        let version = &family.super_version.get().version;
        let core = self.core();
        core.check_open()?;
        core.check_own(family)?;
        let options = family.options();
        let file = |(level, meta): (Level, &Arc<FileMeta>)| {
            let opened =
                || version.table_for_pass(meta).ok().and_then(|table| TableCounts::of(table.properties()));
            let counts = meta.counts.get().copied().or_else(opened);
            LiveFile {
                number: meta.file.number,
                dir: core.writer.dir_of(&core.dir, &options, meta.file.path_id).to_path_buf(),
                level,
                bytes: meta.file.size,
                smallest: meta.smallest().user_key().to_vec(),
                largest: meta.largest().user_key().to_vec(),
                sequences: (meta.file.smallest_seq, meta.file.largest_seq),
                entries: counts.map(|counts| counts.entries),
                deletions: counts.map(|counts| counts.deletions),
            }
        };
        Ok(version.files().map(file).collect())
    }
}

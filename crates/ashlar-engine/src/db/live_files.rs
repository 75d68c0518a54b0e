//! The tables of a family, as a list for operators and for compactions by file.
//!
//! Source: RocksDB `include/rocksdb/metadata.h` (`LiveFileMetaData`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::{FileNumber, Level, Result, SeqNum};
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// One table of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// The file number in the table's name.
    pub number: FileNumber,
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
}

impl Db {
    /// The current tables of a family, by level: in level 0 the newest first, in deeper levels by key. (RocksDB:
    /// `GetLiveFilesMetaData`.)
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another database. `Shutdown`.
    pub fn live_files(&self, family: &Family) -> Result<Vec<LiveFile>> {
        let version = &family.super_version.get().version;
        self.core().check_open()?;
        self.core().check_own(family)?;
        let file = |(level, meta): (Level, &Arc<FileMeta>)| LiveFile {
            number: meta.file.number,
            level,
            bytes: meta.file.size,
            smallest: meta.smallest().user_key().to_vec(),
            largest: meta.largest().user_key().to_vec(),
            sequences: (meta.file.smallest_seq, meta.file.largest_seq),
        };
        Ok(version.files().map(file).collect())
    }
}

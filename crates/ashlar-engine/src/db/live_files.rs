//! The tables of a family, as a list for people and for compactions by file.
//!
//! Source: RocksDB `include/rocksdb/metadata.h` (`LiveFileMetaData`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::{FileNumber, Level, Result, SeqNum};
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// One table of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFile {
    /// Its number, as in its name.
    pub number: FileNumber,
    /// Where it is in the tree.
    pub level: Level,
    /// Its length in bytes.
    pub bytes: u64,
    /// Smallest user key.
    pub smallest: Vec<u8>,
    /// Largest user key; of a range deletion that ends the table, its end.
    pub largest: Vec<u8>,
    /// Oldest and newest change in it.
    pub sequences: (SeqNum, SeqNum),
}

impl Db {
    /// The tables of a family at this moment, by level, in level 0 the newest first, below by key. (RocksDB:
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

//! What only AshlarDB and RocksDB are driven for: transactions, scans of a prefix, SST files, checkpoints and backups.
//!
//! A peer that lacks an operation keeps the provided method, whose answer begins with "not offered:".

use crate::peer::{NoWriter, Result, not_driven};
use std::path::{Path, PathBuf};

/// Appends an entry to a file.
pub type Append<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// The operations of an open database.
pub trait Operations {
    /// The transactions of a thread; [`NoWriter`] where they are not driven.
    type Transactions<'a>: Transact + Send
    where
        Self: 'a;

    /// The transactions of another thread, of the kind in [`crate::settings::Settings::transactions`].
    fn transactions(&self) -> Result<Self::Transactions<'_>> {
        not_driven("transactions")
    }

    /// Calls `see` with each entry whose key begins with `prefix`, through a new cursor. Needs
    /// [`crate::settings::Settings::prefix_bytes`].
    fn scan_prefix(&self, _prefix: &[u8], _see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        not_driven("scans of a prefix")
    }

    /// Writes the SST file `path`. `fill` appends its entries, in ascending order. The file is durable afterwards.
    fn write_sst(&self, _path: &Path, _fill: &mut dyn FnMut(Append<'_>) -> Result<()>) -> Result<()> {
        not_driven("SST files")
    }

    /// Takes the SST files into the database; their names go. `verified`: every block is read before.
    fn ingest(&self, _files: &[PathBuf], _verified: bool) -> Result<()> {
        not_driven("ingestion")
    }

    /// Makes the directory `into` a database with the content of this moment.
    fn checkpoint(&self, _into: &Path) -> Result<()> {
        not_driven("checkpoints")
    }

    /// Adds a backup to the backups in `into`.
    fn backup(&self, _into: &Path) -> Result<()> {
        not_driven("backups")
    }

    /// Makes the directory `into` the database of the newest backup in `from`.
    fn restore(&self, _from: &Path, _into: &Path) -> Result<()> {
        not_driven("backups")
    }
}

/// The transactions of a thread.
pub trait Transact {
    /// In one transaction: reads both keys for update, adds one to the first eight bytes of each value (little-endian), puts
    /// both values, commits. False: it met a conflict or waited too long, and changed nothing.
    fn increment(&mut self, keys: [&[u8]; 2]) -> Result<bool>;
}

impl Transact for NoWriter {
    fn increment(&mut self, _: [&[u8]; 2]) -> Result<bool> {
        match *self {}
    }
}

/// Adds one to the first eight bytes of `value`.
pub fn plus_one(value: &mut [u8]) {
    if let Some(word) = value.first_chunk_mut::<8>() {
        *word = u64::from_le_bytes(*word).wrapping_add(1).to_le_bytes();
    }
}

/// Whether the compaction filter of [`crate::settings::Settings::filters`] removes an entry: of integer keys one in ten.
#[inline]
pub fn is_removed(key: &[u8], value: &[u8]) -> bool {
    let number = key.first_chunk::<8>().map_or(1, |word| u64::from_be_bytes(*word));
    number.is_multiple_of(10) && !value.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_a_value_grows_by_one() {
        let mut value = *b"\xff\xff\xff\xff\xff\xff\xff\x00rest";
        plus_one(&mut value);
        assert_eq!(value.first_chunk(), Some(&(0x00ff_ffff_ffff_ffff_u64 + 1).to_le_bytes()));
        assert_eq!(&value[8..], b"rest");
        plus_one(&mut [1, 2]);
    }

    #[test]
    fn one_key_of_ten_is_removed() {
        let removed = |number: u64| is_removed(&number.to_be_bytes(), b"v");
        assert_eq!((0..1000).filter(|number| removed(*number)).count(), 100);
        assert!(!is_removed(b"short", b"v") && !is_removed(&0_u64.to_be_bytes(), b""));
    }
}

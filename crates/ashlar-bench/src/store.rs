//! The interface of an engine under a benchmark. Every engine does the same work.

use crate::flags::Flags;
use ashlar_base::{Error, Result};
use std::path::Path;

/// The settings of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteHow {
    /// Wait for the device.
    pub sync: bool,
    /// Skip the WAL.
    pub disable_wal: bool,
}

/// Creates, opens and removes databases.
pub trait Engine: Sync {
    /// The name and version, for the header.
    fn describe(&self) -> (String, String);

    /// Opens the database in `dir` with the settings in `flags`. If there is no database and `create` is true, creates it
    /// and its parent directories.
    ///
    /// # Errors
    /// The engine's; `InvalidArgument` or `NotSupported` for a flag it cannot serve.
    fn open(&self, dir: &Path, flags: &Flags, create: bool) -> Result<Box<dyn Store>>;

    /// Removes the database in `dir`, with its WAL files in the `wal_dir` of the flags, and no other files. Succeeds if
    /// there is no database.
    ///
    /// # Errors
    /// `Busy(Locked)`: it is open. `Io`.
    fn destroy(&self, dir: &Path, flags: &Flags) -> Result<()>;
}

/// An open database. All threads of a benchmark share it; dropping it closes.
pub trait Store: Send + Sync {
    /// A writer for one thread.
    fn writer(&self, how: WriteHow) -> Box<dyn Writer + '_>;

    /// Reads the value of `key` completely and returns its length. `None`: there is no such key.
    fn get(&self, key: &[u8]) -> Result<Option<usize>>;

    /// Reads the values of `keys`. Returns the number of keys found and the bytes of their values. An engine without such a
    /// call gets the keys one by one.
    ///
    /// # Errors
    /// The engine's first.
    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<(u64, u64)> {
        keys.iter().try_fold((0, 0), |(found, bytes), key| {
            let len = self.get(key)?;
            Ok((found + u64::from(len.is_some()), bytes + len.unwrap_or(0) as u64))
        })
    }

    /// A cursor over all entries, not positioned.
    fn cursor(&self) -> Result<Box<dyn Walk + '_>>;

    /// A cursor over the entries from `lower` on and before `upper`, not positioned.
    ///
    /// # Errors
    /// `NotSupported` for an engine whose cursors have no bounds.
    fn cursor_within(&self, _lower: Option<&[u8]>, _upper: Option<&[u8]>) -> Result<Box<dyn Walk + '_>> {
        Err(Error::not_supported("cursors with bounds (max_scan_distance)"))
    }

    /// Flushes the memtables, and waits.
    fn flush(&self) -> Result<()>;

    /// Compacts everything, and waits.
    fn compact(&self) -> Result<()>;

    /// Compacts the tables of one level into the next one, and waits.
    ///
    /// # Errors
    /// `NotSupported` for an engine without levels.
    fn compact_level(&self, _level: u8) -> Result<()> {
        Err(Error::not_supported("compaction of one level"))
    }

    /// Reads every file and checks it.
    ///
    /// # Errors
    /// `Corruption`. `NotSupported` for an engine without such a check.
    fn verify(&self) -> Result<()> {
        Err(Error::not_supported("verification of all files"))
    }

    /// Compares every file with the checksum that was recorded when it was written.
    ///
    /// # Errors
    /// `Corruption`. `NotSupported` for an engine that records none.
    fn verify_files(&self) -> Result<()> {
        Err(Error::not_supported("checksums over whole files"))
    }

    /// The approximate bytes of files that the keys from `lower` to `upper` (excluded) use.
    ///
    /// # Errors
    /// The engine's. `NotSupported` for an engine without such estimates.
    fn approximate_size(&self, _lower: &[u8], _upper: &[u8]) -> Result<u64> {
        Err(Error::not_supported("sizes of ranges"))
    }

    /// Whether [`Store::transaction`] detects conflicts. If not, its transactions are plain batches.
    fn has_transactions(&self) -> bool {
        false
    }

    /// Begins a transaction of the kind that the flags name.
    ///
    /// # Errors
    /// The engine's. `NotSupported` for an engine without them.
    fn transaction(&self, _how: WriteHow) -> Result<Box<dyn Transaction + '_>> {
        Err(Error::not_supported("transactions"))
    }

    /// Waits until no background work is due.
    fn wait_for_background(&self) -> Result<()>;

    /// Statistics by name (`stats`, `levelstats`, `sstables`), as text. `None`: the engine has no such statistics.
    fn property(&self, name: &str) -> Option<String>;

    /// Resets the statistics to zero, if the engine can.
    ///
    /// # Errors
    /// The engine's.
    fn reset_statistics(&self) -> Result<()>;

    /// Closes the database. The store is not used afterwards.
    fn close(&self) -> Result<()>;
}

/// Collects changes and writes them as one batch.
pub trait Writer {
    /// Adds a put.
    fn put(&mut self, key: &[u8], value: &[u8]);

    /// Adds a merge.
    fn merge(&mut self, key: &[u8], operand: &[u8]);

    /// Adds a delete.
    fn delete(&mut self, key: &[u8]);

    /// Adds a range tombstone over the keys from `begin` on and before `end`.
    fn delete_range(&mut self, begin: &[u8], end: &[u8]);

    /// Writes the added changes atomically, and starts an empty batch.
    ///
    /// # Errors
    /// The engine's, also those of the additions.
    fn commit(&mut self) -> Result<()>;
}

/// Reads and writes that take effect together. Dropping one that was not committed changes nothing.
///
/// Every method answers the engine's errors. `Busy` and `TimedOut` are conflicts with other transactions.
pub trait Transaction {
    /// The value of `key`. With `for_update`, another write to the key is a conflict from here on.
    fn get(&mut self, key: &[u8], for_update: bool) -> Result<Option<Vec<u8>>>;

    /// Puts `key`. If the kind detects conflicts, deletes the key first: by a single delete if `single` is true.
    fn replace(&mut self, key: &[u8], value: &[u8], single: bool) -> Result<()>;

    /// The first phase of a commit, if the kind has two.
    fn prepare(&mut self) -> Result<()>;

    /// Makes the changes visible.
    fn commit(&mut self) -> Result<()>;

    /// Discards the changes.
    fn rollback(&mut self) -> Result<()>;
}

/// A position among the entries: on an entry, or off the end.
pub trait Walk {
    /// Moves to the first entry.
    fn first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// Moves to the next entry.
    fn next(&mut self) -> Result<()>;
    /// Moves to the preceding entry.
    fn prev(&mut self) -> Result<()>;
    /// The key and value. `None`: the cursor is off the end.
    fn entry(&self) -> Option<(&[u8], &[u8])>;
}

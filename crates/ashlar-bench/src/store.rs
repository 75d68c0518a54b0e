//! What a benchmark asks of an engine. Another engine is another [`Engine`]; the work stays the same.

use crate::flags::Flags;
use ashlar_base::{Error, Result};
use std::path::Path;

/// How writes are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteHow {
    /// Wait for the device.
    pub sync: bool,
    /// Leave out the log.
    pub disable_wal: bool,
}

/// Makes, opens and removes databases.
pub trait Engine: Sync {
    /// Its name and version, as the header shows them.
    fn describe(&self) -> (String, String);

    /// Opens the database in `dir` with the settings among `flags`; makes it, with the directories above, when there is
    /// none and `create` says so.
    ///
    /// # Errors
    /// The engine's; `InvalidArgument` or `NotSupported` for a flag it cannot serve.
    fn open(&self, dir: &Path, flags: &Flags, create: bool) -> Result<Box<dyn Store>>;

    /// Removes the database in `dir`, its logs in the `wal_dir` of the flags included, and nothing else that lies there.
    /// Fine when there is none.
    ///
    /// # Errors
    /// `Busy(Locked)`: it is open. `Io`.
    fn destroy(&self, dir: &Path, flags: &Flags) -> Result<()>;
}

/// An open database. All threads of a benchmark share it; dropping it closes.
pub trait Store: Send + Sync {
    /// Something that writes, for one thread.
    fn writer(&self, how: WriteHow) -> Box<dyn Writer + '_>;

    /// The length of the value of `key`, which was made readable; `None` when there is none.
    fn get(&self, key: &[u8]) -> Result<Option<usize>>;

    /// How many of `keys` have a value, each of which was made readable, and the bytes of those values. An engine without
    /// such a call gets them one by one.
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

    /// Writes what is in memory to files, and waits.
    fn flush(&self) -> Result<()>;

    /// Compacts everything, and waits.
    fn compact(&self) -> Result<()>;

    /// Compacts the tables of one level into the next that takes them, and waits.
    ///
    /// # Errors
    /// `NotSupported` for an engine without levels.
    fn compact_level(&self, _level: u8) -> Result<()> {
        Err(Error::not_supported("compaction of one level"))
    }

    /// Reads every file and checks it.
    ///
    /// # Errors
    /// `Corruption`. `NotSupported` for an engine that cannot.
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

    /// About how many bytes of files the keys from `lower` on and before `upper` take.
    ///
    /// # Errors
    /// The engine's. `NotSupported` for one that cannot tell.
    fn approximate_size(&self, _lower: &[u8], _upper: &[u8]) -> Result<u64> {
        Err(Error::not_supported("sizes of ranges"))
    }

    /// Waits until no background work is due.
    fn wait_for_background(&self) -> Result<()>;

    /// Statistics by name (`stats`, `levelstats`, `sstables`), as text; `None` for what it does not have.
    fn property(&self, name: &str) -> Option<String>;

    /// Sets the statistics to zero, for engines that can.
    ///
    /// # Errors
    /// The engine's.
    fn reset_statistics(&self) -> Result<()>;

    /// Closes; the store is not used afterwards.
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

    /// Writes what was added, atomically, and begins anew.
    ///
    /// # Errors
    /// The engine's, also those of the additions.
    fn commit(&mut self) -> Result<()>;
}

/// A position among the entries: on one, or off the end.
pub trait Walk {
    /// To the first entry.
    fn first(&mut self) -> Result<()>;
    /// To the last entry.
    fn last(&mut self) -> Result<()>;
    /// To the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// To the next entry.
    fn next(&mut self) -> Result<()>;
    /// To the entry before.
    fn prev(&mut self) -> Result<()>;
    /// Key and value; `None` off the end.
    fn entry(&self) -> Option<(&[u8], &[u8])>;
}

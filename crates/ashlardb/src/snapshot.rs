//! Snapshots as users hold them.

use crate::{Columns, Family, Result, Scan, ScanRange, SnapshotPins, View};
use ashlar_base::SeqNum;
use ashlar_engine::options::ReadOptions;

/// The state of all families at one moment; reads through it see nothing newer. Dropping it lets compaction drop what
/// only it still needs. It belongs to one open database: scans of another refuse it with `InvalidArgument`.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) db: crate::Db,
    pub(crate) inner: ashlar_engine::snapshot::Snapshot,
}

impl Snapshot {
    /// The sequence number it reads at.
    pub fn sequence(&self) -> SeqNum {
        self.inner.seq()
    }

    /// What it keeps alive: since when, how many changes ago, and about how many bytes of older entries.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn pins(&self) -> Result<SnapshotPins> {
        self.db.engine().snapshot_pins(&self.inner)
    }

    /// The value that `key` of the family `default` had.
    ///
    /// # Errors
    /// As [`crate::Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.get_in(&self.db.default_family(), key)
    }

    /// The value that `key` of `family` had.
    ///
    /// # Errors
    /// As [`crate::Db::get`]; `InvalidArgument`: the family belongs to another database.
    pub fn get_in(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        let options = ReadOptions { at: Some(self.sequence()), ..ReadOptions::default() };
        self.db.engine().get(&family.inner, key.as_ref(), &options)
    }

    /// The columns that `key` of `family` had.
    ///
    /// # Errors
    /// As [`Snapshot::get_in`].
    pub fn get_entity_in(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<Columns>> {
        let options = ReadOptions { at: Some(self.sequence()), ..ReadOptions::default() };
        self.db.engine().get_entity(&family.inner, key.as_ref(), &options)
    }

    /// The entries that `range` of the family `default` had.
    pub fn scan(&self, range: impl ScanRange) -> Scan {
        self.db.scan(range).at(self)
    }
}

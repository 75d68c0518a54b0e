//! The handle of a column family.

use crate::options::FamilyOptions;
use crate::range::{KeyRange, Keys};
use crate::{Db, Error, FamilyShape, MemtableStats, Result, SizeOptions, WriteOptions, Writer};
use ashlar_base::FamilyId;
use std::fmt;
use std::sync::Arc;

/// A column family: a separate key space inside a database. A batch over several families is atomic.
///
/// A handle belongs to one open database. Every other database answers `InvalidArgument` to it, also a later open of
/// the same directory. The handle of a dropped family reads the family's state at the drop; every change answers
/// `InvalidArgument`.
#[derive(Clone)]
pub struct Family {
    pub(crate) db: Db,
    pub(crate) inner: Arc<ashlar_engine::column_family::Family>,
}

impl Family {
    /// Whether both families belong to the same open of a database.
    #[inline]
    pub fn shares_database_with(&self, other: &Family) -> bool {
        self.inner.database() == other.inner.database()
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The family's number in the WAL and the MANIFEST; 0 is `default`.
    pub fn id(&self) -> FamilyId {
        self.inner.id()
    }

    /// The settings in use at this moment.
    pub fn options(&self) -> Arc<FamilyOptions> {
        self.inner.options()
    }

    /// The number of tables and bytes in each level at this moment.
    pub fn shape(&self) -> FamilyShape {
        self.db.engine().shape(&self.inner)
    }

    /// Writes with options: `events.writing(WriteOptions::synced()).put(k, v)?`. Costs nothing.
    pub fn writing(&self, options: WriteOptions) -> Writer<'_> {
        Writer::new(&self.db, &self.inner, options)
    }

    /// The approximate number of bytes that the keys of each range take in files, in memtables, or both, as `options` says.
    /// In files the bytes are compressed, and exact to one block at both ends.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::SizeOptions;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let family = db.default_family();
    /// family.put(b"a", [7; 1000])?;
    /// let all = SizeOptions::new().memtables(true);
    /// assert_eq!(family.approximate_sizes(&[(b"b", b"c")], all)?, [0]);
    /// assert!(family.approximate_sizes(&[(b"a", b"b")], all)?[0] >= 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table at the end of a range cannot be opened.
    pub fn approximate_sizes<K: AsRef<[u8]>>(
        &self,
        ranges: &[(K, K)],
        options: SizeOptions,
    ) -> Result<Vec<u64>> {
        let ranges: Vec<_> = ranges.iter().map(|(from, to)| (from.as_ref(), to.as_ref())).collect();
        self.db.engine().approximate_sizes(&self.inner, &ranges, options)
    }

    /// The approximate number of entries and bytes in memtables with keys in `from..to`.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn approximate_memtable_stats(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<MemtableStats> {
        self.db.engine().approximate_memtable_stats(&self.inner, from.as_ref(), to.as_ref())
    }

    /// Deletes the tables below level 0 that hold only keys of one of the ranges, without a compaction. Returns their number.
    ///
    /// Entries of the ranges in other tables stay, and older values and deleted keys there may show again: follow it with
    /// [`crate::Write::delete_range`]. Snapshots lose the deleted keys too. An end belongs to its range if the range includes it
    /// (`a..=b`).
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let family = db.default_family();
    /// family.put("log/2024", "...")?;
    /// db.compact()?;
    /// family.delete_files_in_ranges(&["log/2000".."log/2025"])?;
    /// family.delete_range("log/2000", "log/2025")?;     // what the tables at the ends still hold
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: the family was dropped, a range begins after its end or excludes its first key, or some ranges
    /// include their ends and others do not. `Io`: nothing was deleted, or the next open may find the deletion done.
    pub fn delete_files_in_ranges(&self, ranges: &[impl KeyRange]) -> Result<usize> {
        let ranges: Vec<_> = ranges.iter().map(Keys::of).collect();
        let include_end = ranges.iter().any(|Keys(range)| range.upper_closed);
        for keys in &ranges {
            keys.check(&self.inner.options().order)?;
            let Keys(range) = keys;
            if range.lower_open || range.upper.is_some() && range.upper_closed != include_end {
                return Err(Error::invalid("ranges that differ in whether they include their ends")
                    .hint("Include the first key of each range, and the last key of all or of none"));
            }
        }
        let ranges: Vec<_> =
            ranges.iter().map(|Keys(range)| (range.lower.as_deref(), range.upper.as_deref())).collect();
        self.db.engine().delete_files_in_ranges(&self.inner, &ranges, include_end)
    }

    /// Changes settings of the family by RocksDB's names while the database is open: all of them, or none. Returns a notice for
    /// each name that has no effect, with the reason. `ashlar options explain NAME` describes a name.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, a wrong value, a setting that cannot change while the database is open, or settings
    /// that RocksDB refuses together. `NotSupported`: an option that AshlarDB refuses. `Shutdown`.
    pub fn set_options(&self, changes: &[(&str, &str)]) -> Result<Vec<String>> {
        let notices = self.db.engine().set_options(&self.inner, changes)?;
        Ok(notices.iter().map(ToString::to_string).collect())
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

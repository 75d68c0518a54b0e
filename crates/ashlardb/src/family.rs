//! Column families as users hold them.

use crate::options::FamilyOptions;
use crate::range::{KeyRange, Keys};
use crate::{Db, Error, FamilyShape, MemtableStats, Result, SizeOptions, WriteOptions, Writer};
use ashlar_base::FamilyId;
use std::fmt;
use std::sync::Arc;

/// A column family: a key space of its own inside a database. Batches reach across families atomically.
///
/// A handle belongs to one open database: every other refuses it with `InvalidArgument`, also another open of the same
/// directory. When the family was dropped, the handle reads it as it was then, and every change is refused with
/// `InvalidArgument`.
#[derive(Clone)]
pub struct Family {
    pub(crate) db: Db,
    pub(crate) inner: Arc<ashlar_engine::column_family::Family>,
}

impl Family {
    /// Its name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Its id in the files.
    pub fn id(&self) -> FamilyId {
        self.inner.id()
    }

    /// The settings in use, as of now.
    pub fn options(&self) -> Arc<FamilyOptions> {
        self.inner.options()
    }

    /// How many tables and bytes each level of the family's tree has, as of now.
    pub fn shape(&self) -> FamilyShape {
        self.db.engine().shape(&self.inner)
    }

    /// Writes with options: `events.writing(WriteOptions::synced()).put(k, v)?`. Costs nothing.
    pub fn writing(&self, options: WriteOptions) -> Writer<'_> {
        Writer::new(&self.db, &self.inner, options)
    }

    /// About how many bytes of files, and of memtables if `options` say so, the keys of each range take.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::SizeOptions;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let family = db.default_family();
    /// family.put(b"a", [7; 1000])?;
    /// let all = SizeOptions { memtables: true, files: true };
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

    /// About how many entries and bytes of the keys `from..to` are in memtables.
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

    /// Deletes the tables below level 0 that hold only keys of one of the ranges, at once and without a compaction. What of
    /// the ranges lies elsewhere stays: follow it with [`crate::Write::delete_range`]. Snapshots lose the keys too. Answers how
    /// many tables went.
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
    /// `InvalidArgument`: the family was dropped, a range begins behind its end or excludes its first key, or of several
    /// ranges some include their end and others do not. `Io`: nothing was deleted, or a later open may find it so.
    pub fn delete_files_in_ranges(&self, ranges: &[impl KeyRange]) -> Result<usize> {
        let ranges: Vec<Keys> = ranges.iter().map(Keys::of).collect();
        let include_end = ranges.iter().any(|range| range.upper_closed);
        for range in &ranges {
            range.check(&self.inner.options().order)?;
            if range.lower_open || range.upper.is_some() && range.upper_closed != include_end {
                return Err(Error::invalid("ranges that differ in whether they include their ends")
                    .hint("Include the first key of each range, and the last key of all or of none"));
            }
        }
        let ranges: Vec<_> =
            ranges.iter().map(|range| (range.lower.as_deref(), range.upper.as_deref())).collect();
        self.db.engine().delete_files_in_ranges(&self.inner, &ranges, include_end)
    }

    /// Changes settings while the database is open, by RocksDB's names, all or none; see `ashlar options explain NAME`. Answers
    /// which of them have no effect, and why.
    ///
    /// # Errors
    /// `InvalidArgument`: no such name or value, or a setting that does not change while the database is open.
    /// `NotSupported`: it asks for what is not there. `Shutdown`.
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

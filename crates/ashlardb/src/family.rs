//! Column families as users hold them.

use crate::{Columns, Db, MayExist, MemtableStats, Result, Scan, ScanRange, SizeOptions, View, WriteBatch};
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

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.put(key, value)))
    }

    /// Sets `key` to a row of named columns.
    ///
    /// # Errors
    /// As [`Db::put_entity`].
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.put_entity(key, columns)))
    }

    /// The columns of `key`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_entity(&self, key: impl AsRef<[u8]>) -> Result<Option<Columns>> {
        self.db.engine().get_entity(&self.inner, key.as_ref(), &Default::default())
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.delete(key)))
    }

    /// Removes `key`, which was put once at most.
    ///
    /// # Errors
    /// As [`Db::single_delete`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.single_delete(key)))
    }

    /// Adds `operand` to what the family's merge operator makes of `key`.
    ///
    /// # Errors
    /// As [`Db::merge`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.merge(key, operand)))
    }

    /// Removes every key from `begin` on, `end` excluded. Mind the end: [`Family::delete_files_in_ranges`] includes it.
    ///
    /// # Errors
    /// As [`Db::delete_range`].
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.db.write(WriteBatch::new().in_family(self, |b| b.delete_range(begin, end)))
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.db.engine().get(&self.inner, key.as_ref(), &Default::default())
    }

    /// The values of `keys`, in their order, all as of one moment: [`Db::multi_get`].
    ///
    /// # Errors
    /// As [`Db::get`], of the first key that cannot be read.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<View>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.db.engine().multi_get(&self.inner, &keys, &Default::default())?.into_iter().collect()
    }

    /// Whether `key` can have a value, without reading data blocks: [`Db::key_may_exist`].
    ///
    /// # Errors
    /// As [`Db::key_may_exist`].
    pub fn key_may_exist(&self, key: impl AsRef<[u8]>) -> Result<MayExist> {
        self.db.engine().key_may_exist(&self.inner, key.as_ref(), &Default::default())
    }

    /// About how many bytes of files, and of memtables if `options` say so, the keys of each range take.
    ///
    /// ```
    /// # use ashlardb::{Db, SizeOptions};
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
    /// the ranges lies elsewhere stays: follow it with [`Family::delete_range`]. Snapshots lose the keys too. Answers how
    /// many tables went.
    ///
    /// **A range here includes its end**, as in RocksDB: `(Some("a"), Some("b"))` deletes the key `b` too. `None` is no
    /// bound. [`Family::delete_range`] excludes its end: `b` stays.
    ///
    /// ```
    /// # use ashlardb::Db;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let family = db.default_family();
    /// family.put(b"log/2024", b"...")?;
    /// db.compact()?;
    /// // Every key of 2000 to 2024: `log/2024~` is behind all that begin with `log/2024`, and is itself no key.
    /// family.delete_files_in_ranges(&[(Some("log/2000"), Some("log/2024~"))])?;
    /// family.delete_range(b"log/2000", b"log/2024~")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: the family was dropped. `Io`: nothing was deleted, or a later open may find it so.
    pub fn delete_files_in_ranges<K: AsRef<[u8]>>(&self, ranges: &[(Option<K>, Option<K>)]) -> Result<usize> {
        let bound = |k: &Option<K>| k.as_ref().map(|k| k.as_ref().to_vec());
        let owned: Vec<_> = ranges.iter().map(|(from, to)| (bound(from), bound(to))).collect();
        let ranges: Vec<_> = owned.iter().map(|(from, to)| (from.as_deref(), to.as_deref())).collect();
        self.db.engine().delete_files_in_ranges(&self.inner, &ranges, true)
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

    /// The entries in `range`.
    pub fn scan(&self, range: impl ScanRange) -> Scan {
        self.db.scan(range).family(self)
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

//! Column families as users hold them.

use crate::{Columns, Db, Result, Scan, ScanRange, View, WriteBatch};
use ashlar_base::FamilyId;
use std::fmt;
use std::sync::Arc;

/// A column family: a key space of its own inside a database. Batches reach across families atomically.
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

    /// Removes every key from `begin` on, `end` excluded.
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

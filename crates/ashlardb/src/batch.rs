//! Batches, filled in one breath.

use crate::Family;
use ashlar_base::{Error, FamilyId, Result};
use ashlar_engine::column_family::DatabaseId;

/// Operations that are written together: all of them, or none. A key that cannot be written (too large) is remembered and
/// refused by [`crate::Db::write`], so that filling needs no `?`.
///
/// A batch with operations on a [`Family`] belongs to the database of that family. Any other database refuses it, and a
/// batch with families of two databases is refused by both.
///
/// ```
/// # use ashlardb::{Db, WriteBatch};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// let events = db.create_family("events")?;
/// db.write(WriteBatch::new().put(b"a", b"1").in_family(&events, |b| b.put(b"a", b"one").delete(b"b")))?;
/// assert_eq!(events.get(b"a")?.as_deref(), Some(&b"one"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a batch does nothing until it is written"]
pub struct WriteBatch {
    inner: ashlar_engine::batch::WriteBatch,
    family: FamilyId,
    /// How many closures of [`WriteBatch::in_family`] are filling it.
    depth: u32,
    /// That of the families it was filled with.
    database: Option<DatabaseId>,
    refused: Option<Error>,
}

impl WriteBatch {
    /// An empty batch for the family `default`.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that remembers a checksum of each operation, made of what it is given; [`crate::Db::write`] compares
    /// them before it logs anything, and answers `Corruption` if the batch has changed in memory since.
    pub fn protected() -> Self {
        WriteBatch { inner: ashlar_engine::batch::WriteBatch::protected(), ..Self::default() }
    }

    /// Sets `key` to `value`.
    pub fn put(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        let added = self.inner.put(self.family, key.as_ref(), value.as_ref());
        self.note(added);
        self
    }

    /// Sets `key` to a row of named columns, in any order. The column with the empty name is what a plain get answers.
    /// Needs format level 7.8.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        mut self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Self {
        let columns: Vec<_> = columns.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let added = self.inner.put_entity(self.family, key.as_ref(), &columns);
        self.note(added);
        self
    }

    /// Removes `key`, whether it exists or not.
    pub fn delete(mut self, key: impl AsRef<[u8]>) -> Self {
        let added = self.inner.delete(self.family, key.as_ref());
        self.note(added);
        self
    }

    /// Removes `key`, which must have been put once at most since it was last removed, and never merged: put and deletion
    /// vanish in the first compaction where they meet. On any other key an older value may come back.
    pub fn single_delete(mut self, key: impl AsRef<[u8]>) -> Self {
        let added = self.inner.single_delete(self.family, key.as_ref());
        self.note(added);
        self
    }

    /// Adds `operand` to what the family's merge operator makes of `key`. Refused by [`crate::Db::write`] where the family
    /// has none.
    pub fn merge(mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Self {
        let added = self.inner.merge(self.family, key.as_ref(), operand.as_ref());
        self.note(added);
        self
    }

    /// Removes every key from `begin` on, `end` excluded. One small record, however many keys there are.
    pub fn delete_range(mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Self {
        let added = self.inner.delete_range(self.family, begin.as_ref(), end.as_ref());
        self.note(added);
        self
    }

    /// Adds operations on another family. `fill` returns the batch that it is given, with more operations in it.
    ///
    /// The write is refused with `InvalidArgument` when the family was dropped, when it belongs to another database, or when
    /// `fill` returns another batch.
    pub fn in_family(mut self, family: &Family, fill: impl FnOnce(WriteBatch) -> WriteBatch) -> Self {
        let database = family.inner.database();
        if *self.database.get_or_insert(database) != database {
            self.note(Err(Error::invalid("a batch with families of two open databases")));
        }
        let (outer, depth) = (std::mem::replace(&mut self.family, family.id()), self.depth);
        self.depth += 1;
        let mut filled = fill(self);
        if (filled.family, filled.depth, filled.database) != (family.id(), depth + 1, Some(database)) {
            filled.note(Err(Error::invalid(
                "the closure of in_family returned another batch than it was given",
            )));
        }
        (filled.family, filled.depth) = (outer, depth);
        filled
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.inner.len() as usize
    }

    /// True without any operation.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes of the encoded batch.
    pub fn byte_len(&self) -> usize {
        self.inner.byte_len()
    }

    /// Removes all operations, keeps the memory. The batch belongs to no database then.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.database = None;
        self.refused = None;
    }

    fn note(&mut self, added: Result<()>) {
        if let Err(e) = added {
            self.refused.get_or_insert(e);
        }
    }

    /// What `database` is to write.
    ///
    /// # Errors
    /// Why an operation was not added. `InvalidArgument`: the batch belongs to another database.
    pub(crate) fn ready(&mut self, database: DatabaseId) -> Result<&mut ashlar_engine::batch::WriteBatch> {
        match &self.refused {
            Some(e) => Err(e.clone()),
            None if self.database.is_some_and(|own| own != database) => {
                Err(Error::invalid("a batch with families of another open database"))
            }
            None => Ok(&mut self.inner),
        }
    }
}

//! Batches: operations that are written together.

use crate::write::Writable;
use crate::{Family, Write};
use ashlar_base::error::Reason;
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_engine::batch::{Mark, WriteBatch as EngineBatch};
use ashlar_engine::column_family::DatabaseId;
use std::cell::{Cell, RefCell, RefMut};

/// Operations that are written together: all of them, or none. Fill it with the methods of [`Write`], and write it with
/// [`crate::Db::write`], which empties it.
///
/// An operation that cannot be added, for example with a key that is too large, is refused at once and leaves the batch
/// as it was. The write refuses a merge in a family without an operator, a range that ends before its begin, and a time to
/// live in a family whose values never expire. The batch then keeps its operations until [`WriteBatch::clear`].
///
/// A batch with operations on a [`Family`] belongs to the database of that family until it is empty.
///
/// ```
/// # use ashlardb::{Db, Read, Write, WriteBatch};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// let events = db.create_family("events")?;
/// let batch = WriteBatch::new();
/// batch.put("a", "1")?;
/// batch.family(&events).put("a", "one")?;
/// db.write(&batch)?;                                // both or neither
/// assert!(batch.is_empty());                        // ready to be filled again
/// assert_eq!(events.get("a")?.as_deref(), Some(&b"one"[..]));
/// # Ok(())
/// # }
/// ```
///
/// During [`crate::Db::write`], a callback may still reach the batch. Then `len`, `is_empty` and `byte_len` answer for
/// the operations that are being written, `clear` does nothing, a clone is empty, and operations answer
/// `InvalidArgument`.
#[derive(Debug, Default)]
#[must_use = "a batch does nothing until it is written"]
pub struct WriteBatch {
    // A cell, so that the methods of `Write` take `&self` as those of a database do. Borrowed during a write.
    content: RefCell<Content>,
    in_write: Cell<Size>,
}

/// The size of a batch during its write.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    operations: usize,
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Content {
    operations: EngineBatch,
    /// The database of the families in it.
    database: Option<DatabaseId>,
    savepoints: Vec<Mark>,
    /// The most bytes of the encoded batch; 0: no limit.
    limit: usize,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that keeps a checksum of each operation. [`crate::Db::write`] compares the checksums before it writes to
    /// the WAL, and answers `Corruption` if the batch has changed in memory.
    pub fn protected() -> Self {
        let operations = EngineBatch::protected();
        WriteBatch { content: RefCell::new(Content { operations, ..Content::default() }), ..Self::default() }
    }

    /// Adds operations on `family` to the batch: `batch.family(&events).put(k, v)?`.
    ///
    /// Each operation answers `InvalidArgument` when the batch already holds operations on a family of another
    /// database.
    pub fn family<'a>(&'a self, family: &'a Family) -> BatchFamily<'a> {
        BatchFamily { batch: self, family }
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.size().operations
    }

    /// Whether the batch has no operation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the encoded batch, in bytes.
    pub fn byte_len(&self) -> usize {
        self.size().bytes
    }

    /// Limits the encoded batch to so many bytes from now on; 0: no limit. An operation that would make it larger is not added, and
    /// answers `Aborted`. (RocksDB: `max_bytes` of a batch.)
    ///
    /// # Errors
    /// `InvalidArgument`: the batch is being written.
    pub fn limit(&self, bytes: usize) -> Result<()> {
        self.changed()?.limit = bytes;
        Ok(())
    }

    /// Adds bytes for readers of the WAL, such as [`crate::Db::updates_since`]. They are no operation, and no read answers them.
    ///
    /// # Errors
    /// `InvalidArgument`: 4 GiB or more, or the batch is being written.
    pub fn put_log_data(&self, blob: impl AsRef<[u8]>) -> Result<()> {
        self.changed()?.add(|operations| operations.put_log_data(blob.as_ref()))
    }

    /// Sets a savepoint, to which [`WriteBatch::rollback_to_savepoint`] returns. Savepoints nest; a write or `clear` removes
    /// them.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch is being written.
    pub fn set_savepoint(&self) -> Result<()> {
        let mut content = self.changed()?;
        let mark = content.operations.mark();
        content.savepoints.push(mark);
        Ok(())
    }

    /// Removes the operations since the last savepoint, and the savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint, or the batch is being written.
    pub fn rollback_to_savepoint(&self) -> Result<()> {
        let mut content = self.changed()?;
        let mark = content.savepoints.pop().ok_or_else(no_savepoint)?;
        content.operations.rollback_to(mark);
        if content.operations.is_empty() {
            content.database = None;
        }
        Ok(())
    }

    /// Removes the last savepoint, and keeps the operations since.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint, or the batch is being written.
    pub fn pop_savepoint(&self) -> Result<()> {
        self.changed()?.savepoints.pop().map(drop).ok_or_else(no_savepoint)
    }

    /// The batch in RocksDB's form, with the sequence number 0. Families are in it by their numbers.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch is being written.
    pub fn data(&self) -> Result<Vec<u8>> {
        Ok(self.changed()?.operations.data().to_vec())
    }

    /// The batch of [`WriteBatch::data`], or of RocksDB's `WriteBatch::Data`. Families are those of the database that it is
    /// written to.
    ///
    /// # Errors
    /// `Corruption`: the form does not decode. `NotSupported`: it has a record that no method of a batch adds, such as the mark
    /// of a prepared transaction. `InvalidArgument`: a key or value is too large.
    pub fn from_data(data: &[u8]) -> Result<Self> {
        let operations = EngineBatch::from_data(data)?;
        Ok(WriteBatch {
            content: RefCell::new(Content { operations, ..Content::default() }),
            ..Self::default()
        })
    }

    /// Removes all operations and savepoints, and keeps the memory. The batch then belongs to no database.
    pub fn clear(&self) {
        if let Ok(mut content) = self.content.try_borrow_mut() {
            content.clear();
        }
    }

    /// The content, for a change.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch is being written.
    fn changed(&self) -> Result<RefMut<'_, Content>> {
        self.content.try_borrow_mut().map_err(|_| in_use())
    }

    fn size(&self) -> Size {
        self.content.try_borrow().map_or_else(|_| self.in_write.get(), |content| content.size())
    }

    /// Writes the operations to `database` by `write`, and empties the batch.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch belongs to another database, or is being written. Also the errors of `write`.
    pub(crate) fn written(
        &self,
        database: DatabaseId,
        write: impl FnOnce(&mut EngineBatch) -> Result<()>,
    ) -> Result<()> {
        let mut content = self.changed()?;
        if content.database.is_some_and(|own| own != database) {
            return Err(Error::invalid("a batch with families of another open database"));
        }
        self.in_write.set(content.size());
        write(&mut content.operations)?;
        content.clear();
        Ok(())
    }
}

impl Clone for WriteBatch {
    fn clone(&self) -> Self {
        let content =
            self.content.try_borrow().map_or_else(|_| Content::default(), |content| content.clone());
        WriteBatch { content: RefCell::new(content), ..Self::default() }
    }
}

impl Content {
    fn size(&self) -> Size {
        Size { operations: self.operations.len() as usize, bytes: self.operations.byte_len() }
    }

    /// Adds an operation within the limit.
    #[inline]
    fn add(&mut self, op: impl FnOnce(&mut EngineBatch) -> Result<()>) -> Result<()> {
        if self.limit == 0 {
            return op(&mut self.operations);
        }
        let before = self.operations.mark();
        op(&mut self.operations)?;
        if self.operations.byte_len() > self.limit {
            self.operations.rollback_to(before);
            return Err(full(self.limit));
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.savepoints.clear();
        self.database = None;
    }
}

#[cold]
fn no_savepoint() -> Error {
    Error::invalid("the batch has no savepoint")
}

#[cold]
fn full(limit: usize) -> Error {
    let text = format!("Memory limit reached: the batch may have {limit} bytes");
    Error::new(ErrorKind::Aborted, text).about(Reason::BatchFull)
}

#[cold]
fn in_use() -> Error {
    Error::invalid("the batch is being written").hint("Fill another batch in callbacks of a write")
}

/// A [`WriteBatch`] for operations on one family: see [`WriteBatch::family`].
#[derive(Clone, Copy, Debug)]
#[must_use = "only the operations asked of it are added"]
pub struct BatchFamily<'a> {
    batch: &'a WriteBatch,
    family: &'a Family,
}

impl Write for WriteBatch {}
impl Writable for WriteBatch {
    #[inline]
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.changed()?.add(|operations| op(operations, FamilyId::DEFAULT))
    }
}

impl Write for BatchFamily<'_> {}
impl Writable for BatchFamily<'_> {
    #[inline]
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        let mut content = self.batch.changed()?;
        let database = self.family.inner.database();
        if content.database.is_some_and(|own| own != database) {
            return Err(Error::invalid("a batch with families of two open databases"));
        }
        content.add(|operations| op(operations, self.family.inner.id()))?;
        content.database = Some(database);
        Ok(())
    }
}

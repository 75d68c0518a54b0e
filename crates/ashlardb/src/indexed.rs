//! Indexed batches: batches that can be read before they are written.

use crate::overlay::{Overlay, changed, shared};
use crate::range::{KeyRange, Keys};
use crate::read::{ReadOptions, Readable, Sealed};
use crate::write::Writable;
use crate::{Db, Family, Read, Reader, Result, Snapshot, Write, WriteOptions};
use ashlar_base::FamilyId;
use ashlar_engine::batch::WriteBatch as EngineBatch;
pub use ashlar_txn::{Operation, OperationCursor, Operations, Pending};
use std::cell::RefCell;
use std::sync::Arc;

type EngineFamily = Arc<ashlar_engine::column_family::Family>;

/// Options of an indexed batch. Every option is off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a batch gets them"]
pub struct IndexedBatchOptions {
    keep_operations: bool,
}

impl IndexedBatchOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether [`IndexedBatch::operations`] shows every operation on a key (RocksDB's `overwrite_key=false`). Without it, an
    /// operation that decides the value of a key replaces the older ones on the key. Reads answer the same either way.
    ///
    /// # Cost
    /// Operations that others replaced stay in memory twice: in the batch and in its index.
    pub fn keep_operations(mut self, yes: bool) -> Self {
        self.keep_operations = yes;
        self
    }
}

/// A batch whose operations are read back by key, alone or over the database (RocksDB's `WriteBatchWithIndex`). Made by
/// [`Db::indexed_batch`], for that database.
///
/// Fill it with the methods of [`Write`]. The methods of [`Read`] show the newest state of the database with the batch's
/// changes over it; [`IndexedBatch::over`] shows a snapshot with the changes over it. A key has its last state: a read shows
/// what all operations on the key amount to, with merge operands applied. [`IndexedBatch::operations`] shows the operations
/// themselves. [`Read::explain_get`] and [`crate::Scan::explain`]
/// explain the read of the database alone.
///
/// A scan shows the moment of the call that made it. [`Write::delete_range`] answers `NotSupported`, as in RocksDB.
///
/// ```
/// # use ashlardb::{Db, Read, Write};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// db.put("a", "1")?;
/// let batch = db.indexed_batch();
/// batch.put("b", "2")?;
/// batch.delete("a")?;
/// assert!(batch.get("a")?.is_none());
/// assert!(db.get("b")?.is_none());                  // nothing is written yet
/// assert_eq!(batch.scan(..).count(), 1);
/// batch.write()?;                                   // both or neither
/// assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
/// # Ok(())
/// # }
/// ```
///
/// In a callback of a call that changes or writes the batch, its other calls answer `InvalidArgument`, and its sizes are 0.
#[derive(Debug)]
#[must_use = "a batch does nothing until it is written"]
pub struct IndexedBatch {
    db: Db,
    // A cell, so that the methods of `Write` take `&self` as those of a database do.
    content: RefCell<ashlar_txn::IndexedBatch>,
}

impl IndexedBatch {
    pub(crate) fn new(db: &Db, options: IndexedBatchOptions) -> IndexedBatch {
        let content = ashlar_txn::IndexedBatch::new(db.engine(), db.default());
        let content = if options.keep_operations { content.keeping_all() } else { content };
        IndexedBatch { db: db.clone(), content: RefCell::new(content) }
    }

    /// The batch for operations and reads on `family`: `batch.family(&events).put(k, v)?`. Each call answers
    /// `InvalidArgument` for a family of another database.
    pub fn family<'a>(&'a self, family: &'a Family) -> IndexedFamily<'a> {
        IndexedFamily { batch: self, family }
    }

    /// The state of a snapshot with the changes of the batch over it. Each read answers `InvalidArgument` for a snapshot of
    /// another database.
    pub fn over<'a>(&'a self, snapshot: &'a Snapshot) -> Reader<'a> {
        let own = self.db.default().database() == snapshot.db.default().database();
        let overlay = if own { Overlay::Batch(&self.content) } else { Overlay::Foreign };
        let at = Some(&*snapshot.inner);
        Reader::new(Readable { at, overlay: Some(overlay), ..self.readable_of(self.db.default()) })
    }

    /// What the operations on `key` amount to, without the database. `None`: the batch has no operation on the key.
    ///
    /// ```
    /// # use ashlardb::{Db, Pending, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let batch = db.indexed_batch();
    /// batch.put("a", "1")?;
    /// batch.delete("a")?;
    /// assert_eq!(batch.pending("a")?, Some(Pending::Deleted));
    /// assert_eq!(batch.pending("b")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the merge operator.
    pub fn pending(&self, key: impl AsRef<[u8]>) -> Result<Option<Pending>> {
        shared(&self.content)?.pending(self.db.default(), key.as_ref())
    }

    /// The operations on the keys of a range of the family `default`, from both ends, without the database. Keys are in the
    /// order of the family, and the operations on one key newest first. [`Operations::cursor`] moves to and fro.
    ///
    /// A batch with [`IndexedBatchOptions::keep_operations`] shows every operation. Without it, a put, an entity or a deletion
    /// replaces the older operations on its key, and a merge is added to them: what reads need is shown.
    ///
    /// ```
    /// # use ashlardb::{Db, IndexedBatchOptions, Operation, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let batch = db.indexed_batch_with(IndexedBatchOptions::new().keep_operations(true));
    /// batch.put("a", "1")?;
    /// batch.put("b", "2")?;
    /// batch.delete("a")?;
    /// let all: Vec<(Vec<u8>, Operation)> = batch.operations(..)?.collect();
    /// assert_eq!(all[0], (b"a".to_vec(), Operation::Delete));
    /// assert_eq!(all[1], (b"a".to_vec(), Operation::Put(b"1"[..].into())));
    /// assert_eq!(all[2].0, b"b");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The result shows the moment of this call. The first operation that is added while it exists copies the list of changed
    /// keys once.
    ///
    /// # Errors
    /// `InvalidArgument`: a range that begins after its end; a callback of a call on the batch makes this call.
    pub fn operations(&self, range: impl KeyRange) -> Result<Operations> {
        self.operations_of(self.db.default(), &range)
    }

    fn operations_of(&self, family: &EngineFamily, range: &impl KeyRange) -> Result<Operations> {
        let keys = Keys::of(range);
        keys.check(&family.options().order)?;
        Ok(Operations::new(shared(&self.content)?.view(family)?, keys.0))
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.content.try_borrow().map_or(0, |content| content.len())
    }

    /// Whether the batch has no operation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the encoded batch, in bytes.
    pub fn byte_len(&self) -> usize {
        self.content.try_borrow().map_or(0, |content| content.byte_len())
    }

    /// Adds bytes for readers of the WAL, such as [`crate::Db::updates_since`]. They are no operation, and no read answers them.
    ///
    /// # Errors
    /// `InvalidArgument`: 4 GiB or more; a callback of a call on the batch makes this call.
    pub fn put_log_data(&self, blob: impl AsRef<[u8]>) -> Result<()> {
        changed(&self.content)?.put_log_data(blob.as_ref())
    }

    /// Removes all operations and savepoints.
    pub fn clear(&self) {
        if let Ok(mut content) = self.content.try_borrow_mut() {
            content.clear();
        }
    }

    /// Sets a savepoint, to which [`IndexedBatch::rollback_to_savepoint`] returns. Savepoints nest.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the batch makes this call.
    pub fn set_savepoint(&self) -> Result<()> {
        changed(&self.content)?.set_savepoint();
        Ok(())
    }

    /// Removes the operations since the last savepoint, and the savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint.
    pub fn rollback_to_savepoint(&self) -> Result<()> {
        changed(&self.content)?.rollback_to_savepoint()
    }

    /// Removes the last savepoint, and keeps the operations since.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint.
    pub fn pop_savepoint(&self) -> Result<()> {
        changed(&self.content)?.pop_savepoint()
    }

    /// Writes all operations, or none. After `Ok` the batch is empty; after an error it is unchanged.
    ///
    /// # Errors
    /// Those of [`Db::write`].
    pub fn write(&self) -> Result<()> {
        self.write_with(WriteOptions::default())
    }

    /// [`IndexedBatch::write`] with options.
    ///
    /// # Errors
    /// Those of [`Db::write`].
    pub fn write_with(&self, options: WriteOptions) -> Result<()> {
        changed(&self.content)?.write(options.engine())
    }

    fn readable_of<'a>(&'a self, family: &'a EngineFamily) -> Readable<'a> {
        let overlay = Some(Overlay::Batch(&self.content));
        Readable { db: &self.db, family, at: None, options: ReadOptions::default(), overlay }
    }
}

/// An [`IndexedBatch`] for operations and reads on one family: see [`IndexedBatch::family`].
#[derive(Clone, Copy, Debug)]
#[must_use = "only the operations asked of it are added"]
pub struct IndexedFamily<'a> {
    batch: &'a IndexedBatch,
    family: &'a Family,
}

impl IndexedFamily<'_> {
    /// [`IndexedBatch::pending`] for a key of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn pending(&self, key: impl AsRef<[u8]>) -> Result<Option<Pending>> {
        shared(&self.batch.content)?.pending(&self.family.inner, key.as_ref())
    }

    /// [`IndexedBatch::operations`] on the keys of a range of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn operations(&self, range: impl KeyRange) -> Result<Operations> {
        self.batch.operations_of(&self.family.inner, &range)
    }
}

impl Read for IndexedBatch {}
impl Sealed for IndexedBatch {
    const OVERLAID: bool = true;

    fn readable(&self) -> Readable<'_> {
        self.readable_of(self.db.default())
    }
}

impl Read for IndexedFamily<'_> {}
impl Sealed for IndexedFamily<'_> {
    const OVERLAID: bool = true;

    fn readable(&self) -> Readable<'_> {
        self.batch.readable_of(&self.family.inner)
    }
}

impl Write for IndexedBatch {}
impl Writable for IndexedBatch {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        changed(&self.content)?.add(self.db.default(), op)
    }
}

impl Write for IndexedFamily<'_> {}
impl Writable for IndexedFamily<'_> {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        changed(&self.batch.content)?.add(&self.family.inner, op)
    }
}

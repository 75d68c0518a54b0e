//! The indexed write batch: a write batch whose operations can be read back, alone or over a database.
//!
//! 1. The batch is two things: the operations in the form of the WAL, which a write takes as they are, and the changes by
//!    key, which reads ask. An operation enters both or neither.
//! 2. A savepoint is a length of the operations and a length of the list of replaced changes. The list is kept only while
//!    there are savepoints.
//! 3. An index by keys keeps what reads need of the operations; a batch that keeps all has every operation there.
//! 4. Range deletions are refused, as RocksDB's `WriteBatchWithIndex` refuses them: the index is by single keys.
//!
//! Source: RocksDB `include/rocksdb/utilities/write_batch_with_index.h`.

use crate::changes::{Base, Change, FamilyChanges, Undo, View, merger};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_engine::Db;
use ashlar_engine::batch::{Mark, WriteBatch};
use ashlar_engine::column_family::{DatabaseId, Family};
use ashlar_format::write_batch::BatchOp;
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_read::point::{MayExist, View as Value};
use ashlar_tree::columns::Columns;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What the operations of a batch on one key amount to, without the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pending {
    /// The key has this value.
    Put(Value),
    /// The key has these columns.
    Entity(Columns),
    /// The key is deleted.
    Deleted,
    /// These merge operands, oldest first, apply to what the database has.
    Merge(Vec<Vec<u8>>),
}

struct Savepoint {
    operations: Mark,
    undo: usize,
}

/// A write batch that can be read. It belongs to one database.
pub struct IndexedBatch {
    db: Db,
    database: DatabaseId,
    operations: WriteBatch,
    /// The operation that is being added.
    next: WriteBatch,
    families: BTreeMap<FamilyId, FamilyChanges>,
    /// The index keeps every operation.
    keeps_all: bool,
    /// What the changes since the first savepoint replaced, with their families.
    undo: Vec<(FamilyId, Undo)>,
    savepoints: Vec<Savepoint>,
}

/// What a read with pending changes found in the database, if it looked there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    NotAsked,
    Absent,
    Present,
}

impl Below {
    pub(crate) fn of<T>(found: Option<&T>) -> Below {
        if found.is_some() { Below::Present } else { Below::Absent }
    }
}

impl IndexedBatch {
    /// An empty batch for the database `db`, of which `family` is a family.
    pub fn new(db: &Db, family: &Family) -> IndexedBatch {
        IndexedBatch {
            db: db.clone(),
            database: family.database(),
            operations: WriteBatch::new(),
            next: WriteBatch::new(),
            families: BTreeMap::new(),
            keeps_all: false,
            undo: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    /// The same batch, whose index keeps every operation. The batch is empty.
    pub fn keeping_all(self) -> IndexedBatch {
        IndexedBatch { keeps_all: true, ..self }
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len() as usize
    }

    /// Whether the batch has no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The size of the encoded batch in bytes.
    pub fn byte_len(&self) -> usize {
        self.operations.byte_len()
    }

    /// The number of keys that have a change.
    pub fn keys(&self) -> usize {
        self.families.values().map(FamilyChanges::len).sum()
    }

    /// Adds the operation that `op` adds to a write batch.
    ///
    /// # Errors
    /// `InvalidArgument`: a family of another database or one that was dropped, a merge in a family without a merge
    /// operator, or a limit of the batch. `NotSupported`: a range deletion. The batch is unchanged.
    pub fn add(
        &mut self,
        family: &Arc<Family>,
        op: impl FnOnce(&mut WriteBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        self.propose(family, op)?;
        self.accept(family)
    }

    /// Encodes the operation beside the batch, and checks it. [`IndexedBatch::accept`] adds it.
    ///
    /// # Errors
    /// As [`IndexedBatch::add`].
    pub(crate) fn propose(
        &mut self,
        family: &Arc<Family>,
        op: impl FnOnce(&mut WriteBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        self.check_own(family)?;
        if family.is_dropped() {
            return Err(Error::invalid(format!("column family {:?} was dropped", family.name())));
        }
        self.next.clear();
        op(&mut self.next, family.id())?;
        for op in self.next.operations().iter() {
            match op.map_err(|e| e.into_error())? {
                BatchOp::DeleteRange { .. } => return Err(no_range_deletions()),
                BatchOp::Merge { key, .. } if family.options().merge_operator.is_none() => {
                    return Err(merger(family).missing(key));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The key of the operation that [`IndexedBatch::propose`] encoded.
    pub(crate) fn proposed_key(&self) -> Option<Arc<[u8]>> {
        let first = self.next.operations().iter().next()?.ok()?;
        first.key().map(Arc::from)
    }

    /// Adds the proposed operation.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch would be too large; it is unchanged.
    pub(crate) fn accept(&mut self, family: &Arc<Family>) -> Result<()> {
        let new = || FamilyChanges::new(family, self.keeps_all);
        let changes = self.families.entry(family.id()).or_insert_with(new);
        let mut replaced = None;
        for op in self.next.operations().iter() {
            replaced = changes.apply(&op.map_err(|e| e.into_error())?)?;
        }
        // Last, because a comparator may panic before.
        if let Err(e) = self.operations.append(&self.next) {
            replaced.into_iter().for_each(|undo| changes.undo(undo));
            return Err(e);
        }
        if !self.savepoints.is_empty() {
            self.undo.extend(replaced.map(|undo| (family.id(), undo)));
        }
        Ok(())
    }

    /// Adds bytes for readers of the WAL.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch would be too large.
    pub fn put_log_data(&mut self, blob: &[u8]) -> Result<()> {
        self.operations.put_log_data(blob)
    }

    /// Removes all operations and savepoints, and keeps the memory of the encoded form.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.families.clear();
        self.undo.clear();
        self.savepoints.clear();
    }

    /// Sets a savepoint.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(Savepoint { operations: self.operations.mark(), undo: self.undo.len() });
    }

    /// Removes the operations since the last savepoint, and the savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let savepoint = self.savepoints.pop().ok_or_else(no_savepoint)?;
        for (family, undo) in self.undo.drain(savepoint.undo..).rev() {
            if let Some(changes) = self.families.get_mut(&family)
                && !planted(Bug::SavepointKeepsReads)
            {
                changes.undo(undo);
            }
        }
        self.operations.rollback_to(savepoint.operations);
        Ok(())
    }

    /// Removes the last savepoint and keeps the operations since.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.savepoints.pop().ok_or_else(no_savepoint)?;
        if self.savepoints.is_empty() {
            self.undo.clear();
        }
        Ok(())
    }

    /// Writes the operations and empties the batch.
    ///
    /// # Errors
    /// Those of [`Db::write`]; the batch is unchanged.
    pub fn write(&mut self, options: WriteOptions) -> Result<()> {
        self.db.write(&mut self.operations, options)?;
        self.clear();
        Ok(())
    }

    /// The encoded operations, for a commit.
    pub(crate) fn operations(&mut self) -> &mut WriteBatch {
        &mut self.operations
    }

    pub(crate) fn check_own(&self, family: &Family) -> Result<()> {
        match family.database() == self.database {
            true => Ok(()),
            false => Err(Error::invalid("the family belongs to another open database")
                .hint("Take the family of the database that the batch belongs to")),
        }
    }

    /// # Errors
    /// `InvalidArgument`: the family belongs to another database.
    fn change(&self, family: &Family, key: &[u8]) -> Result<Option<&Change>> {
        self.check_own(family)?;
        Ok(self.families.get(&family.id()).and_then(|changes| changes.get(key)))
    }

    /// What the operations on `key` amount to, without the database; `None`: there are none.
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another database. Those of the merge operator.
    pub fn pending(&self, family: &Family, key: &[u8]) -> Result<Option<Pending>> {
        let Some(change) = self.change(family, key)? else { return Ok(None) };
        Ok(Some(match change.base() {
            Base::Database => Pending::Merge(change.operands().iter().map(|o| o.to_vec()).collect()),
            Base::Row(_) => match change.columns(family, key, None)? {
                Some(columns) => Pending::Entity(columns),
                None => Pending::Deleted,
            },
            Base::Nothing { .. } | Base::Value(_) => match change.value(family, key, None)? {
                Some(value) => Pending::Put(Value::copy(&value)),
                None => Pending::Deleted,
            },
        }))
    }

    /// Reads the database, if the change of the key needs it.
    fn read_below<T>(
        &self,
        change: Option<&Change>,
        read: impl FnOnce(&Db) -> Result<Option<T>>,
    ) -> Result<(Option<T>, Below)> {
        if change.is_some_and(|change| !change.needs_database()) {
            self.db.check_open()?;
            return Ok((None, Below::NotAsked));
        }
        let below = read(&self.db)?;
        let noted = Below::of(below.as_ref());
        Ok((below, noted))
    }

    /// The value of `key` with the changes over the database.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<Value>> {
        self.get_noting(family, key, options).map(|(value, _)| value)
    }

    pub(crate) fn get_noting(
        &self,
        family: &Family,
        key: &[u8],
        options: ReadOptions,
    ) -> Result<(Option<Value>, Below)> {
        let change = self.change(family, key)?;
        let (below, noted) = self.read_below(change, |db| db.get(family, key, options))?;
        match change {
            None => Ok((below, noted)),
            Some(change) => {
                let value = change.value(family, key, below.as_deref())?;
                Ok((value.map(|value| Value::copy(&value)), noted))
            }
        }
    }

    /// The columns of `key` with the changes over the database.
    ///
    /// # Errors
    /// As [`Db::get_entity`].
    pub fn get_entity(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<Columns>> {
        self.get_entity_noting(family, key, options).map(|(columns, _)| columns)
    }

    pub(crate) fn get_entity_noting(
        &self,
        family: &Family,
        key: &[u8],
        options: ReadOptions,
    ) -> Result<(Option<Columns>, Below)> {
        let change = self.change(family, key)?;
        let (below, noted) = self.read_below(change, |db| db.get_entity(family, key, options))?;
        match change {
            None => Ok((below, noted)),
            Some(change) => Ok((change.columns(family, key, below)?, noted)),
        }
    }

    /// The values of `keys` with the changes over the database, in their order; the database is read as of one moment.
    ///
    /// # Errors
    /// As [`Db::multi_get`].
    pub fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: ReadOptions,
    ) -> Result<Vec<Result<Option<Value>>>> {
        self.multi_get_noting(family, keys, options, |_, _| {})
    }

    /// [`IndexedBatch::multi_get`]; `note` gets each key that was read from the database.
    pub(crate) fn multi_get_noting(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: ReadOptions,
        mut note: impl FnMut(&[u8], Below),
    ) -> Result<Vec<Result<Option<Value>>>> {
        self.check_own(family)?;
        let changes = self.families.get(&family.id());
        let change = |key: &[u8]| changes.and_then(|changes| changes.get(key));
        let asked: Vec<&[u8]> =
            keys.iter().copied().filter(|key| change(key).is_none_or(Change::needs_database)).collect();
        let mut below = self.db.multi_get(family, &asked, options)?.into_iter();
        let mut values = Vec::with_capacity(keys.len());
        for key in keys.iter().copied() {
            let change = change(key);
            let mut found = Ok(None);
            if change.is_none_or(Change::needs_database) {
                found = below.next().unwrap_or(Ok(None));
                found.iter().for_each(|found| note(key, Below::of(found.as_ref())));
            }
            values.push(found.and_then(|below| match change {
                None => Ok(below),
                Some(change) => {
                    let value = change.value(family, key, below.as_deref())?;
                    Ok(value.map(|value| Value::copy(&value)))
                }
            }));
        }
        Ok(values)
    }

    /// Whether `key` can have a value, without reading data blocks.
    ///
    /// # Errors
    /// As [`Db::key_may_exist`].
    pub fn key_may_exist(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<MayExist> {
        match self.change(family, key)? {
            None => self.db.key_may_exist(family, key, options),
            Some(change) if change.needs_database() => Ok(MayExist::Maybe),
            Some(change) => {
                self.db.check_open()?;
                let value = change.value(family, key, None)?;
                Ok(value.map_or(MayExist::No, |value| MayExist::Value(Value::copy(&value))))
            }
        }
    }

    /// The changes of a family at this moment, for a scan, and for a cursor over the operations.
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another database.
    pub fn view(&self, family: &Arc<Family>) -> Result<View> {
        self.check_own(family)?;
        Ok(self.families.get(&family.id()).map_or_else(|| View::empty(family), FamilyChanges::view))
    }
}

impl fmt::Debug for IndexedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexedBatch({} operations on {} keys)", self.len(), self.keys())
    }
}

#[cold]
fn no_range_deletions() -> Error {
    Error::not_supported("range deletions in an indexed batch or a transaction")
        .hint("Scan the range and delete its keys, or delete the range with a plain write")
}

#[cold]
fn no_savepoint() -> Error {
    Error::invalid("there is no savepoint").hint("Set one before the operations that may be rolled back")
}

//! Write batches that are read back: RocksDB's `WriteBatchWithIndex`.
//!
//! 1. RocksDB makes such a batch without a database. So the batch here has two parts: the operations, which a write takes as they
//!    are, and an index of what the operations on each key amount to. An operation that either part refuses enters neither, also if
//!    a comparator panics.
//! 2. A family has the order of the handle that comes with its first operation. Without a handle it has the order with which the
//!    batch was made.
//! 3. The index is the same with and without `overwrite_key`: no function of C shows the operations on one key.
//! 4. A rollback makes the index again, from the operations that are left. If a comparator panics then, the index is incomplete: the
//!    next call on the batch makes it again, and an iterator that moves before that answers an error.
//! 5. Range deletions are refused, as RocksDB refuses them.
//!
//! Source: RocksDB `include/rocksdb/utilities/write_batch_with_index.h`.

use crate::batch::check_timestamps;
use crate::calls::ReadOptions;
use crate::database::Database;
use crate::status::merge_in_progress;
use crate::turn::{Taken, Turn};
use ashlar_base::{FamilyId, Order};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_read::merge::Merger;
use ashlar_txn::ordered::OrderedMap;
use ashlardb::{Error, ErrorKind, Family, Read, Result, View, Write, WriteBatch};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An operation on a key.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The key gets this value.
    Put(&'a [u8]),
    /// This operand is added.
    Merge(&'a [u8]),
    /// The key is deleted.
    Delete,
    /// The key, which was put once, is deleted.
    SingleDelete,
}

/// What the operands of a key apply to.
#[derive(Clone, Debug, Default)]
enum Base {
    /// What the database has.
    #[default]
    Database,
    /// No value.
    Nothing,
    /// This value.
    Value(Vec<u8>),
}

/// What the operations on a key amount to.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    base: Base,
    /// Oldest first.
    operands: Vec<Vec<u8>>,
}

impl Pending {
    fn apply(&mut self, operation: Operation<'_>) {
        match operation {
            Operation::Merge(operand) => return self.operands.push(operand.to_vec()),
            Operation::Put(value) => self.base = Base::Value(value.to_vec()),
            Operation::Delete | Operation::SingleDelete => self.base = Base::Nothing,
        }
        self.operands.clear();
    }

    fn needs_database(&self) -> bool {
        matches!(self.base, Base::Database)
    }

    fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    /// The value of `key`; `below` is the value in the database.
    ///
    /// # Errors
    /// `InvalidArgument`: there are operands, and no family or no merge operator. Those of the operator.
    pub fn value<'a>(
        &'a self,
        merger: Option<&Merger>,
        key: &[u8],
        below: Option<&'a [u8]>,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let base = match &self.base {
            Base::Database => below,
            Base::Nothing => None,
            Base::Value(value) => Some(&value[..]),
        };
        if self.operands.is_empty() {
            return Ok(base.map(Cow::Borrowed));
        }
        let Some(merger) = merger else {
            return Err(Error::invalid("merge operands of a key, and no family that combines them")
                .hint("Call the function that takes a family"));
        };
        let operands = self.operands.iter().map(Vec::as_slice);
        merger.fold(key, base, operands).map(|value| Some(Cow::Owned(value)))
    }
}

/// The merge operator of a family.
pub fn merger(family: &Family) -> Merger {
    Merger::new(family.name(), family.options().merge_operator.clone())
}

/// What the operations on each key amount to, by family.
#[derive(Debug)]
pub struct Index {
    /// The order of families without a handle.
    order: Order,
    /// Whether the index was not made to its end.
    is_incomplete: bool,
    families: BTreeMap<FamilyId, OrderedMap<Pending>>,
}

impl Index {
    /// The index.
    ///
    /// # Errors
    /// `Aborted`: it is incomplete, because a comparator failed.
    pub fn whole(&self) -> Result<&Index> {
        if self.is_incomplete {
            let e =
                Error::new(ErrorKind::Aborted, "the index of the batch is incomplete: a comparator failed");
            return Err(e.hint("Call the batch, which makes its index again"));
        }
        Ok(self)
    }

    /// The keys of a family.
    pub fn family(&self, id: FamilyId) -> Option<&OrderedMap<Pending>> {
        self.families.get(&id)
    }

    fn apply(&mut self, id: FamilyId, order: Option<Order>, key: &[u8], operation: Operation<'_>) {
        let new = || OrderedMap::new(order.unwrap_or_else(|| self.order.clone()));
        let keys = self.families.entry(id).or_insert_with(new);
        // The map compares before it changes anything, so a comparator that panics leaves it as it was.
        match keys.get_mut(key) {
            Some(pending) => pending.apply(operation),
            None => {
                let mut pending = Pending::default();
                pending.apply(operation);
                keys.insert(keys.key(key), pending);
            }
        }
    }

    /// Forgets the operations, and keeps the orders of the families.
    fn clear(&mut self) {
        self.families.values_mut().for_each(|keys| *keys = OrderedMap::new(keys.order().clone()));
    }
}

/// A write batch that is read back.
#[derive(Debug)]
pub struct IndexedBatch {
    batch: WriteBatch,
    order: Order,
    index: Arc<Turn<Index>>,
}

impl IndexedBatch {
    /// An empty batch. `order` is that of families of which no handle is known.
    pub fn new(batch: WriteBatch, order: Order) -> IndexedBatch {
        let index = Index { order: order.clone(), is_incomplete: false, families: BTreeMap::new() };
        IndexedBatch { batch, order, index: Arc::new(Turn::new(index)) }
    }

    /// The batch of a stored form, with these families.
    ///
    /// # Errors
    /// Those of [`WriteBatch::from_data`].
    pub fn from_data(data: &[u8], families: &[Family]) -> Result<IndexedBatch> {
        let made = IndexedBatch::new(WriteBatch::from_data(data)?, Order::Bytewise);
        let keys = |family: &Family| (family.id(), OrderedMap::new(family.options().order.clone()));
        made.index.take()?.families = families.iter().map(keys).collect();
        {
            let mut index = made.index.take()?;
            made.index_again(&mut index)?;
        }
        Ok(made)
    }

    /// The operations, for a write.
    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// The index, which an iterator over the batch shares.
    pub fn index(&self) -> &Arc<Turn<Index>> {
        &self.index
    }

    /// The order of families of which no handle is known.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The index, made again if it is incomplete.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the batch makes this call.
    fn whole_index(&self) -> Result<Taken<'_, Index>> {
        let mut index = self.index.take()?;
        if index.is_incomplete {
            self.index_again(&mut index)?;
        }
        Ok(index)
    }

    /// Adds an operation on a key of a family; `None`: of the family `default`.
    ///
    /// # Errors
    /// Those of [`WriteBatch`]. `InvalidArgument`: a callback of a call on the batch makes this call.
    pub fn add(&self, family: Option<&Family>, key: &[u8], operation: Operation<'_>) -> Result<()> {
        let mut index = self.whole_index()?;
        let undo = Undo::new(&self.batch)?;
        match family {
            None => added(&self.batch, key, operation)?,
            Some(family) => added(&self.batch.family(family), key, operation)?,
        }
        let (id, order) = match family {
            None => (FamilyId::DEFAULT, None),
            Some(family) => (family.id(), Some(family.options().order.clone())),
        };
        index.apply(id, order, key, operation);
        undo.keep()
    }

    /// Removes all operations and savepoints.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the batch makes this call.
    pub fn clear(&self) -> Result<()> {
        let mut index = self.index.take()?;
        self.batch.clear();
        index.clear();
        index.is_incomplete = false;
        Ok(())
    }

    /// Removes the operations since the last savepoint, and the savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch has no savepoint.
    pub fn rollback_to_savepoint(&self) -> Result<()> {
        let mut index = self.index.take()?;
        self.batch.rollback_to_savepoint()?;
        self.index_again(&mut index)
    }

    fn index_again(&self, index: &mut Index) -> Result<()> {
        index.is_incomplete = true;
        let data = self.batch.data()?;
        index.clear();
        let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
        for op in BatchReader::new(&data).map_err(wrong)?.iter() {
            let (family, key, operation) = match op.map_err(wrong)? {
                BatchOp::Put { family, key, value } => (family, key, Operation::Put(value)),
                BatchOp::Merge { family, key, value } => (family, key, Operation::Merge(value)),
                BatchOp::Delete { family, key } => (family, key, Operation::Delete),
                BatchOp::SingleDelete { family, key } => (family, key, Operation::SingleDelete),
                _ => continue,
            };
            index.apply(family, None, key, operation);
        }
        index.is_incomplete = false;
        Ok(())
    }

    /// What a change of the timestamps of all keys answers; see [`check_timestamps`].
    ///
    /// # Errors
    /// Those of [`check_timestamps`].
    pub fn check_timestamps(&self, timestamp: &[u8], size_of: impl Fn(FamilyId) -> usize) -> Result<()> {
        check_timestamps(&self.batch.data()?, timestamp, size_of)
    }

    /// The value of a key in the batch alone. `None`: the batch deletes the key, or has no operation on it. Without a family, the
    /// key is one of the family `default`, and operands are not combined.
    ///
    /// # Errors
    /// [`merge_in_progress`]. Those of [`Pending::value`].
    pub fn get(&self, family: Option<&Family>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (index, id) = (self.whole_index()?, family.map_or(FamilyId::DEFAULT, Family::id));
        let Some(pending) = index.family(id).and_then(|keys| keys.get(key)) else { return Ok(None) };
        if pending.needs_database() {
            return Err(merge_in_progress());
        }
        let merger = family.filter(|_| pending.has_operands()).map(merger);
        let value = pending.value(merger.as_ref(), key, None)?;
        Ok(value.map(Cow::into_owned))
    }

    /// What the operations on a key amount to at this moment; `None`: the batch has no operation on it. No family stands for the
    /// family `default`.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the batch makes this call.
    pub fn pending(&self, family: Option<&Family>, key: &[u8]) -> Result<Option<Pending>> {
        let (index, id) = (self.whole_index()?, family.map_or(FamilyId::DEFAULT, Family::id));
        Ok(index.family(id).and_then(|keys| keys.get(key)).cloned())
    }

    /// The value of a key in the database with the batch over it. Iterators over the batch move while the database is read.
    ///
    /// # Errors
    /// Those of a read, and of [`Pending::value`].
    pub fn get_over(
        &self,
        db: &Database,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<View>> {
        value_over(self.pending(family, key)?, db, options, family, key)
    }
}

/// The value of a key in the database with the operations of a batch on it: [`IndexedBatch::pending`].
///
/// # Errors
/// Those of a read, and of [`Pending::value`].
pub fn value_over(
    pending: Option<Pending>,
    db: &Database,
    options: &ReadOptions,
    family: Option<&Family>,
    key: &[u8],
) -> Result<Option<View>> {
    let family = db.family(family)?;
    let below = match &pending {
        Some(pending) if !pending.needs_database() => None,
        _ => options.of(&family)?.get(key)?,
    };
    let Some(pending) = pending else { return Ok(below) };
    let merger = pending.has_operands().then(|| merger(&family));
    let value = pending.value(merger.as_ref(), key, below.as_deref())?;
    Ok(value.map(|value| View::copy(&value)))
}

fn added(to: &impl Write, key: &[u8], operation: Operation<'_>) -> Result<()> {
    match operation {
        Operation::Put(value) => to.put(key, value),
        Operation::Merge(operand) => to.merge(key, operand),
        Operation::Delete => to.delete(key),
        Operation::SingleDelete => to.single_delete(key),
    }
}

/// Removes the operations of a call that fails or panics.
struct Undo<'a>(Option<&'a WriteBatch>);

impl<'a> Undo<'a> {
    fn new(batch: &'a WriteBatch) -> Result<Undo<'a>> {
        batch.set_savepoint()?;
        Ok(Undo(Some(batch)))
    }

    fn keep(mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), WriteBatch::pop_savepoint)
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        // The savepoint is there, and no write uses the batch: both were so when the call began.
        let _ = self.0.map(WriteBatch::rollback_to_savepoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Mode;
    use crate::options::Options;
    use std::sync::{Mutex, Weak};

    /// Joins, and takes the index of a batch as an iterator over the batch does.
    #[derive(Debug, Default)]
    struct Calls {
        index: Mutex<Weak<Turn<Index>>>,
        said: Mutex<Vec<Result<()>>>,
    }

    impl ashlardb::MergeOperator for Calls {
        fn name(&self) -> &str {
            "calls"
        }

        fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
            if let Some(index) = self.index.lock().unwrap().upgrade() {
                self.said.lock().unwrap().push(index.take().map(drop));
            }
            Ok([existing.unwrap_or_default(), &operands.concat()].concat())
        }
    }

    #[test]
    fn iterators_over_a_batch_move_while_the_database_below_is_read() {
        let (dir, operator) = (tempfile::tempdir().unwrap(), Arc::new(Calls::default()));
        let mut options =
            Options { merge_operator: Some(Arc::<Calls>::clone(&operator)), ..Options::default() };
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        db.default_family().merge("a", "1").unwrap();
        let batch = IndexedBatch::new(WriteBatch::new(), Order::Bytewise);
        batch.add(None, b"a", Operation::Merge(b"2")).unwrap();
        *operator.index.lock().unwrap() = Arc::downgrade(batch.index());
        let value = batch.get_over(&db, &ReadOptions::default(), None, b"a").unwrap();
        assert_eq!(value.as_deref(), Some(&b"12"[..]));
        let said = operator.said.lock().unwrap();
        assert!(!said.is_empty() && said.iter().all(Result::is_ok), "{said:?}");
    }
}

//! Write batches that are read back, and the iterator over their operations.
//!
//! 1. A batch takes one call at a time; calls of several threads wait for each other.
//! 2. The iterator has the operations of the moment at which it was made, sorted by key. With `overwriteKey`, only the last one of
//!    each key is among them.

use crate::batch::{BatchObject, Kind};
use crate::callbacks::ComparatorObject;
use crate::classes::{Class, Method};
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, object, object_if};
use crate::env::{Env, Local, long};
use crate::handles::{self, Lent, Object};
use crate::iterators::IterObject;
use crate::settings::ReadObject;
use crate::slices::SliceObject;
use crate::transactions::TxnObject;
use ashlar_compat::batch::operations;
use ashlar_compat::indexed::{IndexedBatch, Operation, value_over};
use ashlar_compat::iterator::Iterator;
use ashlar_compat::status::not_found;
use ashlar_compat::turn::{Taken, Turn};
use ashlardb::options::Order;
use ashlardb::{Error, Family, FamilyId, View, WriteBatch};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// `WriteBatchWithIndex`.
#[derive(Debug)]
pub struct IndexedObject {
    batch: Turn<IndexedBatch>,
    overwrites: bool,
    /// The transaction whose operations it shows.
    transaction: Option<Weak<TxnObject>>,
    /// The copy that Java has without owning it.
    lent: Mutex<Option<Lent>>,
}

impl Object for IndexedObject {
    const NAME: &'static str = "WriteBatchWithIndex";
}

impl IndexedObject {
    /// With these operations. `overwrites`: an iterator shows the last operation of each key only.
    pub fn new(batch: IndexedBatch, overwrites: bool) -> IndexedObject {
        IndexedObject { batch: Turn::new(batch), overwrites, transaction: None, lent: Mutex::default() }
    }

    /// The operations of a transaction. Each call copies them again; operations that are added go to the transaction.
    pub fn of_transaction(batch: IndexedBatch, transaction: Weak<TxnObject>) -> IndexedObject {
        IndexedObject { transaction: Some(transaction), ..IndexedObject::new(batch, true) }
    }

    /// For one call.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the batch makes this call. Those of [`TxnObject::operations`].
    pub fn lock(&self) -> Result<Taken<'_, IndexedBatch>> {
        let transaction = self.transaction.as_ref().and_then(Weak::upgrade);
        let now = transaction.map(|transaction| transaction.operations()).transpose()?;
        let mut batch = self.batch.take()?;
        if let Some(now) = now {
            *batch = now;
        }
        Ok(batch)
    }

    /// For a call that changes the batch in another way than by an operation on a key.
    ///
    /// # Errors
    /// `NotSupported`: it is the batch of a transaction.
    fn own(&self) -> Result<Taken<'_, IndexedBatch>> {
        if self.transaction.is_some() {
            let e = Error::not_supported("this change of the write batch of a transaction");
            return Err(e.hint("Call the method of the Transaction").into());
        }
        self.lock()
    }

    fn add(&self, family: Option<&FamilyObject>, key: &[u8], operation: Operation<'_>) -> Result<()> {
        match &self.transaction {
            None => Ok(self.lock()?.add(of(family), key, operation)?),
            Some(transaction) => {
                let ended = || Error::invalid("the transaction of the batch was closed");
                transaction.upgrade().ok_or_else(ended)?.add(of(family), key, operation)
            }
        }
    }
}

fn of(family: Option<&FamilyObject>) -> Option<&Family> {
    family.map(|family| &family.family)
}

// Each function below is the body of the natives that the description names.

/// An empty batch in the order of bytes.
pub fn new(overwrites: bool) -> Result<i64> {
    let batch = IndexedBatch::new(WriteBatch::new(), Order::Bytewise);
    Ok(handles::keep(IndexedObject::new(batch, overwrites))?)
}

/// An empty batch in the order of a comparator.
pub fn new_with_order(comparator: i64, _: i8, overwrites: bool) -> Result<i64> {
    let comparator = object_if::<ComparatorObject>(comparator)?;
    let order = comparator.map_or(Order::Bytewise, |own| Order::of(own.comparator()));
    let batch = IndexedBatch::new(WriteBatch::new(), order);
    Ok(handles::keep(IndexedObject::new(batch, overwrites))?)
}

/// The number of operations.
pub fn count(batch: &IndexedObject) -> Result<i32> {
    Ok(i32::try_from(batch.lock()?.batch().len()).unwrap_or(i32::MAX))
}

/// Removes all operations.
pub fn clear(batch: &IndexedObject) -> Result<()> {
    Ok(batch.own()?.clear()?)
}

macro_rules! operations {
    ($($name:ident($($arg:ident)?) = $kind:expr;)*) => { $(
        #[doc = concat!("Adds an operation: ", stringify!($name), ".")]
        ///
        /// # Errors
        /// Those of [`IndexedBatch::add`].
        pub fn $name(batch: &IndexedObject, family: Option<&FamilyObject>, key: &[u8] $(, $arg: &[u8])?) -> Result<()> {
            batch.add(family, key, $kind)
        }
    )* };
}
operations! {
    put(value) = Operation::Put(value);
    merge(value) = Operation::Merge(value);
    delete() = Operation::Delete;
    single_delete() = Operation::SingleDelete;
}

/// Range deletions are refused, as RocksDB refuses them.
///
/// # Errors
/// `NotSupported`.
pub fn delete_range(_: &IndexedObject) -> Result<()> {
    Err(Error::not_supported("DeleteRange in a WriteBatchWithIndex").into())
}

/// Adds bytes for readers of the WAL.
pub fn put_log_data(batch: &IndexedObject, blob: &[u8]) -> Result<()> {
    Ok(batch.own()?.batch().put_log_data(blob)?)
}

/// Sets a savepoint.
pub fn set_savepoint(batch: &IndexedObject) -> Result<()> {
    Ok(batch.own()?.batch().set_savepoint()?)
}

/// Removes the operations since the last savepoint, and the savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn rollback_to_savepoint(batch: &IndexedObject) -> Result<()> {
    Ok(batch.own()?.rollback_to_savepoint().map_err(|e| not_found(e.message()))?)
}

/// Forgets the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn pop_savepoint(batch: &IndexedObject) -> Result<()> {
    Ok(batch.own()?.batch().pop_savepoint().map_err(|e| not_found(e.message()))?)
}

/// The most bytes; 0: any number.
///
/// # Errors
/// `NotSupported`: it is the batch of a transaction.
pub fn set_max_bytes(batch: &IndexedObject, bytes: i64) -> Result<()> {
    Ok(batch.own()?.batch().limit(usize::try_from(bytes).unwrap_or(0))?)
}

/// The value of a key in the batch alone.
///
/// # Errors
/// Those of [`IndexedBatch::get`].
pub fn get_from_batch(
    batch: &IndexedObject,
    family: Option<&FamilyObject>,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    Ok(batch.lock()?.get(of(family), key)?)
}

/// The value of a key in the database with the batch over it.
///
/// # Errors
/// Those of [`IndexedBatch::get_over`].
pub fn get_over(
    batch: &IndexedObject,
    db: &DbObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    key: &[u8],
) -> Result<Option<View>> {
    let options = options.0.read().clone();
    // The batch takes other calls while the database is read.
    let pending = batch.lock()?.pending(of(family), key)?;
    Ok(value_over(pending, &db.database, &options, of(family), key)?)
}

/// A `WriteBatch` with a copy of the operations, which ends with this batch. Every call answers the same one, with a new copy.
pub fn write_batch<'a>(env: Env<'a>, batch: &IndexedObject) -> Result<Local<'a>> {
    static BATCH: Class = Class::new("org/rocksdb/WriteBatch");
    static NEW: Method = Method::constructor("(JZ)V");
    let copy = batch.lock()?.batch().clone();
    let handle = {
        let mut lent = batch.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*lent {
            Some(lent) => lent.handle(),
            None => lent.insert(Lent::new(BatchObject::default())?).handle(),
        };
        *handles::get::<BatchObject>(handle)?.lock() = copy;
        handle
    };
    BATCH.make(env, &NEW, &[long(handle), crate::env::boolean(false)])
}

/// An iterator of a database with the batch over it. The iterator of the database is used up.
///
/// # Errors
/// `InvalidArgument`: a handle is not one of its kind, or a callback of a call on the batch makes this call. The iterator of the
/// database stays as it was then.
pub fn iterator_with_base(batch: &IndexedObject, family: i64, base: i64, options: i64) -> Result<i64> {
    let base_object = object::<IterObject>(base)?;
    let family = object_if::<FamilyObject>(family)?;
    let options = object_if::<ReadObject>(options)?;
    let bounds = options.map(|options| {
        let options = options.0.read();
        (options.lower.clone(), options.upper.clone())
    });
    // Before the base is taken: a call that fails here leaves the base to the caller.
    let own = batch.lock()?;
    let used = Iterator::once(Err(Error::invalid("the iterator has a batch over it now")));
    let taken = std::mem::replace(&mut *base_object.lock()?, used.into());
    handles::close(base);
    let over = taken.over(&own, of(family.as_deref()), bounds.unwrap_or_default());
    Ok(handles::keep(IterObject::new(over))?)
}

/// `WBWIRocksIterator`.
#[derive(Debug)]
pub struct EntriesObject(Mutex<Entries>);

impl Object for EntriesObject {
    const NAME: &'static str = "WBWIRocksIterator";
}

#[derive(Debug)]
struct Entries {
    order: Order,
    all: Vec<Entry>,
    /// Off the entries: `None`.
    at: Option<usize>,
    /// The handles of the entry that was shown last.
    shown: Vec<Lent>,
}

#[derive(Clone, Debug)]
struct Entry {
    kind: i64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl EntriesObject {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kinds with this number and above are deletions.
const DELETION: i64 = 2;

/// Java's number of a kind of entry.
fn number(kind: Kind) -> Option<i64> {
    Some(match kind {
        Kind::Put => 0,
        Kind::Merge => 1,
        Kind::Delete => DELETION,
        Kind::SingleDelete => 3,
        _ => return None,
    })
}

/// Over the operations on a family.
///
/// # Errors
/// `Corruption`: the batch does not decode.
pub fn entries(batch: &IndexedObject, family: Option<&FamilyObject>) -> Result<i64> {
    let own = batch.lock()?;
    let id = family.map_or(FamilyId::DEFAULT, |family| family.family.id());
    let order = family.map_or_else(|| own.order().clone(), |family| family.family.options().order.clone());
    let data = own.batch().data()?;
    let mut all: Vec<Entry> = operations(&data)?
        .into_iter()
        .filter(|op| op.family == id)
        .filter_map(|op| {
            Some(Entry { kind: number(op.kind)?, key: op.key.to_vec(), value: op.value.to_vec() })
        })
        .collect();
    // The sort is stable: operations on a key stay in their order.
    all.sort_by(|a, b| order.compare(&a.key, &b.key));
    if batch.overwrites {
        let mut last: Vec<Entry> = Vec::with_capacity(all.len());
        for entry in all {
            match last.last_mut().filter(|before| before.key == entry.key) {
                Some(before) => *before = entry,
                None => last.push(entry),
            }
        }
        all = last;
    }
    let entries = Entries { order, all, at: None, shown: Vec::new() };
    Ok(handles::keep(EntriesObject(Mutex::new(entries)))?)
}

/// Whether it is on an entry.
pub fn is_valid(entries: &EntriesObject) -> Result<bool> {
    Ok(entries.lock().at.is_some())
}

impl Entries {
    fn move_to(&mut self, at: Option<usize>) {
        self.at = at.filter(|at| *at < self.all.len());
    }
}

/// To the first entry.
pub fn seek_to_first(entries: &EntriesObject) -> Result<()> {
    entries.lock().move_to(Some(0));
    Ok(())
}

/// To the last entry.
pub fn seek_to_last(entries: &EntriesObject) -> Result<()> {
    let mut entries = entries.lock();
    let last = entries.all.len().checked_sub(1);
    entries.move_to(last);
    Ok(())
}

/// To the next entry.
pub fn next(entries: &EntriesObject) -> Result<()> {
    let mut entries = entries.lock();
    let next = entries.at.map(|at| at + 1);
    entries.move_to(next);
    Ok(())
}

/// To the entry before.
pub fn prev(entries: &EntriesObject) -> Result<()> {
    let mut entries = entries.lock();
    let before = entries.at.and_then(|at| at.checked_sub(1));
    entries.move_to(before);
    Ok(())
}

/// To the first entry at or after a key.
pub fn seek(entries: &EntriesObject, key: &[u8]) -> Result<()> {
    let mut entries = entries.lock();
    let at = entries.all.partition_point(|entry| entries.order.compare(&entry.key, key).is_lt());
    entries.move_to(Some(at));
    Ok(())
}

/// To the last entry at or before a key.
pub fn seek_for_prev(entries: &EntriesObject, key: &[u8]) -> Result<()> {
    let mut entries = entries.lock();
    let behind = entries.all.partition_point(|entry| entries.order.compare(&entry.key, key).is_le());
    entries.move_to(behind.checked_sub(1));
    Ok(())
}

/// The entries are in memory: no error ends them.
pub fn status(_: &EntriesObject) -> Result<()> {
    Ok(())
}

/// The kind of the entry, and handles of its key and value, which are valid until the next call.
///
/// # Errors
/// `InvalidArgument`: it is on no entry.
pub fn entry(entries: &EntriesObject) -> Result<Vec<i64>> {
    let mut entries = entries.lock();
    let at = entries.at.and_then(|at| entries.all.get(at).cloned());
    let entry = at.ok_or_else(crate::iterators::off)?;
    let key = Lent::new(SliceObject::of(entry.key))?;
    // A deletion has no value.
    let value = (entry.kind < DELETION).then(|| Lent::new(SliceObject::of(entry.value))).transpose()?;
    let shown = vec![entry.kind, key.handle(), value.as_ref().map_or(0, Lent::handle)];
    entries.shown = [key].into_iter().chain(value).collect();
    Ok(shown)
}

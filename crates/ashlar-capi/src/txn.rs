//! Transaction databases and transactions.
//!
//! Most calls of a transaction database are those of the database in it.

use crate::batch::BatchObject;
use crate::copies::CheckpointObject;
use crate::db::{self, DbObject, FamilyObject};
use crate::door::{HasTexts, call};
use crate::families::{Families, open_column_families};
use crate::indexed::IndexedObject;
use crate::iter::{self, IterObject, PinnedObject};
use crate::kept::FirstError;
use crate::lists::{each_key, each_of_database, reads_of_many};
use crate::memory::lent_copy;
use crate::objects::{
    FlushObject, FlushWalObject, OptimisticDbOptionsObject, OptimisticOptionsObject, TxnDbOptionsObject,
    TxnOptionsObject,
};
use crate::options::{OptionsObject, ReadObject, SnapshotObject, WriteObject};
use crate::timestamps;
use ashlar_compat::calls::WriteOptions;
use ashlar_compat::indexed::IndexedBatch;
use ashlar_compat::iterator::Iterator;
use ashlar_compat::options::Texts;
use ashlar_compat::transaction::Txn;
use ashlar_compat::transactions::{check_policy, optimistic, pessimistic, plain};
use ashlardb::{Result, TransactionOptions, View, Write, WriteBatch};
use std::cell::{Ref, RefCell};
use std::ffi::{CStr, c_char};

/// `rocksdb_transactiondb_t`.
#[derive(Debug)]
pub struct TxnDbObject {
    pub(crate) db: DbObject,
    options: Texts,
}

/// `rocksdb_optimistictransactiondb_t`.
#[derive(Debug)]
pub struct OptimisticDbObject {
    db: DbObject,
}

/// `rocksdb_transaction_t`.
#[derive(Debug)]
pub struct TxnObject {
    txn: RefCell<Txn>,
    refused: FirstError,
    /// The snapshots of which the caller has the bytes, each once. As in RocksDB they live until the
    /// transaction is begun again or destroyed.
    lent: RefCell<Vec<SnapshotObject>>,
    /// The batch of which the caller has the bytes.
    pub(crate) lent_batch: RefCell<Option<IndexedObject>>,
}

impl TxnObject {
    fn new(db: &DbObject, options: Result<TransactionOptions>, must_prepare: bool) -> TxnObject {
        TxnObject::of(Txn::begin(&db.0, options, must_prepare))
    }

    fn of(txn: Txn) -> TxnObject {
        let (lent, lent_batch) = (RefCell::default(), RefCell::default());
        TxnObject { txn: txn.into(), refused: FirstError::default(), lent, lent_batch }
    }

    /// Adds the operations of a batch.
    ///
    /// # Errors
    /// Those of [`Txn::add`].
    pub(crate) fn add(&self, batch: &WriteBatch) -> Result<()> {
        self.open()?.add(batch)
    }

    /// The operations, as a batch that is read; none once the transaction has ended.
    ///
    /// # Errors
    /// Those of the beginning of the transaction.
    pub(crate) fn operations(&self) -> Result<IndexedBatch> {
        self.open()?.operations()
    }

    fn open(&self) -> Result<Ref<'_, Txn>> {
        self.refused.check().map(|()| self.txn.borrow())
    }

    fn get(&self, family: Option<&FamilyObject>, options: &ReadObject, key: &[u8]) -> Result<Option<View>> {
        self.open()?.get(family.map(|family| &family.family), &options.0, key)
    }

    fn get_for_update(
        &self,
        family: Option<&FamilyObject>,
        options: &ReadObject,
        key: &[u8],
        exclusive: bool,
    ) -> Result<Option<View>> {
        self.open()?.get_for_update(family.map(|family| &family.family), &options.0, key, exclusive)
    }

    fn iterator(&self, family: Option<&FamilyObject>, options: &ReadObject) -> IterObject {
        let iterator = match self.open() {
            Ok(txn) => txn.iterator(family.map(|family| &family.family), &options.0),
            Err(e) => Iterator::once(Err(e)),
        };
        IterObject(iterator.into())
    }
}

// Each function below is the body of the C function of its name.

/// Opens a database of pessimistic transactions.
///
/// # Errors
/// Those of [`db::open`].
pub fn transactiondb_open(
    options: &OptionsObject,
    txn_db_options: &TxnDbOptionsObject,
    name: &CStr,
) -> Result<TxnDbObject> {
    check_policy(txn_db_options.texts())?;
    Ok(TxnDbObject { db: db::open(options, name)?, options: txn_db_options.texts().clone() })
}

/// Opens a database of optimistic transactions.
///
/// # Errors
/// Those of [`db::open`].
pub fn optimistictransactiondb_open(options: &OptionsObject, name: &CStr) -> Result<OptimisticDbObject> {
    Ok(OptimisticDbObject { db: db::open(options, name)? })
}

/// Opens a database of optimistic transactions. How RocksDB validates changes no answer here.
///
/// # Errors
/// Those of [`db::open`].
pub fn optimistictransactiondb_open_with_otxn_db_options(
    options: &OptionsObject,
    _: &OptimisticDbOptionsObject,
    name: &CStr,
) -> Result<OptimisticDbObject> {
    optimistictransactiondb_open(options, name)
}

/// Closes the database.
pub fn transactiondb_close(txn_db: Option<Box<TxnDbObject>>) {
    db::close(txn_db.map(|txn_db| Box::new(txn_db.db)));
}

/// Closes the database.
pub fn optimistictransactiondb_close(otxn_db: Option<Box<OptimisticDbObject>>) {
    db::close(otxn_db.map(|otxn_db| Box::new(otxn_db.db)));
}

/// The database in it, which stays open until the transaction database is closed.
pub fn transactiondb_get_base_db(txn_db: &TxnDbObject) -> DbObject {
    txn_db.db.share()
}

/// The database in it, which stays open until the transaction database is closed.
pub fn optimistictransactiondb_get_base_db(otxn_db: &OptimisticDbObject) -> DbObject {
    otxn_db.db.share()
}

macro_rules! inside {
    ($($(#[$doc:meta])* $name:ident($object:ty $(, $arg:ident: $of:ty)*) -> $result:ty = $call:path;)*) => { $(
        $(#[$doc])*
        pub fn $name(object: &$object $(, $arg: $of)*) -> $result {
            $call(&object.db $(, $arg)*)
        }
    )* };
}
inside! {
    /// # Errors
    /// Those of [`db::get`].
    transactiondb_get(TxnDbObject, options: &ReadObject, key: &[u8]) -> Result<Option<View>> = db::get;
    /// # Errors
    /// Those of [`db::get_cf`].
    transactiondb_get_cf(TxnDbObject, options: &ReadObject, family: &FamilyObject, key: &[u8]) -> Result<Option<View>> = db::get_cf;
    /// # Errors
    /// Those of [`db::get`].
    transactiondb_get_pinned(TxnDbObject, options: &ReadObject, key: &[u8]) -> Result<Option<PinnedObject>> = db::get_pinned;
    /// # Errors
    /// Those of [`db::get_cf`].
    transactiondb_get_pinned_cf(TxnDbObject, options: &ReadObject, family: &FamilyObject, key: &[u8]) -> Result<Option<PinnedObject>> = db::get_pinned_cf;
    /// # Errors
    /// Those of [`db::create_column_family`].
    transactiondb_create_column_family(TxnDbObject, options: &OptionsObject, name: &CStr) -> Result<FamilyObject> = db::create_column_family;
    /// A snapshot.
    transactiondb_create_snapshot(TxnDbObject) -> Option<SnapshotObject> = db::create_snapshot;
    /// Gives a snapshot back.
    transactiondb_release_snapshot(TxnDbObject, snapshot: Option<Box<SnapshotObject>>) -> () = db::release_snapshot;
    /// A property.
    transactiondb_property_value(TxnDbObject, propname: &CStr) -> Option<String> = db::property_value;
    /// A property that is a number.
    transactiondb_property_int(TxnDbObject, propname: &CStr, value: &mut u64) -> i32 = db::property_int;
    /// A property.
    optimistictransactiondb_property_value(OptimisticDbObject, propname: &CStr) -> Option<String> = db::property_value;
    /// A property that is a number.
    optimistictransactiondb_property_int(OptimisticDbObject, propname: &CStr, value: &mut u64) -> i32 = db::property_int;
    /// # Errors
    /// Those of [`db::flush`].
    transactiondb_flush(TxnDbObject, options: &FlushObject) -> Result<()> = db::flush;
    /// # Errors
    /// Those of [`db::flush_cf`].
    transactiondb_flush_cf(TxnDbObject, options: &FlushObject, family: &FamilyObject) -> Result<()> = db::flush_cf;
    /// # Errors
    /// Those of [`db::flush_wal`].
    transactiondb_flush_wal(TxnDbObject, sync: bool) -> Result<()> = db::flush_wal;
    /// # Errors
    /// Those of [`db::flush_wal`].
    transactiondb_flush_wal_with_options(TxnDbObject, options: &FlushWalObject) -> Result<()> = db::flush_wal_with_options;
    /// An iterator over the family `default`.
    transactiondb_create_iterator(TxnDbObject, options: &ReadObject) -> IterObject = iter::create_iterator;
    /// An iterator over a family.
    transactiondb_create_iterator_cf(TxnDbObject, options: &ReadObject, family: &FamilyObject) -> IterObject = iter::create_iterator_cf;
    /// # Errors
    /// Those of [`crate::copies::checkpoint_object_create`].
    transactiondb_checkpoint_object_create(TxnDbObject) -> Result<CheckpointObject> = crate::copies::checkpoint_object_create;
    /// # Errors
    /// Those of [`crate::copies::checkpoint_object_create`].
    optimistictransactiondb_checkpoint_object_create(OptimisticDbObject) -> Result<CheckpointObject> = crate::copies::checkpoint_object_create;
    /// # Errors
    /// Those of [`db::write`].
    optimistictransactiondb_write(OptimisticDbObject, options: &WriteObject, batch: &BatchObject) -> Result<()> = db::write;
}

macro_rules! locked {
    ($($name:ident, $of:ident, $in:ident, $in_of:ident ($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Writes to the family `default`, with the locks of its keys: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of [`ashlardb::Db::locking`].
        pub fn $name(txn_db: &TxnDbObject, options: &WriteObject, $($arg: &[u8]),*) -> Result<()> {
            txn_db.db.0.db().locking(plain(&txn_db.options, options.write)).$call($($arg),*)
        }
        #[doc = concat!("Writes to a family, with the locks of its keys: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of [`ashlardb::Db::locking`].
        pub fn $of(
            txn_db: &TxnDbObject,
            options: &WriteObject,
            family: &FamilyObject,
            $($arg: &[u8]),*
        ) -> Result<()> {
            let (db, options) = (txn_db.db.0.db(), plain(&txn_db.options, options.write));
            db.locking(options).family(&family.family).$call($($arg),*)
        }
        #[doc = concat!("In the family `default`: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of the write to a transaction.
        pub fn $in(txn: &TxnObject, $($arg: &[u8]),*) -> Result<()> {
            txn.open()?.open()?.$call($($arg),*)
        }
        #[doc = concat!("In a family: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of the write to a transaction.
        pub fn $in_of(txn: &TxnObject, family: &FamilyObject, $($arg: &[u8]),*) -> Result<()> {
            txn.open()?.open()?.family(&family.family).$call($($arg),*)
        }
    )* };
}
locked! {
    transactiondb_put, transactiondb_put_cf, transaction_put, transaction_put_cf(key, val) = put;
    transactiondb_merge, transactiondb_merge_cf, transaction_merge, transaction_merge_cf(key, val) = merge;
    transactiondb_delete, transactiondb_delete_cf, transaction_delete, transaction_delete_cf(key) = delete;
}

/// Writes a batch, with the locks of its keys.
///
/// # Errors
/// Those of [`ashlardb::Db::locking`].
pub fn transactiondb_write(txn_db: &TxnDbObject, options: &WriteObject, batch: &BatchObject) -> Result<()> {
    // RocksDB leaves the batch as it is.
    txn_db.db.0.db().locking(plain(&txn_db.options, options.write)).write(batch.complete()?.clone())
}

/// Begins a transaction; one that has ended may be begun again in its place.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_begin(
    txn_db: *mut TxnDbObject,
    write_options: *const WriteObject,
    txn_options: *const TxnOptionsObject,
    old_txn: *mut TxnObject,
) -> *mut TxnObject {
    let _in = crate::checked::enter("rocksdb_transaction_begin");
    let new = |db: &TxnDbObject, write, options: &TxnOptionsObject| {
        let texts = options.texts();
        TxnObject::new(&db.db, pessimistic(&db.options, texts, write), !texts.get::<bool>("skip_prepare"))
    };
    // SAFETY: as for this function.
    unsafe { begun(txn_db, write_options, txn_options, old_txn, new) }
}

/// Begins an optimistic transaction; one that has ended may be begun again in its place.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransaction_begin(
    otxn_db: *mut OptimisticDbObject,
    write_options: *const WriteObject,
    otxn_options: *const OptimisticOptionsObject,
    old_txn: *mut TxnObject,
) -> *mut TxnObject {
    let _in = crate::checked::enter("rocksdb_optimistictransaction_begin");
    let new = |db: &OptimisticDbObject, write, options: &OptimisticOptionsObject| {
        TxnObject::new(&db.db, Ok(optimistic(options.texts(), write)), false)
    };
    // SAFETY: as for this function.
    unsafe { begun(otxn_db, write_options, otxn_options, old_txn, new) }
}

/// Begins a transaction that `new` makes of the database, the options of its writes and its own options.
///
/// # Safety
/// The pointers are as the header says. No other call uses `old`.
unsafe fn begun<D: 'static, O: 'static>(
    db: *const D,
    write: *const WriteObject,
    options: *const O,
    old: *mut TxnObject,
    new: impl FnOnce(&D, WriteOptions, &O) -> TxnObject,
) -> *mut TxnObject {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "the database") }?;
        // SAFETY: as for this function.
        let write = unsafe { crate::door::borrowed(write, "write_options") }?.write;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "the options") }?;
        // SAFETY: as for this function.
        Ok(unsafe { placed(new(db, write, options), old) })
    })
}

/// A new object, or the old one with the new content.
///
/// # Safety
/// `old` is null or an object that no other call uses.
unsafe fn placed(new: TxnObject, old: *mut TxnObject) -> *mut TxnObject {
    // SAFETY: as for this function.
    match unsafe { crate::door::changed_if(old, "old_txn") } {
        Some(place) => {
            *place = new;
            old
        }
        None => crate::door::made(new),
    }
}

/// The prepared transactions that no object has.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    txn_db: *mut TxnDbObject,
    cnt: *mut usize,
) -> *mut *mut TxnObject {
    let _in = crate::checked::enter("rocksdb_transactiondb_get_prepared_transactions");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let count = unsafe { crate::door::out(cnt, "cnt") }?;
        *count = 0;
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(txn_db, "txn_db") }?;
        let all = db.db.0.db().prepared_transactions()?;
        let objects = all
            .into_iter()
            .map(|transaction| crate::door::made(TxnObject::of(Txn::prepared(&db.db.0, transaction))));
        let objects: Vec<*mut TxnObject> = objects.collect();
        *count = objects.len();
        Ok(if objects.is_empty() { std::ptr::null_mut() } else { crate::memory::new_array(&objects) })
    })
}

/// The snapshot of the transaction, which the caller frees with `rocksdb_free` before the transaction is destroyed.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_snapshot(txn: *mut TxnObject) -> *const SnapshotObject {
    let _in = crate::checked::enter("rocksdb_transaction_get_snapshot");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let txn = unsafe { crate::door::borrowed(txn, "txn") }?;
        let Some(snapshot) = txn.open()?.open()?.snapshot() else { return Ok(std::ptr::null()) };
        let mut lent = txn.lent.borrow_mut();
        let at = lent.iter().position(|known| known.0.sequence() == snapshot.sequence());
        let at = at.unwrap_or(lent.len());
        if at == lent.len() {
            lent.push(SnapshotObject(snapshot));
        }
        Ok(lent_copy(&lent[at], txn).cast_const())
    })
}

/// Commits.
///
/// # Errors
/// Those of [`Txn::commit`].
pub fn transaction_commit(txn: &TxnObject) -> Result<()> {
    txn.open()?.commit()
}

/// Takes everything back. The transaction goes on, empty.
///
/// # Errors
/// Those of [`Txn::rollback`].
pub fn transaction_rollback(txn: &TxnObject) -> Result<()> {
    txn.refused.check()?;
    txn.txn.borrow_mut().rollback()
}

/// Makes the writes durable, and leaves the decision for later.
///
/// # Errors
/// Those of [`ashlardb::Transaction::prepare`].
pub fn transaction_prepare(txn: &TxnObject) -> Result<()> {
    txn.open()?.open()?.prepare()
}

/// Gives the transaction a name.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_name`].
pub fn transaction_set_name(txn: &TxnObject, name: &[u8]) -> Result<()> {
    txn.open()?.open()?.set_name(name)
}

/// The name; empty without one.
pub fn transaction_get_name(txn: &TxnObject) -> Option<Vec<u8>> {
    Some(txn.open().ok().and_then(|txn| txn.open().ok()?.name()).unwrap_or_default())
}

/// Sets a savepoint.
pub fn transaction_set_savepoint(txn: &TxnObject) {
    let done = txn.open().and_then(|txn| txn.open()?.set_savepoint());
    txn.refused.note(done);
}

/// Adds bytes for readers of the WAL.
pub fn transaction_put_log_data(txn: &TxnObject, blob: &[u8]) {
    let done = txn.open().and_then(|txn| txn.open()?.put_log_data(blob));
    txn.refused.note(done);
}

/// Keys with timestamps are refused by the commit.
pub fn transaction_set_commit_timestamp(txn: &TxnObject, _: u64) {
    txn.refused.note(Err(timestamps::refused()));
}

/// Keys with timestamps are refused by the next operation.
pub fn transaction_set_read_timestamp_for_validation(txn: &TxnObject, _: u64) {
    txn.refused.note(Err(timestamps::refused()));
}

/// Takes back the operations since the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: there is no savepoint.
pub fn transaction_rollback_to_savepoint(txn: &TxnObject) -> Result<()> {
    txn.open()?.rollback_to_savepoint()
}

/// Adds the operations of a batch.
///
/// # Errors
/// Those of [`Txn::add`].
pub fn transaction_rebuild_from_writebatch(txn: &TxnObject, batch: &BatchObject) -> Result<()> {
    txn.add(batch.complete()?)
}

/// The value that the transaction sees.
///
/// # Errors
/// Those of [`Txn::get`].
pub fn transaction_get(txn: &TxnObject, options: &ReadObject, key: &[u8]) -> Result<Option<View>> {
    txn.get(None, options, key)
}

/// The value of a family that the transaction sees.
///
/// # Errors
/// Those of [`transaction_get`].
pub fn transaction_get_cf(
    txn: &TxnObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
) -> Result<Option<View>> {
    txn.get(Some(family), options, key)
}

/// The value that the transaction sees, which the object keeps.
///
/// # Errors
/// Those of [`transaction_get`].
pub fn transaction_get_pinned(
    txn: &TxnObject,
    options: &ReadObject,
    key: &[u8],
) -> Result<Option<PinnedObject>> {
    Ok(txn.get(None, options, key)?.map(PinnedObject))
}

/// The value of a family that the transaction sees, which the object keeps.
///
/// # Errors
/// Those of [`transaction_get`].
pub fn transaction_get_pinned_cf(
    txn: &TxnObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
) -> Result<Option<PinnedObject>> {
    Ok(txn.get(Some(family), options, key)?.map(PinnedObject))
}

/// The value of a key that the transaction locks.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn transaction_get_for_update(
    txn: &TxnObject,
    options: &ReadObject,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<View>> {
    txn.get_for_update(None, options, key, exclusive)
}

/// The value of a key of a family that the transaction locks.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn transaction_get_for_update_cf(
    txn: &TxnObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<View>> {
    txn.get_for_update(Some(family), options, key, exclusive)
}

/// The value of a key that the transaction locks, which the object keeps.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn transaction_get_pinned_for_update(
    txn: &TxnObject,
    options: &ReadObject,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<PinnedObject>> {
    Ok(txn.get_for_update(None, options, key, exclusive)?.map(PinnedObject))
}

/// The value of a key of a family that the transaction locks, which the object keeps.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn transaction_get_pinned_for_update_cf(
    txn: &TxnObject,
    options: &ReadObject,
    family: &FamilyObject,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<PinnedObject>> {
    Ok(txn.get_for_update(Some(family), options, key, exclusive)?.map(PinnedObject))
}

/// What the transaction sees of the family `default` at this moment.
pub fn transaction_create_iterator(txn: &TxnObject, options: &ReadObject) -> IterObject {
    txn.iterator(None, options)
}

/// What the transaction sees of a family at this moment.
pub fn transaction_create_iterator_cf(
    txn: &TxnObject,
    options: &ReadObject,
    family: &FamilyObject,
) -> IterObject {
    txn.iterator(Some(family), options)
}

/// Opens a database of pessimistic transactions with these families.
///
/// # Errors
/// Those of [`transactiondb_open`].
pub fn transactiondb_open_column_families(
    options: &OptionsObject,
    txn_db_options: &TxnDbOptionsObject,
    name: &CStr,
    families: Families<'_>,
) -> Result<TxnDbObject> {
    check_policy(txn_db_options.texts())?;
    let db = open_column_families(options, name, families)?;
    Ok(TxnDbObject { db, options: txn_db_options.texts().clone() })
}

/// Opens a database of optimistic transactions with these families.
///
/// # Errors
/// Those of [`db::open`].
pub fn optimistictransactiondb_open_column_families(
    options: &OptionsObject,
    name: &CStr,
    families: Families<'_>,
) -> Result<OptimisticDbObject> {
    Ok(OptimisticDbObject { db: open_column_families(options, name, families)? })
}

/// Opens a database of optimistic transactions with these families. How RocksDB validates changes no answer here.
///
/// # Errors
/// Those of [`db::open`].
pub fn optimistictransactiondb_open_column_families_with_otxn_db_options(
    options: &OptionsObject,
    _: Option<&OptimisticDbOptionsObject>,
    name: &CStr,
    families: Families<'_>,
) -> Result<OptimisticDbObject> {
    optimistictransactiondb_open_column_families(options, name, families)
}

/// The family of each of many keys.
type Each<'a> = Option<&'a [&'a FamilyObject]>;

reads_of_many! {
    /// The values of many keys that the transaction sees.
    rocksdb_transaction_multi_get, rocksdb_transaction_multi_get_cf(TxnObject) =
        |txn: &TxnObject, options: &ReadObject, families: Each<'_>, keys| {
            each_key(families, keys, |keys| txn.open()?.multi_get_each(&options.0, keys))
        }
}
reads_of_many! {
    /// The values of many keys, at one moment.
    rocksdb_transactiondb_multi_get, rocksdb_transactiondb_multi_get_cf(TxnDbObject) =
        |db: &TxnDbObject, options, families, keys| each_of_database(&db.db, options, families, keys)
}
reads_of_many! {
    /// The values of many keys that the transaction locks, one after the other. The error of a key that cannot be locked goes to
    /// all keys.
    rocksdb_transaction_multi_get_for_update, rocksdb_transaction_multi_get_for_update_cf(TxnObject) =
        |txn: &TxnObject, options: &ReadObject, families: Each<'_>, keys| {
            each_key(families, keys, |keys| txn.open()?.multi_get_for_update_each(&options.0, keys))
        }
}

/// `rocksdb_optimistictransactiondb_lock_buckets_t`. Ignored: commits here take no locks of buckets.
#[derive(Clone, Copy, Debug)]
pub struct BucketsObject {
    _count: usize,
}

/// So many buckets.
pub fn optimistictransactiondb_lock_buckets_create(count: usize, _: bool) -> BucketsObject {
    BucketsObject { _count: count }
}

/// The bytes of the object itself.
pub fn optimistictransactiondb_lock_buckets_approximate_memory_usage(_: &BucketsObject) -> usize {
    size_of::<BucketsObject>()
}

/// Ignored, as for [`BucketsObject`].
pub fn optimistictransactiondb_options_set_shared_lock_buckets(
    _: &mut OptimisticDbOptionsObject,
    _: Option<&BucketsObject>,
) {
}

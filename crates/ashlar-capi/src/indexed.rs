//! Write batches that are read back.
//!
//! As with a plain batch, an operation that cannot be added makes the batch refuse its write. Range deletions are passed over
//! without an error, as RocksDB does.

use crate::callbacks::{ComparatorObject, Entry, Key, Walker};
use crate::db::{DbObject, FamilyObject};
use crate::door::{List, Ranges, call};
use crate::iter::{IterObject, PinnedObject};
use crate::kept::{FirstError, Shown};
use crate::memory::lent_copy;
use crate::options::{OptionsObject, ReadObject, WriteObject};
use crate::txn::TxnObject;
use ashlar_compat::batch::walk;
use ashlar_compat::indexed::{IndexedBatch, Operation};
use ashlar_compat::status::not_found;
use ashlardb::options::Order;
use ashlardb::{Error, Result, View, WriteBatch};
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::rc::Rc;
use std::sync::Arc;

/// `rocksdb_writebatch_wi_t`. Its bytes are a pointer that calls do not change, so that a transaction can lend a copy of them.
#[derive(Debug)]
pub struct IndexedObject(Rc<Content>);

#[derive(Debug)]
struct Content {
    /// Replaced as a whole where a transaction lends it.
    batch: RefCell<Rc<IndexedBatch>>,
    /// That of an operation that could not be added.
    refused: FirstError,
    shown: Shown,
}

impl IndexedObject {
    fn new(batch: IndexedBatch) -> IndexedObject {
        let batch = Rc::new(batch).into();
        IndexedObject(Rc::new(Content { batch, refused: FirstError::default(), shown: Shown::default() }))
    }

    fn batch(&self) -> Rc<IndexedBatch> {
        Rc::clone(&self.0.batch.borrow())
    }

    /// The operations.
    ///
    /// # Errors
    /// That of the first operation that could not be added.
    fn complete(&self) -> Result<Rc<IndexedBatch>> {
        self.0.refused.check().map(|()| self.batch())
    }

    fn add(&self, family: Option<&FamilyObject>, key: &[u8], operation: Operation<'_>) {
        self.0.refused.note(self.batch().add(family.map(|family| &family.family), key, operation));
    }

    fn get_over(
        &self,
        db: &DbObject,
        options: &ReadObject,
        family: Option<&FamilyObject>,
        key: &[u8],
    ) -> Result<Option<View>> {
        self.batch().get_over(&db.0, &options.0, family.map(|family| &family.family), key)
    }

    fn over(
        &self,
        base: Option<Box<IterObject>>,
        family: Option<&FamilyObject>,
        options: Option<&ReadObject>,
    ) -> Option<IterObject> {
        let bounds = options.map(|options| (options.0.lower.clone(), options.0.upper.clone()));
        let family = family.map(|family| &family.family);
        Some(IterObject(base?.0.over(&self.batch(), family, bounds.unwrap_or_default())))
    }
}

/// An empty batch. Both kinds answer the same.
pub fn writebatch_wi_create(_: usize, _: bool) -> IndexedObject {
    IndexedObject::new(IndexedBatch::new(WriteBatch::new(), Order::Bytewise))
}

/// An empty batch. Of the settings the checksums and the comparator act, which orders families of which no handle is known.
pub fn writebatch_wi_create_with_params(
    comparator: Option<&ComparatorObject>,
    _: usize,
    _: bool,
    _: usize,
    protection_bytes_per_key: usize,
) -> IndexedObject {
    let order = comparator.map_or(Order::Bytewise, |own| Order::of(Arc::clone(&own.0)));
    let batch = if protection_bytes_per_key == 0 { WriteBatch::new() } else { WriteBatch::protected() };
    IndexedObject::new(IndexedBatch::new(batch, order))
}

/// Removes all operations.
pub fn writebatch_wi_clear(b: &IndexedObject) {
    b.0.refused.clear();
    b.0.refused.note(b.batch().clear());
}

/// The number of operations.
pub fn writebatch_wi_count(b: &IndexedObject) -> i32 {
    i32::try_from(b.batch().batch().len()).unwrap_or(i32::MAX)
}

macro_rules! operations {
    ($($name:ident, $of:ident, $pieces:ident, $pieces_of:ident = $kind:ident;)*) => { $(
        #[doc = concat!("Adds an operation on the family `default`: ", stringify!($kind), ".")]
        pub fn $name(b: &IndexedObject, key: &[u8], value: &[u8]) {
            b.add(None, key, Operation::$kind(value));
        }
        #[doc = concat!("Adds an operation: ", stringify!($kind), ".")]
        pub fn $of(b: &IndexedObject, family: &FamilyObject, key: &[u8], value: &[u8]) {
            b.add(Some(family), key, Operation::$kind(value));
        }
        #[doc = concat!("Adds an operation on pieces, which are joined, in the family `default`: ", stringify!($kind), ".")]
        pub fn $pieces(b: &IndexedObject, key: List<'_>, value: List<'_>) {
            b.0.refused.note(joined(key, value, |key, value| b.add(None, key, Operation::$kind(value))));
        }
        #[doc = concat!("Adds an operation on pieces, which are joined: ", stringify!($kind), ".")]
        pub fn $pieces_of(b: &IndexedObject, family: &FamilyObject, key: List<'_>, value: List<'_>) {
            b.0.refused.note(joined(key, value, |key, value| b.add(Some(family), key, Operation::$kind(value))));
        }
    )* };
}
operations! {
    writebatch_wi_put, writebatch_wi_put_cf, writebatch_wi_putv, writebatch_wi_putv_cf = Put;
    writebatch_wi_merge, writebatch_wi_merge_cf, writebatch_wi_mergev, writebatch_wi_mergev_cf = Merge;
}

/// Passes on the joined pieces of a key and a value.
fn joined(key: List<'_>, value: List<'_>, add: impl FnOnce(&[u8], &[u8])) -> Result<()> {
    add(&key.all()?.concat(), &value.all()?.concat());
    Ok(())
}

/// Deletes a key of the family `default`.
pub fn writebatch_wi_delete(b: &IndexedObject, key: &[u8]) {
    b.add(None, key, Operation::Delete);
}

/// Deletes a key.
pub fn writebatch_wi_delete_cf(b: &IndexedObject, family: &FamilyObject, key: &[u8]) {
    b.add(Some(family), key, Operation::Delete);
}

/// Deletes a key of the family `default`; the pieces are joined.
pub fn writebatch_wi_deletev(b: &IndexedObject, key: List<'_>) {
    b.0.refused.note(key.all().map(|key| b.add(None, &key.concat(), Operation::Delete)));
}

/// Deletes a key; the pieces are joined.
pub fn writebatch_wi_deletev_cf(b: &IndexedObject, family: &FamilyObject, key: List<'_>) {
    b.0.refused.note(key.all().map(|key| b.add(Some(family), &key.concat(), Operation::Delete)));
}

/// Deletes a key of the family `default` that was put once.
pub fn writebatch_wi_singledelete(b: &IndexedObject, key: &[u8]) {
    b.add(None, key, Operation::SingleDelete);
}

/// Deletes a key that was put once.
pub fn writebatch_wi_singledelete_cf(b: &IndexedObject, family: &FamilyObject, key: &[u8]) {
    b.add(Some(family), key, Operation::SingleDelete);
}

/// Adds nothing: such a batch has no range deletions.
pub fn writebatch_wi_delete_range(_: &IndexedObject, _: &[u8], _: &[u8]) {}

/// Adds nothing: such a batch has no range deletions.
pub fn writebatch_wi_delete_range_cf(_: &IndexedObject, _: &FamilyObject, _: &[u8], _: &[u8]) {}

/// Adds bytes for readers of the WAL.
pub fn writebatch_wi_put_log_data(b: &IndexedObject, blob: &[u8]) {
    b.0.refused.note(b.batch().batch().put_log_data(blob));
}

/// The stored form, valid until the next call on the batch.
pub fn writebatch_wi_data(b: &IndexedObject) -> Option<&[u8]> {
    let data = b.batch().batch().data().ok()?;
    // SAFETY: the bytes stay until the next call on the batch, as the header says; the batch is on one thread.
    Some(unsafe { b.0.shown.show(data) })
}

/// Sets a savepoint.
pub fn writebatch_wi_set_save_point(b: &IndexedObject) {
    b.0.refused.note(b.batch().batch().set_savepoint());
}

/// Removes the operations since the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn writebatch_wi_rollback_to_save_point(b: &IndexedObject) -> Result<()> {
    b.batch().rollback_to_savepoint().map_err(|e| not_found(e.message()))
}

/// The value of a key of the family `default` in the batch alone.
///
/// # Errors
/// Those of [`IndexedBatch::get`].
pub fn writebatch_wi_get_from_batch(
    b: &IndexedObject,
    _: &OptionsObject,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    b.batch().get(None, key)
}

/// The value of a key in the batch alone.
///
/// # Errors
/// Those of [`IndexedBatch::get`].
pub fn writebatch_wi_get_from_batch_cf(
    b: &IndexedObject,
    _: &OptionsObject,
    family: &FamilyObject,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    b.batch().get(Some(&family.family), key)
}

macro_rules! reads {
    ($($name:ident, $of:ident -> $result:ty = $wrap:expr;)*) => { $(
        /// The value of a key of the family `default` in the database with the batch over it.
        ///
        /// # Errors
        /// Those of [`IndexedBatch::get_over`].
        pub fn $name(b: &IndexedObject, db: &DbObject, options: &ReadObject, key: &[u8]) -> Result<Option<$result>> {
            Ok(b.get_over(db, options, None, key)?.map($wrap))
        }
        /// The value of a key in the database with the batch over it.
        ///
        /// # Errors
        /// Those of [`IndexedBatch::get_over`].
        pub fn $of(
            b: &IndexedObject,
            db: &DbObject,
            options: &ReadObject,
            family: &FamilyObject,
            key: &[u8],
        ) -> Result<Option<$result>> {
            Ok(b.get_over(db, options, Some(family), key)?.map($wrap))
        }
    )* };
}
reads! {
    writebatch_wi_get_from_batch_and_db, writebatch_wi_get_from_batch_and_db_cf -> View = |value| value;
    writebatch_wi_get_pinned_from_batch_and_db, writebatch_wi_get_pinned_from_batch_and_db_cf -> PinnedObject = PinnedObject;
}

/// Writes the batch, which keeps its operations.
///
/// # Errors
/// Those of [`ashlardb::Db::write`], and that of an operation that could not be added.
pub fn write_writebatch_wi(db: &DbObject, options: &WriteObject, b: &IndexedObject) -> Result<()> {
    // RocksDB leaves the batch as it is.
    db.0.db().writing(options.write).write(b.complete()?.batch().clone())
}

/// The iterator, which the call takes, with the operations on the family `default` over it.
pub fn writebatch_wi_create_iterator_with_base(
    b: &IndexedObject,
    base: Option<Box<IterObject>>,
) -> Option<IterObject> {
    b.over(base, None, None)
}

/// The iterator, which the call takes, with the operations on the family `default` within the bounds of the options over it.
pub fn writebatch_wi_create_iterator_with_base_readopts(
    b: &IndexedObject,
    base: Option<Box<IterObject>>,
    options: &ReadObject,
) -> Option<IterObject> {
    b.over(base, None, Some(options))
}

/// The iterator, which the call takes, with the operations on a family over it.
pub fn writebatch_wi_create_iterator_with_base_cf(
    b: &IndexedObject,
    base: Option<Box<IterObject>>,
    family: &FamilyObject,
) -> Option<IterObject> {
    b.over(base, Some(family), None)
}

/// The iterator, which the call takes, with the operations on a family within the bounds of the options over it.
pub fn writebatch_wi_create_iterator_with_base_cf_readopts(
    b: &IndexedObject,
    base: Option<Box<IterObject>>,
    family: &FamilyObject,
    options: &ReadObject,
) -> Option<IterObject> {
    b.over(base, Some(family), Some(options))
}

/// Adds the operations of a batch to a transaction.
///
/// # Errors
/// Those of [`ashlar_compat::transactions::add_batch`].
pub fn transaction_rebuild_from_writebatch_wi(txn: &TxnObject, b: &IndexedObject) -> Result<()> {
    txn.add(b.complete()?.batch())
}

/// The operations of a transaction, as they are now. The caller frees the pointer with `rocksdb_free` before the transaction is
/// destroyed. Each such call renews what the earlier pointers of the transaction show. A change of the batch leaves the
/// transaction as it is.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_writebatch_wi(txn: *mut TxnObject) -> *mut IndexedObject {
    let _in = crate::checked::enter("rocksdb_transaction_get_writebatch_wi");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let txn = unsafe { crate::door::borrowed(txn, "txn") }?;
        let now = txn.operations()?;
        let mut lent = txn.lent_batch.borrow_mut();
        let own = lent.get_or_insert_with(writebatch_of_none);
        own.0.batch.replace(Rc::new(now));
        Ok(lent_copy(own, txn))
    })
}

fn writebatch_of_none() -> IndexedObject {
    writebatch_wi_create(0, true)
}

pub(crate) type TimestampSize = Option<unsafe extern "C" fn(*mut c_void, u32) -> usize>;

/// See the header.
///
/// # Safety
/// The batch is one of this library, and the functions are those of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_iterate(
    b: *mut IndexedObject,
    state: *mut c_void,
    put: Entry,
    deleted: Key,
) {
    let _in = crate::checked::enter("rocksdb_writebatch_wi_iterate");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let b = unsafe { crate::door::borrowed(b, "b") }?;
        walk(b.batch().batch(), &mut Walker { put, deleted, ..Walker::new(state) })
    });
}

/// Adds nothing: such a batch has no range deletions.
pub fn writebatch_wi_delete_rangev(_: &IndexedObject, _: Ranges<'_>) {}

/// Adds nothing: such a batch has no range deletions.
pub fn writebatch_wi_delete_rangev_cf(_: &IndexedObject, _: Option<&FamilyObject>, _: Ranges<'_>) {}

/// Sets the timestamps of the keys. Families without timestamps are passed over; the caller's function tells the length of those
/// of each family.
///
/// # Safety
/// The batch is one of this library, and the function is that of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_update_timestamps(
    wbwi: *mut IndexedObject,
    ts: *const c_char,
    tslen: usize,
    state: *mut c_void,
    get_ts_size: TimestampSize,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_writebatch_wi_update_timestamps");
    call(errptr, || {
        // SAFETY: as for this function.
        let b = unsafe { crate::door::borrowed(wbwi, "wbwi") }?;
        // SAFETY: as for this function.
        let timestamp = unsafe { crate::door::bytes(ts, tslen, "ts") }?;
        let size_of = get_ts_size.ok_or_else(|| Error::invalid("get_ts_size is null"))?;
        // SAFETY: as for this function.
        b.batch().check_timestamps(timestamp, |family| unsafe { size_of(state, family.0) })
    });
}

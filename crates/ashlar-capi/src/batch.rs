//! Write batches.
//!
//! A batch of C has no errors for its operations. One that cannot be added, such as a key of 9 MiB, makes the batch refuse its
//! write with that error.

use crate::callbacks::Walker;
use crate::db::FamilyObject;
use crate::door::{List, Ranges};
use crate::indexed::TimestampSize;
use crate::kept::{FirstError, Shown};
use crate::timestamps;
use ashlar_base::FamilyId;
use ashlar_compat::batch::{Handler, check_timestamps, walk};
use ashlar_compat::status::not_found;
use ashlardb::{Error, Result, Write, WriteBatch};
use std::ffi::{c_char, c_void};

/// `rocksdb_writebatch_t`.
#[derive(Debug, Default)]
pub struct BatchObject {
    pub(crate) batch: WriteBatch,
    /// That of an operation that could not be added.
    refused: FirstError,
    shown: Shown,
}

impl BatchObject {
    /// The batch of its stored form; one that does not decode refuses its write.
    pub(crate) fn of(data: &[u8]) -> BatchObject {
        match WriteBatch::from_data(data) {
            Ok(batch) => BatchObject { batch, ..BatchObject::default() },
            Err(e) => BatchObject { refused: e.into(), ..BatchObject::default() },
        }
    }

    /// The operations.
    ///
    /// # Errors
    /// That of the first operation that could not be added.
    pub(crate) fn complete(&self) -> Result<&WriteBatch> {
        self.refused.check().map(|()| &self.batch)
    }

    fn walk(&self, mut walker: Walker) {
        self.refused.note(walk(&self.batch, &mut walker));
    }
}

/// Puts the operations of one batch behind those of another.
struct Appending<'a>(&'a BatchObject);

impl Handler for Appending<'_> {
    fn put(&mut self, _: FamilyId, key: &[u8], value: &[u8]) {
        writebatch_put(self.0, key, value);
    }

    fn delete(&mut self, _: FamilyId, key: &[u8]) {
        writebatch_delete(self.0, key);
    }
}

/// Puts the puts and deletions of `source`, all of the family `default`, behind those of `b`. They may be the same batch.
pub fn append(b: &BatchObject, source: &BatchObject) {
    b.refused.note(source.complete().and_then(|source| walk(source, &mut Appending(b))));
}

/// An empty batch.
pub fn writebatch_create() -> BatchObject {
    BatchObject::default()
}

/// The batch of its stored form.
pub fn writebatch_create_from(rep: &[u8]) -> BatchObject {
    BatchObject::of(rep)
}

/// An empty batch. The checksums and the limit of its bytes act: an operation beyond the limit is left out.
pub fn writebatch_create_with_params(
    _: usize,
    max_bytes: usize,
    protection_bytes_per_key: usize,
    _: usize,
) -> BatchObject {
    let batch = if protection_bytes_per_key == 0 { WriteBatch::new() } else { WriteBatch::protected() };
    // No write of the new batch runs.
    drop(batch.limit(max_bytes));
    BatchObject { batch, ..BatchObject::default() }
}

/// Removes all operations.
pub fn writebatch_clear(b: &BatchObject) {
    b.batch.clear();
    b.refused.clear();
}

/// The number of operations.
pub fn writebatch_count(b: &BatchObject) -> i32 {
    i32::try_from(b.batch.len()).unwrap_or(i32::MAX)
}

/// The stored form, valid until the next call on the batch.
pub fn writebatch_data(b: &BatchObject) -> Option<&[u8]> {
    let data = b.batch.data().ok()?;
    // SAFETY: the bytes stay until the next call on the batch, as the header says; the batch is on one thread.
    Some(unsafe { b.shown.show(data) })
}

macro_rules! operations {
    ($($name:ident, $of:ident ($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Adds an operation on the family `default`: ", stringify!($call), ".")]
        pub fn $name(b: &BatchObject, $($arg: &[u8]),*) {
            b.refused.note(b.batch.$call($($arg),*));
        }
        #[doc = concat!("Adds an operation: ", stringify!($call), ".")]
        pub fn $of(b: &BatchObject, family: &FamilyObject, $($arg: &[u8]),*) {
            b.refused.note(b.batch.family(&family.family).$call($($arg),*));
        }
    )* };
}
operations! {
    writebatch_put, writebatch_put_cf(key, val) = put;
    writebatch_merge, writebatch_merge_cf(key, val) = merge;
    writebatch_delete, writebatch_delete_cf(key) = delete;
    writebatch_singledelete, writebatch_singledelete_cf(key) = single_delete;
    writebatch_delete_range, writebatch_delete_range_cf(begin, end) = delete_range;
}

/// The elements of a list in one piece.
fn joined(list: List<'_>) -> Result<Vec<u8>> {
    Ok(list.all()?.concat())
}

macro_rules! pieces {
    ($($name:ident, $of:ident ($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Adds an operation on pieces, which are joined, in the family `default`: ", stringify!($call), ".")]
        pub fn $name(b: &BatchObject, $($arg: List<'_>),*) {
            b.refused.note((|| b.batch.$call($(joined($arg)?),*))());
        }
        #[doc = concat!("Adds an operation on pieces, which are joined: ", stringify!($call), ".")]
        pub fn $of(b: &BatchObject, family: &FamilyObject, $($arg: List<'_>),*) {
            b.refused.note((|| b.batch.family(&family.family).$call($(joined($arg)?),*))());
        }
    )* };
}
pieces! {
    writebatch_putv, writebatch_putv_cf(key, val) = put;
    writebatch_mergev, writebatch_mergev_cf(key, val) = merge;
    writebatch_deletev, writebatch_deletev_cf(key) = delete;
}

fn no_timestamps(b: &BatchObject) {
    b.refused.note(Err(timestamps::refused()));
}

/// Keys with timestamps are refused by the write.
pub fn writebatch_put_cf_with_ts(b: &BatchObject, _: &FamilyObject, _: &[u8], _: &[u8], _: &[u8]) {
    no_timestamps(b);
}

/// Keys with timestamps are refused by the write.
pub fn writebatch_delete_cf_with_ts(b: &BatchObject, _: &FamilyObject, _: &[u8], _: &[u8]) {
    no_timestamps(b);
}

/// Keys with timestamps are refused by the write.
pub fn writebatch_singledelete_cf_with_ts(b: &BatchObject, _: &FamilyObject, _: &[u8], _: &[u8]) {
    no_timestamps(b);
}

/// Adds bytes for readers of the WAL.
pub fn writebatch_put_log_data(b: &BatchObject, blob: &[u8]) {
    b.refused.note(b.batch.put_log_data(blob));
}

/// Sets a savepoint.
pub fn writebatch_set_save_point(b: &BatchObject) {
    b.refused.note(b.batch.set_savepoint());
}

/// Removes the operations since the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn writebatch_rollback_to_save_point(b: &BatchObject) -> Result<()> {
    b.batch.rollback_to_savepoint().map_err(|e| not_found(e.message()))
}

/// Removes the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn writebatch_pop_save_point(b: &BatchObject) -> Result<()> {
    b.batch.pop_savepoint().map_err(|e| not_found(e.message()))
}

/// Compares the operations with their checksums; the write does so too.
///
/// # Errors
/// That of the first operation that could not be added.
pub fn writebatch_verify_checksum(b: &BatchObject) -> Result<()> {
    b.complete().map(drop)
}

/// The walks over a batch.
pub mod walks {
    use super::{BatchObject, Walker};
    use crate::callbacks::{Entry, EntryOf, Key, KeyOf};
    use std::ffi::c_void;

    /// Walks over a batch; null: over nothing.
    ///
    /// # Safety
    /// The batch is null or one of this library.
    unsafe fn walked(b: *const BatchObject, walker: Walker) {
        crate::door::call(std::ptr::null_mut(), || {
            // SAFETY: as for this function.
            unsafe { crate::door::borrowed(b, "b") }?.walk(walker);
            Ok(())
        });
    }

    /// Shows the puts and deletions of a batch, in order, for a function of C.
    ///
    /// # Safety
    /// The batch is null or one of this library, and the functions are those of the state.
    pub unsafe fn shown(b: *const BatchObject, state: *mut c_void, put: Entry, deleted: Key) {
        // SAFETY: as for this function.
        unsafe { walked(b, Walker { put, deleted, ..Walker::new(state) }) };
    }

    /// See the header.
    ///
    /// # Safety
    /// The batch is one of this library, and the functions are those of the state.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn rocksdb_writebatch_iterate(
        b: *mut BatchObject,
        state: *mut c_void,
        put: Entry,
        deleted: Key,
    ) {
        let _in = crate::checked::enter("rocksdb_writebatch_iterate");
        // SAFETY: as for this function.
        unsafe { shown(b, state, put, deleted) };
    }

    /// See the header.
    ///
    /// # Safety
    /// The batch is one of this library, and the functions are those of the state.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn rocksdb_writebatch_iterate_ld(
        b: *mut BatchObject,
        state: *mut c_void,
        put: Entry,
        deleted: Key,
        log_data: Key,
    ) {
        let _in = crate::checked::enter("rocksdb_writebatch_iterate_ld");
        // SAFETY: as for this function.
        unsafe { walked(b, Walker { put, deleted, log_data, ..Walker::new(state) }) };
    }

    /// See the header.
    ///
    /// # Safety
    /// The batch is one of this library, and the functions are those of the state.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf(
        b: *mut BatchObject,
        state: *mut c_void,
        put_of: EntryOf,
        deleted_of: KeyOf,
        merge_of: EntryOf,
    ) {
        let _in = crate::checked::enter("rocksdb_writebatch_iterate_cf");
        // SAFETY: as for this function.
        unsafe { walked(b, Walker { put_of, deleted_of, merge_of, ..Walker::new(state) }) };
    }

    /// See the header.
    ///
    /// # Safety
    /// The batch is one of this library, and the functions are those of the state.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn rocksdb_writebatch_iterate_cf_ld(
        b: *mut BatchObject,
        state: *mut c_void,
        put_of: EntryOf,
        deleted_of: KeyOf,
        merge_of: EntryOf,
        log_data: Key,
    ) {
        let _in = crate::checked::enter("rocksdb_writebatch_iterate_cf_ld");
        // SAFETY: as for this function.
        unsafe { walked(b, Walker { put_of, deleted_of, merge_of, log_data, ..Walker::new(state) }) };
    }
}

/// Sets the timestamps of the keys. Families without timestamps are skipped; the caller's function tells the length of those
/// of each family.
///
/// # Safety
/// The batch is one of this library, and the function is that of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_update_timestamps(
    wb: *mut BatchObject,
    ts: *const c_char,
    tslen: usize,
    state: *mut c_void,
    get_ts_size: TimestampSize,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_writebatch_update_timestamps");
    crate::door::call(errptr, || {
        // SAFETY: as for this function.
        let b = unsafe { crate::door::borrowed(wb, "wb") }?;
        // SAFETY: as for this function.
        let timestamp = unsafe { crate::door::bytes(ts, tslen, "ts") }?;
        let size_of = get_ts_size.ok_or_else(|| Error::invalid("get_ts_size is null"))?;
        // SAFETY: as for this function.
        check_timestamps(&b.complete()?.data()?, timestamp, |family| unsafe { size_of(state, family.0) })
    });
}

/// Deletes a range of the family `default`, whose ends are pieces, which are joined.
pub fn writebatch_delete_rangev(b: &BatchObject, pieces: Ranges<'_>) {
    writebatch_delete_rangev_cf(b, None, pieces);
}

/// Deletes a range of a family, whose ends are pieces, which are joined; null: of the family `default`.
pub fn writebatch_delete_rangev_cf(b: &BatchObject, family: Option<&FamilyObject>, pieces: Ranges<'_>) {
    let (Ok(begin), Ok(end)) = (joined(pieces.begins), joined(pieces.ends)) else { return };
    match family {
        None => writebatch_delete_range(b, &begin, &end),
        Some(family) => writebatch_delete_range_cf(b, family, &begin, &end),
    }
}

//! Calls on keys with timestamps, which no database here has: each call is refused.

use crate::db::{DbObject, FamilyObject};
use crate::door::{call, error_text, slice_mut};
use crate::options::{OptionsObject, ReadObject};
use ashlardb::{Error, Result};
use std::ffi::{c_char, c_int};

/// The error of a call on keys with timestamps.
pub(crate) fn refused() -> Error {
    Error::not_supported("keys with timestamps")
}

/// Sets the lengths to zero, and answers the error.
///
/// # Safety
/// Each pointer is null or that of a length of the caller.
unsafe fn nothing(lengths: [*mut usize; 2], errptr: *mut *mut c_char) -> *mut c_char {
    call(errptr, || {
        for length in lengths {
            // SAFETY: as for this function.
            if let Some(length) = unsafe { length.as_mut() } {
                *length = 0;
            }
        }
        Err(refused())
    })
}

/// Keys with timestamps are refused.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_with_ts(
    _db: *mut DbObject,
    _options: *const ReadObject,
    _key: *const c_char,
    _keylen: usize,
    vallen: *mut usize,
    _ts: *mut *mut c_char,
    tslen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    let _in = crate::checked::enter("rocksdb_get_with_ts");
    // SAFETY: as for this function.
    unsafe { nothing([vallen, tslen], errptr) }
}

/// Keys with timestamps are refused.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_cf_with_ts(
    _db: *mut DbObject,
    _options: *const ReadObject,
    _column_family: *mut FamilyObject,
    _key: *const c_char,
    _keylen: usize,
    vallen: *mut usize,
    _ts: *mut *mut c_char,
    tslen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    let _in = crate::checked::enter("rocksdb_get_cf_with_ts");
    // SAFETY: as for this function.
    unsafe { nothing([vallen, tslen], errptr) }
}

/// Where a read of many keys puts its answers.
struct Places {
    count: usize,
    values: (*mut *mut c_char, *mut usize),
    timestamps: (*mut *mut c_char, *mut usize),
    errs: *mut *mut c_char,
}

impl Places {
    /// Puts no value and the error into each place.
    ///
    /// # Safety
    /// Each array has `count` elements, as the header says.
    unsafe fn refuse(self) {
        // SAFETY: as for this function.
        call(std::ptr::null_mut(), || unsafe { self.set() });
    }

    /// # Safety
    /// As [`Places::refuse`].
    unsafe fn set(&self) -> Result<()> {
        for (places, lengths) in [self.values, self.timestamps] {
            // SAFETY: as for this function.
            unsafe { slice_mut(places, self.count, "values") }?.fill(std::ptr::null_mut());
            // SAFETY: as for this function.
            unsafe { slice_mut(lengths, self.count, "lengths") }?.fill(0);
        }
        // SAFETY: as for this function.
        let errs = unsafe { slice_mut(self.errs, self.count, "errs") }?;
        errs.iter_mut().for_each(|err| *err = error_text(&refused()));
        Ok(())
    }
}

/// Keys with timestamps are refused.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_with_ts(
    _db: *mut DbObject,
    _options: *const ReadObject,
    num_keys: usize,
    _keys_list: *const *const c_char,
    _keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    timestamp_list: *mut *mut c_char,
    timestamp_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_multi_get_with_ts");
    let (values, timestamps) = ((values_list, values_list_sizes), (timestamp_list, timestamp_list_sizes));
    let places = Places { count: num_keys, values, timestamps, errs };
    // SAFETY: as for this function.
    unsafe { places.refuse() };
}

/// Keys with timestamps are refused.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf_with_ts(
    _db: *mut DbObject,
    _options: *const ReadObject,
    _column_families: *const *const FamilyObject,
    num_keys: usize,
    _keys_list: *const *const c_char,
    _keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    timestamps_list: *mut *mut c_char,
    timestamps_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_multi_get_cf_with_ts");
    let (values, timestamps) = ((values_list, values_list_sizes), (timestamps_list, timestamps_list_sizes));
    let places = Places { count: num_keys, values, timestamps, errs };
    // SAFETY: as for this function.
    unsafe { places.refuse() };
}

/// Keys with timestamps are refused.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_trim_history(
    _options: *const OptionsObject,
    _name: *const c_char,
    _num_column_families: c_int,
    _column_family_names: *const *const c_char,
    _column_family_options: *const *const OptionsObject,
    _column_family_handles: *mut *mut FamilyObject,
    _trim_ts: *mut c_char,
    _trim_tslen: usize,
    errptr: *mut *mut c_char,
) -> *mut DbObject {
    let _in = crate::checked::enter("rocksdb_open_and_trim_history");
    call(errptr, || Err(refused()))
}

//! Reads into memory of the caller, reads of many keys whose values one object keeps, and sizes of ranges.

use crate::db::{DbObject, FamilyObject};
use crate::door::{HasTexts, Places, Ranges, bytes, call, caught, error_text, out, slice, slice_mut};
use crate::info::Slice;
use crate::iter::PinnedObject;
use crate::lists::{Found, target};
use crate::objects::SizeObject;
use crate::options::ReadObject;
use ashlar_compat::status;
use ashlardb::{Error, Result, View};
use std::ffi::{CString, c_char, c_int};

/// The bytes, valid until the object is destroyed; null for null.
pub fn pinnable_handle_get_value(handle: Option<&PinnedObject>) -> Option<&[u8]> {
    Some(&handle?.0)
}

/// Where a read puts a value: the memory of the caller, the length of the value, and whether there is one.
struct Place {
    buffer: (*mut c_char, usize),
    len: *mut usize,
    found: *mut u8,
}

impl Place {
    /// Puts a value into its place. Answers whether the value is there: not if the memory is too small.
    ///
    /// # Safety
    /// The memory and the two places are those of the caller, as the header says.
    unsafe fn take(&self, value: Option<&[u8]>) -> Result<u8> {
        // SAFETY: as for this function.
        let len = unsafe { out(self.len, "vallen") }?;
        // SAFETY: as for this function.
        let found = unsafe { out(self.found, "found") }?;
        (*len, *found) = (value.map_or(0, <[u8]>::len), value.is_some().into());
        let Some(value) = value.filter(|value| value.len() <= self.buffer.1) else { return Ok(0) };
        // SAFETY: as for this function.
        let memory = unsafe { slice_mut(self.buffer.0.cast::<u8>(), value.len(), "buffer") }?;
        memory.copy_from_slice(value);
        Ok(1)
    }
}

/// # Safety
/// See the header.
unsafe fn get_into(
    db: *mut DbObject,
    options: *const ReadObject,
    family: *mut FamilyObject,
    key: (*const c_char, usize),
    place: &Place,
    errptr: *mut *mut c_char,
) -> u8 {
    call(errptr, || {
        // The places are set whatever happens.
        // SAFETY: as for this function.
        unsafe { place.take(None) }?;
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, family) }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        // SAFETY: as for this function.
        let value = db.get_of(family, options, unsafe { bytes(key.0, key.1, "key") }?)?;
        // SAFETY: as for this function.
        unsafe { place.take(value.as_deref()) }
    })
}

/// The value of a key of the family `default`, copied into the memory of the caller. 1: the value is there.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer(
    db: *mut DbObject,
    options: *const ReadObject,
    key: *const c_char,
    keylen: usize,
    buffer: *mut c_char,
    buffer_size: usize,
    vallen: *mut usize,
    found: *mut u8,
    errptr: *mut *mut c_char,
) -> u8 {
    let _in = crate::checked::enter("rocksdb_get_into_buffer");
    let place = Place { buffer: (buffer, buffer_size), len: vallen, found };
    // SAFETY: as for this function.
    unsafe { get_into(db, options, std::ptr::null_mut(), (key, keylen), &place, errptr) }
}

/// The value of a key of a family, copied into the memory of the caller. 1: the value is there.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_get_into_buffer_cf(
    db: *mut DbObject,
    options: *const ReadObject,
    column_family: *mut FamilyObject,
    key: *const c_char,
    keylen: usize,
    buffer: *mut c_char,
    buffer_size: usize,
    vallen: *mut usize,
    found: *mut u8,
    errptr: *mut *mut c_char,
) -> u8 {
    let _in = crate::checked::enter("rocksdb_get_into_buffer_cf");
    let place = Place { buffer: (buffer, buffer_size), len: vallen, found };
    // SAFETY: as for this function.
    unsafe { get_into(db, options, column_family, (key, keylen), &place, errptr) }
}

/// The places of a read of many keys: for each key one for its value and one for its error.
pub(crate) struct ManyPlaces<'a, T> {
    values: &'a mut [*mut T],
    errs: &'a mut [*mut c_char],
}

impl<'a, T> ManyPlaces<'a, T> {
    /// The places, set to null.
    ///
    /// # Safety
    /// `errs` has `count` elements, as the header says.
    pub(crate) unsafe fn new(
        values: &'a mut [*mut T],
        errs: *mut *mut c_char,
        count: usize,
    ) -> Result<ManyPlaces<'a, T>> {
        // SAFETY: as for this function.
        let errs = unsafe { slice_mut(errs, count, "errs") }?;
        values.fill(std::ptr::null_mut());
        errs.fill(std::ptr::null_mut());
        Ok(ManyPlaces { values, errs })
    }

    /// Puts each value into its place by `put`, which also gets the number of the key, and each error into its own. An error of the
    /// whole read goes to all keys.
    pub(crate) fn fill(&mut self, found: Found, mut put: impl FnMut(usize, View, &mut *mut T)) {
        match found {
            Ok(found) => {
                let places = self.values.iter_mut().zip(self.errs.iter_mut());
                for (at, (found, (value, err))) in found.into_iter().zip(places).enumerate() {
                    match found {
                        Ok(Some(view)) => put(at, view, value),
                        Ok(None) => {}
                        Err(e) => *err = error_text(&e),
                    }
                }
            }
            Err(e) => self.errs.iter_mut().for_each(|err| *err = error_text(&e)),
        }
    }
}

/// Puts what `read` finds for `count` keys into their places, as objects that keep the values.
///
/// # Safety
/// Both arrays have `count` elements, as the header says.
pub(crate) unsafe fn fill_pinned(
    values: *mut *mut PinnedObject,
    errs: *mut *mut c_char,
    count: usize,
    read: impl FnOnce() -> Found,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let values = unsafe { slice_mut(values, count, "values") }?;
        // SAFETY: as for this function.
        let mut places = unsafe { ManyPlaces::new(values, errs, count) }?;
        places.fill(caught(read), |_, view, value| *value = crate::door::made(PinnedObject(view)));
        Ok(())
    });
}

/// The values of keys of one family, read together.
///
/// # Safety
/// See the header; there are `count` keys.
unsafe fn together(
    db: *mut DbObject,
    options: *const ReadObject,
    family: *mut FamilyObject,
    (keys, count): (*const Slice, usize),
) -> Found {
    // SAFETY: as for this function.
    let (db, family) = unsafe { target(db, family) }?;
    // SAFETY: as for this function.
    let options = unsafe { crate::door::borrowed(options, "options") }?;
    // SAFETY: as for this function.
    let keys = unsafe { slice(keys, count, "keys") }?.iter().map(|key| unsafe { key.bytes("a key") });
    let keys = keys.collect::<Result<Vec<&[u8]>>>()?;
    db.multi_get_of(family, options, keys)
}

/// The values of many keys of one family, read together. The keys are slices.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf_slice(
    db: *mut DbObject,
    options: *const ReadObject,
    column_family: *mut FamilyObject,
    num_keys: usize,
    keys_list: *const Slice,
    values: *mut *mut PinnedObject,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    let _in = crate::checked::enter("rocksdb_batched_multi_get_cf_slice");
    // SAFETY: as for this function.
    let read = || unsafe { together(db, options, column_family, (keys_list, num_keys)) };
    // SAFETY: as for this function.
    unsafe { fill_pinned(values, errs, num_keys, read) };
}

/// A result with the text of its error.
type Said<T> = std::result::Result<T, CString>;

/// `rocksdb_pinnable_multi_get_t`: of each of many keys the value or the error, or the error of the whole read.
#[derive(Debug)]
pub struct ManyObject {
    count: usize,
    found: Said<Vec<Said<Option<View>>>>,
}

/// The values of many keys of one family, read together, which the object keeps.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_pinned_cf(
    db: *mut DbObject,
    options: *const ReadObject,
    column_family: *mut FamilyObject,
    num_keys: usize,
    keys: *const Slice,
    _sorted_input: u8,
) -> *mut ManyObject {
    let _in = crate::checked::enter("rocksdb_batched_multi_get_pinned_cf");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let found = unsafe { together(db, options, column_family, (keys, num_keys)) };
        let said = |e: Error| CString::new(status::text(&e).replace('\0', "\\0")).unwrap_or_default();
        let found = found.map(|found| found.into_iter().map(|one| one.map_err(said)).collect());
        Ok(crate::door::made(ManyObject { count: num_keys, found: found.map_err(said) }))
    })
}

/// The number of keys.
pub fn pinnable_multi_get_count(multi_get: &ManyObject) -> usize {
    multi_get.count
}

/// The states of a key, by RocksDB's numbers.
const NOT_FOUND: c_int = 0;
const FOUND: c_int = 1;
const FAILED: c_int = 2;
const OUT_OF_BOUNDS: c_int = 3;

/// The state of a key, with its value or error, which are valid until the object is destroyed.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_pinnable_multi_get_result(
    multi_get: *const ManyObject,
    index: usize,
    value: *mut *const c_char,
    value_size: *mut usize,
    error: *mut *const c_char,
    error_size: *mut usize,
) -> c_int {
    let _in = crate::checked::enter("rocksdb_pinnable_multi_get_result");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let many = unsafe { crate::door::borrowed(multi_get, "multi_get") }?;
        // SAFETY: as for this function.
        let value = (unsafe { out(value, "value") }?, unsafe { out(value_size, "value_size") }?);
        // SAFETY: as for this function.
        let error = (unsafe { out(error, "error") }?, unsafe { out(error_size, "error_size") }?);
        (*value.0, *value.1) = (std::ptr::null(), 0);
        (*error.0, *error.1) = (std::ptr::null(), 0);
        if index >= many.count {
            return Ok(OUT_OF_BOUNDS);
        }
        let found = many.found.as_ref().map(|found| found.get(index));
        Ok(match found {
            Ok(Some(Ok(Some(found)))) => {
                (*value.0, *value.1) = (found.as_ptr().cast(), found.len());
                FOUND
            }
            Ok(Some(Err(said))) | Err(said) => {
                (*error.0, *error.1) = (said.as_ptr(), said.as_bytes().len());
                FAILED
            }
            _ => NOT_FOUND,
        })
    })
}

/// The approximate bytes of ranges of a family in the places that `options` names; without options: in tables.
fn sizes(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&SizeObject>,
    ranges: Ranges<'_>,
    mut sizes: Places<u64>,
) -> Result<()> {
    let options = options.cloned().unwrap_or_default();
    let places = sizes.elements(ranges.begins.len())?;
    let ranges: Vec<(&[u8], &[u8])> = ranges.begins.all()?.into_iter().zip(ranges.ends.all()?).collect();
    places.copy_from_slice(&ashlar_compat::sizes::approximate_sizes(
        &*db.family(family)?,
        &ranges,
        options.texts(),
    )?);
    Ok(())
}

/// The approximate bytes of ranges of the family `default` in tables.
///
/// # Errors
/// Those of [`ashlar_compat::sizes::approximate_sizes`].
pub fn approximate_sizes(db: &DbObject, ranges: Ranges<'_>, places: Places<u64>) -> Result<()> {
    sizes(db, None, None, ranges, places)
}

/// The approximate bytes of ranges of a family in tables.
///
/// # Errors
/// Those of [`approximate_sizes`].
pub fn approximate_sizes_cf(
    db: &DbObject,
    family: Option<&FamilyObject>,
    ranges: Ranges<'_>,
    places: Places<u64>,
) -> Result<()> {
    sizes(db, family, None, ranges, places)
}

/// The approximate bytes of ranges of the family `default`; without options: in tables.
///
/// # Errors
/// Those of [`approximate_sizes`].
pub fn approximate_sizes_with_options(
    db: &DbObject,
    options: Option<&SizeObject>,
    ranges: Ranges<'_>,
    places: Places<u64>,
) -> Result<()> {
    sizes(db, None, options, ranges, places)
}

/// The approximate bytes of ranges of a family; without options: in tables.
///
/// # Errors
/// Those of [`approximate_sizes`].
pub fn approximate_sizes_cf_with_options(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&SizeObject>,
    ranges: Ranges<'_>,
    places: Places<u64>,
) -> Result<()> {
    sizes(db, family, options, ranges, places)
}

/// The approximate bytes of ranges of a family. The flags: 1 memtables, 2 tables, 4 blob files.
///
/// # Errors
/// Those of [`approximate_sizes`].
pub fn approximate_sizes_cf_with_flags(
    db: &DbObject,
    family: Option<&FamilyObject>,
    ranges: Ranges<'_>,
    include_flags: u8,
    places: Places<u64>,
) -> Result<()> {
    let mut options = SizeObject::default();
    let names = ["include_memtables", "include_files", "include_blob_files"];
    for (bit, name) in names.into_iter().enumerate() {
        crate::door::set(&mut options, name, include_flags >> bit & 1 != 0);
    }
    sizes(db, family, Some(&options), ranges, places)
}

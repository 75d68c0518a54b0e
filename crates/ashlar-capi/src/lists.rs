//! The calls over many keys. They are written by hand, because their arrays follow no one pattern.

use crate::db::{DbObject, FamilyObject, utf8};
use crate::door::{bytes, call, error_text, objects, slice, slice_mut, strings};
use crate::gets::ManyPlaces;
use crate::iter::{IterObject, PinnedObject};
use crate::memory::new_bytes;
use crate::options::{CompactObject, OptionsObject, ReadObject};
use ashlardb::{Error, MayExist, Read, Result, View};
use std::ffi::{c_char, c_int};

/// The database and the family of a call; a null family stands for the family `default`.
///
/// # Errors
/// `InvalidArgument`: the database is null.
/// # Safety
/// Both pointers are as [`crate::door::borrowed`] has them.
pub(crate) unsafe fn target<'a>(
    db: *const DbObject,
    family: *const FamilyObject,
) -> Result<(&'a DbObject, Option<&'a FamilyObject>)> {
    // SAFETY: as for this function.
    let db = unsafe { crate::door::borrowed(db, "db") }?;
    // SAFETY: as for this function.
    Ok((db, unsafe { crate::door::borrowed_if(family, "column_family") }?))
}

/// The arrays of a read of many keys.
pub(crate) struct Keys {
    pub(crate) count: usize,
    pub(crate) keys: (*const *const c_char, *const usize),
    pub(crate) values: (*mut *mut c_char, *mut usize),
    pub(crate) errs: *mut *mut c_char,
}

impl Keys {
    /// Reads each key by `get`, and puts its value or error into its place. `families` has the family of each key; without
    /// the array all are of `default`.
    ///
    /// # Safety
    /// Each array has `count` elements, as the header says.
    pub(crate) unsafe fn read(
        self,
        families: Option<*const *const FamilyObject>,
        mut get: impl FnMut(Option<&FamilyObject>, &[u8]) -> Result<Option<View>>,
    ) -> Result<()> {
        // SAFETY: as for this function.
        let keys = unsafe { slice(self.keys.0, self.count, "keys") }?;
        // SAFETY: as for this function.
        let lengths = unsafe { slice(self.keys.1, self.count, "lengths") }?;
        // SAFETY: as for this function.
        let values = unsafe { slice_mut(self.values.0, self.count, "values") }?;
        // SAFETY: as for this function.
        let value_lengths = unsafe { slice_mut(self.values.1, self.count, "value lengths") }?;
        // SAFETY: as for this function.
        let errs = unsafe { slice_mut(self.errs, self.count, "errs") }?;
        // SAFETY: as for this function.
        let families = families.map(|of| unsafe { slice(of, self.count, "column_families") }).transpose()?;
        for (at, (key, len)) in keys.iter().zip(lengths).enumerate() {
            let family_of = |families: &[*const FamilyObject]| {
                // SAFETY: as for this function.
                unsafe { crate::door::borrowed(families[at], "a family") }
            };
            let found = families.map(family_of).transpose().and_then(|family| {
                // SAFETY: as for this function.
                get(family, unsafe { bytes(*key, *len, "a key") }?)
            });
            (values[at], value_lengths[at], errs[at]) = match found {
                Ok(Some(found)) => (new_bytes(&found), found.len(), std::ptr::null_mut()),
                Ok(None) => (std::ptr::null_mut(), 0, std::ptr::null_mut()),
                Err(e) => (std::ptr::null_mut(), 0, error_text(&e)),
            };
        }
        Ok(())
    }
}

/// Declares the two reads of many keys of an object: of the family `default`, and each of a family. `$prepared`
/// makes the options of the call out of those that were passed; then `$get` reads each key.
macro_rules! reads_of_many {
    ($(#[$doc:meta])* $name:ident, $of:ident($object:ty) = |$from:ident, $asked:ident| $prepared:expr, |$options:ident, $family:ident, $key:ident| $get:expr) => {
        $crate::lists::reads_of_many!(@ $(#[$doc])* $name($object), (), None, |$from, $asked| $prepared, |$options, $family, $key| $get);
        $crate::lists::reads_of_many!(@ $(#[$doc])* #[doc = "Each key is one of a family."] $of($object),
            (column_families: *const *const FamilyObject), Some(column_families), |$from, $asked| $prepared, |$options, $family, $key| $get);
    };
    (@ $(#[$doc:meta])* $name:ident($object:ty), ($($families:ident: $array:ty)?), $of:expr, |$from:ident, $asked:ident| $prepared:expr, |$options:ident, $family:ident, $key:ident| $get:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            from: *mut $object,
            options: *const ReadObject,
            $($families: $array,)?
            num_keys: usize,
            keys_list: *const *const c_char,
            keys_list_sizes: *const usize,
            values_list: *mut *mut c_char,
            values_list_sizes: *mut usize,
            errs: *mut *mut c_char,
        ) {
            call(std::ptr::null_mut(), || {
                // SAFETY: as for this function.
                let $from = unsafe { $crate::door::borrowed(from, "the object") }?;
                // SAFETY: as for this function.
                let $asked = unsafe { $crate::door::borrowed(options, "options") }?;
                let $options = $prepared;
                let (keys, values) = ((keys_list, keys_list_sizes), (values_list, values_list_sizes));
                let keys = $crate::lists::Keys { count: num_keys, keys, values, errs };
                // SAFETY: as for this function.
                unsafe { keys.read($of, |$family, $key| $get) }
            });
        }
    };
}
pub(crate) use reads_of_many;

/// The values of many keys of one family, read together; null: of the family `default`.
///
/// # Safety
/// As [`Keys::read`].
unsafe fn together(
    db: &DbObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    keys: Keys,
) -> Result<()> {
    // SAFETY: as for this function.
    let given = unsafe { crate::door::list(keys.count, keys.keys.0, keys.keys.1, "keys") }?;
    let Ok(all) = given.all() else {
        // A key that is null has its own error.
        // SAFETY: as for this function.
        return unsafe { keys.read(None, |_, key| db.get_of(family, options, key)) };
    };
    let mut found = match db.multi_get_of(family, options, all) {
        Ok(found) => found.into_iter(),
        Err(e) => vec![Err(e); keys.count].into_iter(),
    };
    // SAFETY: as for this function.
    unsafe { keys.read(None, |_, _| found.next().unwrap_or(Ok(None))) }
}

/// See the header. The keys are read together.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get(
    db: *mut DbObject,
    options: *const ReadObject,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        let (keys, values) = ((keys_list, keys_list_sizes), (values_list, values_list_sizes));
        // SAFETY: as for this function.
        unsafe { together(db, options, None, Keys { count: num_keys, keys, values, errs }) }
    });
}

/// See the header. Keys of one family are read together.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_multi_get_cf(
    db: *mut DbObject,
    options: *const ReadObject,
    column_families: *const *const FamilyObject,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values_list: *mut *mut c_char,
    values_list_sizes: *mut usize,
    errs: *mut *mut c_char,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        let (keys, values) = ((keys_list, keys_list_sizes), (values_list, values_list_sizes));
        let keys = Keys { count: num_keys, keys, values, errs };
        // SAFETY: as for this function.
        let families = unsafe { slice(column_families, num_keys, "column_families") }?;
        if let Some(first) = families.first().filter(|first| families.iter().all(|family| family == *first)) {
            // SAFETY: as for this function.
            let family = unsafe { crate::door::borrowed(*first, "a family") }?;
            // SAFETY: as for this function.
            return unsafe { together(db, options, Some(family), keys) };
        }
        let options = at_one_moment(db, options)?;
        // SAFETY: as for this function.
        unsafe { keys.read(Some(column_families), |family, key| db.get_of(family, &options, key)) }
    });
}

/// The options with a snapshot, so that all keys are read at one moment.
pub(crate) fn at_one_moment(db: &DbObject, options: &ReadObject) -> Result<ReadObject> {
    let mut options = options.clone();
    if options.0.snapshot.is_none() {
        options.0.snapshot = Some(db.0.db().snapshot()?);
    }
    Ok(options)
}

/// The values of many keys of one family, read together.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    db: *mut DbObject,
    options: *const ReadObject,
    column_family: *mut FamilyObject,
    num_keys: usize,
    keys_list: *const *const c_char,
    keys_list_sizes: *const usize,
    values: *mut *mut PinnedObject,
    errs: *mut *mut c_char,
    _sorted_input: bool,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, column_family) }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        // SAFETY: as for this function.
        let keys = unsafe { crate::door::list(num_keys, keys_list, keys_list_sizes, "keys") }?;
        // SAFETY: as for this function.
        let places = unsafe { ManyPlaces::new(values, errs, num_keys) }?;
        places.fill(keys.all().and_then(|keys| db.multi_get_of(family, options, keys)));
        Ok(())
    });
}

/// Iterators over several families, at one moment.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_iterators(
    db: *mut DbObject,
    opts: *mut ReadObject,
    column_families: *mut *mut FamilyObject,
    iterators: *mut *mut IterObject,
    size: usize,
    errptr: *mut *mut c_char,
) {
    call(errptr, || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        let options = at_one_moment(db, unsafe { crate::door::borrowed(opts, "opts") }?)?;
        // SAFETY: as for this function.
        let families =
            unsafe { objects(column_families.cast_const().cast(), size, "column_families", "a family") }?;
        // SAFETY: as for this function.
        let places = unsafe { slice_mut(iterators, size, "iterators") }?;
        for (place, family) in places.iter_mut().zip(families) {
            *place = crate::door::made(crate::iter::create_iterator_cf(db, &options, family?));
        }
        Ok(())
    });
}

/// Names and values of options.
///
/// # Errors
/// `InvalidArgument`: none is named, null, or a text that is not UTF-8.
/// # Safety
/// See the header; the arrays have `count` elements.
unsafe fn pairs<'a>(
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
) -> Result<Vec<(&'a str, &'a str)>> {
    let count = crate::door::count(count)?;
    if count == 0 {
        return Err(Error::invalid("no option is named"));
    }
    // SAFETY: as for this function.
    let keys = unsafe { strings(keys, count, "keys", "a key") }?;
    // SAFETY: as for this function.
    let values = unsafe { strings(values, count, "values", "a value") }?;
    keys.zip(values).map(|(key, value)| Ok((utf8(key?)?, utf8(value?)?))).collect()
}

/// # Safety
/// See the header; the arrays have `count` elements.
unsafe fn set_options(
    db: *mut DbObject,
    family: *mut FamilyObject,
    count: c_int,
    texts: (*const *const c_char, *const *const c_char),
    errptr: *mut *mut c_char,
) {
    call(errptr, || {
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, family) }?;
        // SAFETY: as for this function.
        let pairs = unsafe { pairs(count, texts.0, texts.1) }?;
        db.family(family)?.set_options(&pairs).map(drop)
    });
}

/// Changes options of the database while it is open.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_db_options(
    db: *mut DbObject,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, || {
        // SAFETY: as for this function.
        let (db, _) = unsafe { target(db, std::ptr::null_mut()) }?;
        // SAFETY: as for this function.
        let pairs = unsafe { pairs(count, keys, values) }?;
        db.0.db().set_db_options(&pairs).map(drop)
    });
}

/// Changes options of the family `default` while it is open.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options(
    db: *mut DbObject,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: as for this function.
    unsafe { set_options(db, std::ptr::null_mut(), count, (keys, values), errptr) };
}

/// Changes options of a family while it is open.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_set_options_cf(
    db: *mut DbObject,
    handle: *mut FamilyObject,
    count: c_int,
    keys: *const *const c_char,
    values: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: as for this function.
    unsafe { set_options(db, handle, count, (keys, values), errptr) };
}

/// Where a call puts a value that it finds.
type Found = (*mut *mut c_char, *mut usize, *mut u8);

/// # Safety
/// See the header.
unsafe fn may_exist(
    db: *mut DbObject,
    options: *const ReadObject,
    family: *mut FamilyObject,
    key: (*const c_char, usize),
    found: Found,
) -> u8 {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, family) }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        // SAFETY: as for this function.
        let key = unsafe { bytes(key.0, key.1, "key") }?;
        let answer = options.0.of(&*db.family(family)?)?.key_may_exist(key)?;
        // SAFETY: null, or the caller's place.
        let value = unsafe { found.0.as_mut() };
        // SAFETY: as above.
        let len = unsafe { found.1.as_mut() };
        // SAFETY: as above.
        let is_found = unsafe { found.2.as_mut() };
        // RocksDB takes the absence of a key for a value that it found, and answers empty bytes.
        let known: Option<&[u8]> = match &answer {
            MayExist::Value(view) => Some(view),
            MayExist::No => Some(&[]),
            MayExist::Maybe => None,
        };
        if let Some(is_found) = is_found {
            *is_found = known.is_some().into();
            if let (Some(value), Some(len), Some(bytes)) = (value, len, known) {
                (*value, *len) = (new_bytes(bytes), bytes.len());
            }
        }
        Ok(u8::from(!matches!(answer, MayExist::No)))
    })
}

/// Whether a key may have a value, by what is in memory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist(
    db: *mut DbObject,
    options: *const ReadObject,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    val_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    value_found: *mut u8,
) -> u8 {
    // SAFETY: as for this function.
    unsafe { may_exist(db, options, std::ptr::null_mut(), (key, key_len), (value, val_len, value_found)) }
}

/// Whether a key of a family may have a value, by what is in memory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_key_may_exist_cf(
    db: *mut DbObject,
    options: *const ReadObject,
    column_family: *mut FamilyObject,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    val_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    value_found: *mut u8,
) -> u8 {
    // SAFETY: as for this function.
    unsafe { may_exist(db, options, column_family, (key, key_len), (value, val_len, value_found)) }
}

/// A compaction that forgets timestamps is refused; null: none.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactoptions_set_full_history_ts_low(
    opt: *mut CompactObject,
    ts: *mut c_char,
    _tslen: usize,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        unsafe { crate::door::changed(opt, "opt") }?.0.timestamp = !ts.is_null();
        Ok(())
    });
}

/// Sets an option to the texts of the elements of an array, with colons between them.
///
/// # Safety
/// The options and the array, a pointer and a count, are as the header says.
pub(crate) unsafe fn set_joined<T>(
    opt: *mut OptionsObject,
    name: &str,
    (elements, count): (*const T, usize),
    text: impl Fn(&T) -> Result<String>,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let opt = unsafe { crate::door::changed(opt, "opt") }?;
        // SAFETY: as for this function.
        let elements = unsafe { slice(elements, count, name) }?;
        let texts = elements.iter().map(text).collect::<Result<Vec<_>>>()?;
        opt.0.texts.set_text(name, texts.join(":"));
        Ok(())
    });
}

/// The compression of each level.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_compression_per_level(
    opt: *mut OptionsObject,
    level_values: *const c_int,
    num_levels: usize,
) {
    let name = |level: &c_int| {
        Ok(ashlar_compat::value::COMPRESSION.name((*level).into()).unwrap_or("unknown").to_owned())
    };
    // SAFETY: as for this function.
    unsafe { set_joined(opt, "compression_per_level", (level_values, num_levels), name) };
}

/// More about the sizes of levels: a hint, because all levels grow by the same factor.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
    opt: *mut OptionsObject,
    level_values: *mut c_int,
    num_levels: usize,
) {
    let name = "max_bytes_for_level_multiplier_additional";
    let levels = (level_values.cast_const(), num_levels);
    // SAFETY: as for this function.
    unsafe { set_joined(opt, name, levels, |level| Ok(level.to_string())) };
}

/// A hint: tables are block-based, whatever kind a program asks for.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_plain_table_factory(
    opt: *mut OptionsObject,
    _user_key_len: u32,
    _bloom_bits_per_key: c_int,
    _hash_table_ratio: f64,
    _index_sparseness: usize,
    _huge_page_tlb_size: usize,
    _encoding_type: c_char,
    _full_scan_mode: u8,
    _store_index_in_file: u8,
) {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        unsafe { crate::door::changed(opt, "opt") }.map(drop)
    });
}

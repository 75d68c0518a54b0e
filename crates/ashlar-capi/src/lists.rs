//! The calls over many keys. They are written by hand, because their arrays follow no one pattern.

use crate::db::{DbObject, FamilyObject, utf8};
use crate::door::{List, bytes, call, caught, objects, slice, slice_mut, strings};
use crate::gets::{ManyPlaces, fill_pinned};
use crate::iter::{IterObject, PinnedObject};
use crate::memory::new_bytes;
use crate::options::{CompactObject, OptionsObject, ReadObject};
use ashlar_compat::many::FamilyKey;
use ashlardb::{Error, MayExist, Read, Result};
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

/// The values of many keys, or their errors, in the order of the keys.
pub(crate) type Found = Result<Vec<ashlar_compat::many::Found>>;

/// The arrays of a read of many keys.
pub(crate) struct Arrays {
    pub(crate) count: usize,
    pub(crate) keys: (*const *const c_char, *const usize),
    pub(crate) values: (*mut *mut c_char, *mut usize),
    pub(crate) errs: *mut *mut c_char,
}

impl Arrays {
    /// Puts what `read` finds for the keys into their places. The places are null before `read` runs, so that an error of the whole
    /// read, which goes to each key, leaves nothing of the caller in them.
    ///
    /// # Safety
    /// Each array has `count` elements, as the header says.
    pub(crate) unsafe fn fill(self, read: impl FnOnce(List<'_>) -> Found) {
        call(std::ptr::null_mut(), || {
            // SAFETY: as for this function.
            let values = unsafe { slice_mut(self.values.0, self.count, "values") }?;
            // SAFETY: as for this function.
            let lengths = unsafe { slice_mut(self.values.1, self.count, "value lengths") }?;
            // SAFETY: as for this function.
            let mut places = unsafe { ManyPlaces::new(values, self.errs, self.count) }?;
            lengths.fill(0);
            let found = caught(|| {
                // SAFETY: as for this function.
                read(unsafe { crate::door::list(self.count, self.keys.0, self.keys.1, "keys") }?)
            });
            places.fill(found, |at, view, value| {
                lengths[at] = view.len();
                *value = new_bytes(&view);
            });
            Ok(())
        });
    }
}

/// Declares the two reads of many keys of an object: of the family `default`, and each of a family. `$read` finds the values, from
/// the object, the options, the families if there are any, and the keys.
macro_rules! reads_of_many {
    ($(#[$doc:meta])* $name:ident, $of:ident($object:ty) = $read:expr) => {
        $crate::lists::reads_of_many!(@ $(#[$doc])* $name($object), (), None, $read);
        $crate::lists::reads_of_many!(@ $(#[$doc])* #[doc = "Each key is one of a family."] $of($object),
            (column_families: *const *const FamilyObject), Some(column_families), $read);
    };
    (@ $(#[$doc:meta])* $name:ident($object:ty), ($($families:ident: $array:ty)?), $of:expr, $read:expr) => {
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
            let _in = $crate::checked::enter(stringify!($name));
            let (keys, values) = ((keys_list, keys_list_sizes), (values_list, values_list_sizes));
            let arrays = $crate::lists::Arrays { count: num_keys, keys, values, errs };
            let families: Option<*const *const FamilyObject> = $of;
            let read = |keys: $crate::door::List<'_>| {
                // SAFETY: as for this function.
                let from = unsafe { $crate::door::borrowed(from, "the object") }?;
                // SAFETY: as for this function.
                let options = unsafe { $crate::door::borrowed(options, "options") }?;
                // SAFETY: as for this function.
                let families = families.map(|of| unsafe { $crate::lists::families_of(of, num_keys) }).transpose()?;
                $read(from, options, families.as_deref(), keys)
            };
            // SAFETY: as for this function.
            unsafe { arrays.fill(read) };
        }
    };
}
pub(crate) use reads_of_many;

/// The families of many keys.
///
/// # Errors
/// `InvalidArgument`: the array or a family is null.
/// # Safety
/// The array has `count` elements, as the header says.
pub(crate) unsafe fn families_of<'a>(
    families: *const *const FamilyObject,
    count: usize,
) -> Result<Vec<&'a FamilyObject>> {
    // SAFETY: as for this function.
    unsafe { objects(families, count, "column_families", "a family") }?.collect()
}

/// Reads keys together. A key that is null has an error of its own.
pub(crate) fn each_key(
    families: Option<&[&FamilyObject]>,
    keys: List<'_>,
    read: impl FnOnce(&[FamilyKey<'_>]) -> Found,
) -> Found {
    let of = |at: usize| families.and_then(|families| families.get(at)).map(|family| &family.family);
    let given = keys.iter().enumerate().map(|(at, key)| Ok((of(at), key?)));
    let given: Vec<Result<FamilyKey<'_>>> = given.collect();
    let present: Vec<FamilyKey<'_>> = given.iter().flatten().copied().collect();
    let mut found = read(&present)?.into_iter();
    Ok(given.into_iter().map(|key| key.and_then(|_| found.next().unwrap_or(Ok(None)))).collect())
}

/// Reads keys of a database, all at one moment.
pub(crate) fn each_of_database(
    db: &DbObject,
    options: &ReadObject,
    families: Option<&[&FamilyObject]>,
    keys: List<'_>,
) -> Found {
    each_key(families, keys, |keys| db.0.multi_get_each(&options.0, keys))
}

reads_of_many! {
    /// The values of many keys. Keys of one family are read together.
    rocksdb_multi_get, rocksdb_multi_get_cf(DbObject) = each_of_database
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
    let _in = crate::checked::enter("rocksdb_batched_multi_get_cf");
    let read = || {
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, column_family) }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        // SAFETY: as for this function.
        let keys = unsafe { crate::door::list(num_keys, keys_list, keys_list_sizes, "keys") }?;
        db.multi_get_of(family, options, keys.all()?)
    };
    // SAFETY: as for this function.
    unsafe { fill_pinned(values, errs, num_keys, read) };
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
    let _in = crate::checked::enter("rocksdb_create_iterators");
    call(errptr, || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(opts, "opts") }?;
        let options = ReadObject(options.0.at_one_moment(&db.0)?);
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
        ashlar_compat::clip::set_options(&*db.family(family)?, &pairs)
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
    let _in = crate::checked::enter("rocksdb_set_db_options");
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
    let _in = crate::checked::enter("rocksdb_set_options");
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
    let _in = crate::checked::enter("rocksdb_set_options_cf");
    // SAFETY: as for this function.
    unsafe { set_options(db, handle, count, (keys, values), errptr) };
}

/// Where a call puts a value that it finds.
type Known = (*mut *mut c_char, *mut usize, *mut u8);

/// # Safety
/// See the header.
unsafe fn may_exist(
    db: *mut DbObject,
    options: *const ReadObject,
    family: *mut FamilyObject,
    key: (*const c_char, usize),
    found: Known,
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
    let _in = crate::checked::enter("rocksdb_key_may_exist");
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
    let _in = crate::checked::enter("rocksdb_key_may_exist_cf");
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
    let _in = crate::checked::enter("rocksdb_compactoptions_set_full_history_ts_low");
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
    let _in = crate::checked::enter("rocksdb_options_set_compression_per_level");
    let name = |level: &c_int| {
        Ok(ashlar_compat::value::COMPRESSION.name((*level).into()).unwrap_or("unknown").to_owned())
    };
    // SAFETY: as for this function.
    unsafe { set_joined(opt, "compression_per_level", (level_values, num_levels), name) };
}

/// More about the sizes of levels. Ignored: all levels grow by the same factor.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
    opt: *mut OptionsObject,
    level_values: *mut c_int,
    num_levels: usize,
) {
    let _in = crate::checked::enter("rocksdb_options_set_max_bytes_for_level_multiplier_additional");
    let name = "max_bytes_for_level_multiplier_additional";
    let levels = (level_values.cast_const(), num_levels);
    // SAFETY: as for this function.
    unsafe { set_joined(opt, name, levels, |level| Ok(level.to_string())) };
}

/// Plain tables: see [`ashlar_compat::options::Options::set_other_tables`].
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
    let _in = crate::checked::enter("rocksdb_options_set_plain_table_factory");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        unsafe { crate::door::changed(opt, "opt") }?.0.set_other_tables();
        Ok(())
    });
}

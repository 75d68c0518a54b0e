//! The calls over lists of families: opens, lists, flushes, stored options.

use crate::db::{DbObject, FamilyObject, path, utf8};
use crate::door::{call, objects, slice, slice_mut, string, strings};
use crate::memory::{free_texts, new_array, new_texts};
use crate::objects::FlushObject;
use crate::options::{CacheObject, EnvObject, OptionsObject};
use crate::txn::TxnDbObject;
use ashlar_compat::database::{Database, Mode, Named};
use ashlardb::Result;
use std::ffi::{CStr, c_char, c_int};

/// The names of the families of a directory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families(
    options: *const OptionsObject,
    name: *const c_char,
    lencf: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut *mut c_char {
    let _in = crate::checked::enter("rocksdb_list_column_families");
    call(errptr, || {
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(options, "options") }?;
        // SAFETY: as for this function.
        let name = unsafe { string(name, "name") }?;
        // SAFETY: as for this function.
        let len = unsafe { crate::door::out(lencf, "lencf") }?;
        *len = 0;
        let names = crate::db::family_names(options, name)?;
        *len = names.len();
        Ok(new_texts(names.iter().map(String::as_str)))
    })
}

/// Frees a list of names.
///
/// # Safety
/// The list is one of [`rocksdb_list_column_families`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, len: usize) {
    let _in = crate::checked::enter("rocksdb_list_column_families_destroy");
    // SAFETY: as for this function.
    unsafe { free_texts(list, len) };
}

/// The families of an open, and the places for their handles.
#[derive(Debug)]
pub struct Families<'a> {
    named: Vec<(&'a str, &'a OptionsObject)>,
    handles: &'a mut [*mut FamilyObject],
}

/// The families of an open: a count, names, options and places for handles.
///
/// # Errors
/// `InvalidArgument`: a count below zero, null, or a name that is not UTF-8.
/// # Safety
/// The arrays have `count` elements. The names are as [`string`] has them, the options as [`crate::door::borrowed`].
pub unsafe fn families<'a>(
    count: c_int,
    names: *const *const c_char,
    options: *const *const OptionsObject,
    handles: *mut *mut FamilyObject,
    _: &str,
) -> Result<Families<'a>> {
    let count = crate::door::count(count)?;
    // SAFETY: as for this function.
    let names = unsafe { strings(names, count, "column_family_names", "a name") }?;
    // SAFETY: as for this function.
    let options = unsafe { objects(options, count, "column_family_options", "options of a family") }?;
    // SAFETY: as for this function.
    let handles = unsafe { slice_mut(handles, count, "column_family_handles") }?;
    let named = names.zip(options).map(|(name, options)| Ok((utf8(name?)?, options?)));
    Ok(Families { named: named.collect::<Result<Vec<_>>>()?, handles })
}

impl Families<'_> {
    /// Opens a database with these families, and puts their handles into the places. `ttls` may be empty.
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub(crate) fn open(
        self,
        options: &OptionsObject,
        name: &CStr,
        mode: Mode,
        ttls: &[c_int],
    ) -> Result<DbObject> {
        let named = self.named.iter().enumerate();
        let named = named.map(|(at, (name, of))| Named { name, options: &of.0, ttl: ttls.get(at).copied() });
        let named: Vec<Named<'_>> = named.collect();
        let (database, families) = Database::open(&options.0, path(name), mode, &named)?;
        for (place, family) in self.handles.iter_mut().zip(families) {
            *place = crate::door::made(FamilyObject::new(family));
        }
        Ok(DbObject(database))
    }
}

/// Opens a database with these families.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_column_families(
    options: &OptionsObject,
    name: &CStr,
    families: Families<'_>,
) -> Result<DbObject> {
    families.open(options, name, Mode::Write, &[])
}

/// Opens a database with these families for reading.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_for_read_only_column_families(
    options: &OptionsObject,
    name: &CStr,
    families: Families<'_>,
    error_if_wal_file_exists: bool,
) -> Result<DbObject> {
    families.open(options, name, Mode::Read { refuse_wal: error_if_wal_file_exists }, &[])
}

/// The arrays of [`families`].
type Arrays = (c_int, *const *const c_char, *const *const OptionsObject, *mut *mut FamilyObject);

/// Opens a database with these families; null for `ttls`: no values end.
///
/// # Safety
/// See the header; `ttls` is null or has an element for each family.
unsafe fn opened(
    (options, name): (*const OptionsObject, *const c_char),
    (count, names, of, handles): Arrays,
    ttls: *const c_int,
    mode: Mode,
) -> Result<*mut DbObject> {
    // SAFETY: as for this function.
    let options = unsafe { crate::door::borrowed(options, "options") }?;
    // SAFETY: as for this function.
    let name = unsafe { string(name, "name") }?;
    // SAFETY: as for this function.
    let families = unsafe { families(count, names, of, handles, "families") }?;
    // SAFETY: as for this function.
    let ttls = if ttls.is_null() { &[] } else { unsafe { slice(ttls, families.named.len(), "ttls") }? };
    families.open(options, name, mode, ttls).map(crate::door::made)
}

/// Opens a database with these families, whose values end in the time of their write.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_column_families_with_ttl(
    options: *const OptionsObject,
    name: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const OptionsObject,
    column_family_handles: *mut *mut FamilyObject,
    ttls: *const c_int,
    errptr: *mut *mut c_char,
) -> *mut DbObject {
    let _in = crate::checked::enter("rocksdb_open_column_families_with_ttl");
    let (count, names, of) = (num_column_families, column_family_names, column_family_options);
    let arrays = (count, names, of, column_family_handles);
    // SAFETY: as for this function.
    call(errptr, || unsafe { opened((options, name), arrays, ttls, Mode::Write) })
}

/// Opens a view of these families of a database that another process writes.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    options: *const OptionsObject,
    name: *const c_char,
    _secondary_path: *const c_char,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    column_family_options: *const *const OptionsObject,
    column_family_handles: *mut *mut FamilyObject,
    errptr: *mut *mut c_char,
) -> *mut DbObject {
    let _in = crate::checked::enter("rocksdb_open_as_secondary_column_families");
    let (count, names, of) = (num_column_families, column_family_names, column_family_options);
    let arrays = (count, names, of, column_family_handles);
    // SAFETY: as for this function.
    call(errptr, || unsafe { opened((options, name), arrays, std::ptr::null(), Mode::Secondary) })
}

/// Creates families with the same options. After an error, those before the refused one are created, and returned.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families(
    db: *mut DbObject,
    column_family_options: *const OptionsObject,
    num_column_families: c_int,
    column_family_names: *const *const c_char,
    lencfs: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut *mut FamilyObject {
    let _in = crate::checked::enter("rocksdb_create_column_families");
    let mut created: Vec<*mut FamilyObject> = Vec::new();
    call(errptr, || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        let options = unsafe { crate::door::borrowed(column_family_options, "column_family_options") }?;
        let count = crate::door::count(num_column_families)?;
        // SAFETY: as for this function.
        for name in unsafe { strings(column_family_names, count, "column_family_names", "a name") }? {
            created.push(crate::door::made(crate::db::create_column_family(db, options, name?)?));
        }
        Ok(())
    });
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        *unsafe { crate::door::out(lencfs, "lencfs") }? = created.len();
        Ok(())
    });
    new_array(&created)
}

/// Frees the array of [`rocksdb_create_column_families`], not its handles.
///
/// # Safety
/// The array is one of that function, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_column_families_destroy(list: *mut *mut FamilyObject) {
    let _in = crate::checked::enter("rocksdb_create_column_families_destroy");
    // SAFETY: as for this function.
    unsafe { libc::free(list.cast()) };
}

/// # Safety
/// See the header.
unsafe fn flushed(db: &DbObject, families: *mut *mut FamilyObject, count: c_int) -> Result<()> {
    let count = crate::door::count(count)?;
    // SAFETY: as for this function.
    for family in unsafe { objects(families.cast_const().cast(), count, "column_family", "a family") }? {
        let family: &FamilyObject = family?;
        db.0.flush(std::slice::from_ref(&family.family))?;
    }
    Ok(())
}

/// Flushes families, one after the other.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_flush_cfs(
    db: *mut DbObject,
    _options: *const FlushObject,
    column_family: *mut *mut FamilyObject,
    num_column_families: c_int,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_flush_cfs");
    call(errptr, || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(db, "db") }?;
        // SAFETY: as for this function.
        unsafe { flushed(db, column_family, num_column_families) }
    });
}

/// Flushes families, one after the other.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_flush_cfs(
    txn_db: *mut TxnDbObject,
    _options: *const FlushObject,
    column_families: *mut *mut FamilyObject,
    num_column_families: c_int,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_transactiondb_flush_cfs");
    call(errptr, || {
        // SAFETY: as for this function.
        let db = unsafe { crate::door::borrowed(txn_db, "txn_db") }?;
        // SAFETY: as for this function.
        unsafe { flushed(&db.db, column_families, num_column_families) }
    });
}

/// The options and families that the newest OPTIONS file of a directory stores. The families get the cache, if there is one.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options(
    db_path: *const c_char,
    env: *mut EnvObject,
    ignore_unknown_options: bool,
    cache: *mut CacheObject,
    db_options: *mut *mut OptionsObject,
    num_column_families: *mut usize,
    column_family_names: *mut *mut *mut c_char,
    column_family_options: *mut *mut *mut OptionsObject,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_load_latest_options");
    call(errptr, || {
        // SAFETY: as for this function.
        let dir = path(unsafe { string(db_path, "db_path") }?);
        // SAFETY: as for this function.
        let env = unsafe { crate::door::borrowed_if(env, "env") }?.map(|env| env.0.clone());
        // SAFETY: as for this function.
        let cache = unsafe { crate::door::borrowed_if(cache, "cache") }?;
        let (database, mut families) = ashlar_compat::stored::load_latest(env, dir, ignore_unknown_options)?;
        for (cache, (_, options)) in families.iter_mut().filter_map(|family| Some((cache?, family))) {
            options.table.get_or_insert_default().set_cache(&cache.0);
        }
        // SAFETY: as for this function.
        let whole = unsafe { crate::door::out(db_options, "db_options") }?;
        // SAFETY: as for this function.
        let count = unsafe { crate::door::out(num_column_families, "num_column_families") }?;
        // SAFETY: as for this function.
        let names = unsafe { crate::door::out(column_family_names, "column_family_names") }?;
        // SAFETY: as for this function.
        let each = unsafe { crate::door::out(column_family_options, "column_family_options") }?;
        *whole = crate::door::made(OptionsObject(database));
        *count = families.len();
        *names = new_texts(families.iter().map(|(name, _)| name.as_str()));
        let objects = families.into_iter().map(|(_, options)| crate::door::made(OptionsObject(options)));
        *each = new_array(&objects.collect::<Vec<_>>());
        Ok(())
    });
}

/// Frees what [`rocksdb_load_latest_options`] made.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_load_latest_options_destroy(
    db_options: *mut OptionsObject,
    list_column_family_names: *mut *mut c_char,
    list_column_family_options: *mut *mut OptionsObject,
    len: usize,
) {
    let _in = crate::checked::enter("rocksdb_load_latest_options_destroy");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        drop(unsafe { crate::door::taken(db_options, "db_options") }?);
        let list = list_column_family_options.cast_const();
        // SAFETY: as for this function.
        for options in unsafe { slice(list, len, "list_column_family_options") }? {
            // SAFETY: as for this function.
            drop(unsafe { crate::door::taken(*options, "options") }?);
        }
        // SAFETY: the array is of `malloc`.
        unsafe { libc::free(list_column_family_options.cast()) };
        // SAFETY: as for this function.
        unsafe { free_texts(list_column_family_names, len) };
        Ok(())
    });
}

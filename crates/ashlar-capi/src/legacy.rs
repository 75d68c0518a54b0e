//! Functions that the header of 11.9 does not have: 26 that RocksDB removed and older bindings call, and four that its library
//! exports all the same.
//!
//! Options that RocksDB dropped are kept and answered, and change nothing, as RocksDB's option strings have it.

use crate::callbacks::{Destructor, Name, State};
use crate::db::DbObject;
use crate::options::{CacheObject, OptionsObject, PolicyObject, TableObject, filterpolicy_create_bloom};
use std::ffi::{CStr, c_void};

/// `rocksdb_compactionfilterfactoryv2_t`: no program has one, because no function makes one.
#[derive(Debug)]
pub enum FactoryV2 {}

/// Nothing: RocksDB dropped the option.
pub fn options_set_table_cache_remove_scan_count_limit(_: &mut OptionsObject, _: i32) {}

/// Nothing: RocksDB dropped such factories.
pub fn options_set_compaction_filter_factory_v2(_: &mut OptionsObject, _: Option<&FactoryV2>) {}

/// Nothing: RocksDB dropped the cache of compressed blocks.
pub fn block_based_options_set_block_cache_compressed(_: &mut TableObject, _: Option<&CacheObject>) {}

/// Nothing: RocksDB dropped the option.
pub fn block_based_options_set_hash_index_allow_collision(_: &mut TableObject, _: bool) {}

/// Nothing: the function has no place for an error, and AshlarDB removes no table by its name. `rocksdb_delete_file_in_range`
/// removes tables.
pub fn delete_file(_: &DbObject, _: &CStr) {}

/// Ends running compactions, and lets none begin until [`resume_all_compactions`].
pub fn abort_all_compactions(db: &DbObject) {
    // C has no place for the error.
    drop(db.0.db().abort_compactions());
}

/// Ends one [`abort_all_compactions`].
pub fn resume_all_compactions(db: &DbObject) {
    drop(db.0.db().resume_compactions());
}

/// A Bloom filter. The original form has none of its own here.
pub fn filterpolicy_create_bloom_format(bits_per_key: f64, _: bool) -> PolicyObject {
    filterpolicy_create_bloom(bits_per_key)
}

/// A policy of the caller, whose functions are not called: tables get no filter, and reads are right without.
///
/// # Safety
/// The destructor and the function for the name are those of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    _create_filter: Option<unsafe extern "C" fn()>,
    _key_may_match: Option<unsafe extern "C" fn()>,
    _delete_filter: Option<unsafe extern "C" fn()>,
    name: Name,
) -> *mut PolicyObject {
    let _in = crate::checked::enter("rocksdb_filterpolicy_create");
    // SAFETY: as for this function.
    unsafe { new_policy(state, destructor, name) }
}

/// A filter policy whose functions are not called, for a function of C.
///
/// # Safety
/// As [`rocksdb_filterpolicy_create`].
pub unsafe fn new_policy(state: *mut c_void, destructor: Destructor, name: Name) -> *mut PolicyObject {
    // SAFETY: as for this function.
    crate::door::made(PolicyObject::unused(unsafe { State::new(state, destructor, name) }))
}

//! Functions of LevelDB's interface that take callbacks. Each one does the same as its namesake in RocksDB's interface. They call the
//! inner functions of that interface: the loader may bind an exported name, such as `rocksdb_…`, to another library.

use rocksdb::batch::BatchObject;
use rocksdb::callbacks::{ComparatorObject, Compare, Destructor, Entry, Key, Name};
use rocksdb::options::PolicyObject;
use std::ffi::c_void;

/// A comparator.
///
/// # Safety
/// The functions are those of the state, and keep their contracts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Name,
) -> *mut ComparatorObject {
    let _in = crate::checked::enter_of("leveldb_comparator_create", crate::exports::kind_in_c);
    // SAFETY: as for this function.
    unsafe { rocksdb::callbacks::new_comparator(state, destructor, compare, name) }
}

/// A filter policy of the caller, whose functions are not called: tables get no filter, and reads are right without.
///
/// # Safety
/// The destructor and the function for the name are those of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    _create_filter: Option<unsafe extern "C" fn()>,
    _key_may_match: Option<unsafe extern "C" fn()>,
    name: Name,
) -> *mut PolicyObject {
    let _in = crate::checked::enter_of("leveldb_filterpolicy_create", crate::exports::kind_in_c);
    // SAFETY: as for this function.
    unsafe { rocksdb::legacy::new_policy(state, destructor, name) }
}

/// Shows the puts and deletions of a batch, in order.
///
/// # Safety
/// The batch is null or one of this library, and the functions are those of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    b: *const BatchObject,
    state: *mut c_void,
    put: Entry,
    deleted: Key,
) {
    let _in = crate::checked::enter_of("leveldb_writebatch_iterate", crate::exports::kind_in_c);
    // SAFETY: as for this function.
    unsafe { rocksdb::batch::walks::shown(b, state, put, deleted) };
}

/// Frees memory that a call returned.
///
/// # Safety
/// The pointer is null or one that a call returned, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    let _in = crate::checked::enter_of("leveldb_free", crate::exports::kind_in_c);
    // SAFETY: as for this function.
    unsafe { rocksdb::memory::free(ptr) };
}

//! The functions of RocksDB's C API that are called, looked up by name in a shared object.
//!
//! A function's type is its declaration in `include/rocksdb/c.h` of 11.8.1.

use crate::peer::Result;
use crate::peers::symbols;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::path::Path;

/// A pointer to one of RocksDB's objects.
pub type Opaque = *mut c_void;
type ErrorOut = *mut *mut c_char;
type Bytes = *const c_char;
/// State, level, key, value, room for another value and its length, and whether there is one.
type Filter = extern "C" fn(
    Opaque,
    c_int,
    Bytes,
    usize,
    Bytes,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;

/// `rocksdb_slice_t`: a key of a call for many.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slice {
    /// The first byte.
    pub data: Bytes,
    /// How many.
    pub size: usize,
}

symbols::functions! {
    options_create = b"rocksdb_options_create\0": fn() -> Opaque;
    options_destroy = b"rocksdb_options_destroy\0": fn(Opaque);
    options_from_string = b"rocksdb_get_options_from_string\0": fn(Opaque, Bytes, Opaque, ErrorOut);
    options_set_table = b"rocksdb_options_set_block_based_table_factory\0": fn(Opaque, Opaque);
    table_create = b"rocksdb_block_based_options_create\0": fn() -> Opaque;
    table_destroy = b"rocksdb_block_based_options_destroy\0": fn(Opaque);
    table_set_cache = b"rocksdb_block_based_options_set_block_cache\0": fn(Opaque, Opaque);
    table_set_block_size = b"rocksdb_block_based_options_set_block_size\0": fn(Opaque, usize);
    table_set_filter = b"rocksdb_block_based_options_set_filter_policy\0": fn(Opaque, Opaque);
    bloom_create = b"rocksdb_filterpolicy_create_bloom_full\0": fn(f64) -> Opaque;
    cache_create = b"rocksdb_cache_create_hyper_clock\0": fn(usize, usize) -> Opaque;
    cache_destroy = b"rocksdb_cache_destroy\0": fn(Opaque);
    write_options_create = b"rocksdb_writeoptions_create\0": fn() -> Opaque;
    write_options_set_sync = b"rocksdb_writeoptions_set_sync\0": fn(Opaque, c_uchar);
    write_options_disable_wal = b"rocksdb_writeoptions_disable_WAL\0": fn(Opaque, c_int);
    write_options_destroy = b"rocksdb_writeoptions_destroy\0": fn(Opaque);
    read_options_create = b"rocksdb_readoptions_create\0": fn() -> Opaque;
    read_options_set_lower = b"rocksdb_readoptions_set_iterate_lower_bound\0": fn(Opaque, Bytes, usize);
    read_options_set_upper = b"rocksdb_readoptions_set_iterate_upper_bound\0": fn(Opaque, Bytes, usize);
    read_options_destroy = b"rocksdb_readoptions_destroy\0": fn(Opaque);
    flush_options_create = b"rocksdb_flushoptions_create\0": fn() -> Opaque;
    flush_options_destroy = b"rocksdb_flushoptions_destroy\0": fn(Opaque);
    wait_options_create = b"rocksdb_wait_for_compact_options_create\0": fn() -> Opaque;
    wait_options_destroy = b"rocksdb_wait_for_compact_options_destroy\0": fn(Opaque);
    open = b"rocksdb_open\0": fn(Opaque, Bytes, ErrorOut) -> Opaque;
    close = b"rocksdb_close\0": fn(Opaque);
    put = b"rocksdb_put\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    get_into = b"rocksdb_get_into_buffer\0":
        fn(Opaque, Opaque, Bytes, usize, *mut c_char, usize, *mut usize, *mut c_uchar, ErrorOut) -> c_uchar;
    delete = b"rocksdb_delete\0": fn(Opaque, Opaque, Bytes, usize, ErrorOut);
    delete_range = b"rocksdb_delete_range_cf\0":
        fn(Opaque, Opaque, Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    merge = b"rocksdb_merge\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    options_set_sums = b"rocksdb_options_set_uint64add_merge_operator\0": fn(Opaque);
    family_default = b"rocksdb_get_default_column_family_handle\0": fn(Opaque) -> Opaque;
    family_destroy = b"rocksdb_column_family_handle_destroy\0": fn(Opaque);
    multi_get = b"rocksdb_batched_multi_get_cf_slice\0":
        fn(Opaque, Opaque, Opaque, usize, *const Slice, *mut Opaque, *mut *mut c_char, bool);
    get_pinned = b"rocksdb_get_pinned_cf\0": fn(Opaque, Opaque, Opaque, Bytes, usize, ErrorOut) -> Opaque;
    pinned_value = b"rocksdb_pinnableslice_value\0": fn(Opaque, *mut usize) -> Bytes;
    pinned_destroy = b"rocksdb_pinnableslice_destroy\0": fn(Opaque);
    batch_create = b"rocksdb_writebatch_create\0": fn() -> Opaque;
    batch_put = b"rocksdb_writebatch_put\0": fn(Opaque, Bytes, usize, Bytes, usize);
    batch_delete = b"rocksdb_writebatch_delete\0": fn(Opaque, Bytes, usize);
    batch_clear = b"rocksdb_writebatch_clear\0": fn(Opaque);
    batch_destroy = b"rocksdb_writebatch_destroy\0": fn(Opaque);
    write = b"rocksdb_write\0": fn(Opaque, Opaque, Opaque, ErrorOut);
    flush = b"rocksdb_flush\0": fn(Opaque, Opaque, ErrorOut);
    wait = b"rocksdb_wait_for_compact\0": fn(Opaque, Opaque, ErrorOut);
    compact_range = b"rocksdb_compact_range\0": fn(Opaque, Bytes, usize, Bytes, usize);
    property = b"rocksdb_property_value\0": fn(Opaque, Bytes) -> *mut c_char;
    iter_create = b"rocksdb_create_iterator\0": fn(Opaque, Opaque) -> Opaque;
    iter_first = b"rocksdb_iter_seek_to_first\0": fn(Opaque);
    iter_seek = b"rocksdb_iter_seek\0": fn(Opaque, Bytes, usize);
    iter_valid = b"rocksdb_iter_valid\0": fn(Opaque) -> c_uchar;
    iter_next = b"rocksdb_iter_next\0": fn(Opaque);
    iter_last = b"rocksdb_iter_seek_to_last\0": fn(Opaque);
    iter_prev = b"rocksdb_iter_prev\0": fn(Opaque);
    iter_key = b"rocksdb_iter_key\0": fn(Opaque, *mut usize) -> Bytes;
    iter_value = b"rocksdb_iter_value\0": fn(Opaque, *mut usize) -> Bytes;
    iter_error = b"rocksdb_iter_get_error\0": fn(Opaque, ErrorOut);
    iter_destroy = b"rocksdb_iter_destroy\0": fn(Opaque);
    free = b"rocksdb_free\0": fn(Opaque);
    read_options_set_same_prefix = b"rocksdb_readoptions_set_prefix_same_as_start\0": fn(Opaque, c_uchar);
    options_set_filter = b"rocksdb_options_set_compaction_filter\0": fn(Opaque, Opaque);
    filter_create = b"rocksdb_compactionfilter_create\0":
        fn(Opaque, extern "C" fn(Opaque), Filter, extern "C" fn(Opaque) -> Bytes) -> Opaque;
    filter_destroy = b"rocksdb_compactionfilter_destroy\0": fn(Opaque);
    txn_db_options_create = b"rocksdb_transactiondb_options_create\0": fn() -> Opaque;
    txn_db_options_destroy = b"rocksdb_transactiondb_options_destroy\0": fn(Opaque);
    txn_db_open = b"rocksdb_transactiondb_open\0": fn(Opaque, Opaque, Bytes, ErrorOut) -> Opaque;
    txn_db_base = b"rocksdb_transactiondb_get_base_db\0": fn(Opaque) -> Opaque;
    txn_db_close_base = b"rocksdb_transactiondb_close_base_db\0": fn(Opaque);
    txn_db_close = b"rocksdb_transactiondb_close\0": fn(Opaque);
    txn_options_create = b"rocksdb_transaction_options_create\0": fn() -> Opaque;
    txn_options_destroy = b"rocksdb_transaction_options_destroy\0": fn(Opaque);
    txn_begin = b"rocksdb_transaction_begin\0": fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
    txn_get_for_update = b"rocksdb_transaction_get_pinned_for_update\0":
        fn(Opaque, Opaque, Bytes, usize, c_uchar, ErrorOut) -> Opaque;
    txn_put = b"rocksdb_transaction_put\0": fn(Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    txn_delete = b"rocksdb_transaction_delete\0": fn(Opaque, Bytes, usize, ErrorOut);
    txn_commit = b"rocksdb_transaction_commit\0": fn(Opaque, ErrorOut);
    txn_rollback = b"rocksdb_transaction_rollback\0": fn(Opaque, ErrorOut);
    txn_destroy = b"rocksdb_transaction_destroy\0": fn(Opaque);
    optimistic_open = b"rocksdb_optimistictransactiondb_open\0": fn(Opaque, Bytes, ErrorOut) -> Opaque;
    optimistic_base = b"rocksdb_optimistictransactiondb_get_base_db\0": fn(Opaque) -> Opaque;
    optimistic_close_base = b"rocksdb_optimistictransactiondb_close_base_db\0": fn(Opaque);
    optimistic_close = b"rocksdb_optimistictransactiondb_close\0": fn(Opaque);
    optimistic_options_create = b"rocksdb_optimistictransaction_options_create\0": fn() -> Opaque;
    optimistic_options_destroy = b"rocksdb_optimistictransaction_options_destroy\0": fn(Opaque);
    optimistic_begin = b"rocksdb_optimistictransaction_begin\0": fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
    env_options_create = b"rocksdb_envoptions_create\0": fn() -> Opaque;
    env_options_destroy = b"rocksdb_envoptions_destroy\0": fn(Opaque);
    sst_create = b"rocksdb_sstfilewriter_create\0": fn(Opaque, Opaque) -> Opaque;
    sst_open = b"rocksdb_sstfilewriter_open\0": fn(Opaque, Bytes, ErrorOut);
    sst_put = b"rocksdb_sstfilewriter_put\0": fn(Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    sst_finish = b"rocksdb_sstfilewriter_finish\0": fn(Opaque, ErrorOut);
    sst_destroy = b"rocksdb_sstfilewriter_destroy\0": fn(Opaque);
    ingest_options_create = b"rocksdb_ingestexternalfileoptions_create\0": fn() -> Opaque;
    ingest_options_set_move = b"rocksdb_ingestexternalfileoptions_set_move_files\0": fn(Opaque, c_uchar);
    ingest_options_set_verify = b"rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest\0":
        fn(Opaque, c_uchar);
    ingest_options_destroy = b"rocksdb_ingestexternalfileoptions_destroy\0": fn(Opaque);
    ingest = b"rocksdb_ingest_external_file\0": fn(Opaque, *const Bytes, usize, Opaque, ErrorOut);
    checkpoint_object = b"rocksdb_checkpoint_object_create\0": fn(Opaque, ErrorOut) -> Opaque;
    checkpoint_create = b"rocksdb_checkpoint_create\0": fn(Opaque, Bytes, u64, ErrorOut);
    checkpoint_destroy = b"rocksdb_checkpoint_object_destroy\0": fn(Opaque);
    backup_open = b"rocksdb_backup_engine_open\0": fn(Opaque, Bytes, ErrorOut) -> Opaque;
    backup_create = b"rocksdb_backup_engine_create_new_backup\0": fn(Opaque, Opaque, ErrorOut);
    backup_close = b"rocksdb_backup_engine_close\0": fn(Opaque);
    restore_options_create = b"rocksdb_restore_options_create\0": fn() -> Opaque;
    restore_options_destroy = b"rocksdb_restore_options_destroy\0": fn(Opaque);
    restore_latest = b"rocksdb_backup_engine_restore_db_from_latest_backup\0":
        fn(Opaque, Bytes, Bytes, Opaque, ErrorOut);
}

impl Functions {
    /// Loads RocksDB's shared object.
    pub fn load(library: &Path) -> Result<Functions> {
        Functions::look_up(symbols::load(library)?)
    }

    /// Runs a call that reports failure through a `char**`, and takes the text over.
    #[inline]
    pub fn checked<T>(&self, call: impl FnOnce(ErrorOut) -> T) -> Result<T> {
        let mut error: *mut c_char = std::ptr::null_mut();
        let value = call(&raw mut error);
        if error.is_null() { Ok(value) } else { Err(self.take(error)) }
    }

    /// A string that the library allocated for us.
    pub fn take(&self, text: *mut c_char) -> String {
        // SAFETY: the library hands out NUL-terminated strings, ours until freed below.
        let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: as above; freed once, by the allocator that made it.
        unsafe { (self.free)(text.cast()) };
        copy
    }
}

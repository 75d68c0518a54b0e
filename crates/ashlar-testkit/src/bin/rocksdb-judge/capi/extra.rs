//! Functions of the C API that one of the two versions lacks, or that only prepared openings need: looked up, and refused
//! by name where they are called and absent.

use super::{Bytes, ErrorOut, Opaque};
use ashlar_testkit::judge::READ_FLAGS;
use libloading::os::unix::Library;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uchar};

type ReadFlag = unsafe extern "C" fn(Opaque, c_uchar);

macro_rules! extra {
    ($($field:ident = $name:literal: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions.
        pub(super) struct Extra {
            $($field: Option<unsafe extern "C" fn($($arg),*) $(-> $ret)?>,)*
            /// Setters of read options that are on or off, by the option's name.
            read_flags: BTreeMap<&'static str, ReadFlag>,
        }

        impl Extra {
            pub(super) fn look_up(library: &Library) -> Extra {
                $(
                    // SAFETY: the type is the function's declaration in c.h; the copied pointer lives in a struct that
                    // also owns the library. Checked by: tests/it/prepared.rs.
                    let $field = unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(concat!($name, "\0").as_bytes())
                    };
                    let $field = $field.ok().map(|found| *found);
                )*
                let read_flag = |name: &&'static str| {
                    let symbol = format!("rocksdb_readoptions_set_{name}\0");
                    // SAFETY: as above; c.h declares all of `READ_FLAGS` with this type.
                    let found = unsafe { library.get::<ReadFlag>(symbol.as_bytes()) };
                    found.ok().map(|found| (*name, *found))
                };
                Extra { $($field,)* read_flags: READ_FLAGS.iter().filter_map(read_flag).collect() }
            }

            pub(super) fn read_flag(&self, name: &str) -> Result<ReadFlag, String> {
                self.read_flags.get(name).copied().ok_or_else(|| format!("this version has no read option {name}"))
            }

            $(
                pub(super) fn $field(&self) -> Result<unsafe extern "C" fn($($arg),*) $(-> $ret)?, String> {
                    self.$field.ok_or_else(|| format!("this version has no {}", $name))
                }
            )*
        }
    };
}

extra! {
    open_ttl = "rocksdb_open_column_families_with_ttl":
        fn(Opaque, Bytes, c_int, *const Bytes, *const Opaque, *mut Opaque, *const c_int, ErrorOut) -> Opaque;
    open_transactions = "rocksdb_transactiondb_open_column_families":
        fn(Opaque, Opaque, Bytes, c_int, *const Bytes, *const Opaque, *mut Opaque, ErrorOut) -> Opaque;
    transactions_close = "rocksdb_transactiondb_close": fn(Opaque);
    base = "rocksdb_transactiondb_get_base_db": fn(Opaque) -> Opaque;
    base_close = "rocksdb_transactiondb_close_base_db": fn(Opaque);
    transactions_options = "rocksdb_transactiondb_options_create": fn() -> Opaque;
    transactions_options_destroy = "rocksdb_transactiondb_options_destroy": fn(Opaque);
    transaction_options = "rocksdb_transaction_options_create": fn() -> Opaque;
    transaction_options_destroy = "rocksdb_transaction_options_destroy": fn(Opaque);
    begin = "rocksdb_transaction_begin": fn(Opaque, Opaque, Opaque, Opaque) -> Opaque;
    transaction_name = "rocksdb_transaction_set_name": fn(Opaque, Bytes, usize, ErrorOut);
    transaction_name_of = "rocksdb_transaction_get_name": fn(Opaque, *mut usize) -> *mut c_char;
    transactions_prepared = "rocksdb_transactiondb_get_prepared_transactions": fn(Opaque, *mut usize) -> *mut Opaque;
    transaction_put = "rocksdb_transaction_put_cf": fn(Opaque, Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    transaction_prepare = "rocksdb_transaction_prepare": fn(Opaque, ErrorOut);
    transaction_commit = "rocksdb_transaction_commit": fn(Opaque, ErrorOut);
    transaction_rollback = "rocksdb_transaction_rollback": fn(Opaque, ErrorOut);
    transaction_destroy = "rocksdb_transaction_destroy": fn(Opaque);
    env_options = "rocksdb_envoptions_create": fn() -> Opaque;
    env_options_destroy = "rocksdb_envoptions_destroy": fn(Opaque);
    file_writer = "rocksdb_sstfilewriter_create": fn(Opaque, Opaque) -> Opaque;
    file_open = "rocksdb_sstfilewriter_open": fn(Opaque, Bytes, ErrorOut);
    file_put = "rocksdb_sstfilewriter_put": fn(Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    file_merge = "rocksdb_sstfilewriter_merge": fn(Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    file_delete = "rocksdb_sstfilewriter_delete": fn(Opaque, Bytes, usize, ErrorOut);
    file_delete_range = "rocksdb_sstfilewriter_delete_range": fn(Opaque, Bytes, usize, Bytes, usize, ErrorOut);
    file_finish = "rocksdb_sstfilewriter_finish": fn(Opaque, ErrorOut);
    file_destroy = "rocksdb_sstfilewriter_destroy": fn(Opaque);
    ingest_options = "rocksdb_ingestexternalfileoptions_create": fn() -> Opaque;
    ingest_options_destroy = "rocksdb_ingestexternalfileoptions_destroy": fn(Opaque);
    ingest = "rocksdb_ingest_external_file_cf": fn(Opaque, Opaque, *const Bytes, usize, Opaque, ErrorOut);
    ingest_behind = "rocksdb_ingestexternalfileoptions_set_ingest_behind": fn(Opaque, c_uchar);
    checkpoint_create = "rocksdb_checkpoint_object_create": fn(Opaque, ErrorOut) -> Opaque;
    checkpoint_destroy = "rocksdb_checkpoint_object_destroy": fn(Opaque);
    export_family = "rocksdb_checkpoint_export_column_family": fn(Opaque, Opaque, Bytes, ErrorOut) -> Opaque;
    import_family = "rocksdb_create_column_family_with_import":
        fn(Opaque, Opaque, Bytes, Opaque, Opaque, ErrorOut) -> Opaque;
    import_options = "rocksdb_import_column_family_options_create": fn() -> Opaque;
    import_options_destroy = "rocksdb_import_column_family_options_destroy": fn(Opaque);
    metadata_create = "rocksdb_export_import_files_metadata_create": fn() -> Opaque;
    metadata_destroy = "rocksdb_export_import_files_metadata_destroy": fn(Opaque);
    metadata_comparator = "rocksdb_export_import_files_metadata_get_db_comparator_name": fn(Opaque) -> *mut c_char;
    metadata_set_comparator = "rocksdb_export_import_files_metadata_set_db_comparator_name": fn(Opaque, Bytes);
    metadata_files = "rocksdb_export_import_files_metadata_get_files": fn(Opaque) -> Opaque;
    metadata_set_files = "rocksdb_export_import_files_metadata_set_files": fn(Opaque, Opaque);
    live_files_create = "rocksdb_livefiles_create": fn() -> Opaque;
    live_files_add = "rocksdb_livefiles_add": fn(Opaque, Opaque);
    live_files_count = "rocksdb_livefiles_count": fn(Opaque) -> c_int;
    live_files_destroy = "rocksdb_livefiles_destroy": fn(Opaque);
    live_file_name = "rocksdb_livefiles_name": fn(Opaque, c_int) -> Bytes;
    live_file_dir = "rocksdb_livefiles_directory": fn(Opaque, c_int) -> Bytes;
    live_file_level = "rocksdb_livefiles_level": fn(Opaque, c_int) -> c_int;
    live_file_size = "rocksdb_livefiles_size": fn(Opaque, c_int) -> usize;
    live_file_smallest = "rocksdb_livefiles_smallestkey": fn(Opaque, c_int, *mut usize) -> Bytes;
    live_file_largest = "rocksdb_livefiles_largestkey": fn(Opaque, c_int, *mut usize) -> Bytes;
    live_file_oldest = "rocksdb_livefiles_smallest_seqno": fn(Opaque, c_int) -> u64;
    live_file_newest = "rocksdb_livefiles_largest_seqno": fn(Opaque, c_int) -> u64;
    live_file_create = "rocksdb_livefile_create": fn() -> Opaque;
    live_file_set_family = "rocksdb_livefile_set_column_family_name": fn(Opaque, Bytes);
    live_file_set_level = "rocksdb_livefile_set_level": fn(Opaque, c_int);
    live_file_set_name = "rocksdb_livefile_set_name": fn(Opaque, Bytes);
    live_file_set_dir = "rocksdb_livefile_set_directory": fn(Opaque, Bytes);
    live_file_set_size = "rocksdb_livefile_set_size": fn(Opaque, usize);
    live_file_set_smallest = "rocksdb_livefile_set_smallest_key": fn(Opaque, Bytes, usize);
    live_file_set_largest = "rocksdb_livefile_set_largest_key": fn(Opaque, Bytes, usize);
    live_file_set_oldest = "rocksdb_livefile_set_smallest_seqno": fn(Opaque, u64);
    live_file_set_newest = "rocksdb_livefile_set_largest_seqno": fn(Opaque, u64);
    path_create = "rocksdb_dbpath_create": fn(Bytes, u64) -> Opaque;
    path_destroy = "rocksdb_dbpath_destroy": fn(Opaque);
    set_db_paths = "rocksdb_options_set_db_paths": fn(Opaque, *const Opaque, usize);
    set_family_paths = "rocksdb_options_set_cf_paths": fn(Opaque, *const Opaque, usize);
    set_timestamp = "rocksdb_readoptions_set_timestamp": fn(Opaque, *const c_char, usize);
    batch_put_at = "rocksdb_writebatch_put_cf_with_ts":
        fn(Opaque, Opaque, Bytes, usize, Bytes, usize, Bytes, usize);
    batch_delete_at = "rocksdb_writebatch_delete_cf_with_ts": fn(Opaque, Opaque, Bytes, usize, Bytes, usize);
    batch_of = "rocksdb_writebatch_create_from": fn(Bytes, usize) -> Opaque;
    families_create = "rocksdb_create_column_families":
        fn(Opaque, Opaque, c_int, *const Bytes, *mut usize, ErrorOut) -> *mut Opaque;
    families_create_destroy = "rocksdb_create_column_families_destroy": fn(*mut Opaque);
    family_id = "rocksdb_column_family_handle_get_id": fn(Opaque) -> u32;
    without_log = "rocksdb_writeoptions_disable_WAL": fn(Opaque, c_int);
    low_priority = "rocksdb_writeoptions_set_low_pri": fn(Opaque, c_uchar);
    insert_hint = "rocksdb_writeoptions_set_memtable_insert_hint_per_batch": fn(Opaque, c_uchar);
    write_policy = "rocksdb_transactiondb_options_set_write_policy": fn(Opaque, c_int);
    transactions_write = "rocksdb_transactiondb_write": fn(Opaque, Opaque, Opaque, ErrorOut);
    transactions_iterator = "rocksdb_transactiondb_create_iterator_cf": fn(Opaque, Opaque, Opaque) -> Opaque;
    transactions_get = "rocksdb_transactiondb_get_cf":
        fn(Opaque, Opaque, Opaque, Bytes, usize, *mut usize, ErrorOut) -> *mut c_char;
    backups_open = "rocksdb_backup_engine_open": fn(Opaque, Bytes, ErrorOut) -> Opaque;
    backups_create = "rocksdb_backup_engine_create_new_backup_flush": fn(Opaque, Opaque, c_uchar, ErrorOut);
    backups_restore = "rocksdb_backup_engine_restore_db_from_latest_backup": fn(Opaque, Bytes, Bytes, Opaque, ErrorOut);
    backups_verify = "rocksdb_backup_engine_verify_backup": fn(Opaque, u32, ErrorOut);
    backups_purge = "rocksdb_backup_engine_purge_old_backups": fn(Opaque, u32, ErrorOut);
    backups_close = "rocksdb_backup_engine_close": fn(Opaque);
    backups_info = "rocksdb_backup_engine_get_backup_info": fn(Opaque) -> Opaque;
    backups_info_count = "rocksdb_backup_engine_info_count": fn(Opaque) -> c_int;
    backups_info_id = "rocksdb_backup_engine_info_backup_id": fn(Opaque, c_int) -> u32;
    backups_info_time = "rocksdb_backup_engine_info_timestamp": fn(Opaque, c_int) -> i64;
    backups_info_bytes = "rocksdb_backup_engine_info_size": fn(Opaque, c_int) -> u64;
    backups_info_files = "rocksdb_backup_engine_info_number_files": fn(Opaque, c_int) -> u32;
    backups_info_destroy = "rocksdb_backup_engine_info_destroy": fn(Opaque);
    restore_options = "rocksdb_restore_options_create": fn() -> Opaque;
    restore_options_destroy = "rocksdb_restore_options_destroy": fn(Opaque);
    verify = "rocksdb_verify_checksum": fn(Opaque, ErrorOut);
    total_order = "rocksdb_readoptions_set_total_order_seek": fn(Opaque, c_uchar);
}

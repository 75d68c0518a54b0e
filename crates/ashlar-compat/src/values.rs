//! RocksDB's defaults of options that are only values with names, where they are not zero.

/// `FlushOptions`.
pub const FLUSH: [(&str, &str); 1] = [("wait", "true")];
/// `FlushWALOptions`.
pub const FLUSH_WAL: [(&str, &str); 1] = [("rate_limiter_priority", "IO_TOTAL")];
/// `EnvOptions`.
pub const FILES: [(&str, &str); 5] = [
    ("allow_fallocate", "true"),
    ("fd_cloexec", "true"),
    ("fallocate_with_keep_size", "true"),
    ("writable_file_max_buffer_size", "1048576"),
    ("compaction_readahead_size", "2097152"),
];
/// `IngestExternalFileOptions`.
pub const INGEST: [(&str, &str); 8] = [
    ("snapshot_consistency", "true"),
    ("allow_global_seqno", "true"),
    ("allow_blocking_flush", "true"),
    ("failed_move_fall_back_to_copy", "true"),
    ("verify_file_checksum", "true"),
    ("fill_cache", "true"),
    ("file_opening_threads", "1"),
    ("prefetch_lmax_index_and_filter_blocks", "true"),
];
/// `RestoreOptions`.
pub const RESTORE: [(&str, &str); 1] = [("mode", "65535")];
/// `BackupEngineOptions`.
pub const BACKUPS: [(&str, &str); 9] = [
    ("share_table_files", "true"),
    ("sync", "true"),
    ("backup_log_files", "true"),
    ("share_files_with_checksum", "true"),
    ("max_background_operations", "1"),
    ("callback_trigger_interval_size", "4194304"),
    ("max_valid_backups_to_open", "2147483647"),
    ("schema_version", "1"),
    ("share_files_with_checksum_naming", "-2147483646"),
];

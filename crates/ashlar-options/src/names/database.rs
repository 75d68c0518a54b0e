//! `DBOptions`.

use super::object::id_of;
use super::row::{Range, Row, ignored, mapped, refused, unserved, uses};
use super::value::{Value, Wrong};
use crate::Options;

const BYTES: &str = "bytes";

/// The one generator of file checksums that RocksDB knows by name.
const CRC32C_FACTORY: &str = "FileChecksumGenCrc32cFactory";

fn crc32c_factory(text: &str) -> Result<bool, Wrong> {
    match id_of(text).as_str() {
        "nullptr" | "" => Ok(false),
        CRC32C_FACTORY => Ok(true),
        other => {
            Err(format!("{other:?} is not a generator of file checksums; only {CRC32C_FACTORY} is supported"))
        }
    }
}

#[rustfmt::skip]
pub(super) const DATABASE: &[Row<Options>] = &[
    // Opening.
    uses!("create_if_missing", "false", open, db.create_if_missing, Range::Flag, "Create the database if the directory has none."),
    uses!("error_if_exists", "false", open, db.error_if_exists, Range::Flag, "Refuse a directory that already has a database."),
    uses!("create_missing_column_families", "false", open, db.create_missing_families, Range::Flag, "Create the listed families that do not exist."),
    uses!("wal_recovery_mode", "kPointInTimeRecovery", open, db.recovery_mode, Range::Text("kTolerateCorruptedTailRecords, kAbsoluteConsistency, kPointInTimeRecovery, kSkipAnyCorruptedRecords"), "How replay treats a damaged WAL file. AshlarDB is stricter than RocksDB where a gap in the writes would stay unnoticed."),
    refused!("best_efforts_recovery", "false", open, "AshlarDB does not open at an older state whose files are complete: a missing file is an error that names the file. With this option RocksDB replays no WAL, so a close of AshlarDB flushes."),
    ignored!("paranoid_checks", "true", open, "A read that meets damage always fails, and the error names file and offset."),
    ignored!("open_files_async", "false", open, "An open does not wait for tables: the first read of a table opens it."),
    ignored!("fast_sst_open", "false", live, "The first read of a table opens and checks it."),
    ignored!("max_file_opening_threads", "16", open, "An open of the database opens no table: the first read of a table opens it."),
    ignored!("skip_stats_update_on_db_open", "false", open, "An open reads no statistics of tables."),
    ignored!("skip_checking_sst_file_sizes_on_db_open", "false", open, "An open always checks file sizes: the listing of the directory has them. RocksDB has dropped the option."),
    ignored!("verify_sst_unique_id_in_manifest", "true", open, "Always verified: a table whose unique id differs from the one in the MANIFEST is refused."),
    unserved!("track_and_verify_wals_in_manifest", "false", open, "AshlarDB does not track WAL files in the MANIFEST. It notices a missing WAL file by its number. The report of an open lists WAL files that RocksDB tracked and that are gone."),
    unserved!("track_and_verify_wals", "false", open, "AshlarDB reads WAL files with such records and writes none."),
    ignored!("reuse_manifest_on_open", "false", open, "Every open begins a new MANIFEST with one snapshot record, so that replay stays short."),
    ignored!("optimize_manifest_for_recovery", "false", live, "Every open begins a new MANIFEST with one snapshot record, so that replay stays short."),
    ignored!("verify_manifest_content_on_close", "false", live, "The next open reads the whole MANIFEST and refuses damage."),
    ignored!("max_manifest_file_size", "1073741824", live, "Each open begins a new MANIFEST, and so does a commit when the file has grown far beyond its content."),
    ignored!("max_manifest_space_amp_pct", "500", live, "Each open begins a new MANIFEST, and so does a commit when the file has grown far beyond its content."),
    ignored!("manifest_preallocation_size", "4194304", live, "AshlarDB reserves a little disk space ahead of the MANIFEST, for a full disk. It appends and syncs records one by one."),
    uses!("write_dbid_to_manifest", "true", open, db.id_in_manifest, Range::Flag, "The MANIFEST contains the database's id. false: only IDENTITY does, so that a copy without that file gets an id of its own."),
    ignored!("write_identity_file", "true", open, "AshlarDB always writes IDENTITY, because older releases look for it. If the stored setting is false, the report does not mention a missing IDENTITY."),
    ignored!("db_host_id", "__hostname__", open, "Tables do not record the machine that wrote them."),
    ignored!("is_fd_close_on_exec", "true", open, "Child processes never inherit open files."),
    ignored!("allow_data_in_errors", "false", open, "Errors name file, offset and cause. They contain a key only if the caller passed it."),
    ignored!("fail_if_options_file_error", "false", open, "If an open cannot write its OPTIONS file, it fails. A later failure is reported. RocksDB has dropped the option."),
    // The log.
    uses!("max_total_wal_size", "0", live, db.max_total_wal_bytes, Range::Whole(0, u64::MAX, BYTES), "When the live WAL files are larger than this, the families that need the oldest one are flushed. 0: four times write_buffer_size times max_write_buffer_number of all families, but at most four times the memtables' share of memory."),
    uses!("wal_dir", "", open, db.wal_dir, Range::Text("a directory"), "Directory of the WAL files. Empty: the one that the newest OPTIONS file names, or the database directory."),
    uses!("wal_compression", "kNoCompression", open, V7_8, db.wal_compression, Range::Text("kNoCompression, kZSTD"), "Compression of WAL records. Needs a format level of 7.8 or above."),
    uses!("manual_wal_flush", "false", open, db.manual_wal_flush, Range::Flag, "Up to 1 MiB of WAL records stay in the process until flush_wal, a sync, a full memtable or the close. A killed process loses the newest writes; the rest have no gap."),
    uses!("WAL_ttl_seconds", "0", open, db.wal_archive_secs, Range::Whole(0, u64::MAX, "seconds"), "WAL files that are no longer needed stay in the directory archive for this time. 0 here and in WAL_size_limit_MB: they are deleted."),
    uses!("WAL_size_limit_MB", "0", open, db.wal_archive_mib, Range::Whole(0, u64::MAX, "mebibytes"), "Upper bound on the WAL files in the directory archive. 0: only WAL_ttl_seconds limits them."),
    refused!("wal_filter", "nullptr", open, "Not supported: a filter of WAL records would change what a recovery finds."),
    unserved!("recycle_log_file_num", "0", open, "Each WAL file is a new file."),
    ignored!("async_wal_precreate", "false", open, "The writer that needs a new WAL file creates it."),
    ignored!("background_close_inactive_wals", "false", open, "The purge, a background job, closes WAL files."),
    ignored!("log_readahead_size", "0", open, "Replay reads WAL files in large pieces."),
    ignored!("wal_bytes_per_sync", "0", live, "The WAL is synced by writes with `sync` and by calls of sync only."),
    ignored!("avoid_flush_during_recovery", "false", open, "An open always flushes what it replayed, so that the WAL files become obsolete."),
    ignored!("avoid_flush_during_shutdown", "false", live, "A close flushes only the writes that skipped the WAL; logged writes stay in the WAL."),
    // Writing.
    ignored!("allow_2pc", "false", open, "Transactions can be prepared in every database."),
    uses!("atomic_flush", "false", open, db.atomic_flush, Range::Flag, "Flush all families in one step, so that after a crash the tables of all families end at the same write."),
    uses!("allow_ingest_behind", "false", open, db.ingest_behind, Range::Flag, "Tables may be ingested below all data of any family: deletions stay in the tree, and the last level is kept for such tables. Needs num_levels of 3 or more. Set it when the database is created."),
    ignored!("enable_pipelined_write", "false", open, "Writers form groups, and the leader of a group writes for the whole group. There is one way to write."),
    ignored!("unordered_write", "false", open, "Readers always see whole groups in order."),
    unserved!("two_write_queues", "false", open, "There is one queue of writers."),
    ignored!("allow_concurrent_memtable_write", "true", open, "The leader of a group inserts for all its writers."),
    ignored!("enable_write_thread_adaptive_yield", "true", open, "Writers wait on signals. The engine decides how long they spin first."),
    ignored!("write_thread_max_yield_usec", "100", open, "Writers wait on signals. The engine decides how long they spin first."),
    ignored!("write_thread_slow_yield_usec", "3", open, "Writers wait on signals. The engine decides how long they spin first."),
    ignored!("max_write_batch_group_size_bytes", "1048576", open, "A group takes the waiting writers, up to a fixed bound."),
    ignored!("delayed_write_rate", "16777216", live, "The engine measures the rate that compaction can sustain, and slows writers in proportion to the compaction debt."),
    ignored!("use_adaptive_mutex", "false", open, "AshlarDB uses the locks of the standard library."),
    ignored!("enforce_single_del_contracts", "true", open, "A single delete that meets more than one put is handled as RocksDB does with the check off: no error."),
    // Memory.
    uses!("db_write_buffer_size", "0", open, db.db_write_buffer_bytes, Range::Whole(0, u64::MAX, BYTES), "Bytes of the memtables of all families together. At half of this the largest memtable becomes immutable; at all of it writers wait. 0: a quarter of the cap on memory."),
    refused!("write_buffer_manager", "", open, "No text can name the object. In Rust, `Builder::write_buffers` shares a limit on memtables among databases."),
    ignored!("enforce_write_buffer_manager_during_recovery", "true", open, "Replay writes a full memtable to a table at once."),
    uses!("max_open_files", "-1", live, db.max_open_files, Range::Text("-1, or files: 0 or more"), "Table files open at once. Only files that running operations use may exceed it. The least recently read table is closed for the next one, with its index and filter. -1: all stay open. A read-only open keeps all of them open."),
    ignored!("table_cache_numshardbits", "6", open, "The version of the file set holds the open tables. Readers find them without a lock, so there is nothing to shard."),
    refused!("row_cache", "", open, "AshlarDB has no row cache, only the block cache."),
    ignored!("lowest_used_cache_tier", "kNonVolatileBlockTier", open, "The cache has one tier: blocks in memory."),
    ignored!("dump_malloc_stats", "false", open, "The program chooses the allocator, not the library."),
    // Background work.
    mapped!("max_background_jobs", "2", live, "db.max_background_jobs", Range::Whole(0, 1 << 30, "jobs"), Some(|o, text| { o.db.max_background_jobs = Value::parse(text)?; Ok(()) }), |o| Some(o.db.max_background_jobs.show()).filter(|n| n != "0"), "Background jobs at once: a quarter of them flush, the others compact, at least one of each. 0: one per core."),
    ignored!("max_background_compactions", "-1", live, "See max_background_jobs."),
    ignored!("max_background_flushes", "-1", live, "See max_background_jobs."),
    ignored!("base_background_compactions", "", live, "See max_background_jobs. RocksDB has dropped the option."),
    mapped!("max_subcompactions", "1", live, "db.max_subcompactions", Range::Whole(0, 1 << 30, "jobs"), Some(|o, text| { o.db.max_subcompactions = Value::parse(text)?; Ok(()) }), |o| Some(o.db.max_subcompactions.show()).filter(|n| n != "0"), "Upper bound on the jobs that share one large compaction. 0: all idle jobs."),
    ignored!("max_compaction_trigger_wakeup_seconds", "43200", live, "The engine looks for work whenever something changes, not by the clock."),
    ignored!("daily_offpeak_time_utc", "", live, "AshlarDB schedules no work by the time of day."),
    ignored!("delete_obsolete_files_period_micros", "21600000000", live, "Files are deleted as soon as they are obsolete."),
    ignored!("avoid_unnecessary_blocking_io", "false", open, "A background job deletes files; a reader never does."),
    ignored!("max_bgerror_resume_count", "2147483647", open, "Writes resume in the same handle each time the cause goes away."),
    ignored!("bgerror_resume_retry_interval", "1000000", open, "The engine retries failed background work by itself, with growing pauses."),
    ignored!("compaction_verify_record_count", "true", open, "Every new table is checked against its inputs before it is installed."),
    ignored!("flush_verify_memtable_count", "true", open, "Every new table is checked against its inputs before it is installed."),
    refused!("rate_limiter", "", open, "For one database: rate_limiter_bytes_per_sec. For several, in Rust: Resources::rate_limit."),
    uses!("rate_limiter_bytes_per_sec", "0", live, db.rate_limit_bytes, Range::Whole(0, u64::MAX, BYTES), "Upper bound on the bytes per second that flushes and compactions write; flushes go first. 0: no limit."),
    uses!("rate_limiter_auto_tuned", "false", live, db.rate_limit_auto_tuned, Range::Flag, "The rate of flushes and compactions follows their need, between a twentieth of rate_limiter_bytes_per_sec and all of it; all of it while writers wait."),
    refused!("compaction_service", "", open, "Compaction in another process is not supported."),
    // Files.
    mapped!("env", "", open, "the `Env` given to the open", Range::Text("an environment"), None, |_| None, "The environment given to the open provides files, clock, threads and randomness."),
    mapped!("db_paths", "", open, "db.db_paths", Range::Text("{path=DIRECTORY;target_size=BYTES}, with ':' between"), Some(|o, text| { o.db.db_paths = Value::parse(text)?; Ok(()) }), |_| None, "Directories of tables, four at most. Upper levels go to the first directories, up to their target sizes; the last directory takes the rest. RocksDB does not store this option; AshlarDB stores it in the comment block of its OPTIONS files."),
    refused!("sst_file_manager", "", open, "In Rust, `Builder::disk_quota` limits the disk space of a database. In C and Java, max_allowed_space_usage of a manager does. Deletions have no rate."),
    refused!("use_direct_reads", "false", open, "Direct reads are not supported: files are read through the operating system's cache."),
    refused!("use_direct_io_for_flush_and_compaction", "false", open, "Direct writes are not supported: files are written through the operating system's cache."),
    refused!("use_direct_io_for_compaction_reads", "false", open, "Direct reads are not supported: files are read through the operating system's cache."),
    ignored!("allow_mmap_reads", "false", open, "Blocks are read into frames of the block cache; AshlarDB maps no file for reading."),
    ignored!("allow_mmap_writes", "false", open, "AshlarDB maps the end of the newest WAL file for writing, unless `Builder::mapped_wal` says no, and no other file."),
    ignored!("allow_fallocate", "true", open, "The WAL and the MANIFEST reserve a little disk space ahead, for a full disk, and release it at the close."),
    ignored!("use_fsync", "false", open, "The environment chooses the system call that syncs a file's data and size. Directories are synced after a rename."),
    ignored!("bytes_per_sync", "0", live, "A table is synced once, when it is complete."),
    ignored!("strict_bytes_per_sync", "false", live, "A table is synced once, when it is complete."),
    ignored!("advise_random_on_open", "true", open, "Tables are always read with this advice. The engine itself reads ahead where it reads in order."),
    ignored!("compaction_readahead_size", "2097152", live, "Compaction reads its inputs in large pieces of a fixed size."),
    ignored!("read_io_executor_threads", "1", open, "Reads run on the caller's thread."),
    ignored!("writable_file_max_buffer_size", "1048576", live, "Tables are written in pieces of a fixed size."),
    ignored!("random_access_max_buffer_size", "1048576", open, "RocksDB has dropped the option."),
    ignored!("new_table_reader_for_compaction_inputs", "false", open, "RocksDB has dropped the option."),
    ignored!("access_hint_on_compaction_start", "NORMAL", open, "RocksDB has dropped the option."),
    unserved!("metadata_write_temperature", "kUnknown", open, "AshlarDB does not distinguish kinds of storage."),
    unserved!("wal_write_temperature", "kUnknown", open, "AshlarDB does not distinguish kinds of storage."),
    ignored!("calculate_sst_write_lifetime_hint_set", "", open, "AshlarDB gives the storage no hints about the lifetime of files."),
    mapped!("file_checksum_gen_factory", "nullptr", open, "db.file_checksums", Range::Text("nullptr, FileChecksumGenCrc32cFactory"), Some(|o, text| { o.db.file_checksums = crc32c_factory(text)?; Ok(()) }), |o| Some(if o.db.file_checksums { CRC32C_FACTORY } else { "nullptr" }.to_owned()), "Record the checksum of every table and blob file in the MANIFEST. verify_file_checksums compares them."),
    ignored!("checksum_handoff_file_types", "", open, "Checksums are verified when bytes are read back; none is passed to the storage."),
    // Observation.
    mapped!("statistics", "", open, "db.statistics", Range::Text("an object"), None, |_| None, "The statistics that the database counts into. Several databases may share one object."),
    mapped!("listeners", "", open, "db.listeners", Range::Text("objects"), None, |_| None, "Receivers of the events of flushes, compactions, files, stalls and errors."),
    refused!("info_log", "", open, "Events are logged to the file LOG. A listener can send them elsewhere."),
    uses!("db_log_dir", "", open, db.info_log.dir, Range::Text("a folder"), "Directory of LOG. Empty: the database directory."),
    uses!("info_log_level", "INFO_LEVEL", open, db.info_log.level, Range::Text("DEBUG_LEVEL, INFO_LEVEL, WARN_LEVEL, ERROR_LEVEL, FATAL_LEVEL, HEADER_LEVEL"), "The least severe lines that LOG keeps."),
    uses!("max_log_file_size", "0", open, db.info_log.file_bytes_max, Range::Whole(0, u64::MAX, "bytes"), "LOG is replaced at this size. 0: never. Default: 16 MiB."),
    uses!("log_file_time_to_roll", "0", open, db.info_log.file_secs_max, Range::Whole(0, u64::MAX, "seconds"), "LOG is replaced at this age. 0: never."),
    uses!("keep_log_file_num", "1000", open, db.info_log.files_kept, Range::Whole(1, 1 << 30, "files"), "Number of info logs to keep, LOG included. Default: 10."),
    uses!("stats_dump_period_sec", "600", live, db.stats_dump_secs, Range::Whole(0, (1 << 32) - 1, "seconds"), "Interval at which the engine writes `rocksdb.stats` of all families, and the statistics, to LOG. 0: never."),
    ignored!("stats_persist_period_sec", "600", live, "AshlarDB keeps no history of statistics. stats_dump_period_sec writes them to LOG, and a program can read them at any time."),
    ignored!("stats_history_buffer_size", "1048576", live, "AshlarDB keeps no history of statistics."),
    unserved!("persist_stats_to_disk", "false", open, "AshlarDB keeps no history of statistics."),
    ignored!("enable_thread_tracking", "false", open, "Properties report the running background work."),
    // Second processes.
    ignored!("follower_refresh_catchup_period_ms", "10000", open, "A follower gets its period from Secondary::follow."),
    ignored!("follower_catchup_retry_count", "10", open, "A follower tries again after its period."),
    ignored!("follower_catchup_retry_wait_ms", "100", open, "A follower tries again after its period."),
    // Reading.
    ignored!("prefix_seek_opt_in_only", "false", open, "Every scan is in the total order of the keys, with any prefix."),
    // Names that RocksDB takes and drops.
    ignored!("allow_os_buffer", "", live, "RocksDB has dropped the option."),
    ignored!("use_direct_writes", "", open, "RocksDB has dropped the option."),
    ignored!("disableDataSync", "", open, "RocksDB has dropped the option."),
    ignored!("disable_data_sync", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_allow_mempurge", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_mempurge_policy", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_mempurge_threshold", "", open, "RocksDB has dropped it as an option of the database."),
    ignored!("skip_log_error_on_recovery", "", open, "RocksDB has dropped the option."),
    ignored!("preserve_deletes", "", open, "RocksDB has dropped the option."),
    ignored!("seq_per_batch", "", open, "RocksDB has dropped the option."),
    ignored!("concurrent_prepare", "", open, "RocksDB has dropped the option."),
];

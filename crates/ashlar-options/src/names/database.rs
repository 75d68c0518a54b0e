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
            Err(format!("{other:?} is no generator of file checksums; {CRC32C_FACTORY} is the one there is"))
        }
    }
}

#[rustfmt::skip]
pub(super) const DATABASE: &[Row<Options>] = &[
    // Opening.
    uses!("create_if_missing", "false", open, db.create_if_missing, Range::Flag, "Make the database when the directory holds none."),
    uses!("error_if_exists", "false", open, db.error_if_exists, Range::Flag, "Refuse a directory that holds a database already."),
    uses!("create_missing_column_families", "false", open, db.create_missing_families, Range::Flag, "Make families that are asked for and do not exist."),
    uses!("wal_recovery_mode", "kPointInTimeRecovery", open, db.recovery_mode, Range::Text("kTolerateCorruptedTailRecords, kAbsoluteConsistency, kPointInTimeRecovery, kSkipAnyCorruptedRecords"), "What replay does with a damaged log. Stricter than RocksDB where a hole would be hidden."),
    refused!("best_efforts_recovery", "false", open, "Opening at the newest state whose files are all there is not served: a missing file is an error that names it. RocksDB replays no log then, so a close here flushes."),
    ignored!("paranoid_checks", "true", open, "Damage is always refused with file and offset, never read over."),
    ignored!("open_files_async", "false", open, "A table is opened when it is first read, so an open does not wait for them."),
    ignored!("fast_sst_open", "false", live, "Tables are opened on first use and checked then."),
    ignored!("max_file_opening_threads", "16", open, "An open of the database opens no table: the first read of a table opens it."),
    ignored!("skip_stats_update_on_db_open", "false", open, "No statistics of tables are read at open."),
    ignored!("skip_checking_sst_file_sizes_on_db_open", "false", open, "Sizes are always checked: they come with the listing of the directory. RocksDB has dropped the option."),
    ignored!("verify_sst_unique_id_in_manifest", "true", open, "Always verified: a table is the one the MANIFEST means, or it is refused."),
    unserved!("track_and_verify_wals_in_manifest", "false", open, "Logs and MANIFEST are each other's witness through their numbers; logs that RocksDB tracked are listed in the open's report."),
    unserved!("track_and_verify_wals", "false", open, "A log that others left with such records is read; no such records are written."),
    ignored!("reuse_manifest_on_open", "false", open, "Every open begins a new MANIFEST with one snapshot record, so that replay stays short."),
    ignored!("optimize_manifest_for_recovery", "false", live, "Every open begins a new MANIFEST with one snapshot record, so that replay stays short."),
    ignored!("verify_manifest_content_on_close", "false", live, "The next open reads the MANIFEST whole and refuses damage."),
    ignored!("max_manifest_file_size", "1073741824", live, "The MANIFEST begins anew with each open and when it has grown beyond its content."),
    ignored!("max_manifest_space_amp_pct", "500", live, "The MANIFEST begins anew with each open and when it has grown beyond its content."),
    ignored!("manifest_preallocation_size", "4194304", live, "Records are appended and synced one by one; a little room is asked for ahead, for a full disk."),
    ignored!("write_dbid_to_manifest", "true", open, "The MANIFEST always holds the database's id."),
    ignored!("write_identity_file", "true", open, "IDENTITY is always written: older releases look for it. Where the stored setting is false, a missing one is no repair."),
    ignored!("db_host_id", "__hostname__", open, "Tables do not record the machine they were written on."),
    ignored!("is_fd_close_on_exec", "true", open, "Files are always closed in child processes."),
    ignored!("allow_data_in_errors", "false", open, "Errors name file, offset and cause; keys only where the caller gave them."),
    ignored!("fail_if_options_file_error", "false", open, "An OPTIONS file that cannot be written fails the open; later it is reported. RocksDB has dropped the option."),
    // The log.
    uses!("max_total_wal_size", "0", live, db.max_total_wal_bytes, Range::Whole(0, u64::MAX, BYTES), "When the live logs are larger than this, the families that hold the oldest one are flushed. 0: four times the sum of all write buffers."),
    uses!("wal_dir", "", open, db.wal_dir, Range::Text("a directory"), "Where the logs are. Empty: where the newest OPTIONS file says, or in the database directory."),
    uses!("wal_compression", "kNoCompression", open, V7_8, db.wal_compression, Range::Text("kNoCompression, kZSTD"), "How records of the log are compressed. Needs a format level of 7.8 or above."),
    uses!("manual_wal_flush", "false", open, db.manual_wal_flush, Range::Flag, "Records of the log stay in the process, up to 1 MiB, until flush_wal, a sync, a full memtable or the close: lost if it dies, but without a hole."),
    refused!("WAL_ttl_seconds", "0", open, "Obsolete logs are removed; there is no archive of them."),
    refused!("WAL_size_limit_MB", "0", open, "Obsolete logs are removed; there is no archive of them."),
    refused!("wal_filter", "nullptr", open, "A filter of log records would change what a recovery finds; it is not served."),
    unserved!("recycle_log_file_num", "0", open, "Each log is a fresh file."),
    ignored!("async_wal_precreate", "false", open, "A new log is begun by the writer that needs it."),
    ignored!("background_close_inactive_wals", "false", open, "A closed log is let go of by the purge, in the background."),
    ignored!("log_readahead_size", "0", open, "Replay reads logs in large pieces."),
    ignored!("wal_bytes_per_sync", "0", live, "Durability is asked for per write or by a sync; nothing is synced in between."),
    ignored!("avoid_flush_during_recovery", "false", open, "What is replayed is always written to tables, so that the logs behind it can go."),
    ignored!("avoid_flush_during_shutdown", "false", live, "A close flushes just what only memory holds; logged writes stay in the log."),
    // Writing.
    refused!("allow_2pc", "false", open, "Prepared transactions are not served."),
    uses!("atomic_flush", "false", open, db.atomic_flush, Range::Flag, "Flush all families in one step, so that after a crash the tables hold the same writes of each."),
    refused!("allow_ingest_behind", "false", open, "Adding tables behind all data is not served."),
    ignored!("enable_pipelined_write", "false", open, "Writers are grouped, and the leader of a group writes for all of it; there is one way to write."),
    ignored!("unordered_write", "false", open, "Readers always see whole groups in order; giving that up is never needed."),
    unserved!("two_write_queues", "false", open, "There is one queue of writers."),
    ignored!("allow_concurrent_memtable_write", "true", open, "The leader of a group inserts for all its writers."),
    ignored!("enable_write_thread_adaptive_yield", "true", open, "Writers wait on signals; how long they spin first is decided by the engine."),
    ignored!("write_thread_max_yield_usec", "100", open, "Writers wait on signals; how long they spin first is decided by the engine."),
    ignored!("write_thread_slow_yield_usec", "3", open, "Writers wait on signals; how long they spin first is decided by the engine."),
    ignored!("max_write_batch_group_size_bytes", "1048576", open, "A group takes the writers that wait, up to a bound of its own."),
    ignored!("delayed_write_rate", "16777216", live, "Writers are slowed in proportion to the debt of compaction, from what it is measured to carry."),
    ignored!("use_adaptive_mutex", "false", open, "Locks are the standard library's."),
    ignored!("enforce_single_del_contracts", "true", open, "A single delete that meets more than one put is handled as RocksDB does with the check off: nothing is refused."),
    // Memory.
    uses!("db_write_buffer_size", "0", open, db.db_write_buffer_bytes, Range::Whole(0, u64::MAX, BYTES), "Bytes of memtables of all families together: at half of it the largest is switched, at all of it writers wait. 0: a quarter of the cap on memory."),
    refused!("write_buffer_manager", "", open, "The cap on memory is a database's own; one for several databases is not there."),
    ignored!("enforce_write_buffer_manager_during_recovery", "true", open, "Replay writes a memtable that is full to a table at once."),
    uses!("max_open_files", "-1", live, db.max_open_files, Range::Text("-1, or files: 0 or more"), "Files of tables open at once; only those that running operations hold may pass it. The table read longest ago is closed for the next one, index and filter with it. -1: all stay open. A read-only open holds all of them."),
    ignored!("table_cache_numshardbits", "6", open, "An open table is found in the version of the file set without a lock; there is nothing to shard."),
    refused!("row_cache", "", open, "A cache of rows is not there; the block cache serves."),
    ignored!("lowest_used_cache_tier", "kNonVolatileBlockTier", open, "There is one tier: blocks in memory."),
    ignored!("dump_malloc_stats", "false", open, "The allocator is the program's, not the library's."),
    // Background work.
    mapped!("max_background_jobs", "2", live, "db.max_background_jobs", Range::Whole(0, 1 << 30, "jobs"), Some(|o, text| { o.db.max_background_jobs = Value::parse(text)?; Ok(()) }), |o| Some(o.db.max_background_jobs.show()).filter(|n| n != "0"), "Jobs in the background at once: a quarter of them flush, the others compact, at least one of each. 0: one per core."),
    ignored!("max_background_compactions", "-1", live, "See max_background_jobs."),
    ignored!("max_background_flushes", "-1", live, "See max_background_jobs."),
    ignored!("base_background_compactions", "", live, "See max_background_jobs. RocksDB has dropped the option."),
    mapped!("max_subcompactions", "1", live, "db.max_subcompactions", Range::Whole(0, 1 << 30, "jobs"), Some(|o, text| { o.db.max_subcompactions = Value::parse(text)?; Ok(()) }), |o| Some(o.db.max_subcompactions.show()).filter(|n| n != "0"), "Jobs that share one large compaction at most. 0: as many as have nothing else to do."),
    ignored!("max_compaction_trigger_wakeup_seconds", "43200", live, "Work is looked for when something changes; nothing depends on the clock."),
    ignored!("daily_offpeak_time_utc", "", live, "No work is put off to a time of day."),
    ignored!("delete_obsolete_files_period_micros", "21600000000", live, "Files are removed as soon as they are obsolete."),
    ignored!("avoid_unnecessary_blocking_io", "false", open, "Files are always removed by a background job, never by a reader."),
    ignored!("max_bgerror_resume_count", "2147483647", open, "Writes resume in the same handle as often as the cause goes away."),
    ignored!("bgerror_resume_retry_interval", "1000000", open, "Work that failed is tried again by itself, with pauses that grow."),
    ignored!("compaction_verify_record_count", "true", open, "Every table that is written is checked against its plan before it is installed."),
    ignored!("flush_verify_memtable_count", "true", open, "Every table that is written is checked against its plan before it is installed."),
    refused!("rate_limiter", "", open, "For one database: rate_limiter_bytes_per_sec. For several, in Rust: Resources::rate_limit."),
    uses!("rate_limiter_bytes_per_sec", "0", live, db.rate_limit_bytes, Range::Whole(0, u64::MAX, BYTES), "Bytes per second that flushes and compactions write at most, flushes first. 0: no limit."),
    refused!("compaction_service", "", open, "Compaction in another process is not served."),
    // Files.
    mapped!("env", "", open, "the `Env` given to the open", Range::Text("an environment"), None, |_| None, "Files, clock, threads and randomness come from the environment given to the open."),
    mapped!("db_paths", "", open, "db.db_paths", Range::Text("{path=DIRECTORY;target_size=BYTES}, with ':' between"), Some(|o, text| { o.db.db_paths = Value::parse(text)?; Ok(()) }), |_| None, "Directories of tables, four at most. Upper levels go to the first ones, by their target sizes; the last one takes the rest. RocksDB's OPTIONS files do not hold it, ours do, in their comment block."),
    refused!("sst_file_manager", "", open, "A bound on the space and the rate of deletions is not there."),
    refused!("use_direct_reads", "false", open, "Files are read through the operating system's cache; direct reads are not there."),
    refused!("use_direct_io_for_flush_and_compaction", "false", open, "Files are written through the operating system's cache; direct writes are not there."),
    refused!("use_direct_io_for_compaction_reads", "false", open, "Files are read through the operating system's cache; direct reads are not there."),
    ignored!("allow_mmap_reads", "false", open, "Blocks are read into frames of the block cache; no file is mapped."),
    ignored!("allow_mmap_writes", "false", open, "No file is mapped."),
    ignored!("allow_fallocate", "true", open, "The log and the MANIFEST ask for a little room ahead, for a full disk, and give it back."),
    ignored!("use_fsync", "false", open, "Files that grew are synced with their size, folders after a rename; which call that takes the environment knows."),
    ignored!("bytes_per_sync", "0", live, "A table is synced once, when it is whole."),
    ignored!("strict_bytes_per_sync", "false", live, "A table is synced once, when it is whole."),
    ignored!("advise_random_on_open", "true", open, "The engine reads ahead itself where it reads in order."),
    ignored!("compaction_readahead_size", "2097152", live, "Compaction reads its inputs in large pieces of a size of its own."),
    ignored!("read_io_executor_threads", "1", open, "Reads run on the caller's thread."),
    ignored!("writable_file_max_buffer_size", "1048576", live, "Tables are written in pieces of a size of its own."),
    ignored!("random_access_max_buffer_size", "1048576", open, "RocksDB has dropped the option."),
    ignored!("new_table_reader_for_compaction_inputs", "false", open, "RocksDB has dropped the option."),
    ignored!("access_hint_on_compaction_start", "NORMAL", open, "RocksDB has dropped the option."),
    unserved!("metadata_write_temperature", "kUnknown", open, "No kinds of storage are told apart."),
    unserved!("wal_write_temperature", "kUnknown", open, "No kinds of storage are told apart."),
    ignored!("calculate_sst_write_lifetime_hint_set", "", open, "No hints about a file's life are given to the storage."),
    mapped!("file_checksum_gen_factory", "nullptr", open, "db.file_checksums", Range::Text("nullptr, FileChecksumGenCrc32cFactory"), Some(|o, text| { o.db.file_checksums = crc32c_factory(text)?; Ok(()) }), |o| Some(if o.db.file_checksums { CRC32C_FACTORY } else { "nullptr" }.to_owned()), "Record the checksum of every table and blob file in the MANIFEST; verify_file_checksums compares."),
    ignored!("checksum_handoff_file_types", "", open, "Checksums are verified when bytes are read back; none is handed to the storage."),
    // Observation.
    mapped!("statistics", "", open, "db.statistics", Range::Text("an object"), None, |_| None, "What the database counts into; several may share one."),
    mapped!("listeners", "", open, "db.listeners", Range::Text("objects"), None, |_| None, "Receivers of the events of flushes, compactions, files, stalls and errors."),
    refused!("info_log", "", open, "What happens is logged to the file LOG; a listener can take it elsewhere."),
    uses!("db_log_dir", "", open, db.info_log.dir, Range::Text("a folder"), "Where LOG is kept; empty: with the database."),
    uses!("info_log_level", "INFO_LEVEL", open, db.info_log.level, Range::Text("DEBUG_LEVEL, INFO_LEVEL, WARN_LEVEL, ERROR_LEVEL, FATAL_LEVEL, HEADER_LEVEL"), "Less serious lines are left out of LOG."),
    uses!("max_log_file_size", "0", open, db.info_log.file_bytes_max, Range::Whole(0, u64::MAX, "bytes"), "LOG is replaced at this size; 0: never. 16 MiB unless set."),
    uses!("log_file_time_to_roll", "0", open, db.info_log.file_secs_max, Range::Whole(0, u64::MAX, "seconds"), "LOG is replaced at this age; 0: never."),
    uses!("keep_log_file_num", "1000", open, db.info_log.files_kept, Range::Whole(1, 1 << 30, "files"), "How many logs are kept, LOG included. 10 unless set."),
    uses!("stats_dump_period_sec", "600", live, db.stats_dump_secs, Range::Whole(0, (1 << 32) - 1, "seconds"), "Every so often `rocksdb.stats` of all families and the statistics are written to LOG. 0: never."),
    ignored!("stats_persist_period_sec", "600", live, "No history of statistics is kept; stats_dump_period_sec writes them to LOG, and they are read at any time."),
    ignored!("stats_history_buffer_size", "1048576", live, "No history of statistics is kept."),
    unserved!("persist_stats_to_disk", "false", open, "No history of statistics is kept."),
    ignored!("enable_thread_tracking", "false", open, "Properties report the running background work."),
    // Second processes.
    ignored!("follower_refresh_catchup_period_ms", "10000", open, "Only for followers, which are not there."),
    ignored!("follower_catchup_retry_count", "10", open, "Only for followers, which are not there."),
    ignored!("follower_catchup_retry_wait_ms", "100", open, "Only for followers, which are not there."),
    // Reading.
    ignored!("prefix_seek_opt_in_only", "false", open, "Every scan is in the total order of the keys, whatever the prefix."),
    // Names that RocksDB takes and drops.
    ignored!("allow_os_buffer", "", live, "RocksDB has dropped the option."),
    ignored!("use_direct_writes", "", open, "RocksDB has dropped the option."),
    ignored!("disableDataSync", "", open, "RocksDB has dropped the option."),
    ignored!("disable_data_sync", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_allow_mempurge", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_mempurge_policy", "", open, "RocksDB has dropped the option."),
    ignored!("experimental_mempurge_threshold", "", open, "As an option of the database RocksDB has dropped it."),
    ignored!("skip_log_error_on_recovery", "", open, "RocksDB has dropped the option."),
    ignored!("preserve_deletes", "", open, "RocksDB has dropped the option."),
    ignored!("seq_per_batch", "", open, "RocksDB has dropped the option."),
    ignored!("concurrent_prepare", "", open, "RocksDB has dropped the option."),
];

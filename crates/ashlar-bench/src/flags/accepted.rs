//! Flags of db_bench that scripts pass and that have nothing to act on here.

/// Taken with a line that says why they do nothing.
pub(super) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("advise_random_on_open", "reads are hinted by how they happen"),
    ("allow_concurrent_memtable_write", "memtables always take several writers"),
    ("async_io", "reads are synchronous"),
    ("bytes_per_sync", "the operating system writes back by itself"),
    ("cache_high_pri_pool_ratio", "the cache has no pools"),
    ("cache_index_and_filter_blocks", "indexes and filters stay with their open tables"),
    ("cache_low_pri_pool_ratio", "the cache has no pools"),
    ("cache_numshardbits", "the cache is not sharded"),
    ("cache_type", "there is one kind of cache"),
    ("compaction_measure_io_stats", "compactions are always measured"),
    ("compaction_readahead_size", "compactions choose their read-ahead"),
    ("confidence_interval_only", "averages and medians are printed too"),
    ("delete_obsolete_files_period_micros", "obsolete files are deleted at once"),
    ("disable_seek_compaction", "seeks start no compactions"),
    ("enable_pipelined_write", "groups of writers share a log write already"),
    ("level_compaction_dynamic_level_bytes", "level sizes are always dynamic"),
    ("max_background_compactions", "max_background_jobs counts"),
    ("max_background_flushes", "max_background_jobs counts"),
    ("memtablerep", "there is one kind of memtable"),
    ("multiread_batched", "multireadrandom is batched"),
    ("perf_level", "nothing is printed by it"),
    ("pin_l0_filter_and_index_blocks_in_cache", "indexes and filters stay with their open tables"),
    ("progress_reports", "progress is shown on terminals only"),
    ("rate_limit_bg_reads", "background reads are not limited"),
    ("source_compaction_factor", "retired in RocksDB too"),
    ("table_cache_numshardbits", "the set of tables is not sharded"),
    ("thread_status_per_interval", "there is no thread status"),
    ("total_order_seek", "every seek is in total order"),
    ("use_fsync", "fdatasync makes the same durable"),
    ("verify_checksum", "checksums are always verified"),
    ("wal_bytes_per_sync", "the operating system writes back by itself"),
    ("wal_dir", "the log lies beside the tables"),
];

/// Taken with the value beside them, which means "off"; refused with any other: what they switch on is not there yet.
pub(super) const OFF_ONLY: &[(&str, &str)] = &[
    ("compaction_style", "0"),
    ("keys_per_prefix", "0"),
    ("mmap_read", "false"),
    ("mmap_write", "false"),
    ("num_column_families", "1"),
    ("num_multi_db", "0"),
    ("optimistic_transaction_db", "false"),
    ("prefix_size", "0"),
    ("transaction_db", "false"),
    ("use_direct_io_for_flush_and_compaction", "false"),
    ("use_direct_reads", "false"),
    ("use_tailing_iterator", "false"),
];

/// Whether `text` says the same as `off`.
pub(super) fn is_off(off: &str, text: &str) -> bool {
    match off {
        "false" => matches!(text.to_ascii_lowercase().as_str(), "0" | "f" | "false" | "n" | "no"),
        number => text.trim() == number,
    }
}

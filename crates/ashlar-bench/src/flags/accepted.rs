//! Flags of db_bench that scripts pass and that have nothing to act on here.

/// Taken with a warning: they tune what this engine decides itself, or only how the tool talks.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "advise_random_on_open",
    "allow_concurrent_memtable_write",
    "bytes_per_sync",
    "cache_high_pri_pool_ratio",
    "cache_numshardbits",
    "cache_type",
    "confidence_interval_only",
    "delete_obsolete_files_period_micros",
    "disable_seek_compaction",
    "enable_pipelined_write",
    "level_compaction_dynamic_level_bytes",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",
    "memtablerep",
    "open_files",
    "perf_level",
    "progress_reports",
    "rate_limit_bg_reads",
    "source_compaction_factor",
    "stats_per_interval",
    "subcompactions",
    "table_cache_numshardbits",
    "total_order_seek",
    "use_fsync",
    "verify_checksum",
    "wal_bytes_per_sync",
];

/// Taken with the value beside them, which means "off"; refused with any other: what they switch on is not there yet.
pub(super) const OFF_ONLY: &[(&str, &str)] = &[
    ("benchmark_read_rate_limit", "0"),
    ("compaction_style", "0"),
    ("enable_blob_files", "false"),
    ("keys_per_prefix", "0"),
    ("mmap_read", "false"),
    ("mmap_write", "false"),
    ("num_column_families", "1"),
    ("num_multi_db", "0"),
    ("optimistic_transaction_db", "false"),
    ("prefix_size", "0"),
    ("report_interval_seconds", "0"),
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

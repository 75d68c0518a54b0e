//! Flags of db_bench that scripts pass and that have no effect here. Flags for options are in `options`.

/// Accepted with a line that says why they have no effect.
pub(super) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("async_io", "reads are synchronous"),
    ("auto_prefix_mode", "filters hold whole keys"),
    ("blob_cache_numshardbits", "values of blob files are not kept in memory"),
    ("blob_cache_size", "values of blob files are not kept in memory"),
    ("cache_high_pri_pool_ratio", "the cache has no pools"),
    ("cache_low_pri_pool_ratio", "the cache has no pools"),
    ("cache_numshardbits", "the cache is not sharded"),
    ("cache_remove_scan_count_limit", "retired in RocksDB too"),
    ("cache_type", "there is one kind of cache"),
    ("compaction_measure_io_stats", "compactions are always measured"),
    ("compaction_pri", "the picker always weighs overlap and tombstones"),
    ("comparisons", "comparisons are not counted"),
    ("deletepercent", "no benchmark here mixes in deletes"),
    ("disable_data_sync", "files are always synced"),
    ("disable_seek_compaction", "seeks start no compactions"),
    ("memtablerep", "there is one kind of memtable"),
    ("multiread_batched", "multireadrandom is batched"),
    ("num_deletion_threads", "no benchmark here has such threads"),
    ("num_hot_column_families", "all families are used alike"),
    ("prepopulate_blob_cache", "values of blob files are not kept in memory"),
    ("progress_reports", "progress is shown on terminals only"),
    ("rate_limit_bg_reads", "background reads are not limited"),
    ("rate_limiter_refill_period_us", "the limiter counts bytes, not periods"),
    ("readahead_size", "scans choose their read-ahead"),
    ("report_file_operations", "files are not counted by call"),
    ("reuse_logs", "each open begins a new log"),
    ("source_compaction_factor", "retired in RocksDB too"),
    ("thread_status_per_interval", "there is no thread status"),
    ("total_order_seek", "every seek is in total order"),
    ("transaction_set_snapshot", "every transaction has a snapshot"),
    ("transaction_sleep", "no effect in RocksDB either"),
    ("use_blob_cache", "values of blob files are not kept in memory"),
    ("use_shared_block_and_blob_cache", "values of blob files are not kept in memory"),
    ("verify_checksum", "checksums are always verified"),
];

/// Accepted with this value, which means "off", and refused with any other: AshlarDB lacks the feature.
pub(super) const OFF_ONLY: &[(&str, &str)] = &[
    ("key_prefix", "0"),
    ("num_multi_db", "0"),
    ("prefix_same_as_start", "false"),
    ("row_cache_size", "0"),
    ("use_blob_db", "false"),
    ("use_secondary_db", "false"),
    ("use_tailing_iterator", "false"),
    ("user_timestamp_size", "0"),
];

/// Whether `text` has the same meaning as `off`.
pub(super) fn is_off(off: &str, text: &str) -> bool {
    match off {
        "false" => matches!(text.to_ascii_lowercase().as_str(), "0" | "f" | "false" | "n" | "no"),
        number => text.trim() == number,
    }
}

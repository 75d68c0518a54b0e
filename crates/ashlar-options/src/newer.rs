//! Names, struct members and values in OPTIONS files of newer releases that older releases do not know. A RocksDB
//! refuses a whole file for one of them, if the file claims to be of that RocksDB's release.

use super::FormatLevel;

/// Whether the release of a level lacks a name.
pub(super) fn lacks_name(level: FormatLevel, name: &str) -> bool {
    level <= FormatLevel::V7_8 && NEWER_THAN_7_8.contains(&name)
        || level <= FormatLevel::V6_29 && NEWER_THAN_6_29.contains(&name)
}

/// Whether the release of a level lacks a member of a struct.
pub(super) fn lacks_member(level: FormatLevel, member: &str) -> bool {
    level <= FormatLevel::V7_8 && MEMBERS_NEWER_THAN_7_8.contains(&member)
        || level <= FormatLevel::V6_29 && MEMBERS_NEWER_THAN_6_29.contains(&member)
}

/// Whether the release of a level has the name and lacks the value.
pub(super) fn lacks_value(level: FormatLevel, name: &str, value: &str) -> bool {
    level <= FormatLevel::V7_8 && VALUES_NEWER_THAN_7_8.contains(&(name, value))
        || level <= FormatLevel::V6_29 && VALUES_NEWER_THAN_6_29.contains(&(name, value))
}

/// Names since RocksDB 8. A test holds the list against files of 7.8.3 and 11.8.1.
#[rustfmt::skip]
const NEWER_THAN_7_8: &[&str] = &[
    "async_wal_precreate", "background_close_inactive_wals", "blob_compression_opts", "blob_direct_write_partitions",
    "block_protection_bytes_per_key", "bottommost_file_compaction_delay", "cf_allow_ingest_behind",
    "compaction_verify_record_count", "compression_manager", "decouple_partitioned_filters", "default_temperature",
    "default_write_temperature", "disallow_memtable_writes", "enable_blob_direct_write",
    "enforce_write_buffer_manager_during_recovery", "fail_if_no_udi_on_open", "fast_sst_open",
    "follower_catchup_retry_count", "follower_catchup_retry_wait_ms", "follower_refresh_catchup_period_ms",
    "index_block_search_type", "max_compaction_trigger_wakeup_seconds", "max_manifest_space_amp_pct",
    "memtable_avg_op_scan_flush_trigger", "memtable_batch_lookup_optimization", "memtable_max_range_deletions",
    "memtable_op_scan_flush_trigger", "memtable_verify_per_key_checksum_on_seek", "metadata_write_temperature",
    "min_tombstones_for_range_conversion", "open_files_async", "optimize_manifest_for_recovery",
    "paranoid_memory_checks", "persist_user_defined_timestamps", "prefix_seek_opt_in_only", "read_io_executor_threads",
    "read_triggered_compaction_threshold", "reuse_manifest_on_open", "separate_key_value_in_data_block",
    "strict_max_successive_merges", "super_block_alignment_size", "super_block_alignment_space_overhead_ratio",
    "target_file_size_is_upper_bound", "track_and_verify_wals", "uncache_aggressiveness", "uniform_cv_threshold",
    "use_delta_encoding", "use_direct_io_for_compaction_reads", "use_udi_as_primary_index",
    "user_defined_index_factory", "verify_manifest_content_on_close", "verify_output_flags", "wal_write_temperature",
    "write_identity_file",
];

/// Members of structs since RocksDB 8. A test holds the list against files of 7.8.3 and 11.8.1.
const MEMBERS_NEWER_THAN_7_8: &[&str] = &[
    "allow_trivial_copy_when_change_temperature",
    "checksum",
    "file_temperature_age_thresholds",
    "max_compressed_bytes_per_kb",
    "max_data_files_size",
    "max_read_amp",
    "reduce_file_locking",
    "trivial_copy_buffer_size",
    "use_kv_ratio_compaction",
];

/// Words that enumerations have since RocksDB 8.
const VALUES_NEWER_THAN_7_8: &[(&str, &str)] = &[
    ("last_level_temperature", "kCool"),
    ("last_level_temperature", "kIce"),
    ("lowest_used_cache_tier", "kVolatileCompressedTier"),
];

/// Names since RocksDB 7.
const NEWER_THAN_6_29: &[&str] = &[
    "blob_file_starting_level",
    "detect_filter_construct_corruption",
    "enforce_single_del_contracts",
    "ignore_max_compaction_bytes_for_input",
    "initial_auto_readahead_size",
    "last_level_temperature",
    "level_compaction_dynamic_file_size",
    "memtable_protection_bytes_per_key",
    "num_file_reads_for_auto_readahead",
    "preclude_last_level_data_seconds",
    "prepopulate_blob_cache",
    "preserve_internal_time_seconds",
    "verify_sst_unique_id_in_manifest",
    "wal_compression",
];

/// Members of structs since RocksDB 7.
const MEMBERS_NEWER_THAN_6_29: &[&str] = &["use_zstd_dict_trainer"];

/// Words that enumerations have since RocksDB 7.
const VALUES_NEWER_THAN_6_29: &[(&str, &str)] = &[("compaction_pri", "kRoundRobin")];

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_format::options_file::{OptionsFile, split_object};
    use std::collections::BTreeSet;

    const OLD: &str = include_str!("../tests/golden/OPTIONS-7.8.3");
    const NEW: &str = include_str!("../tests/golden/OPTIONS-11.8.1");

    fn entries(text: &str) -> Vec<(String, String)> {
        OptionsFile::parse(text).unwrap().sections.into_iter().flat_map(|s| s.entries).collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_list_of_newer_names_is_what_the_files_of_two_releases_differ_by() {
        let names = |text| entries(text).into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>();
        assert_eq!(&names(NEW) - &names(OLD), set(NEWER_THAN_7_8));
        assert_eq!(&set(NEWER_THAN_6_29) - &names(OLD), BTreeSet::new());
    }

    #[test]
    fn the_list_of_newer_members_is_what_the_structs_of_two_releases_differ_by() {
        let members = |text| -> BTreeSet<String> {
            let objects = entries(text).into_iter().filter(|(_, value)| value.starts_with('{'));
            objects.flat_map(|(_, value)| split_object(&value).unwrap()).map(|(member, _)| member).collect()
        };
        assert_eq!(&members(NEW) - &members(OLD), set(MEMBERS_NEWER_THAN_7_8));
        assert_eq!(&set(MEMBERS_NEWER_THAN_6_29) - &members(OLD), BTreeSet::new());
    }
}

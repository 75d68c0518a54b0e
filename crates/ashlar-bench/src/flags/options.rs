//! Flags of db_bench that set one of RocksDB's options. The engine's table of options decides about a value: it is set, it
//! has no effect for a stated reason, or it is refused.

use super::value::Value;
use ashlar_options::{Notice, Options, option_names};

/// A flag and the option that it sets.
pub(super) struct OptionFlag {
    pub(super) name: &'static str,
    option: &'static str,
    takes: Takes,
}

/// The form of a flag's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The option's own.
    Value,
    /// `--name` is on, `--noname` off.
    Switch,
    /// A number; 0 leaves the option at its default.
    NotZero,
    /// A number of mebibytes; 0 leaves the option at its default.
    Mebibytes,
    /// The index of one of these words.
    Index(&'static [&'static str]),
}

impl OptionFlag {
    pub(super) fn is_switch(&self) -> bool {
        self.takes == Takes::Switch
    }
}

const fn number(name: &'static str) -> OptionFlag {
    OptionFlag { name, option: name, takes: Takes::Value }
}

const fn switch(name: &'static str) -> OptionFlag {
    OptionFlag { name, option: name, takes: Takes::Switch }
}

const fn taking(takes: Takes, name: &'static str, option: &'static str) -> OptionFlag {
    OptionFlag { name, option, takes }
}

const STYLES: &[&str] =
    &["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO", "kCompactionStyleNone"];
const STOP_STYLES: &[&str] = &["kCompactionStopStyleSimilarSize", "kCompactionStopStyleTotalSize"];

const fn onto(flag: OptionFlag, option: &'static str) -> OptionFlag {
    OptionFlag { option, ..flag }
}

pub(super) const OPTION_FLAGS: &[OptionFlag] = &[
    // Writing.
    number("db_write_buffer_size"),
    number("min_write_buffer_number_to_merge"),
    number("max_total_wal_size"),
    number("delayed_write_rate"),
    number("write_thread_max_yield_usec"),
    number("write_thread_slow_yield_usec"),
    switch("allow_concurrent_memtable_write"),
    switch("enable_pipelined_write"),
    switch("unordered_write"),
    switch("enable_write_thread_adaptive_yield"),
    switch("inplace_update_support"),
    switch("atomic_flush"),
    switch("avoid_flush_during_recovery"),
    switch("use_fsync"),
    number("bytes_per_sync"),
    number("wal_bytes_per_sync"),
    number("rate_limiter_bytes_per_sec"),
    switch("rate_limiter_auto_tuned"),
    onto(number("memtable_bloom_size_ratio"), "memtable_prefix_bloom_size_ratio"),
    switch("memtable_whole_key_filtering"),
    number("max_write_buffer_size_to_maintain"),
    number("max_successive_merges"),
    switch("avoid_flush_during_shutdown"),
    onto(number("wal_ttl_seconds"), "WAL_ttl_seconds"),
    onto(number("wal_size_limit_MB"), "WAL_size_limit_MB"),
    // The tree.
    number("max_background_compactions"),
    number("max_background_flushes"),
    number("target_file_size_multiplier"),
    number("max_compaction_bytes"),
    number("compaction_readahead_size"),
    switch("level_compaction_dynamic_level_bytes"),
    number("periodic_compaction_seconds"),
    onto(number("ttl_seconds"), "ttl"),
    taking(Takes::Index(STYLES), "compaction_style", "compaction_style"),
    taking(Takes::NotZero, "universal_size_ratio", "compaction_options_universal.size_ratio"),
    taking(Takes::NotZero, "universal_min_merge_width", "compaction_options_universal.min_merge_width"),
    taking(Takes::NotZero, "universal_max_merge_width", "compaction_options_universal.max_merge_width"),
    taking(
        Takes::NotZero,
        "universal_max_size_amplification_percent",
        "compaction_options_universal.max_size_amplification_percent",
    ),
    taking(Takes::Index(STOP_STYLES), "universal_stop_style", "compaction_options_universal.stop_style"),
    onto(switch("universal_allow_trivial_move"), "compaction_options_universal.allow_trivial_move"),
    onto(
        number("universal_compression_size_percent"),
        "compaction_options_universal.compression_size_percent",
    ),
    onto(number("universal_max_read_amp"), "compaction_options_universal.max_read_amp"),
    onto(switch("universal_incremental"), "compaction_options_universal.incremental"),
    onto(switch("universal_reduce_file_locking"), "compaction_options_universal.reduce_file_locking"),
    taking(
        Takes::Mebibytes,
        "fifo_compaction_max_table_files_size_mb",
        "compaction_options_fifo.max_table_files_size",
    ),
    taking(
        Takes::Mebibytes,
        "fifo_compaction_max_data_files_size_mb",
        "compaction_options_fifo.max_data_files_size",
    ),
    onto(switch("fifo_compaction_allow_compaction"), "compaction_options_fifo.allow_compaction"),
    onto(
        switch("fifo_compaction_use_kv_ratio_compaction"),
        "compaction_options_fifo.use_kv_ratio_compaction",
    ),
    onto(number("fifo_age_for_warm"), "compaction_options_fifo.age_for_warm"),
    taking(Takes::NotZero, "fifo_compaction_ttl", "ttl"),
    number("preclude_last_level_data_seconds"),
    number("preserve_internal_time_seconds"),
    number("delete_obsolete_files_period_micros"),
    switch("report_bg_io_stats"),
    switch("paranoid_checks"),
    switch("force_consistency_checks"),
    // Tables.
    number("table_cache_numshardbits"),
    onto(switch("cache_index_and_filter_blocks"), "block_based_table_factory.cache_index_and_filter_blocks"),
    onto(
        switch("pin_l0_filter_and_index_blocks_in_cache"),
        "block_based_table_factory.pin_l0_filter_and_index_blocks_in_cache",
    ),
    onto(switch("whole_key_filtering"), "block_based_table_factory.whole_key_filtering"),
    onto(switch("partition_filters"), "block_based_table_factory.partition_filters"),
    onto(number("metadata_block_size"), "block_based_table_factory.metadata_block_size"),
    onto(number("index_block_restart_interval"), "block_based_table_factory.index_block_restart_interval"),
    onto(number("read_amp_bytes_per_bit"), "block_based_table_factory.read_amp_bytes_per_bit"),
    onto(switch("enable_index_compression"), "block_based_table_factory.enable_index_compression"),
    onto(switch("block_align"), "block_based_table_factory.block_align"),
    onto(
        switch("pin_top_level_index_and_filter"),
        "block_based_table_factory.pin_top_level_index_and_filter",
    ),
    onto(switch("optimize_filters_for_memory"), "block_based_table_factory.optimize_filters_for_memory"),
    onto(switch("verify_compression"), "block_based_table_factory.verify_compression"),
    switch("optimize_filters_for_hits"),
    onto(number("compression_max_dict_buffer_bytes"), "compression_opts.max_dict_buffer_bytes"),
    onto(switch("compression_use_zstd_dict_trainer"), "compression_opts.use_zstd_dict_trainer"),
    onto(number("compression_parallel_threads"), "compression_opts.parallel_threads"),
    // Blobs.
    number("blob_file_starting_level"),
    number("blob_compaction_readahead_size"),
    // Files.
    switch("advise_random_on_open"),
    onto(switch("mmap_read"), "allow_mmap_reads"),
    onto(switch("mmap_write"), "allow_mmap_writes"),
    switch("use_direct_reads"),
    switch("use_direct_io_for_flush_and_compaction"),
    onto(number("file_opening_threads"), "max_file_opening_threads"),
    number("writable_file_max_buffer_size"),
    number("log_readahead_size"),
    // Statistics.
    number("stats_dump_period_sec"),
    number("stats_persist_period_sec"),
    number("stats_history_buffer_size"),
    switch("persist_stats_to_disk"),
    switch("dump_malloc_stats"),
];

/// Adds a flag's value to the option string `options`. Returns the reason if the value has no effect and is not RocksDB's
/// default.
///
/// # Errors
/// The error of the table for the value.
pub(super) fn take(options: &mut String, flag: &OptionFlag, value: &str) -> Result<Option<String>, String> {
    let Some(value) = option_value(flag.takes, value)? else { return Ok(None) };
    let value = value.as_str();
    let taken = Options::default().set(flag.option, value).map_err(|e| e.to_string())?;
    options.push_str(&format!("{}={value};", flag.option));
    let name = flag.option.rsplit('.').next().unwrap_or(flag.option);
    let is_default =
        |notice: &Notice| option_names().iter().any(|o| o.name == name && o.rocksdb_default == notice.value);
    Ok(taken.filter(|notice| !is_default(notice)).map(|notice| notice.why))
}

/// The value of the option; `None`: it stays at its default.
fn option_value(takes: Takes, value: &str) -> Result<Option<String>, String> {
    let number = || <u64 as Value>::parse(value);
    Ok(match takes {
        Takes::Value => Some(value.to_owned()),
        Takes::Switch => Some(<bool as Value>::parse(value)?.to_string()),
        Takes::NotZero => Some(number()?).filter(|n| *n != 0).map(|n| n.to_string()),
        Takes::Mebibytes => {
            Some(number()?).filter(|n| *n != 0).map(|n| n.saturating_mul(1 << 20).to_string())
        }
        Takes::Index(words) => {
            let at = usize::try_from(number()?).unwrap_or(usize::MAX);
            let word = words.get(at).ok_or_else(|| format!("{value} is not 0 to {}", words.len() - 1))?;
            Some((*word).to_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every flag has an option behind it, whatever it says to the value.
    #[test]
    fn every_option_exists() {
        for flag in OPTION_FLAGS {
            let value = if flag.is_switch() { "false" } else { "1" };
            if let Err(said) = take(&mut String::new(), flag, value) {
                assert!(said.starts_with("Not implemented: "), "{}: {said}", flag.name);
            }
        }
    }
}

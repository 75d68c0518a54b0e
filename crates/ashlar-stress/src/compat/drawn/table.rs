//! The table of RocksDB's options: every name that it writes into an OPTIONS file of its own, and values for each.

use super::options_file::OptionsFile;
use super::plan::Setting;
use ashlar_testkit::Rng;

/// Every name with its default. Those of groups have a dot: `table.block_size`, `compression_opts.level`.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) db: Vec<(String, String)>,
    pub(super) family: Vec<(String, String)>,
}

/// Names that an OPTIONS file leaves out while they have no value.
const UNWRITTEN: [&str; 3] = ["wal_dir", "db_log_dir", "daily_offpeak_time_utc"];
/// What the rig decides by itself, or what names an object that no string can make. RocksDB with `best_efforts_recovery` leaves
/// its logs unread and gives their sequences out again: what such a directory holds has no one answer.
const NOT_DRAWN: [&str; 6] = [
    "best_efforts_recovery",
    "create_if_missing",
    "create_missing_column_families",
    "error_if_exists",
    "wal_filter",
    "db_host_id",
];

const CODECS: &[&str] = &[
    "kNoCompression",
    "kSnappyCompression",
    "kZlibCompression",
    "kBZip2Compression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kXpressCompression",
    "kZSTD",
];
const TEMPERATURES: &[&str] = &["kUnknown", "kHot", "kWarm", "kCool", "kCold", "kIce"];
const PREFIXES: &[&str] =
    &["nullptr", "rocksdb.FixedPrefix.3", "rocksdb.CappedPrefix.5", "rocksdb.Noop", "rocksdb.FixedPrefix.40"];
const PINNING: &[&str] = &["kFallback", "kNone", "kFlushedAndSimilar", "kAll"];
const SECONDS: &[&str] = &["0", "86400", "777777", "2592000", "18446744073709551614"];
const BYTES: &[&str] = &["0", "1", "4096", "65536", "1048576", "67108864", "1073741824"];

/// Values of names that have a type of their own, or bounds that must be kept for the sake of the machine or the model: a
/// FIFO family that is full, or a value that is too old, would be dropped at any time. No `sortlist`: our operands are no lists,
/// which RocksDB takes for a mistake of the program and aborts.
const VALUES: &[(&str, &[&str])] = &[
    ("compression", CODECS),
    ("bottommost_compression", CODECS),
    ("blob_compression_type", CODECS),
    ("wal_compression", &["kNoCompression", "kZSTD", "kSnappyCompression"]),
    ("compression_manager", &["nullptr", "BuiltinV2"]),
    ("default_temperature", TEMPERATURES),
    ("last_level_temperature", TEMPERATURES),
    ("default_write_temperature", TEMPERATURES),
    ("metadata_write_temperature", TEMPERATURES),
    ("wal_write_temperature", TEMPERATURES),
    ("prefix_extractor", PREFIXES),
    ("memtable_insert_with_hint_prefix_extractor", PREFIXES),
    (
        "wal_recovery_mode",
        &[
            "kTolerateCorruptedTailRecords",
            "kAbsoluteConsistency",
            "kPointInTimeRecovery",
            "kSkipAnyCorruptedRecords",
        ],
    ),
    ("info_log_level", &["DEBUG_LEVEL", "INFO_LEVEL", "WARN_LEVEL", "FATAL_LEVEL", "HEADER_LEVEL"]),
    ("lowest_used_cache_tier", &["kNonVolatileBlockTier", "kVolatileTier"]),
    ("file_checksum_gen_factory", &["nullptr", "FileChecksumGenCrc32cFactory"]),
    ("daily_offpeak_time_utc", &["23:30-03:15", "00:00-23:59"]),
    ("wal_dir", &["@/wal", "@/db/wal"]),
    ("db_log_dir", &["@/log"]),
    (
        "compaction_style",
        &[
            "kCompactionStyleLevel",
            "kCompactionStyleUniversal",
            "kCompactionStyleFIFO",
            "kCompactionStyleNone",
        ],
    ),
    (
        "compaction_pri",
        &[
            "kByCompensatedSize",
            "kOldestLargestSeqFirst",
            "kOldestSmallestSeqFirst",
            "kMinOverlappingRatio",
            "kRoundRobin",
        ],
    ),
    ("comparator", &["leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator"]),
    (
        "merge_operator",
        &[
            "uint64add",
            "max",
            "bytesxor",
            "stringappend",
            "put",
            "{id=StringAppendOperator;delimiter=--}",
            "{id=StringAppendTESTOperator;delimiter=--}",
            "{id=StringAppendOperator;delimiter={;}}",
            "{id=StringAppendOperator;delimiter={ }}",
            "{id=StringAppendOperator;delimiter={}}",
        ],
    ),
    ("compaction_filter", &["nullptr", "RemoveEmptyValueCompactionFilter"]),
    ("compaction_filter_factory", &["nullptr"]),
    ("sst_partitioner_factory", &["nullptr", "{id=SstPartitionerFixedPrefixFactory;length=2}"]),
    (
        "memtable_factory",
        &["SkipListFactory", "skip_list:4", "vector", "prefix_hash:1000", "hash_linkedlist:1000"],
    ),
    ("table_factory", &["BlockBasedTable", "PlainTable", "CuckooTable"]),
    ("max_bytes_for_level_multiplier_additional", &["1:2:3:1:1:1:1", "2:2:2", ""]),
    ("prepopulate_blob_cache", &["kDisable", "kFlushOnly"]),
    (
        "compaction_options_universal.stop_style",
        &["kCompactionStopStyleTotalSize", "kCompactionStopStyleSimilarSize"],
    ),
    ("compaction_options_fifo.max_table_files_size", &["1073741824", "1099511627776"]),
    ("compaction_options_fifo.max_data_files_size", &["0", "1073741824"]),
    ("compaction_options_fifo.file_temperature_age_thresholds", &["", "{{temperature=kCold;age=3600}}"]),
    ("ttl", SECONDS),
    ("periodic_compaction_seconds", SECONDS),
    ("preclude_last_level_data_seconds", &["0", "1", "3600", "86400"]),
    ("preserve_internal_time_seconds", &["0", "1", "3600", "86400"]),
    ("num_levels", &["1", "2", "3", "4", "5", "6", "8", "12", "20"]),
    ("recycle_log_file_num", &["1", "2", "4", "100"]),
    ("write_buffer_size", &["65536", "131072", "1234567", "4194304", "67108864"]),
    ("db_write_buffer_size", &["0", "131072", "67108864"]),
    ("arena_block_size", &["0", "4096", "65536", "1048576"]),
    ("memtable_huge_page_size", &["0", "2097152"]),
    ("max_write_buffer_number", &["1", "2", "3", "10"]),
    ("min_write_buffer_number_to_merge", &["1", "2", "3"]),
    ("max_open_files", &["-1", "0", "10", "100", "1000"]),
    ("table_cache_numshardbits", &["0", "4", "6", "19"]),
    ("max_background_jobs", &["0", "1", "2", "8"]),
    ("max_background_flushes", &["-1", "0", "1", "4"]),
    ("max_background_compactions", &["-1", "0", "1", "4"]),
    ("max_subcompactions", &["0", "1", "2", "4"]),
    ("max_file_opening_threads", &["0", "1", "16"]),
    ("read_io_executor_threads", &["0", "1", "4"]),
    ("blob_direct_write_partitions", &["0", "1", "2", "4"]),
    ("inplace_update_num_locks", &["1", "10000"]),
    ("manifest_preallocation_size", &["0", "1", "4096", "4194304"]),
    ("delayed_write_rate", &["0", "1048576", "16777216"]),
    ("hard_pending_compaction_bytes_limit", &["0", "67108864", "274877906944"]),
    ("soft_pending_compaction_bytes_limit", &["0", "1048576", "68719476736"]),
    ("level0_slowdown_writes_trigger", &["-1", "0", "8", "20", "100"]),
    ("level0_stop_writes_trigger", &["12", "36", "100"]),
    ("level0_file_num_compaction_trigger", &["1", "2", "4", "10"]),
    ("stats_dump_period_sec", &["0", "1", "600"]),
    ("stats_persist_period_sec", &["0", "1", "600"]),
    ("write_thread_max_yield_usec", &["0", "1", "100"]),
    ("write_thread_slow_yield_usec", &["0", "1", "3"]),
    ("bloom_locality", &["0", "1"]),
    ("block_protection_bytes_per_key", &["0", "1", "2", "4", "8", "3"]),
    ("memtable_protection_bytes_per_key", &["0", "1", "2", "4", "8", "3"]),
    ("max_sequential_skip_in_iterations", &["0", "1", "8"]),
    ("max_bytes_for_level_multiplier", &["1", "2", "10", "100"]),
    ("target_file_size_multiplier", &["1", "2", "10"]),
    ("target_file_size_base", &["1", "4096", "65536", "2097152"]),
    ("max_bytes_for_level_base", &["1", "131072", "1048576", "268435456"]),
    ("verify_output_flags", &["0", "1", "7"]),
    (
        "table.filter_policy",
        &[
            "nullptr",
            "bloomfilter:10:false",
            "bloomfilter:0.5",
            "ribbonfilter:10:2",
            "ribbonfilter:20",
            "rocksdb.BuiltinBloomFilter",
            "bloomfilter:100",
        ],
    ),
    (
        "table.index_type",
        &["kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"],
    ),
    ("table.checksum", &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    ("table.data_block_index_type", &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]),
    ("table.index_block_search_type", &["kBinary", "kInterpolation", "kAuto"]),
    ("table.index_shortening", &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"]),
    ("table.prepopulate_block_cache", &["kDisable", "kFlushOnly"]),
    ("table.user_defined_index_factory", &["nullptr", "trie_index"]),
    (
        "table.flush_block_policy_factory",
        &["FlushBlockBySizePolicyFactory", "FlushBlockEveryKeyPolicyFactory"],
    ),
    ("table.format_version", &["0", "1", "2", "3", "4", "5", "6", "7", "8"]),
    ("table.block_size", &["0", "1", "256", "1024", "65536", "1048576"]),
    ("table.metadata_block_size", &["0", "1", "256", "4096", "65536"]),
    ("table.block_restart_interval", &["0", "1", "3", "16", "100"]),
    ("table.index_block_restart_interval", &["0", "1", "4", "16"]),
    ("table.block_size_deviation", &["0", "10", "100", "101"]),
    ("table.read_amp_bytes_per_bit", &["0", "1", "8", "32"]),
    ("table.data_block_hash_table_util_ratio", &["0", "0.5", "0.75", "1", "2"]),
    ("table.uniform_cv_threshold", &["-1", "0", "0.5", "10"]),
    ("table.super_block_alignment_size", &["0", "4096", "65536", "1000"]),
];

/// At, below and above what is usual.
const NUMBERS: &[&str] = &["0", "1", "2", "7", "100", "-1", "2147483647", "18446744073709551615"];
const FLOATS: &[&str] = &["0", "0.1", "0.25", "0.5", "1", "2", "-1"];
/// Numbers of these are amounts of memory, threads or time: kept small.
const MODEST: [&str; 13] = [
    "thread",
    "parallel",
    "dict",
    "readahead",
    "preallocation",
    "buffer",
    "partition",
    "retry",
    "wait",
    "period",
    "sample",
    "delay",
    "interval",
];

impl Table {
    pub(super) fn of(file: &OptionsFile) -> Table {
        let mut table = Table::default();
        let section = |title: &str| file.0.get(title).cloned().unwrap_or_default();
        for (name, default) in section("DBOptions") {
            add(&mut table.db, &name, &default);
        }
        for name in UNWRITTEN
            .iter()
            .filter(|name| !table.db.iter().any(|(known, _)| known == *name))
            .collect::<Vec<_>>()
        {
            table.db.push(((*name).to_owned(), String::new()));
        }
        for (name, default) in section("CFOptions \"default\"") {
            add(&mut table.family, &name, &default);
        }
        for (name, default) in section("TableOptions/BlockBasedTable \"default\"") {
            add(&mut table.family, &format!("table.{name}"), &default);
        }
        table
    }

    /// Some settings out of `names`, about `wanted`.
    pub(super) fn draw(names: &[(String, String)], wanted: usize, rng: &mut Rng) -> Vec<Setting> {
        let mut drawn: Vec<Setting> = Vec::new();
        for _ in 0..wanted {
            let Some((name, default)) = rng.pick(names) else { break };
            if drawn.iter().all(|setting| setting.name != *name) {
                drawn.push(Setting::new(name, &value(name, default, rng)));
            }
        }
        drawn
    }
}

/// A name; those in braces one by one.
fn add(names: &mut Vec<(String, String)>, name: &str, default: &str) {
    let inner = default.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inner.filter(|inner| !inner.contains('{') && name.contains("opt")) {
        Some(inner) if !name.starts_with("table.") => {
            for (inner, default) in inner.split(';').filter_map(|part| part.split_once('=')) {
                names.push((format!("{name}.{inner}"), default.to_owned()));
            }
        }
        _ if NOT_DRAWN.contains(&name) => {}
        _ => names.push((name.to_owned(), default.to_owned())),
    }
}

/// A value for a name: of its own list, or of the kind that its default is of.
pub(super) fn value(name: &str, default: &str, rng: &mut Rng) -> String {
    let pick = |values: &[&str], rng: &mut Rng| rng.pick(values).copied().unwrap_or_default().to_owned();
    if let Some((_, values)) = VALUES.iter().find(|(own, _)| *own == name) {
        return pick(values, rng);
    }
    if default == "true" || default == "false" {
        let same = rng.percent(15);
        return ((default == "true") == same).to_string();
    }
    if name == "table.metadata_cache_options" {
        return format!(
            "{{unpartitioned_pinning={};partition_pinning={}}}",
            pick(PINNING, rng),
            pick(PINNING, rng)
        );
    }
    if let Ok(number) = default.parse::<i128>() {
        let modest = MODEST.iter().any(|word| name.contains(word));
        return match rng.below(4) {
            0 if !modest => pick(NUMBERS, rng),
            1 if !modest => (number * 2 + 1).to_string(),
            2 if number > 0 => (number / 2).to_string(),
            _ if name.contains("size") || name.contains("bytes") => pick(BYTES, rng),
            _ => rng.below(9).to_string(),
        };
    }
    if default.parse::<f64>().is_ok() {
        return pick(FLOATS, rng);
    }
    default.to_owned()
}

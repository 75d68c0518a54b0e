//! `ColumnFamilyOptions`.

use super::nested;
use super::object::{behind_id, id_of, member};
use super::row::{Range, Row, ignored, mapped, refused, unserved, uses};
use super::table::set_table_factory;
use super::value::Value;
use crate::{MOST_LEVELS, Options};
use ashlar_base::MergeOperator;
use ashlar_base::ext::merge_operator::{StringAppend, standard_operator};
use std::any::Any;
use std::sync::Arc;

const BYTES: &str = "bytes";
const TABLES: &str = "tables";
const COMPRESSIONS: Range = Range::Text(
    "kNoCompression, kSnappyCompression, kZlibCompression, kBZip2Compression, kLZ4Compression, kLZ4HCCompression, kZSTD",
);

/// Whether a built-in operator has a delimiter, which its name alone does not tell.
fn is_joined(name: &str) -> bool {
    matches!(name, "StringAppendOperator" | "StringAppendTESTOperator")
}

/// A built-in merge operator by its id, alone or with its members: `{id=StringAppendOperator;delimiter=,;}`.
pub(crate) fn operator_of(text: &str) -> Option<Arc<dyn MergeOperator>> {
    let operator = standard_operator(&id_of(text))?;
    match delimiter_of(text) {
        Some(delimiter) => {
            StringAppend::named(operator.name(), delimiter).map(|joined| Arc::new(joined) as _)
        }
        None => Some(operator),
    }
}

/// RocksDB prints a delimiter as it is, between `delimiter=` and the last semicolon: `;;` is one semicolon, ` ;` a space.
/// Option strings may put it into braces.
fn delimiter_of(text: &str) -> Option<String> {
    let Some((_, members)) = behind_id(text) else { return member(text, "delimiter") };
    let printed = members.strip_prefix("delimiter=")?;
    let printed = printed.strip_suffix(';').unwrap_or(printed);
    let inner = printed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    Some(inner.unwrap_or(printed).to_owned())
}

/// A built-in operator with a delimiter, as RocksDB prints it: without a delimiter by its name alone.
fn printed(operator: &dyn MergeOperator) -> Option<String> {
    let any: &dyn Any = operator;
    let joined = any.downcast_ref::<StringAppend>()?;
    match std::str::from_utf8(&joined.delimiter).ok()? {
        "" => Some(joined.name().to_owned()),
        delimiter => Some(format!("{{id={};delimiter={delimiter};}}", joined.name())),
    }
}

/// A merge operator as an OPTIONS file of `release` names it; `None` for none. A joining operator without a delimiter gets
/// one that is empty: RocksDB prints the delimiters of all others since 6.24.
pub(crate) fn stored_operator(text: String, release: &str) -> Option<String> {
    if matches!(text.as_str(), "" | "nullptr") {
        return None;
    }
    let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let prints = (numbers.next(), numbers.next()) >= (Some(6), Some(24));
    let name = (prints && !text.contains('=')).then(|| standard_operator(&text)).flatten();
    match name.filter(|operator| is_joined(operator.name())) {
        Some(operator) => Some(format!("{{id={};delimiter=;}}", operator.name())),
        None => Some(text),
    }
}

/// The operator that stored text names; `None` also where the text lacks the delimiter.
pub(crate) fn stored_built_in(text: &str) -> Option<Arc<dyn MergeOperator>> {
    operator_of(text).filter(|operator| !is_joined(operator.name()) || text.contains('='))
}

fn set_merge_operator(options: &mut Options, text: &str) -> Result<(), String> {
    let operator = match text.trim() {
        "nullptr" | "" => None,
        text => Some(operator_of(text).ok_or_else(|| {
            format!("{:?} is not built in; hand the operator over when you open the family", id_of(text))
        })?),
    };
    (options.family.merge_operator, options.family.stored_merge_operator) = (operator, None);
    Ok(())
}

/// The stored text, if it still names the operator.
fn show_merge_operator(options: &Options) -> String {
    if let Some(text) = options.family.merge_operator.as_deref().and_then(printed) {
        return text;
    }
    let name = options.family.merge_operator_name();
    let stored = options.family.stored_merge_operator.clone();
    let same = |stored: &String| {
        operator_of(stored).map(|o| o.name().to_owned()).or_else(|| Some(id_of(stored))) == name
    };
    stored.filter(same).or(name).unwrap_or_else(|| "nullptr".to_owned())
}

#[rustfmt::skip]
pub(super) const FAMILY: &[Row<Options>] = &[
    // Keys and values.
    uses!("comparator", "leveldb.BytewiseComparator", open, family.order, Range::Text("the name of a built-in comparator"), "The order of the keys. The MANIFEST remembers its name; another one is refused at open."),
    mapped!("merge_operator", "nullptr", open, "family.merge_operator", Range::Text("nullptr, or the id of a built-in operator"), Some(set_merge_operator), |o| Some(show_merge_operator(o)), "What merge operands are folded with."),
    refused!("compaction_filter", "nullptr", open, "A filter that drops or changes entries in compactions is not served."),
    refused!("compaction_filter_factory", "nullptr", open, "A filter that drops or changes entries in compactions is not served."),
    unserved!("prefix_extractor", "nullptr", live, "Scans are in the total order of the keys and filters hold whole keys: answers are right without it, scans of a prefix skip no table by it."),
    unserved!("persist_user_defined_timestamps", "true", open, "Families whose keys have timestamps are not opened."),
    // Memtables.
    uses!("write_buffer_size", "67108864", live, family.write_buffer_bytes, Range::Whole(64 << 10, 4 << 30, BYTES), "A memtable of this size is sealed and flushed."),
    uses!("max_write_buffer_number", "2", live, family.max_write_buffers, Range::Whole(2, 64, "memtables"), "Memtables of the family in memory at most, the one that takes writes included; writers wait beyond."),
    ignored!("min_write_buffer_number_to_merge", "1", open, "A flush takes whatever sealed memtables there are."),
    ignored!("max_write_buffer_number_to_maintain", "0", open, "Flushed memtables are not kept: no transactions look into them. RocksDB has dropped the option."),
    ignored!("max_write_buffer_size_to_maintain", "0", open, "Flushed memtables are not kept: no transactions look into them."),
    unserved!("memtable_factory", "SkipListFactory", open, "There is one kind of memtable, a skiplist."),
    ignored!("memtable", "", open, "Another name of memtable_factory."),
    ignored!("arena_block_size", "1048576", live, "The memtable's arena grows in steps of its own."),
    ignored!("memtable_huge_page_size", "0", live, "The arena is plain memory."),
    ignored!("memtable_prefix_bloom_size_ratio", "0.000000", live, "The memtable has no filter; it is searched."),
    ignored!("memtable_whole_key_filtering", "false", live, "The memtable has no filter; it is searched."),
    ignored!("bloom_locality", "0", open, "The memtable has no filter; it is searched."),
    ignored!("memtable_insert_with_hint_prefix_extractor", "nullptr", open, "An insert begins where the last one of its writer ended, where that is near."),
    unserved!("inplace_update_support", "false", open, "Entries are never changed in place: readers need no lock."),
    ignored!("inplace_update_num_locks", "10000", live, "Entries are never changed in place: readers need no lock."),
    ignored!("max_successive_merges", "0", live, "Operands are folded by reads, flushes and compactions, never by a writer."),
    ignored!("strict_max_successive_merges", "false", live, "Operands are folded by reads, flushes and compactions, never by a writer."),
    ignored!("experimental_mempurge_threshold", "0.000000", live, "A sealed memtable is flushed, never purged in memory."),
    uses!("memtable_protection_bytes_per_key", "0", live, V7_8, family.memtable_protection_bytes, Range::Text("0, 1, 2, 4, 8"), "Bytes of a checksum that each entry has in memory, compared by each read of it and by the flush. Counts from the next memtable on."),
    ignored!("paranoid_memory_checks", "false", live, "A read of a memtable verifies what memory safety gives, and the checksums of memtable_protection_bytes_per_key."),
    ignored!("memtable_verify_per_key_checksum_on_seek", "false", live, "Where entries in memory have checksums, whatever hands one out compares its own, and those passed by in a seek are not compared."),
    ignored!("memtable_veirfy_per_key_checksum_on_seek", "", live, "Another name of memtable_verify_per_key_checksum_on_seek."),
    ignored!("memtable_max_range_deletions", "0", live, "A memtable cuts its range deletions in parts, so that reads stay fast however many there are."),
    ignored!("memtable_op_scan_flush_trigger", "0", live, "Scans do not ask for flushes."),
    ignored!("memtable_avg_op_scan_flush_trigger", "0", live, "Scans do not ask for flushes."),
    ignored!("min_tombstones_for_range_conversion", "0", live, "Runs of tombstones stay as they are; range deletions are what the user wrote."),
    ignored!("memtable_batch_lookup_optimization", "false", open, "Each key is looked up by itself."),
    uses!("disallow_memtable_writes", "false", open, family.disallow_memtable_writes, Range::Flag, "The family takes no writes, only ingested tables. RocksDB passes over its writes when it replays a log."),
    ignored!("max_sequential_skip_in_iterations", "8", live, "How many versions a scan steps over before it seeks is decided by the engine."),
    // Tables.
    mapped!("table_factory", "BlockBasedTable", live, "family.table", Range::Text("BlockBasedTable, or its options in braces"), Some(set_table_factory), |_| None, "Tables are block based; the options in braces are those of the group table."),
    mapped!("block_based_table_factory", "", live, "family.table", Range::Text("options of the group table in braces"), Some(set_table_factory), |_| None, "Another name of table_factory."),
    refused!("plain_table_factory", "", live, "Plain tables are neither read nor written."),
    mapped!("cf_paths", "", open, "family.cf_paths", Range::Text("{path=DIRECTORY;target_size=BYTES}, with ':' between"), Some(|o, text| { o.family.cf_paths = Value::parse(text)?; Ok(()) }), |_| None, "Directories of this family's tables, in place of db_paths."),
    unserved!("table_properties_collectors", "", open, "Tables carry the properties RocksDB's tables have, and none of the user's."),
    unserved!("table_properties_collector_factories", "", open, "Tables carry the properties RocksDB's tables have, and none of the user's."),
    unserved!("sst_partitioner_factory", "nullptr", open, "Compaction cuts its outputs by size and by what they overlap below."),
    ignored!("optimize_filters_for_hits", "false", open, "Every level has a filter: a read that finds nothing costs memory only."),
    ignored!("force_consistency_checks", "true", open, "The shape of the levels is always checked when a version is installed."),
    uses!("paranoid_file_checks", "false", live, family.read_back_outputs, Range::Flag, "Read every table back and verify it, all of it, before it is used."),
    ignored!("verify_output_flags", "0", live, "paranoid_file_checks reads a table back whole; parts of that cannot be chosen."),
    ignored!("check_flush_compaction_key_order", "true", live, "The table builder always refuses keys out of order. RocksDB has dropped the option."),
    unserved!("block_protection_bytes_per_key", "0", live, "Blocks are verified when they are read; in the cache they carry no checksums."),
    ignored!("uncache_aggressiveness", "0", live, "Blocks of removed tables leave the cache with their table."),
    // Compression.
    uses!("compression", "kLZ4Compression", live, family.table.compression, COMPRESSIONS, "How blocks are stored. A block that hardly shrinks is stored raw."),
    mapped!("compression_per_level", "", live, "family.table.compression_per_level", Range::Text("compressions with ':' between"), Some(|o, text| { o.family.table.compression_per_level = Value::parse(text)?; Ok(()) }), |o| Some(o.family.table.compression_per_level.show()).filter(|list| !list.is_empty()), "For level 0, then for the base level and each one below it; the last stands for all further ones."),
    uses!("bottommost_compression", "kDisableCompressionOption", live, family.table.bottommost_compression, COMPRESSIONS, "For tables with no data below them; kDisableCompressionOption: as elsewhere."),
    mapped!("compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, "family.table", Range::Text("options of the group compression in braces"), Some(nested::set_compression), |o| Some(nested::show_compression(o)), "Level and dictionary of the compression."),
    refused!("bottommost_compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, nested::not_enabled, "The bottommost level has the level and dictionary of compression_opts; options of its own (enabled=true) are not there."),
    unserved!("compression_manager", "nullptr", live, "Algorithms are built in; blocks of custom ones are refused by name."),
    ignored!("sample_for_compression", "0", live, "No blocks are compressed for statistics only."),
    // The shape of the tree.
    refused!("compaction_style", "kCompactionStyleLevel", open, "Leveled compaction is what is there. A universal tree is compacted as a leveled one with its levels; a tree of the style FIFO or None, or with num_levels=1, is not compacted at all, nor does FIFO remove old tables. The stored style stays for RocksDB."),
    uses!("num_levels", "7", open, family.compaction.num_levels, Range::Whole(2, MOST_LEVELS as u64, "levels"), "Levels of the tree, level 0 included."),
    uses!("level0_file_num_compaction_trigger", "4", live, family.compaction.l0_trigger, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 that start a compaction."),
    uses!("level0_slowdown_writes_trigger", "20", live, family.compaction.l0_slowdown, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 from which writers are slowed; not below level0_file_num_compaction_trigger."),
    uses!("level0_stop_writes_trigger", "36", live, family.compaction.l0_stop, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 at which writers wait; not below level0_slowdown_writes_trigger."),
    uses!("target_file_size_base", "67108864", live, family.compaction.target_file_bytes, Range::Whole(4096, u64::MAX, BYTES), "Bytes of a table that compaction writes."),
    uses!("max_bytes_for_level_base", "268435456", live, family.compaction.base_level_bytes, Range::Whole(4096, u64::MAX, BYTES), "Bytes of the base level at least."),
    uses!("max_bytes_for_level_multiplier", "10.000000", live, family.compaction.level_multiplier, Range::Real(2.0, 1000.0), "How many times larger a level is than the one above it."),
    uses!("max_compaction_bytes", "1677721600", live, family.compaction.max_compaction_bytes, Range::Whole(0, u64::MAX, BYTES), "Input bytes of a compaction at most. 0: 25 times target_file_size_base."),
    uses!("soft_pending_compaction_bytes_limit", "68719476736", live, family.compaction.soft_debt_bytes, Range::Whole(0, u64::MAX, BYTES), "Debt of compaction from which writers are slowed; 0 for no bound."),
    uses!("hard_pending_compaction_bytes_limit", "274877906944", live, family.compaction.hard_debt_bytes, Range::Whole(0, u64::MAX, BYTES), "Debt of compaction at which writers wait; 0 for no bound."),
    mapped!("disable_auto_compactions", "false", live, "family.compaction.automatic, its opposite", Range::Flag, Some(|o, text| { o.family.compaction.automatic = !bool::parse(text)?; Ok(()) }), |o| Some((!o.family.compaction.automatic).show()), "Compact on request only."),
    mapped!("level_compaction_dynamic_level_bytes", "true", open, "always true", Range::Flag, Some(|_, text| bool::parse(text).map(drop)), |_| Some("true".to_owned()), "The sizes of the levels follow the last one, which holds the data; there are no fixed sizes, so false is taken and not followed."),
    ignored!("max_bytes_for_level_multiplier_additional", "1:1:1:1:1:1:1", live, "All levels grow by the same factor."),
    ignored!("target_file_size_multiplier", "1", live, "Tables of all levels have the same size."),
    ignored!("target_file_size_is_upper_bound", "false", live, "An output is closed at the first entry behind its size."),
    ignored!("compaction_pri", "kMinOverlappingRatio", open, "The picker weighs overlap and tombstones; there is one order."),
    mapped!("compaction_options_universal", "{reduce_file_locking=true;incremental=false;compression_size_percent=-1;allow_trivial_move=false;max_size_amplification_percent=200;max_merge_width=4294967295;stop_style=kCompactionStopStyleTotalSize;min_merge_width=2;max_read_amp=-1;size_ratio=1;}", live, "nothing: see the group universal", Range::Text("options of the group universal in braces"), Some(nested::set_universal), |_| None, "Universal compaction is not there; names and values are checked."),
    mapped!("compaction_options_fifo", "{use_kv_ratio_compaction=false;max_data_files_size=0;trivial_copy_buffer_size=4096;allow_trivial_copy_when_change_temperature=false;file_temperature_age_thresholds=;allow_compaction=false;age_for_warm=0;max_table_files_size=1073741824;}", live, "nothing: see the group fifo", Range::Text("options of the group fifo in braces"), Some(nested::set_fifo), |_| None, "FIFO compaction is not there; names and values are checked."),
    ignored!("compaction_thread_limiter", "", open, "How many compactions run is bounded for the whole database."),
    uses!("ttl", "2592000", live, family.compaction.ttl_secs, Range::Whole(0, u64::MAX, "seconds"), "A table above the last level that holds data older than this goes down, level by level. 0: at no age, for tombstones are compacted by their share of a table, not all at once on one day."),
    uses!("periodic_compaction_seconds", "0", live, family.compaction.periodic_secs, Range::Whole(0, u64::MAX, "seconds"), "A table written longer ago than this is written anew, tables that do not say when excepted. 0: at no age."),
    ignored!("bottommost_file_compaction_delay", "0", live, "Tables of the last level are rewritten when what they hold can be dropped."),
    ignored!("read_triggered_compaction_threshold", "0.000000", live, "Reads do not ask for compactions."),
    ignored!("report_bg_io_stats", "false", live, "Bytes read and written in the background are always counted."),
    refused!("cf_allow_ingest_behind", "false", open, "Adding tables behind all data is not served."),
    // Blobs.
    uses!("enable_blob_files", "false", live, family.blob.enabled, Range::Flag, "Large values go to blob files in flushes and compactions."),
    uses!("min_blob_size", "0", live, family.blob.min_blob_bytes, Range::Whole(0, u64::MAX, BYTES), "The smallest value that is separated, and from format level 11 on the smallest column of an entity. Empty ones never are."),
    uses!("blob_file_size", "268435456", live, family.blob.file_bytes, Range::Whole(1, u64::MAX, BYTES), "A blob file is closed once it has this many bytes."),
    uses!("blob_compression_type", "kNoCompression", live, family.blob.compression, COMPRESSIONS, "How values in blob files are stored. A file has one compression for all its values."),
    mapped!("blob_compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, "family.blob.compression_level", Range::Text("options of the group compression in braces; level counts"), Some(nested::set_blob_compression), |_| None, "The level of blob_compression_type. RocksDB before 11 has no such name, so it is not stored."),
    uses!("enable_blob_garbage_collection", "false", live, family.blob.collect_garbage, Range::Flag, "Compactions move values out of old blob files."),
    uses!("blob_garbage_collection_age_cutoff", "0.250000", live, family.blob.age_cutoff, Range::Real(0.0, 1.0), "Which share of the blob files, oldest first, counts as old."),
    uses!("blob_garbage_collection_force_threshold", "1.000000", live, family.blob.force_threshold, Range::Real(0.0, 1.0), "Which share of the bytes of the oldest blob files must be garbage for them to be collected though no compaction meets them."),
    ignored!("blob_compaction_readahead_size", "0", live, "Values are read one by one, in the order of their keys."),
    mapped!("blob_file_starting_level", "0", live, V7_8, "family.blob.starting_level", Range::Whole(0, 255, "level"), Some(|o, text| { let level = u32::parse(text)?; o.family.blob.starting_level = level.try_into().map_err(|_| format!("{level} is no level"))?; Ok(()) }), |o| Some(o.family.blob.starting_level.to_string()).filter(|level| level != "0"), "Tables of this level and deeper ones have their large values separated."),
    ignored!("blob_cache", "", open, "Values from blob files are not kept in memory."),
    ignored!("prepopulate_blob_cache", "kDisable", live, "Values from blob files are not kept in memory."),
    refused!("enable_blob_direct_write", "false", open, "Values reach blob files through flushes only, never from the writer."),
    ignored!("blob_direct_write_partitions", "1", open, "Only for enable_blob_direct_write."),
    ignored!("blob_direct_write_partition_strategy", "", open, "Only for enable_blob_direct_write."),
    // Storage of several kinds.
    unserved!("last_level_temperature", "kUnknown", live, "No kinds of storage are told apart."),
    unserved!("bottommost_temperature", "kUnknown", live, "No kinds of storage are told apart. RocksDB has dropped the option."),
    unserved!("default_temperature", "kUnknown", open, "No kinds of storage are told apart."),
    unserved!("default_write_temperature", "kUnknown", live, "No kinds of storage are told apart."),
    unserved!("preclude_last_level_data_seconds", "0", live, "No kinds of storage are told apart."),
    unserved!("preserve_internal_time_seconds", "0", live, "Tables do not record when sequence numbers were given out."),
    // Names that RocksDB takes and drops.
    ignored!("ignore_max_compaction_bytes_for_input", "true", live, "RocksDB has dropped the option."),
    ignored!("level_compaction_dynamic_file_size", "true", open, "RocksDB has dropped the option."),
    ignored!("filter_deletes", "", live, "RocksDB has dropped the option."),
    ignored!("verify_checksums_in_compaction", "", live, "Always verified. RocksDB has dropped the option."),
    ignored!("hard_rate_limit", "", live, "RocksDB has dropped the option."),
    ignored!("soft_rate_limit", "", live, "RocksDB has dropped the option."),
    ignored!("rate_limit_delay_max_milliseconds", "", open, "RocksDB has dropped the option."),
    ignored!("expanded_compaction_factor", "", live, "RocksDB has dropped the option."),
    ignored!("max_grandparent_overlap_factor", "", live, "RocksDB has dropped the option."),
    ignored!("source_compaction_factor", "", live, "RocksDB has dropped the option."),
    ignored!("memtable_prefix_bloom_bits", "", live, "RocksDB has dropped the option."),
    ignored!("memtable_prefix_bloom_probes", "", live, "RocksDB has dropped the option."),
    ignored!("memtable_prefix_bloom_huge_page_tlb_size", "", live, "RocksDB has dropped the option."),
    ignored!("min_partial_merge_operands", "", live, "RocksDB has dropped the option."),
    ignored!("snap_refresh_nanos", "", live, "RocksDB has dropped the option."),
    ignored!("compaction_measure_io_stats", "", open, "RocksDB has dropped the option."),
    ignored!("purge_redundant_kvs_while_flush", "", open, "RocksDB has dropped the option."),
    ignored!("max_mem_compaction_level", "", open, "RocksDB has dropped the option."),
];

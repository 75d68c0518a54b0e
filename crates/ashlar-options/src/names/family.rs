//! `ColumnFamilyOptions`.

use super::collectors::{set_collectors, show_collectors};
use super::nested;
use super::object::{behind_id, id_of, member};
use super::partitioner::{set_partitioner, show_partitioner};
use super::row::{Range, Row, ignored, mapped, refused, unserved, uses};
use super::table::set_table_factory;
use super::value::Value;
use crate::{MOST_LEVELS, Options};
use ashlar_base::ext::compaction_filter::standard_filter;
use ashlar_base::ext::merge_operator::{StringAppend, standard_operator};
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::{FilterSource, MergeOperator};
use std::any::Any;
use std::sync::Arc;

const BYTES: &str = "bytes";
const TABLES: &str = "tables";
const COMPRESSIONS: Range = Range::Text(
    "kNoCompression, kSnappyCompression, kZlibCompression, kBZip2Compression, kLZ4Compression, kLZ4HCCompression, kZSTD",
);

/// Whether a built-in operator has a delimiter, which is not part of its name.
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

/// A merge operator as an OPTIONS file of `release` names it; `None` if there is no operator. A joining operator without
/// a delimiter gets an empty one, because RocksDB prints the delimiter of all other joining operators since 6.24.
pub(crate) fn stored_operator(text: String, release: &str) -> Option<String> {
    let text = match id_of(&text).as_str() {
        "TtlMergeOperator" => member(&text, "user_operator").unwrap_or_default(),
        _ => text,
    };
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

fn set_filter(options: &mut Options, text: &str) -> Result<(), String> {
    let filter = match text.trim() {
        "nullptr" | "" => None,
        text => {
            let name = id_of(text);
            let filter = standard_filter(&name);
            Some(FilterSource::Filter(filter.ok_or_else(|| not_given(&name))?))
        }
    };
    let is_filter = matches!(options.family.compaction_filter, Some(FilterSource::Filter(_)));
    if filter.is_some() || is_filter {
        options.family.compaction_filter = filter;
    }
    Ok(())
}

fn set_filter_factory(options: &mut Options, text: &str) -> Result<(), String> {
    match text.trim() {
        "nullptr" | "" => {}
        text => return Err(not_given(&id_of(text))),
    }
    if let Some(FilterSource::Factory(_)) = options.family.compaction_filter {
        options.family.compaction_filter = None;
    }
    Ok(())
}

fn not_given(name: &str) -> String {
    format!(
        "{name:?} is not built in, and compactions keep all values without it; give it when you open the family"
    )
}

/// The name of the filter or factory, for its option. With a time to live, inside the object of RocksDB's TTL wrapper.
fn show_filter(options: &Options, option: &str) -> String {
    let source = options.family.compaction_filter.as_ref();
    let given = source.filter(|source| source.option() == option);
    let name = given.map_or("nullptr", |source| source.name());
    let wraps = given.is_some() || option == "compaction_filter_factory" && source.is_none();
    match options.family.value_ttl_secs.filter(|_| wraps) {
        None => name.to_owned(),
        Some(ttl) if option == "compaction_filter" => {
            format!("{{id=TtlCompactionFilter;user_filter={name};ttl={ttl};}}")
        }
        Some(ttl) => format!("{{id=TtlCompactionFilterFactory;user_filter_factory={name};ttl={ttl};}}"),
    }
}

/// The operator, inside the object of RocksDB's TTL wrapper if values have times.
fn show_merge_operator(options: &Options) -> String {
    let operator = show_user_operator(options);
    match options.family.value_ttl_secs {
        Some(_) if operator != "nullptr" => format!("{{id=TtlMergeOperator;user_operator={operator};}}"),
        _ => operator,
    }
}

/// The stored text, if it still names the operator.
fn show_user_operator(options: &Options) -> String {
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

fn set_prefix_extractor(options: &mut Options, text: &str) -> Result<(), String> {
    options.family.table.prefix_extractor = match id_of(text).as_str() {
        "nullptr" | "" => None,
        name => Some(PrefixExtractor::parse(name).ok_or_else(|| {
            format!(
                "{name:?} is not built in, and filters hold no prefixes without it; give it when you open the family"
            )
        })?),
    };
    Ok(())
}

fn show_prefix_extractor(options: &Options) -> String {
    options.family.table.prefix_extractor.as_ref().map_or_else(|| "nullptr".to_owned(), PrefixExtractor::name)
}

#[rustfmt::skip]
pub(super) const FAMILY: &[Row<Options>] = &[
    // Keys and values.
    uses!("comparator", "leveldb.BytewiseComparator", open, family.order, Range::Text("the name of a built-in comparator"), "The order of the keys. The MANIFEST stores its name, and an open with another order fails."),
    mapped!("merge_operator", "nullptr", open, "family.merge_operator", Range::Text("nullptr, or the id of a built-in operator"), Some(set_merge_operator), |o| Some(show_merge_operator(o)), "The operator that folds merge operands."),
    mapped!("compaction_filter", "nullptr", open, "family.compaction_filter", Range::Text("nullptr, or the name of a built-in filter"), Some(set_filter), |o| Some(show_filter(o, "compaction_filter")), "Decides in compactions which values stay. An open without a stored filter that is not built in keeps all values, and the recovery report says so."),
    mapped!("compaction_filter_factory", "nullptr", open, "family.compaction_filter", Range::Text("nullptr"), Some(set_filter_factory), |o| Some(show_filter(o, "compaction_filter_factory")), "Makes a compaction filter for each compaction. Options without code cannot name one."),
    mapped!("prefix_extractor", "nullptr", live, "family.table.prefix_extractor", Range::Text("nullptr, fixed:BYTES, capped:BYTES, rocksdb.Noop"), Some(set_prefix_extractor), |o| Some(show_prefix_extractor(o)), "The prefixes that the filters of new tables hold. A scan of one prefix skips tables without it. Scans are always in the total order of the keys."),
    unserved!("persist_user_defined_timestamps", "true", open, "AshlarDB does not open families whose keys have timestamps."),
    // Memtables.
    uses!("write_buffer_size", "67108864", live, family.write_buffer_bytes, Range::Whole(64 << 10, 4 << 30, BYTES), "A memtable of this size becomes immutable and is flushed."),
    uses!("max_write_buffer_number", "2", live, family.max_write_buffers, Range::Whole(2, 64, "memtables"), "Upper bound on the memtables of the family, the active one included. At the bound, writers wait."),
    ignored!("min_write_buffer_number_to_merge", "1", open, "A flush takes all immutable memtables of the family."),
    ignored!("max_write_buffer_number_to_maintain", "0", open, "Flushed memtables are not kept: a transaction that needs older writes looks into tables. RocksDB has dropped the option."),
    ignored!("max_write_buffer_size_to_maintain", "0", open, "Flushed memtables are not kept: a transaction that needs older writes looks into tables."),
    unserved!("memtable_factory", "SkipListFactory", open, "The order of the keys decides the kind of memtable."),
    ignored!("memtable", "", open, "Another name of memtable_factory."),
    ignored!("arena_block_size", "1048576", live, "The memtable's arena grows in fixed steps."),
    ignored!("memtable_huge_page_size", "0", live, "The arena uses ordinary pages."),
    ignored!("memtable_prefix_bloom_size_ratio", "0.000000", live, "A memtable has no filter; reads search it."),
    ignored!("memtable_whole_key_filtering", "false", live, "A memtable has no filter; reads search it."),
    ignored!("bloom_locality", "0", open, "A memtable has no filter; reads search it."),
    ignored!("memtable_insert_with_hint_prefix_extractor", "nullptr", open, "An insert begins its search where the preceding insert ended, if that place is near."),
    unserved!("inplace_update_support", "false", open, "Entries are never changed in place: readers need no lock."),
    ignored!("inplace_update_num_locks", "10000", live, "Entries are never changed in place: readers need no lock."),
    ignored!("max_successive_merges", "0", live, "Reads, flushes and compactions fold operands; a writer never does."),
    ignored!("strict_max_successive_merges", "false", live, "Reads, flushes and compactions fold operands; a writer never does."),
    ignored!("experimental_mempurge_threshold", "0.000000", live, "An immutable memtable is flushed, never purged in memory."),
    uses!("memtable_protection_bytes_per_key", "0", live, V7_8, family.memtable_protection_bytes, Range::Text("0, 1, 2, 4, 8"), "Bytes of the checksum of each entry in memory. Each read of the entry and the flush verify it. A change takes effect with the next memtable."),
    ignored!("paranoid_memory_checks", "false", live, "Set memtable_protection_bytes_per_key instead: each read verifies the checksum of its entry."),
    ignored!("memtable_verify_per_key_checksum_on_seek", "false", live, "If entries in memory have checksums, a read verifies each entry that it returns, and not the entries that a seek passes."),
    ignored!("memtable_veirfy_per_key_checksum_on_seek", "", live, "Another name of memtable_verify_per_key_checksum_on_seek."),
    ignored!("memtable_max_range_deletions", "0", live, "A memtable splits its range deletions into fragments, so reads stay fast with any number of them."),
    ignored!("memtable_op_scan_flush_trigger", "0", live, "Scans trigger no flushes."),
    ignored!("memtable_avg_op_scan_flush_trigger", "0", live, "Scans trigger no flushes."),
    ignored!("min_tombstones_for_range_conversion", "0", live, "AshlarDB never converts a run of tombstones into a range deletion."),
    ignored!("memtable_batch_lookup_optimization", "false", open, "Each key is looked up separately."),
    uses!("disallow_memtable_writes", "false", open, family.disallow_memtable_writes, Range::Flag, "The family takes no writes, only ingested tables. RocksDB skips its writes when it replays a WAL."),
    ignored!("max_sequential_skip_in_iterations", "8", live, "The engine decides how many versions a scan steps over before it seeks."),
    // Tables.
    mapped!("table_factory", "BlockBasedTable", live, "family.table", Range::Text("BlockBasedTable, or its options in braces"), Some(set_table_factory), |_| None, "Tables are block-based. The options in braces are those of the group table."),
    mapped!("block_based_table_factory", "", live, "family.table", Range::Text("options of the group table in braces"), Some(set_table_factory), |_| None, "Another name of table_factory."),
    refused!("plain_table_factory", "", live, "AshlarDB neither reads nor writes plain tables."),
    mapped!("cf_paths", "", open, "family.cf_paths", Range::Text("{path=DIRECTORY;target_size=BYTES}, with ':' between"), Some(|o, text| { o.family.cf_paths = Value::parse(text)?; Ok(()) }), |_| None, "Directories of this family's tables, instead of db_paths."),
    mapped!("table_properties_collectors", "", open, "family.table.collectors", Range::Text("{id=CompactOnDeletionCollector;window_size=ENTRIES;deletion_trigger=ENTRIES;deletion_ratio=SHARE;min_file_size=BYTES}, with ':' between"), Some(set_collectors), |o| Some(show_collectors(o)), "What collects properties of each new table. CompactOnDeletionCollector marks tables with many deletions for a compaction. Collectors of a program's own are given when the family is opened; their names are stored."),
    mapped!("table_properties_collector_factories", "", open, "family.table.collectors", Range::Text("as table_properties_collectors"), Some(set_collectors), |_| None, "Another name of table_properties_collectors."),
    mapped!("sst_partitioner_factory", "nullptr", open, "family.sst_partitioner", Range::Text("nullptr, {id=SstPartitionerFixedPrefixFactory;length=BYTES}"), Some(set_partitioner), show_partitioner, "Where compactions begin new tables, beside the limits of size and overlap. A partitioner of a program's own is given when the family is opened; its name is stored."),
    ignored!("optimize_filters_for_hits", "false", open, "Tables of the last level have filters too, so a read of a missing key rarely reads a data block."),
    ignored!("force_consistency_checks", "true", open, "The order of tables in the levels is always checked when a version is installed."),
    uses!("paranoid_file_checks", "false", live, family.read_back_outputs, Range::Flag, "Read back and verify each new table completely before it is used."),
    ignored!("verify_output_flags", "0", live, "paranoid_file_checks reads back the whole table; it has no partial checks."),
    ignored!("check_flush_compaction_key_order", "true", live, "The table builder always refuses keys out of order. RocksDB has dropped the option."),
    unserved!("block_protection_bytes_per_key", "0", live, "Blocks are verified when they are read. In the cache they have no checksums."),
    ignored!("uncache_aggressiveness", "0", live, "Blocks of removed tables leave the cache with their table."),
    // Compression.
    uses!("compression", "kLZ4Compression", live, family.table.compression, COMPRESSIONS, "The compression of blocks. A block that hardly shrinks is stored uncompressed."),
    mapped!("compression_per_level", "", live, "family.table.compression_per_level", Range::Text("compressions with ':' between"), Some(|o, text| { o.family.table.compression_per_level = Value::parse(text)?; Ok(()) }), |o| Some(o.family.table.compression_per_level.show()).filter(|list| !list.is_empty()), "The compression of level 0, then of the base level and each level below it. The last one also serves all deeper levels."),
    uses!("bottommost_compression", "kDisableCompressionOption", live, family.table.bottommost_compression, COMPRESSIONS, "The compression of tables with no data below them. kDisableCompressionOption: the compression of the other tables."),
    mapped!("compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, "family.table", Range::Text("options of the group compression in braces"), Some(nested::set_compression), |o| Some(nested::show_compression(o)), "Level and dictionary of the compression."),
    refused!("bottommost_compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, nested::not_enabled, "The bottommost level uses compression_opts. Separate options (enabled=true) are not supported."),
    unserved!("compression_manager", "nullptr", live, "Only the built-in codecs exist. A block of a custom codec is an error that names the codec."),
    ignored!("sample_for_compression", "0", live, "AshlarDB compresses no blocks only for statistics."),
    // The shape of the tree.
    uses!("compaction_style", "kCompactionStyleLevel", open, family.compaction.style, Range::Text("kCompactionStyleLevel, kCompactionStyleUniversal, kCompactionStyleFIFO, kCompactionStyleNone"), "How tables are compacted: into levels, into few sorted runs, by deleting the oldest tables, or not at all."),
    uses!("num_levels", "7", open, family.compaction.num_levels, Range::Whole(2, MOST_LEVELS as u64, "levels"), "Levels of the tree, level 0 included."),
    uses!("level0_file_num_compaction_trigger", "4", live, family.compaction.l0_trigger, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 that start a compaction."),
    uses!("level0_slowdown_writes_trigger", "20", live, family.compaction.l0_slowdown, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 at which writers are slowed; not below level0_file_num_compaction_trigger."),
    uses!("level0_stop_writes_trigger", "36", live, family.compaction.l0_stop, Range::Whole(1, 1 << 30, TABLES), "Tables of level 0 at which writers wait; not below level0_slowdown_writes_trigger."),
    uses!("target_file_size_base", "67108864", live, family.compaction.target_file_bytes, Range::Whole(4096, u64::MAX, BYTES), "Bytes of a table that compaction writes."),
    uses!("max_bytes_for_level_base", "268435456", live, family.compaction.base_level_bytes, Range::Whole(4096, u64::MAX, BYTES), "The least target size of the base level."),
    uses!("max_bytes_for_level_multiplier", "10.000000", live, family.compaction.level_multiplier, Range::Real(2.0, 1000.0), "How many times larger a level is than the one above it."),
    uses!("max_compaction_bytes", "1677721600", live, family.compaction.max_compaction_bytes, Range::Whole(0, u64::MAX, BYTES), "Upper bound on the input bytes of a compaction. 0: 25 times target_file_size_base."),
    uses!("soft_pending_compaction_bytes_limit", "68719476736", live, family.compaction.soft_debt_bytes, Range::Whole(0, u64::MAX, BYTES), "Compaction debt at which writers are slowed. 0: no bound."),
    uses!("hard_pending_compaction_bytes_limit", "274877906944", live, family.compaction.hard_debt_bytes, Range::Whole(0, u64::MAX, BYTES), "Compaction debt at which writers wait. 0: no bound."),
    mapped!("disable_auto_compactions", "false", live, "family.compaction.automatic, its opposite", Range::Flag, Some(|o, text| { o.family.compaction.automatic = !bool::parse(text)?; Ok(()) }), |o| Some((!o.family.compaction.automatic).show()), "Compact on request only."),
    mapped!("level_compaction_dynamic_level_bytes", "true", open, "always true", Range::Flag, Some(|_, text| bool::parse(text).map(drop)), |_| Some("true".to_owned()), "The target sizes of the levels follow the size of the last one. There are no fixed target sizes: false is accepted and has no effect."),
    ignored!("max_bytes_for_level_multiplier_additional", "1:1:1:1:1:1:1", live, "All levels use the same factor."),
    ignored!("target_file_size_multiplier", "1", live, "Tables of all levels have the same size."),
    ignored!("target_file_size_is_upper_bound", "false", live, "An output is closed at the first entry after it reaches its target size."),
    ignored!("compaction_pri", "kMinOverlappingRatio", open, "The picker always weighs overlap and tombstones."),
    mapped!("compaction_options_universal", "{reduce_file_locking=true;incremental=false;compression_size_percent=-1;allow_trivial_move=false;max_size_amplification_percent=200;max_merge_width=4294967295;stop_style=kCompactionStopStyleTotalSize;min_merge_width=2;max_read_amp=-1;size_ratio=1;}", live, "family.compaction.universal", Range::Text("options of the group universal in braces"), Some(nested::set_universal), nested::show_universal, "Universal compaction."),
    mapped!("compaction_options_fifo", "{use_kv_ratio_compaction=false;max_data_files_size=0;trivial_copy_buffer_size=4096;allow_trivial_copy_when_change_temperature=false;file_temperature_age_thresholds=;allow_compaction=false;age_for_warm=0;max_table_files_size=1073741824;}", live, "family.compaction.fifo", Range::Text("options of the group fifo in braces"), Some(nested::set_fifo), nested::show_fifo, "FIFO compaction."),
    ignored!("compaction_thread_limiter", "", open, "The number of running compactions is bounded for the whole database."),
    uses!("ttl", "2592000", live, family.compaction.ttl_secs, Range::Whole(0, u64::MAX, "seconds"), "A table above the last level is compacted down, level by level, once it has data older than this. 0: at no age; tombstones are compacted by their share of a table instead."),
    uses!("periodic_compaction_seconds", "0", live, family.compaction.periodic_secs, Range::Whole(0, u64::MAX, "seconds"), "A table older than this is rewritten, except tables that do not record their age. 0: at no age."),
    ignored!("bottommost_file_compaction_delay", "0", live, "Tables of the last level are rewritten when some of their entries can be dropped."),
    ignored!("read_triggered_compaction_threshold", "0.000000", live, "Reads trigger no compactions."),
    ignored!("report_bg_io_stats", "false", live, "Bytes read and written in the background are always counted."),
    uses!("cf_allow_ingest_behind", "false", open, family.ingest_behind, Range::Flag, "As allow_ingest_behind, for one family. Set it when the family is created."),
    // Blobs.
    uses!("enable_blob_files", "false", live, family.blob.enabled, Range::Flag, "Flushes and compactions write large values to blob files."),
    uses!("min_blob_size", "0", live, family.blob.min_blob_bytes, Range::Whole(0, u64::MAX, BYTES), "The smallest value that goes to a blob file; from format level 11 on, also the smallest column of an entity. Empty values never do."),
    uses!("blob_file_size", "268435456", live, family.blob.file_bytes, Range::Whole(1, u64::MAX, BYTES), "A blob file is closed once it has this many bytes."),
    uses!("blob_compression_type", "kNoCompression", live, family.blob.compression, COMPRESSIONS, "The compression of values in blob files. All values of a file have the same compression."),
    mapped!("blob_compression_opts", "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}", live, "family.blob.compression_level", Range::Text("options of the group compression in braces; level counts"), Some(nested::set_blob_compression), |_| None, "The level of blob_compression_type. It is not stored, because RocksDB before 11 does not know the name."),
    uses!("enable_blob_garbage_collection", "false", live, family.blob.collect_garbage, Range::Flag, "Compactions move values out of old blob files."),
    uses!("blob_garbage_collection_age_cutoff", "0.250000", live, family.blob.age_cutoff, Range::Real(0.0, 1.0), "The share of the blob files, oldest first, that counts as old."),
    uses!("blob_garbage_collection_force_threshold", "1.000000", live, family.blob.force_threshold, Range::Real(0.0, 1.0), "The share of garbage in the oldest blob files at which the engine starts a compaction to collect them."),
    ignored!("blob_compaction_readahead_size", "0", live, "Values are read one by one, in the order of their keys."),
    mapped!("blob_file_starting_level", "0", live, V7_8, "family.blob.starting_level", Range::Whole(0, 255, "level"), Some(|o, text| { let level = u32::parse(text)?; o.family.blob.starting_level = level.try_into().map_err(|_| format!("{level} is not a level"))?; Ok(()) }), |o| Some(o.family.blob.starting_level.to_string()).filter(|level| level != "0"), "The first level whose tables keep their large values in blob files; deeper levels do too."),
    ignored!("blob_cache", "", open, "Values of blob files are not cached."),
    ignored!("prepopulate_blob_cache", "kDisable", live, "Values of blob files are not cached."),
    refused!("enable_blob_direct_write", "false", open, "Only flushes and compactions write to blob files; a writer never does."),
    ignored!("blob_direct_write_partitions", "1", open, "Only for enable_blob_direct_write."),
    ignored!("blob_direct_write_partition_strategy", "", open, "Only for enable_blob_direct_write."),
    // Storage of several kinds.
    unserved!("last_level_temperature", "kUnknown", live, "AshlarDB does not distinguish kinds of storage."),
    unserved!("bottommost_temperature", "kUnknown", live, "AshlarDB does not distinguish kinds of storage. RocksDB has dropped the option."),
    unserved!("default_temperature", "kUnknown", open, "AshlarDB does not distinguish kinds of storage."),
    unserved!("default_write_temperature", "kUnknown", live, "AshlarDB does not distinguish kinds of storage."),
    unserved!("preclude_last_level_data_seconds", "0", live, "AshlarDB does not distinguish kinds of storage."),
    unserved!("preserve_internal_time_seconds", "0", live, "Tables do not record when sequence numbers were assigned."),
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

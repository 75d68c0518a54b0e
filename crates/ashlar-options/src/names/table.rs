//! `BlockBasedTableOptions`.

use super::nested::{self, members, set_member};
use super::object::member;
use super::row::{Range, Row, ignored, mapped, refused, unserved, uses};
use super::value::{Value, Wrong, integer};
use crate::Options;

const BYTES: &str = "bytes";
const ENTRIES: &str = "entries";
const HASH_RATIO: f64 = 0.75;

fn set_block_cache(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let capacity = member(text, "capacity").unwrap_or_else(|| text.to_owned());
    if capacity.trim() == "nullptr" {
        return Ok(());
    }
    let bytes = integer(&capacity)?;
    options.db.block_cache_bytes = bytes.try_into().map_err(|_| format!("{bytes} is not a valid size"))?;
    Ok(())
}

fn set_data_block_index(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let ratio = &mut options.family.table.data_block_hash_ratio;
    match text.trim() {
        "kDataBlockBinarySearch" => *ratio = None,
        "kDataBlockBinaryAndHash" => *ratio = ratio.or(Some(HASH_RATIO)),
        other => {
            return Err(format!("{other:?} is not one of kDataBlockBinarySearch, kDataBlockBinaryAndHash"));
        }
    }
    Ok(())
}

/// Sets the ratio if a preceding `data_block_index_type` has switched the hash index on. The ratio alone has no effect.
fn set_hash_ratio(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let ratio = f64::parse(text)?;
    if let Some(used) = &mut options.family.table.data_block_hash_ratio {
        *used = ratio;
    }
    Ok(())
}

#[rustfmt::skip]
pub(super) const TABLE: &[Row<Options>] = &[
    // Blocks.
    uses!("block_size", "4096", live, family.table.block_size, Range::Whole(1, 1 << 28, BYTES), "Uncompressed bytes at which a data block is closed."),
    uses!("block_restart_interval", "16", live, family.table.block_restart_interval, Range::Whole(1, 65535, ENTRIES), "Entries from one restart point of a data block to the next."),
    mapped!("data_block_index_type", "kDataBlockBinarySearch", live, "family.table.data_block_hash_ratio", Range::Text("kDataBlockBinarySearch, kDataBlockBinaryAndHash"), Some(set_data_block_index), |o| Some(if o.family.table.data_block_hash_ratio.is_some() { "kDataBlockBinaryAndHash" } else { "kDataBlockBinarySearch" }.to_owned()), "Adds a hash index to every data block, beside binary search."),
    mapped!("data_block_hash_table_util_ratio", "0.750000", live, "family.table.data_block_hash_ratio", Range::Real(0.01, 100.0), Some(set_hash_ratio), |o| o.family.table.data_block_hash_ratio.map(|r| r.show()), "Keys per bucket of that hash index."),
    uses!("checksum", "kXXH3", live, family.table.checksum, Range::Text("kNoChecksum, kCRC32c, kxxHash, kxxHash64, kXXH3"), "The checksum of blocks. Reading kXXH3 needs RocksDB 6.27."),
    uses!("format_version", "7", live, family.table.format_version, Range::Whole(2, 7, "footer version"), "The version of the table format. Reading 6 needs RocksDB 8.6, reading 7 needs 10.4. The format level bounds it."),
    ignored!("block_size_deviation", "10", live, "A block is closed at the first entry that reaches block_size."),
    ignored!("use_delta_encoding", "true", live, "Keys always share their prefix with the preceding key, except at restart points."),
    ignored!("block_align", "false", live, "Blocks follow each other without gaps."),
    ignored!("super_block_alignment_size", "0", live, "Blocks follow each other without gaps."),
    ignored!("super_block_alignment_space_overhead_ratio", "128", live, "Blocks follow each other without gaps."),
    ignored!("separate_key_value_in_data_block", "false", live, "AshlarDB reads such blocks and does not write them."),
    ignored!("uniform_cv_threshold", "-1.000000", live, "Only for interpolated search, which AshlarDB does not have."),
    ignored!("verify_compression", "false", live, "A written block is not decompressed as a check. Each read verifies its checksum."),
    unserved!("flush_block_policy_factory", "FlushBlockBySizePolicyFactory", open, "A block is closed by its size."),
    // Index.
    uses!("index_type", "kBinarySearch", live, family.table.index, Range::Text("kBinarySearch, kTwoLevelIndexSearch, kBinarySearchWithFirstKey"), "The kind of index. AshlarDB reads kHashSearch and does not write it. Where indexes and filters take more than an eighth of the cap on memory, compactions write kBinarySearch as kTwoLevelIndexSearch, with partitioned filters."),
    uses!("index_block_restart_interval", "1", live, family.table.index_restart_interval, Range::Whole(1, 65535, ENTRIES), "The same as block_restart_interval for index blocks. 1 keeps every separator whole."),
    uses!("metadata_block_size", "4096", live, family.table.metadata_block_size, Range::Whole(1, 1 << 28, BYTES), "Uncompressed bytes at which a partition of the index or of the filter is closed."),
    ignored!("index_block_search_type", "kBinary", live, "The engine decides how to search a block."),
    ignored!("index_shortening", "kShortenSeparators", live, "Separators are shortened and the last key is not, as with RocksDB's default."),
    ignored!("enable_index_compression", "true", live, "Index blocks are compressed like data blocks."),
    ignored!("hash_index_allow_collision", "", open, "RocksDB has dropped the option."),
    ignored!("index_per_partition", "", open, "RocksDB has dropped the option."),
    refused!("user_defined_index_factory", "nullptr", open, "AshlarDB neither reads nor writes user-defined indexes."),
    ignored!("use_udi_as_primary_index", "false", open, "Only for user_defined_index_factory."),
    ignored!("fail_if_no_udi_on_open", "false", open, "Only for user_defined_index_factory."),
    // Filter.
    uses!("filter_policy", "nullptr", live, family.table.filter, Range::Text("nullptr, bloomfilter:BITS, ribbonfilter:BITS[:LEVEL]; 0.1 to 100 bits per key"), "The filter, which answers \"no such key\" without a read of a data block."),
    uses!("partition_filters", "false", live, family.table.partition_filters, Range::Flag, "Write the filter in partitions. Without a partitioned index the filter stays whole."),
    ignored!("decouple_partitioned_filters", "true", live, "Partitions of the filter end where those of the index end."),
    uses!("whole_key_filtering", "true", live, family.table.whole_key_filtering, Range::Flag, "Filters hold whole keys. Without them, a get asks the filter for the prefix of its key."),
    ignored!("optimize_filters_for_memory", "true", live, "The size of a filter follows from its bits per key."),
    ignored!("detect_filter_construct_corruption", "false", live, "The block of a filter has a checksum, like every block."),
    // Memory.
    mapped!("block_cache", "", open, "db.block_cache_bytes", Range::Whole(1 << 20, u64::MAX, BYTES), Some(set_block_cache), |_| None, "Bytes of uncompressed blocks to keep in memory, as far as the cap on memory allows. All families of the database share one cache. Also in braces: {capacity=64M}."),
    ignored!("block_cache_compressed", "", open, "RocksDB has dropped the option."),
    ignored!("persistent_cache", "", open, "There is one tier of cache: memory."),
    ignored!("no_block_cache", "false", open, "Blocks always pass through the cache. A read with fill_cache=false does not keep them there."),
    ignored!("cache_index_and_filter_blocks", "false", open, "Index and filter of an open table always count against the cap on memory and take space from blocks. When less than a quarter of the cap is left for blocks, the least recently read table is closed, with its index and filter."),
    ignored!("cache_index_and_filter_blocks_with_high_priority", "true", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
    ignored!("pin_l0_filter_and_index_blocks_in_cache", "false", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
    ignored!("pin_top_level_index_and_filter", "true", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
    mapped!("metadata_cache_options", "{unpartitioned_pinning=kFallback;partition_pinning=kFallback;top_level_index_pinning=kFallback;}", open, "nothing: see the group metadata_cache", Range::Text("options of the group metadata_cache in braces"), Some(nested::set_metadata_cache), |_| None, "Index and filter stay in memory while their table is open. Names are checked."),
    ignored!("cache_usage_options", "", open, "Memtables, tables, buffers and blocks all count against one cap on memory."),
    ignored!("reserve_table_builder_memory", "", open, "RocksDB has dropped the option."),
    ignored!("reserve_table_reader_memory", "", open, "RocksDB has dropped the option."),
    ignored!("skip_table_builder_flush", "", open, "RocksDB has dropped the option."),
    ignored!("prepopulate_block_cache", "kDisable", live, "Blocks enter the cache when they are read."),
    ignored!("read_amp_bytes_per_bit", "0", open, "AshlarDB does not count which bytes of a block were used."),
    // Reading ahead.
    ignored!("max_auto_readahead_size", "262144", live, "The engine decides how far a scan reads ahead."),
    ignored!("initial_auto_readahead_size", "8192", live, "The engine decides how far a scan reads ahead."),
    ignored!("num_file_reads_for_auto_readahead", "2", live, "The engine decides how far a scan reads ahead."),
];

/// `BlockBasedTable`, `{id=BlockBasedTable;…}` or the members alone; `{}` changes nothing.
pub(super) fn set_table_factory(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let inner = match text.trim() {
        "BlockBasedTable" | "BlockBasedTableFactory" => return Ok(()),
        bare if !bare.contains(['=', '{']) => {
            return Err(format!("tables of kind {bare:?} are not supported"));
        }
        object => object,
    };
    let (ids, rest): (Vec<_>, Vec<_>) = members(inner)?.into_iter().partition(|(name, _)| name == "id");
    if let Some((_, id)) = ids.iter().find(|(_, id)| id != "BlockBasedTable") {
        return Err(format!("tables of kind {id:?} are not supported"));
    }
    for (name, value) in rest {
        set_member(TABLE, options, &name, &value)?;
        if TABLE.iter().any(|row| row.name == name && row.setting().is_none()) {
            options.family.give_table(&name, &value);
        }
    }
    Ok(())
}

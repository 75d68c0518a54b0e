//! Structs inside values: `{name=value;…}`, each with its own rows.

use super::object::member;
use super::row::{NotTaken, Range, Row, ignored, mapped, unserved, uses};
use super::value::{Value, Wrong};
use crate::{FifoOptions, Options, UniversalOptions};
use ashlar_format::options_file::split_object;

/// RocksDB's word for "the codec's own default".
const DEFAULT_LEVEL: i32 = 32767;

fn set_level(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let level = i32::parse(text)?;
    options.family.table.compression_level = (level != DEFAULT_LEVEL).then_some(level);
    Ok(())
}

#[rustfmt::skip]
pub(super) const COMPRESSION: &[Row<Options>] = &[
    mapped!("level", "32767", live, "family.table.compression_level", Range::Text("the codec's levels; 32767: the codec's default"), Some(set_level), |o| Some(o.family.table.compression_level.unwrap_or(DEFAULT_LEVEL).show()), "The compression level of the codec."),
    uses!("max_dict_bytes", "0", live, family.table.max_dict_bytes, Range::Whole(0, 1 << 30, "bytes"), "Upper bound on the bytes of the dictionary of a table. 0: none. Only zlib, LZ4 and zstd use a dictionary."),
    uses!("zstd_max_train_bytes", "0", live, family.table.zstd_max_train_bytes, Range::Whole(0, 1 << 30, "bytes"), "Bytes of samples that zstd trains a dictionary on. 0: the samples themselves are the dictionary."),
    uses!("max_dict_buffer_bytes", "0", live, family.table.max_dict_buffer_bytes, Range::Whole(0, u64::MAX, "bytes"), "Upper bound on the bytes of data that wait in memory for their dictionary. 0: the whole table."),
    ignored!("enabled", "false", live, "Only for bottommost_compression_opts; these options always apply."),
    ignored!("window_bits", "-14", live, "Codecs use their default window."),
    ignored!("strategy", "0", live, "Codecs use their default strategy."),
    ignored!("use_zstd_dict_trainer", "true", live, "With zstd_max_train_bytes, AshlarDB uses zstd's trainer."),
    ignored!("max_compressed_bytes_per_kb", "896", live, "A block that does not shrink by an eighth is stored uncompressed."),
    ignored!("parallel_threads", "1", live, "One thread compresses a table. Several jobs write tables at the same time."),
    ignored!("checksum", "false", live, "The block's checksum covers the compressed bytes; codec frames have none."),
];

#[rustfmt::skip]
pub(super) const UNIVERSAL: &[Row<Options>] = &[
    uses!("size_ratio", "1", live, family.compaction.universal.size_ratio, Range::Whole(0, u32::MAX as u64, "percent"), "Percent by which a run may be larger than those before it and still be merged with them."),
    uses!("min_merge_width", "2", live, family.compaction.universal.min_merge_width, Range::Whole(2, u32::MAX as u64, "runs"), "The least number of runs that one compaction merges because of their sizes."),
    uses!("max_merge_width", "4294967295", live, family.compaction.universal.max_merge_width, Range::Whole(2, u32::MAX as u64, "runs"), "The greatest number of runs that one compaction merges because of their sizes."),
    uses!("max_size_amplification_percent", "200", live, family.compaction.universal.max_size_amplification_percent, Range::Whole(0, u32::MAX as u64, "percent"), "All runs are merged when the newer ones reach this many percent of the oldest."),
    uses!("stop_style", "kCompactionStopStyleTotalSize", live, family.compaction.universal.stop_style, Range::Text("kCompactionStopStyleSimilarSize, kCompactionStopStyleTotalSize"), "Whether the next run is compared with the run before it, or with all of them together."),
    uses!("allow_trivial_move", "false", live, family.compaction.universal.allow_trivial_move, Range::Flag, "Tables whose key ranges do not overlap are moved, not rewritten."),
    uses!("incremental", "false", live, family.compaction.universal.incremental, Range::Flag, "A merge because of space amplification goes in parts: a window of the second oldest run and what it overlaps in the oldest."),
    unserved!("compression_size_percent", "-1", live, "All tables are compressed alike."),
    unserved!("max_read_amp", "-1", live, "The number of runs is bounded by level0_file_num_compaction_trigger."),
    ignored!("reduce_file_locking", "true", live, "A compaction claims its tables when it begins."),
];

#[rustfmt::skip]
pub(super) const FIFO: &[Row<Options>] = &[
    uses!("max_table_files_size", "1073741824", live, family.compaction.fifo.max_table_files_size, Range::Whole(1, u64::MAX, "bytes"), "The oldest tables are deleted when all tables together are larger."),
    uses!("allow_compaction", "false", live, family.compaction.fifo.allow_compaction, Range::Flag, "Small tables are merged, so that reads search fewer."),
    unserved!("max_data_files_size", "0", live, "max_table_files_size holds; blob files do not count."),
    unserved!("age_for_warm", "0", live, "AshlarDB does not distinguish kinds of storage."),
    unserved!("file_temperature_age_thresholds", "", live, "AshlarDB does not distinguish kinds of storage."),
    ignored!("allow_trivial_copy_when_change_temperature", "false", live, "AshlarDB does not distinguish kinds of storage."),
    ignored!("trivial_copy_buffer_size", "4096", live, "AshlarDB does not distinguish kinds of storage."),
    unserved!("use_kv_ratio_compaction", "false", live, "Tables are merged by their sizes."),
    ignored!("ttl", "", live, "RocksDB has dropped it as an option of FIFO compaction."),
];

#[rustfmt::skip]
pub(super) const METADATA_CACHE: &[Row<Options>] = &[
    ignored!("top_level_index_pinning", "kFallback", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
    ignored!("partition_pinning", "kFallback", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
    ignored!("unpartitioned_pinning", "kFallback", open, "Index and filter stay in memory while their table is open. Only lack of memory or max_open_files closes a table, the least recently read one first."),
];

/// The members of an object.
pub(super) fn members(text: &str) -> Result<Vec<(String, String)>, Wrong> {
    split_object(text).map_err(|e| e.to_string())
}

fn set_members(rows: &[Row<Options>], options: &mut Options, text: &str) -> Result<(), Wrong> {
    members(text)?.iter().try_for_each(|(name, value)| set_member(rows, options, name, value))
}

/// Sets one member of an object.
pub(super) fn set_member(
    rows: &[Row<Options>],
    options: &mut Options,
    name: &str,
    value: &str,
) -> Result<(), Wrong> {
    let row = rows.iter().find(|row| row.name == name).ok_or_else(|| format!("it has no member {name}"))?;
    row.set(options, value).map(drop).map_err(|e| match e {
        NotTaken::Wrong(why) => format!("{name}: {why}"),
        NotTaken::Refused => format!("{name}={value} is refused: {}", row.text),
    })
}

/// `{level=…;…}`, or RocksDB's older `window_bits:level:strategy[:max_dict_bytes[:zstd_max_train_bytes…]]`.
pub(super) fn set_compression(options: &mut Options, text: &str) -> Result<(), Wrong> {
    const IN_ORDER: [&str; 5] =
        ["window_bits", "level", "strategy", "max_dict_bytes", "zstd_max_train_bytes"];
    if text.contains('=') || !text.contains(':') {
        return set_members(COMPRESSION, options, text);
    }
    let pairs: String = IN_ORDER.iter().zip(text.split(':')).map(|(n, v)| format!("{n}={v};")).collect();
    set_members(COMPRESSION, options, &pairs)
}

/// `{level=…;…}` for blob files, which take no dictionary.
pub(super) fn set_blob_compression(options: &mut Options, text: &str) -> Result<(), Wrong> {
    let mut other = options.clone();
    set_members(COMPRESSION, &mut other, text)?;
    options.family.blob.compression_level = other.family.table.compression_level;
    Ok(())
}

/// The members that mean something to us, for an OPTIONS file: all releases know them.
pub(super) fn show_compression(options: &Options) -> String {
    show_members(COMPRESSION, options)
}

/// `None` at the defaults, which are RocksDB's: the OPTIONS file of many families stays short. A stored text is replaced.
pub(super) fn show_universal(options: &Options) -> Option<String> {
    let is_default = options.family.compaction.universal == UniversalOptions::default();
    let stored = options.family.kept.get("compaction_options_universal").is_some();
    (!is_default || stored).then(|| show_members(UNIVERSAL, options))
}

/// As [`show_universal`].
pub(super) fn show_fifo(options: &Options) -> Option<String> {
    let is_default = options.family.compaction.fifo == FifoOptions::default();
    let stored = options.family.kept.get("compaction_options_fifo").is_some();
    (!is_default || stored).then(|| show_members(FIFO, options))
}

fn show_members(rows: &[Row<Options>], options: &Options) -> String {
    let shown = |row: &Row<Options>| Some(format!("{}={};", row.name, (row.setting()?.show)(options)?));
    format!("{{{}}}", rows.iter().filter_map(shown).collect::<String>())
}

pub(super) fn set_universal(options: &mut Options, text: &str) -> Result<(), Wrong> {
    set_members(UNIVERSAL, options, text)
}

pub(super) fn set_fifo(options: &mut Options, text: &str) -> Result<(), Wrong> {
    set_members(FIFO, options, text)
}

pub(super) fn set_metadata_cache(options: &mut Options, text: &str) -> Result<(), Wrong> {
    set_members(METADATA_CACHE, options, text)
}

/// Compression options of their own that are not switched on.
pub(super) fn not_enabled(text: &str) -> bool {
    split_object(text).is_ok() && !matches!(member(text, "enabled").as_deref(), Some("true" | "1"))
}

//! The OPTIONS file: what we write for tools that load it, under RocksDB's names.
//!
//! Only names that the oldest release of any format level knows are written. Opening never depends on the file.

use super::{DbOptions, FamilyOptions};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::filename::FileKind;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind};
use ashlar_format::table::{ChecksumKind, IndexKind};
use std::path::Path;

/// The file for these settings, families in id order (`default` first).
pub(crate) fn options_file(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> OptionsFile {
    let mut file = OptionsFile::default();
    let mut version = Section::new(SectionKind::Version);
    version.push("rocksdb_version", db.format_level.release());
    version.push("options_file_version", "1.1");
    file.sections.push(version);
    let mut section = Section::new(SectionKind::Db);
    section.push("create_if_missing", flag(db.create_if_missing));
    section.push("error_if_exists", flag(db.error_if_exists));
    section.push("max_total_wal_size", db.max_total_wal_bytes.to_string());
    section.push("wal_recovery_mode", recovery_mode(db));
    if db.wal_compression != Compression::None {
        section.push("wal_compression", compression(db.wal_compression));
    }
    file.sections.push(section);
    for (name, options) in families {
        file.sections.push(family_section(name, options));
        file.sections.push(table_section(name, options));
    }
    file
}

fn family_section(name: &str, options: &FamilyOptions) -> Section {
    let c = &options.compaction;
    let mut s = Section::new(SectionKind::Family { name: name.to_owned() });
    s.push("comparator", options.order.name());
    s.push("merge_operator", options.merge_operator.as_ref().map_or("nullptr", |m| m.name()));
    s.push("write_buffer_size", options.write_buffer_bytes.to_string());
    s.push("max_write_buffer_number", options.max_write_buffers.to_string());
    s.push("compression", compression(options.table.compression));
    if !options.table.compression_per_level.is_empty() {
        let names: Vec<&str> = options.table.compression_per_level.iter().map(|c| compression(*c)).collect();
        s.push("compression_per_level", names.join(":"));
    }
    if let Some(bottommost) = options.table.bottommost_compression {
        s.push("bottommost_compression", compression(bottommost));
    }
    if options.table.max_dict_bytes > 0 {
        let (dict, train) = (options.table.max_dict_bytes, options.table.zstd_max_train_bytes);
        s.push("compression_opts", format!("{{max_dict_bytes={dict};zstd_max_train_bytes={train};}}"));
    }
    s.push("num_levels", c.num_levels.to_string());
    s.push("level0_file_num_compaction_trigger", c.l0_trigger.to_string());
    s.push("level0_slowdown_writes_trigger", c.l0_slowdown.to_string());
    s.push("level0_stop_writes_trigger", c.l0_stop.to_string());
    s.push("target_file_size_base", c.target_file_bytes.to_string());
    s.push("max_bytes_for_level_base", c.base_level_bytes.to_string());
    s.push("max_bytes_for_level_multiplier", format!("{:.6}", c.level_multiplier));
    s.push("level_compaction_dynamic_level_bytes", "true");
    s.push("disable_auto_compactions", flag(!c.automatic));
    s
}

fn table_section(name: &str, options: &FamilyOptions) -> Section {
    let t = &options.table;
    let mut s =
        Section::new(SectionKind::Table { kind: "BlockBasedTable".to_owned(), family: name.to_owned() });
    s.push("block_size", t.block_size.to_string());
    s.push("block_restart_interval", t.block_restart_interval.to_string());
    s.push("format_version", t.format_version.to_string());
    s.push("index_block_restart_interval", t.index_restart_interval.to_string());
    s.push("index_type", index_type(t.index));
    s.push("metadata_block_size", t.metadata_block_size.to_string());
    s.push("partition_filters", flag(t.partition_filters));
    if let Some(ratio) = t.data_block_hash_ratio {
        s.push("data_block_index_type", "kDataBlockBinaryAndHash");
        s.push("data_block_hash_table_util_ratio", format!("{ratio:.6}"));
    }
    s.push("checksum", checksum(t.checksum));
    s.push("filter_policy", t.filter.map_or("nullptr".to_owned(), filter_policy));
    s
}

fn flag(on: bool) -> &'static str {
    if on { "true" } else { "false" }
}

fn compression(c: Compression) -> &'static str {
    match c {
        Compression::None => "kNoCompression",
        Compression::Snappy => "kSnappyCompression",
        Compression::Zlib => "kZlibCompression",
        Compression::Bzip2 => "kBZip2Compression",
        Compression::Lz4 => "kLZ4Compression",
        Compression::Lz4hc => "kLZ4HCCompression",
        Compression::Zstd => "kZSTD",
        _ => "kNoCompression",
    }
}

fn index_type(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::BinarySearch => "kBinarySearch",
        IndexKind::HashSearch => "kHashSearch",
        IndexKind::TwoLevel => "kTwoLevelIndexSearch",
        IndexKind::BinarySearchWithFirstKey => "kBinarySearchWithFirstKey",
    }
}

fn checksum(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::None => "kNoChecksum",
        ChecksumKind::Crc32c => "kCRC32c",
        ChecksumKind::XxHash32 => "kxxHash",
        ChecksumKind::XxHash64 => "kxxHash64",
        ChecksumKind::Xxh3 => "kXXH3",
    }
}

fn filter_policy(policy: FilterPolicy) -> String {
    match policy {
        // Older releases ask for the third field.
        FilterPolicy::Bloom { bits_per_key } => format!("bloomfilter:{bits_per_key}:false"),
        ribbon => ribbon.to_string(),
    }
}

fn recovery_mode(db: &DbOptions) -> &'static str {
    use ashlar_log::RecoveryMode;
    match db.recovery_mode {
        RecoveryMode::TolerateTail => "kTolerateCorruptedTailRecords",
        RecoveryMode::Absolute => "kAbsoluteConsistency",
        RecoveryMode::PointInTime => "kPointInTimeRecovery",
        RecoveryMode::SkipAny => "kSkipAnyCorruptedRecords",
    }
}

/// Writes the file as `OPTIONS-<number>`: under a temporary name first, so that a reader never sees half of it.
pub(crate) fn write_options_file(
    env: &Env,
    dir: &Path,
    file: &OptionsFile,
    temp: FileNumber,
    number: FileNumber,
) -> Result<()> {
    let text = file.print();
    OptionsFile::parse(&text)
        .map_err(|e| Error::invalid("the settings do not make a valid OPTIONS file").because(e))?;
    let temp = dir.join(FileKind::OptionsTemp(temp).name());
    let out = env.fs.create(&temp)?;
    out.write_at(text.as_bytes(), 0)?;
    out.sync_all()?;
    drop(out);
    env.fs.rename(&temp, &dir.join(FileKind::Options(number).name()))?;
    env.fs.sync_dir(dir)
}

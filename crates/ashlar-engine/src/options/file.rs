//! The OPTIONS file: what we write for tools that load it, under RocksDB's names.
//!
//! Only names that the oldest release of any format level knows are written. Opening never depends on the file.

use super::{DbOptions, FamilyOptions};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind};
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
    let filter = match t.bloom_bits_per_key {
        Some(bits) => format!("bloomfilter:{bits}:false"),
        None => "nullptr".to_owned(),
    };
    s.push("filter_policy", filter);
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
        Compression::Lz4 => "kLZ4Compression",
        Compression::Zstd => "kZSTD",
        _ => "kNoCompression",
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

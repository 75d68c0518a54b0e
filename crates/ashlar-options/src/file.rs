//! Writes the OPTIONS file under RocksDB's names, for the next open and for tools that load it.
//!
//! Settings of an older file that the engine does not act on are copied unchanged (see `kept`). Settings of the engine
//! that RocksDB has no name for are in a comment block, which RocksDB skips. At a format level below the default, the
//! file has only names that the level's release knows.
//!
//! Each creation of a family writes the whole file. So that N families cost N texts and not N², each family keeps its
//! own part (`FamilyText`) until its settings change.

use super::family::BLOCK_BASED;
use super::kept::Carry;
use super::paths::own_lines;
use super::{DbOptions, FamilyOptions, Group, KeptTexts, Options};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind};
use std::path::Path;
use std::sync::Arc;

/// Every file needs this family, and every family needs a section of tables.
const SMALLEST_FAMILY: &str = "[CFOptions \"default\"]\n[TableOptions/BlockBasedTable \"default\"]\n";

/// The file for these settings, families in id order (`default` first).
pub fn options_file(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> OptionsFile {
    let mut file = options_head(db, families);
    file.sections.extend(families.iter().flat_map(|(name, family)| family_sections(db, name, family)));
    file
}

/// The sections before those of the families.
fn options_head(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> OptionsFile {
    let mut file = OptionsFile { own: own_settings(db, families), ..OptionsFile::default() };
    let carry = Carry::new(db.format_level, &db.stored_release);
    let mut version = Section::new(SectionKind::Version);
    version.push("rocksdb_version", carry.release.clone());
    version.push("options_file_version", "1.1");
    file.sections.push(version);
    let options = Options { db: db.clone(), ..Options::default() };
    let entries = options.next_texts(Group::Database, &db.kept, &carry);
    file.sections.push(Section { kind: SectionKind::Db, entries });
    file
}

/// The sections of a family.
fn family_sections(db: &DbOptions, name: &str, family: &FamilyOptions) -> Vec<Section> {
    let carry = Carry::new(db.format_level, &db.stored_release);
    let options = Options { db: db.clone(), family: family.clone() };
    let section =
        |kind, group, kept: &KeptTexts| Section { kind, entries: options.next_texts(group, kept, &carry) };
    let kind = SectionKind::Family { name: name.to_owned() };
    let mut sections = vec![section(kind, Group::Family, &family.kept)];
    let table = |kind: &str| SectionKind::Table { kind: kind.to_owned(), family: name.to_owned() };
    if family.kept_tables.is_empty() {
        sections.push(section(table(BLOCK_BASED), Group::Table, &KeptTexts::default()));
    }
    for (kind, kept) in &family.kept_tables {
        sections.push(match kind == BLOCK_BASED {
            true => section(table(kind), Group::Table, kept),
            false => as_it_stood(table(kind), kept),
        });
    }
    sections
}

/// A family's part of the file, checked, and the settings in it.
#[derive(Debug)]
pub struct FamilyText {
    of: Arc<FamilyOptions>,
    text: String,
}

impl FamilyText {
    /// Whether it holds these very settings, and not others that are equal.
    pub fn tells(&self, options: &Arc<FamilyOptions>) -> bool {
        Arc::ptr_eq(&self.of, options)
    }

    /// # Errors
    /// `InvalidArgument`: the settings give no valid file.
    pub fn new(db: &DbOptions, name: &str, options: &Arc<FamilyOptions>) -> Result<FamilyText> {
        let sections = family_sections(db, name, options);
        let mut text = String::new();
        sections.iter().for_each(|section| section.print_to(&mut text));
        let before =
            if name == "default" { "[DBOptions]\n" } else { "[DBOptions]\n[CFOptions \"default\"]\n" };
        check(&format!("{before}{text}"))?;
        Ok(FamilyText { of: Arc::clone(options), text })
    }
}

/// The settings as RocksDB's info log lists them, a line each, such as `Options.ttl: 0`.
///
/// Source: RocksDB `options/db_options.cc`, `options/cf_options.cc` (the form of the lines).
pub fn log_lines(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> Vec<String> {
    let mut lines = Vec::new();
    for section in options_file(db, families).sections {
        let before = match &section.kind {
            SectionKind::Version => continue,
            SectionKind::Db => "Options.",
            SectionKind::Family { name } => {
                lines.push(format!("--------------- Options for column family [{name}]:"));
                "Options."
            }
            SectionKind::Table { .. } => "  ",
        };
        lines.extend(section.entries.iter().map(|(name, value)| log_line(before, name, value)));
    }
    lines
}

/// The log has 1 and 0 where the file has true and false.
fn log_line(before: &str, name: &str, value: &str) -> String {
    let value = match value {
        "true" => "1",
        "false" => "0",
        other => other,
    };
    format!("{before}{name}: {value}")
}

/// The text of the file for these settings and families, in id order (`default` first).
///
/// # Errors
/// `InvalidArgument`: the settings give no valid file.
pub fn options_text(
    db: &DbOptions,
    families: &[(&str, &FamilyOptions)],
    texts: &[Arc<FamilyText>],
) -> Result<String> {
    let mut text = options_head(db, families).print();
    check(&format!("{text}{SMALLEST_FAMILY}"))?;
    texts.iter().for_each(|family| text.push_str(&family.text));
    Ok(text)
}

fn check(text: &str) -> Result<()> {
    let parsed = OptionsFile::parse(text);
    parsed.map_err(|e| Error::invalid("the settings do not make a valid OPTIONS file").because(e))?;
    Ok(())
}

/// A section for a kind of table that the engine does not write.
fn as_it_stood(kind: SectionKind, kept: &KeptTexts) -> Section {
    Section { kind, entries: kept.iter().map(|text| (text.name.clone(), text.text.clone())).collect() }
}

/// Settings for which no RocksDB stores a name.
fn own_settings(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> Vec<(String, String)> {
    let sizes = [
        ("memory_bytes", db.memory_bytes),
        ("block_cache_bytes", db.block_cache_bytes),
        ("scrub_bytes_per_second", db.scrub_bytes_per_second),
    ];
    // Only where they are set: an older version reports lines that it does not know.
    let limits = [("disk_quota_bytes", db.disk_quota_bytes), ("disk_reserve_bytes", db.disk_reserve_bytes)];
    let sizes = sizes.into_iter().chain(limits.into_iter().filter(|(_, bytes)| *bytes > 0));
    let sizes = sizes.map(|(name, bytes)| (name.to_owned(), bytes.to_string()));
    let mapped_wal = ("mapped_wal".to_owned(), db.mapped_wal.to_string());
    let families: Vec<_> = families.iter().map(|(name, family)| (*name, &*family.cf_paths)).collect();
    sizes.chain([mapped_wal]).chain(own_lines(&db.db_paths, &families)).collect()
}

/// Writes the file as `OPTIONS-<number>`: under a temporary name first, so that a reader never sees half of it.
pub fn write_options_file(
    env: &Env,
    dir: &Path,
    file: &OptionsFile,
    temp: FileNumber,
    number: FileNumber,
) -> Result<()> {
    let text = file.print();
    check(&text)?;
    write_options_text(env, dir, &text, temp, number)
}

/// [`write_options_file`] with a text that was checked.
pub fn write_options_text(
    env: &Env,
    dir: &Path,
    text: &str,
    temp: FileNumber,
    number: FileNumber,
) -> Result<()> {
    let temp = dir.join(FileKind::OptionsTemp(temp).name());
    let write = || -> Result<()> {
        let out = env.fs.create(&temp)?;
        out.write_at(text.as_bytes(), 0)?;
        out.sync_all()?;
        drop(out);
        env.fs.rename(&temp, &dir.join(FileKind::Options(number).name()))
    };
    if let Err(e) = write() {
        // Best effort: the purge removes what stays.
        let _ = env.fs.remove(&temp);
        return Err(e);
    }
    env.fs.sync_dir(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_lists_the_settings() {
        let family = FamilyOptions::default();
        let lines = log_lines(&DbOptions::default(), &[("default", &family), ("other", &family)]);
        let has = |line: &str| lines.iter().filter(|l| *l == line).count();
        assert_eq!(has("Options.max_open_files: -1"), 1, "{lines:?}");
        assert_eq!(has("Options.paranoid_file_checks: 0"), 2, "{lines:?}");
        assert_eq!(has("  index_block_restart_interval: 1"), 2, "{lines:?}");
        assert_eq!(has("--------------- Options for column family [other]:"), 1);
        assert!(!lines.iter().any(|line| line.contains("rocksdb_version")));
    }
}

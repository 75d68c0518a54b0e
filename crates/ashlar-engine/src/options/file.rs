//! The OPTIONS file: what we write for the next open and for tools that load it, under RocksDB's names.
//!
//! What an older file held that we do not act on stands in it as it stood (see `kept`). Settings of ours that RocksDB has
//! no name for stand in a comment block, which it skips. At a format level below the default, only names that the level's
//! release knows are written.

use super::family::BLOCK_BASED;
use super::kept::Carry;
use super::paths::own_lines;
use super::{DbOptions, FamilyOptions, Group, KeptTexts, Options};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind};
use std::path::Path;

/// The file for these settings, families in id order (`default` first).
pub(crate) fn options_file(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> OptionsFile {
    let mut file = OptionsFile { own: own_settings(db, families), ..OptionsFile::default() };
    let carry = Carry::new(db.format_level, &db.stored_release);
    let mut version = Section::new(SectionKind::Version);
    version.push("rocksdb_version", carry.release.clone());
    version.push("options_file_version", "1.1");
    file.sections.push(version);
    let mut options = Options { db: db.clone(), ..Options::default() };
    let section = |kind, group, options: &Options, kept: &KeptTexts| Section {
        kind,
        entries: options.next_texts(group, kept, &carry),
    };
    file.sections.push(section(SectionKind::Db, Group::Database, &options, &db.kept));
    for (name, family) in families {
        options.family = (*family).clone();
        let name = (*name).to_owned();
        let kind = SectionKind::Family { name: name.clone() };
        file.sections.push(section(kind, Group::Family, &options, &family.kept));
        let table = |kind: &str| SectionKind::Table { kind: kind.to_owned(), family: name.clone() };
        if family.kept_tables.is_empty() {
            file.sections.push(section(table(BLOCK_BASED), Group::Table, &options, &KeptTexts::default()));
        }
        for (kind, kept) in &family.kept_tables {
            file.sections.push(match kind == BLOCK_BASED {
                true => section(table(kind), Group::Table, &options, kept),
                false => as_it_stood(table(kind), kept),
            });
        }
    }
    file
}

/// A section of tables that are none of ours.
fn as_it_stood(kind: SectionKind, kept: &KeptTexts) -> Section {
    Section { kind, entries: kept.iter().map(|text| (text.name.clone(), text.text.clone())).collect() }
}

/// Settings that no RocksDB has a stored name for.
fn own_settings(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> Vec<(String, String)> {
    let sizes = [
        ("memory_bytes", db.memory_bytes),
        ("block_cache_bytes", db.block_cache_bytes),
        ("scrub_bytes_per_second", db.scrub_bytes_per_second),
    ];
    let sizes = sizes.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_string()));
    let families: Vec<_> = families.iter().map(|(name, family)| (*name, &*family.cf_paths)).collect();
    sizes.chain(own_lines(&db.db_paths, &families)).collect()
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

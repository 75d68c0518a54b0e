//! The OPTIONS file: what we write for tools that load it, under RocksDB's names.
//!
//! Only names that the format level's release knows are written; settings without a name there stand in a comment block,
//! which RocksDB skips. Opening never depends on the file's tuning.

use super::{DbOptions, FamilyOptions, Group, Options};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind, escape};
use std::path::Path;

/// The file for these settings, families in id order (`default` first).
pub(crate) fn options_file(db: &DbOptions, families: &[(&str, &FamilyOptions)]) -> OptionsFile {
    let mut file = OptionsFile { own: own_settings(db), ..OptionsFile::default() };
    let mut version = Section::new(SectionKind::Version);
    version.push("rocksdb_version", db.format_level.release());
    version.push("options_file_version", "1.1");
    file.sections.push(version);
    let mut options = Options { db: db.clone(), ..Options::default() };
    file.sections.push(section(SectionKind::Db, Group::Database, &options));
    for (name, family) in families {
        options.family = (*family).clone();
        let name = (*name).to_owned();
        file.sections.push(section(SectionKind::Family { name: name.clone() }, Group::Family, &options));
        let kind = SectionKind::Table { kind: "BlockBasedTable".to_owned(), family: name };
        file.sections.push(section(kind, Group::Table, &options));
    }
    file
}

fn section(kind: SectionKind, group: Group, options: &Options) -> Section {
    let mut section = Section::new(kind);
    for (name, value) in options.stored(group) {
        // A colon may stand as it is: it separates the parts of a list.
        section.push(name, escape(&value).replace("\\:", ":"));
    }
    section
}

/// Settings that no RocksDB has a stored name for.
fn own_settings(db: &DbOptions) -> Vec<(String, String)> {
    let sizes = [
        ("memory_bytes", db.memory_bytes),
        ("block_cache_bytes", db.block_cache_bytes),
        ("scrub_bytes_per_second", db.scrub_bytes_per_second),
    ];
    sizes.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_string())).collect()
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

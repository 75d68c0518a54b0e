//! The files that a copy of a database needs: tables and blob files of its MANIFEST, and WAL files up to the moment.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_engine::Moment;
use ashlar_env::{Fs, FsEntry};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::recorded_crc32c;
use ashlar_tree::version::{Replayed, ReplayedFamily};
use std::collections::BTreeMap;
use std::path::Path;

/// A file of a copy.
pub(super) struct Part {
    pub(super) kind: FileKind,
    pub(super) name: String,
    /// The bytes that the copy needs.
    pub(super) bytes: u64,
    /// The CRC-32C that the MANIFEST has for the file.
    pub(super) recorded: Option<u32>,
}

/// The files of a directory by name.
pub(super) fn files_of(fs: &dyn Fs, dir: &Path) -> Result<BTreeMap<String, FsEntry>> {
    Ok(fs.files(dir)?.into_iter().map(|entry| (entry.name.clone(), entry)).collect())
}

/// The tables, blob files and WAL files that the MANIFEST needs. `there`: the files of the database in `from`.
///
/// # Errors
/// `Corruption`: a file is missing. `NotSupported`: tables are in several directories.
pub(super) fn parts(
    from: &Path,
    replayed: &Replayed,
    moment: &Moment,
    there: &BTreeMap<String, FsEntry>,
) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for family in replayed.families.values() {
        if family.tree.beyond_path(1).is_some() {
            return Err(Error::not_supported("a copy of tables in several directories (db_paths)"));
        }
        for number in family.tree.table_numbers() {
            let either = [FileKind::Table(number), FileKind::LevelDbTable(number)];
            parts.push(Part { recorded: recorded(family, number), ..part(from, &either, there)? });
        }
        for number in family.tree.live_blob_numbers() {
            let found = part(from, &[FileKind::Blob(number)], there)?;
            parts.push(Part { recorded: recorded(family, number), ..found });
        }
    }
    let needed = |number: FileNumber| number >= replayed.logs_from() || number == replayed.db.prev_log;
    let last = moment.wals.last().map(|(number, _)| *number).filter(|_| planted(Bug::CopyWithoutLastLog));
    for (number, bytes) in moment.wals.iter().filter(|(number, _)| needed(*number) && last != Some(*number)) {
        parts.push(Part { bytes: *bytes, ..part(from, &[FileKind::Wal(*number)], there)? });
    }
    // Files of earlier sessions that were not replayed into tables. A number above is that of a later switch.
    let first = moment.wals.first().map(|(number, _)| *number).unwrap_or_default();
    for name in there.keys() {
        let Some(kind @ FileKind::Wal(number)) = FileKind::parse_exact(name) else { continue };
        if number < first && needed(number) {
            parts.push(part(from, &[kind], there)?);
        }
    }
    Ok(parts)
}

fn recorded(family: &ReplayedFamily, number: FileNumber) -> Option<u32> {
    let (function, sum) = family.tree.recorded_checksum(number)?;
    recorded_crc32c(function, sum)
}

fn part(from: &Path, names: &[FileKind], there: &BTreeMap<String, FsEntry>) -> Result<Part> {
    let found = names.iter().find_map(|kind| Some((kind, there.get(&kind.name())?)));
    if let Some((kind, entry)) = found {
        return Ok(Part { kind: *kind, name: entry.name.clone(), bytes: entry.len, recorded: None });
    }
    let name = names.first().map(|kind| kind.name()).unwrap_or_default();
    Err(Error::corruption("a file of the database is missing").at_path(&from.join(name)))
}

/// The name of the OPTIONS file with the highest number.
pub(super) fn newest_options(there: &BTreeMap<String, FsEntry>) -> Option<&str> {
    let numbered = there.keys().filter_map(|name| match FileKind::parse_exact(name) {
        Some(FileKind::Options(number)) => Some((number, name.as_str())),
        _ => None,
    });
    numbered.max().map(|(_, name)| name)
}

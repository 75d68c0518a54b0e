//! A first look at a directory, without changing it: does it hold a database, may one be created?

use crate::version::{candidates, read_current};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::{EntryKind, Fs, FsEntry};
use ashlar_format::filename::FileKind;
use std::path::Path;

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirState {
    /// It does not exist.
    Absent,
    /// It holds no database; one may be created there.
    Empty,
    /// It holds a database whose `CURRENT` names this MANIFEST.
    Database(FileNumber),
}

impl DirState {
    /// The MANIFEST that `CURRENT` names, if there is a database.
    pub fn manifest(self) -> Option<FileNumber> {
        match self {
            DirState::Database(manifest) => Some(manifest),
            DirState::Absent | DirState::Empty => None,
        }
    }
}

/// Determines what `dir` holds.
///
/// # Errors
/// `InvalidArgument`: not a directory, or a file without `CURRENT` that the first open would delete and that no
/// interrupted creation leaves. `Corruption`: `CURRENT` is damaged, or WAL files, tables or blob files exist without
/// `CURRENT`: something is lost, and a new database would delete the rest.
pub fn survey(fs: &dyn Fs, dir: &Path) -> Result<DirState> {
    match fs.metadata(dir)? {
        None => return Ok(DirState::Absent),
        Some(entry) if entry.kind == EntryKind::File => {
            return Err(Error::invalid("the path of a database is a file, not a directory").at_path(dir));
        }
        Some(_) => {}
    }
    if let Some(manifest) = read_current(fs, dir)? {
        return Ok(DirState::Database(manifest));
    }
    let entries = fs.files(dir)?;
    let data = entries.iter().find(|e| {
        matches!(
            FileKind::parse(&e.name),
            Some(FileKind::Wal(_) | FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_))
        )
    });
    match data {
        None => match entries.iter().find(|e| is_in_the_way(fs, dir, e)) {
            None => Ok(DirState::Empty),
            Some(entry) => Err(Error::invalid(format!(
                "there is no database, but a file with a name of a database's files ({})",
                entry.name
            ))
            .at_path(dir)
            .hint("Move it elsewhere or rename it, or make the database in another directory")),
        },
        Some(entry) => Err(Error::corruption(format!("no CURRENT, but data of a database ({})", entry.name))
            .at_path(dir)
            .hint(candidates(fs, dir))),
    }
}

/// An interrupted creation leaves files with this number, and a MANIFEST no longer than the next constant.
const BEGINNING: FileNumber = FileNumber(1);
const BEGINNING_BYTES: u64 = 64 << 10;

/// Whether creating a database would overwrite this file, or the first open would delete it, although no interrupted
/// creation left it.
fn is_in_the_way(fs: &dyn Fs, dir: &Path, entry: &FsEntry) -> bool {
    match FileKind::parse_exact(&entry.name) {
        Some(FileKind::Manifest(BEGINNING)) => {
            entry.len > BEGINNING_BYTES || !is_begun(fs, &dir.join(&entry.name))
        }
        Some(FileKind::Manifest(_)) => true,
        Some(FileKind::Temp(number)) => number > BEGINNING,
        _ => false,
    }
}

/// Whether a file may be a MANIFEST that a crash left incomplete: the type of its first record is missing, zero or that
/// of a whole record. An unreadable file counts too, so that the creation reports the error.
fn is_begun(fs: &dyn Fs, path: &Path) -> bool {
    /// The type of a record follows its checksum and its length.
    const TYPE_AT: u64 = 6;
    let Ok(file) = fs.open_read(path) else { return true };
    let mut type_byte = [0];
    file.len() <= TYPE_AT
        || file.read_exact_at(&mut type_byte, TYPE_AT).is_err()
        || matches!(type_byte, [0 | 1])
}

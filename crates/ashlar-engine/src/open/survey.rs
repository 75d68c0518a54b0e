//! A first look at a directory, without touching it: is there a database, may one be made?

use crate::version::{candidates, read_current};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::{EntryKind, Fs};
use ashlar_format::filename::FileKind;
use std::path::Path;

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirState {
    /// It does not exist.
    Absent,
    /// It holds no database; one may be made there.
    Empty,
    /// It holds a database whose `CURRENT` names this MANIFEST.
    Database(FileNumber),
}

impl DirState {
    /// The MANIFEST in force, if there is a database.
    pub fn manifest(self) -> Option<FileNumber> {
        match self {
            DirState::Database(manifest) => Some(manifest),
            DirState::Absent | DirState::Empty => None,
        }
    }
}

/// Looks at `dir`.
///
/// # Errors
/// `InvalidArgument`: not a directory. `Corruption`: `CURRENT` is damaged, or there is none beside logs, tables or blob
/// files: something is lost, and a new database would delete the rest.
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
    let data = fs.files(dir)?.into_iter().find(|e| {
        matches!(
            FileKind::parse(&e.name),
            Some(FileKind::Wal(_) | FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_))
        )
    });
    match data {
        None => Ok(DirState::Empty),
        Some(entry) => Err(Error::corruption(format!("no CURRENT, but data of a database ({})", entry.name))
            .at_path(dir)
            .hint(candidates(fs, dir))),
    }
}

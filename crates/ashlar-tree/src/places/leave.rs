//! The directories beside a database that is being removed.
//!
//! 1. Only a directory whose `OWNER` names this database is emptied: each open for writing leaves that file. Without the file a
//!    directory with tables, blob files or WAL files is refused, because they may be those of another database.
//! 2. `OWNER` goes last. So a second removal recognises what an interrupted one has left.
//! 3. Files of other kinds stay: no database of RocksDB keeps them beside its directory.

use super::entered::take_place;
use super::given::Purpose;
use super::namespace::same_directory;
use super::owner::{OWNER, Owner, id_of};
use super::stored_places::newest_places;
use crate::files::archive_beside;
use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, FileLock, Fs};
use ashlar_format::filename::FileKind;
use std::path::{Path, PathBuf};

/// A directory that a database leaves. It is locked.
pub struct Leaving {
    place: PathBuf,
    _lock: Box<dyn FileLock>,
}

/// The directories beside `dir` that the database in it owns, by its newest OPTIONS file. Those that are missing, or that have
/// no file of a database, are left out.
///
/// # Errors
/// `NotSupported`: such a directory has files, and its `OWNER` does not name this database. `Busy(Locked)`. `Io`.
pub fn leave(fs: &dyn Fs, dir: &Path) -> Result<Vec<Leaving>> {
    let Some(stored) = newest_places(fs, dir, Purpose::Repair, &mut Vec::new())? else {
        return Ok(Vec::new());
    };
    let logs = stored.wal_dir.iter().chain(stored.next_beside()).map(PathBuf::from);
    let tables =
        stored.db_paths.iter().chain(stored.cf_paths.values().flatten()).map(|path| path.path.clone());
    let id = id_of(fs, dir)?;
    let is_own =
        |owner: &Owner| Some(&owner.id) == id.as_ref() && same_directory(fs, dir, Path::new(&owner.dir));
    let mut left: Vec<Leaving> = Vec::new();
    for place in logs.chain(tables) {
        let is_known = |known: &Leaving| same_directory(fs, &known.place, &place);
        if fs.metadata(&place)?.is_none() || same_directory(fs, dir, &place) || left.iter().any(is_known) {
            continue;
        }
        let found = Owner::read(fs, &place)?;
        if found.as_ref().is_some_and(is_own) {
            let lock = take_place(fs, &place, "a directory of the database")?;
            left.push(Leaving { place, _lock: lock });
        } else if has_data(fs, &place)? || has_data(fs, &archive_beside(&place))? {
            let whose =
                found.map_or("another database".to_owned(), |other| format!("the database in {}", other.dir));
            let e = Error::not_supported(format!("the files in {} may be those of {whose}", place.display()));
            return Err(e
                .at_path(dir)
                .hint("Open the database once for writing, or remove the files there and here by hand"));
        }
    }
    Ok(left)
}

/// Whether a file is one that a database keeps beside its directory.
fn is_data(name: &str) -> bool {
    use FileKind::{Blob, LevelDbTable, Table, Temp, Wal};
    matches!(FileKind::parse(name), Some(Wal(_) | Table(_) | LevelDbTable(_) | Blob(_) | Temp(_)))
}

fn has_data(fs: &dyn Fs, place: &Path) -> Result<bool> {
    let is_there = fs.metadata(place)?.is_some_and(|entry| entry.kind == EntryKind::Dir);
    Ok(is_there && fs.files(place)?.iter().any(|file| is_data(&file.name)))
}

impl Leaving {
    /// Removes the data of the database, durably.
    ///
    /// # Errors
    /// `Io`: some files may be left.
    pub fn empty(&self, fs: &dyn Fs) -> Result<()> {
        let archive = archive_beside(&self.place);
        for place in [archive.as_path(), &self.place] {
            if !has_data(fs, place)? {
                continue;
            }
            for file in fs.files(place)?.iter().filter(|file| is_data(&file.name)) {
                fs.remove(&place.join(&file.name))?;
            }
            fs.sync_dir(place)?;
        }
        Ok(())
    }

    /// Removes what marks the directory as the database's, and the directory, if nothing else is in it. Call after the database
    /// directory has no database any more.
    ///
    /// # Errors
    /// `Io`.
    pub fn give_up(self, fs: &dyn Fs) -> Result<()> {
        for name in [OWNER, FileKind::Lock.name().as_str()] {
            let path = self.place.join(name);
            if fs.metadata(&path)?.is_some() {
                fs.remove(&path)?;
            }
        }
        fs.sync_dir(&self.place)?;
        remove_empty(fs, &archive_beside(&self.place));
        remove_empty(fs, &self.place);
        Ok(())
    }
}

/// Removes a directory if it is empty. One that cannot be removed, such as a link or the root of a file system, stays: it has no
/// file of a database.
pub fn remove_empty(fs: &dyn Fs, dir: &Path) {
    if fs.list(dir).is_ok_and(|entries| entries.is_empty()) {
        let _ = fs.remove_dir(dir);
    }
}

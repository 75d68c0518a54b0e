//! The directory of a database. The engine holds a descriptor of it from the open on; the close checks that it is still
//! in place.

use super::LOST;
use super::unlink::begins_as_log;
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FileNumber, Result};
use ashlar_env::{EntryKind, Env, Fs, FsEntry};
use ashlar_format::filename::FileKind;
use std::path::Path;

/// `env` with a descriptor of `dir`: every path that begins with `dir` then leads to the directory that has this name
/// now, even after a rename or a change of the working directory. If there is no directory, the path stays as it is.
///
/// # Errors
/// `InvalidArgument`: the path is empty. `Io`: the directory cannot be opened.
pub fn hold_directory(env: &Env, dir: &Path) -> Result<Env> {
    check_named(dir)?;
    match env.fs.hold(dir) {
        Ok(fs) => Ok(Env { fs, ..env.clone() }),
        Err(e) if e.is_not_found() => Ok(env.clone()),
        Err(e) => match env.fs.metadata(dir)? {
            // The next access to the directory reports that it is a file.
            Some(entry) if entry.kind == EntryKind::File => Ok(env.clone()),
            _ => Err(e),
        },
    }
}

/// Whether the path of a database names anything.
///
/// # Errors
/// `InvalidArgument`: the path is empty.
pub fn check_named(dir: &Path) -> Result<()> {
    if dir.as_os_str().is_empty() {
        let e = Error::invalid("the path of the database is empty");
        return Err(e.hint("Name the directory; the working directory is \".\""));
    }
    Ok(())
}

/// Whether `lost` is a directory, or can be created as one.
pub fn lost_is_usable(fs: &dyn Fs, dir: &Path) -> Result<bool> {
    Ok(fs.metadata(&dir.join(LOST))?.is_none_or(|entry| entry.kind == EntryKind::Dir))
}

/// [`lost_is_usable`] as an error, for work that may have to move files.
///
/// # Errors
/// `InvalidArgument`: `lost` is not usable.
pub fn check_lost(fs: &dyn Fs, dir: &Path) -> Result<()> {
    if lost_is_usable(fs, dir)? {
        return Ok(());
    }
    let e = Error::invalid("damaged files have to be moved to lost, which is not a directory");
    Err(e.at_path(&dir.join(LOST)).hint("Move that file or link away"))
}

/// The subdirectories of `dir` that have the name of a database file, as text for a report.
pub fn misnamed(fs: &dyn Fs, dir: &Path) -> Result<Vec<String>> {
    let all = fs.list(dir)?.into_iter();
    let named = all.filter(|entry| entry.kind == EntryKind::Dir && FileKind::parse(&entry.name).is_some());
    Ok(named
        .map(|entry| format!("{} is a directory, not a file of the database: it is left alone", entry.name))
        .collect())
}

/// The subdirectories that are in the place of a WAL file which the database may need, with the file's number. `from`: the first WAL
/// file that it needs.
pub fn in_place_of_wals(entries: &[FsEntry], from: FileNumber) -> impl Iterator<Item = (FileNumber, &str)> {
    let files = entries.iter().filter(|entry| entry.kind != EntryKind::Dir);
    let newest = files.filter_map(|entry| FileKind::parse_exact(&entry.name)?.number()).max();
    // The numbers of WAL files are not above all others.
    let is_needed =
        move |number| number == from || number > from && newest.is_some_and(|newest| number < newest);
    entries.iter().filter(|entry| entry.kind == EntryKind::Dir).filter_map(
        move |entry| match FileKind::parse(&entry.name) {
            Some(FileKind::Wal(number)) if is_needed(number) => Some((number, &*entry.name)),
            _ => None,
        },
    )
}

/// Whether `dir` holds a file of a database: a file that only databases make, or a nonempty table, blob file or WAL
/// file. Other programs also write files called `NNNNNN.log`, so a WAL file counts only if it begins as one.
///
/// # Errors
/// `Io`.
pub fn holds_remains(fs: &dyn Fs, dir: &Path) -> Result<bool> {
    for entry in fs.files(dir)? {
        let remains = match FileKind::parse_exact(&entry.name) {
            Some(FileKind::Current | FileKind::Identity | FileKind::Manifest(_) | FileKind::Options(_)) => {
                true
            }
            Some(FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_)) => entry.len > 0,
            Some(FileKind::Wal(_)) if entry.len > 0 => {
                begins_as_log(&*fs.open_read(&dir.join(&entry.name))?)?
            }
            _ => false,
        };
        if remains {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that the directory and these files in it still exist.
///
/// # Errors
/// `Io(NotFound)`: what is missing, and what that may have lost. The path of a file in another directory is its real
/// one.
pub fn check_there(fs: &dyn Fs, dir: &Path, files: &[FileKind]) -> Result<()> {
    let gone = |what: &str, path: &Path| {
        let e = Error::new(
            ErrorKind::Io(IoKind::NotFound),
            format!("{what} was removed while the database was open; writes of this session may be lost"),
        );
        Err(e
            .at_path(path)
            .hint("Run \"ashlar db DIR check\" to see what is damaged, or restore the directory from a copy"))
    };
    // An error of the check itself proves nothing.
    let is_gone = |path: &Path| matches!(fs.metadata(path), Ok(None));
    if is_gone(dir) {
        return gone("the directory", dir);
    }
    for kind in files {
        let path = dir.join(kind.name());
        if is_gone(&path) {
            return gone("the file", &fs.real_path(&path));
        }
    }
    Ok(())
}

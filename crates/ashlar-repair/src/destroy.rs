//! Removing a database: every file of its directory that is a database's, and the directory if nothing else is in it.
//!
//! 1. The LOCK is held, so that no process has the database open.
//! 2. CURRENT goes first, and its removal is synced: an interrupted removal leaves no database that would open without its
//!    tables. A second call removes the rest.
//! 3. Names that no database uses stay, and keep the directory.
//! 4. A database whose tables or WAL files lie elsewhere is refused. Another database may use that directory too.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc` (`DestroyDB`).

use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_options::{find_latest_options, stored_places};
use ashlar_tree::files::{LOST, archive_beside};
use std::path::Path;

/// Removes the database in `dir`; without a directory there is nothing to do.
///
/// # Errors
/// `Busy(Locked)`: a process has the database open. `NotSupported`: the database has files in other directories.
/// `InvalidArgument`: there is no database in the directory. `Io`: a file could not be removed.
/// # Cost
/// A removal per file, and two syncs of the directory.
pub fn destroy(env: &Env, dir: &Path) -> Result<()> {
    if env.fs.metadata(dir)?.is_none() {
        return Ok(());
    }
    let fs = env.fs.hold(dir)?;
    let fs = &*fs;
    let files = fs.files(dir)?;
    let kinds = || files.iter().filter_map(|file| Some((file, FileKind::parse(&file.name)?)));
    let is_database = kinds().any(|(_, kind)| kind != FileKind::Lock);
    // A LOCK alone, or nothing, is left of a database that was being removed.
    if !is_database && kinds().count() < files.len() {
        return Err(Error::invalid("there is no database in this directory").at_path(dir));
    }
    let _lock = fs.lock(&dir.join(FileKind::Lock.name()))?;
    check_places(fs, dir)?;
    for (file, _) in kinds().filter(|(_, kind)| *kind == FileKind::Current) {
        fs.remove(&dir.join(&file.name))?;
        fs.sync_dir(dir)?;
    }
    for (file, _) in kinds().filter(|(_, kind)| ![FileKind::Current, FileKind::Lock].contains(kind)) {
        fs.remove(&dir.join(&file.name))?;
    }
    for below in [archive_beside(dir), dir.join(LOST)] {
        remove_below(fs, &below)?;
    }
    fs.remove(&dir.join(FileKind::Lock.name()))?;
    fs.sync_dir(dir)?;
    if fs.list(dir)?.is_empty() {
        env.fs.remove_dir(dir)?;
    }
    Ok(())
}

/// # Errors
/// `NotSupported`: the stored settings name another directory.
fn check_places(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let Some((_, options)) = find_latest_options(fs, dir)?.found else { return Ok(()) };
    let stored = stored_places(&options);
    let logs = [stored.wal_dir.as_ref(), stored.next_beside()].into_iter().flatten();
    let tables = stored.db_paths.iter().chain(stored.cf_paths.values().flatten());
    let elsewhere = logs.map(Into::into).chain(tables.map(|place| place.path.clone()));
    match elsewhere.into_iter().find(|place| fs.real_path(place) != fs.real_path(dir)) {
        None => Ok(()),
        Some(place) => {
            let e = Error::not_supported(format!("the database has files in {} too", place.display()));
            Err(e.at_path(dir).hint("Remove the files there and here by hand"))
        }
    }
}

/// Removes the files of a database in a directory below, and the directory if it is empty then.
fn remove_below(fs: &dyn Fs, below: &Path) -> Result<()> {
    if fs.metadata(below)?.is_none_or(|entry| entry.kind != EntryKind::Dir) {
        return Ok(());
    }
    for file in fs.files(below)? {
        if FileKind::parse(&file.name).is_some() {
            fs.remove(&below.join(&file.name))?;
        }
    }
    if fs.list(below)?.is_empty() { fs.remove_dir(below) } else { Ok(()) }
}

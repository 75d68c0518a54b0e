//! Removing a database: every file of its directories that is a database's, and each directory if nothing else is in it.
//!
//! 1. The LOCK is held, so that no process has the database open.
//! 2. CURRENT goes first, and its removal is synced: an interrupted removal leaves no database that would open without its
//!    tables. A second call removes the rest.
//! 3. Names that no database uses stay, and keep the directory.
//! 4. The directories of tables and WAL files beside that of the database are emptied, if this database owns them
//!    ([`ashlar_tree::places::leave()`]). IDENTITY and the OPTIONS files go after them, because a second call needs both to find
//!    these directories.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc` (`DestroyDB`).

use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{LOST, archive_beside};
use ashlar_tree::places::{leave, refuse_of_another, remove_empty};
use std::path::Path;

/// Removes the database in `dir`; without a directory there is nothing to do.
///
/// # Errors
/// `Busy(Locked)`: a process has the database open. `InvalidArgument`: there is no database in the directory. `NotSupported`: a
/// directory beside it may be that of another database; nothing was removed. `Io`: a file could not be removed; a second call
/// continues.
/// # Cost
/// A removal per file, and a few syncs of each directory.
pub fn destroy(env: &Env, dir: &Path) -> Result<()> {
    if env.fs.metadata(dir)?.is_none() {
        return Ok(());
    }
    let fs = env.fs.hold(dir)?;
    let fs = &*fs;
    refuse_of_another(fs, dir)?;
    let files = fs.files(dir)?;
    let kinds = || files.iter().filter_map(|file| Some((file, FileKind::parse(&file.name)?)));
    // Other names, such as CURRENT and those of tables, are those of other programs too.
    let proves = |kind| matches!(kind, FileKind::Manifest(_) | FileKind::Identity | FileKind::Options(_));
    let is_database = kinds().any(|(_, kind)| proves(kind));
    // A LOCK alone, or nothing, is left of a database that was being removed.
    let is_left = kinds().count() == files.len() && kinds().all(|(_, kind)| kind == FileKind::Lock);
    if !is_database && !is_left {
        return Err(Error::invalid("there is no database in this directory").at_path(dir));
    }
    let _lock = fs.lock(&dir.join(FileKind::Lock.name()))?;
    // Again: until the lock was free, its holder may have removed some.
    let files = fs.files(dir)?;
    let kinds = || files.iter().filter_map(|file| Some((file, FileKind::parse(&file.name)?)));
    let beside = leave(&*env.fs, dir)?;
    let remove = |which: &dyn Fn(FileKind) -> bool| {
        kinds().filter(|(_, kind)| which(*kind)).try_for_each(|(file, _)| fs.remove(&dir.join(&file.name)))
    };
    remove(&|kind| kind == FileKind::Current)?;
    fs.sync_dir(dir)?;
    beside.iter().try_for_each(|place| place.empty(&*env.fs))?;
    let is_last = |kind| matches!(kind, FileKind::Identity | FileKind::Options(_));
    remove(&|kind| !is_last(kind) && ![FileKind::Current, FileKind::Lock].contains(&kind))?;
    for below in [archive_beside(dir), dir.join(LOST)] {
        remove_below(fs, &below)?;
    }
    fs.sync_dir(dir)?;
    beside.into_iter().try_for_each(|place| place.give_up(&*env.fs))?;
    remove(&is_last)?;
    fs.remove(&dir.join(FileKind::Lock.name()))?;
    fs.sync_dir(dir)?;
    remove_empty(&*env.fs, dir);
    Ok(())
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
    remove_empty(fs, below);
    Ok(())
}

//! Removing a database: every file of its directories that is a database's, and each directory if nothing else is in it.
//!
//! 1. The LOCK is held, so that no process has the database open.
//! 2. CURRENT goes first, and its removal is synced: an interrupted removal leaves no database that would open without its
//!    tables. A second call removes the rest.
//! 3. Names that no database uses stay, and keep the directory.
//! 4. Directories of tables and WAL files beside that of the database are those of the OPTIONS file. They are locked, and must
//!    be the database's own, as at an open. They are emptied before the OPTIONS file goes, so that a second call finds them.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc` (`DestroyDB`).

use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{LOST, archive_beside};
use ashlar_tree::places::{Claims, OWNER, PlaceSettings, Purpose, enter};
use std::path::Path;

/// Removes the database in `dir`; without a directory there is nothing to do.
///
/// # Errors
/// `Busy(Locked)`: a process has the database open. `InvalidArgument`: there is no database in the directory, or a directory of
/// its tables or WAL files is that of another one. `NotSupported`: such a directory has tables that may be those of another
/// database. `Io`: a file could not be removed.
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
    // The WAL files of a copied directory stay with the original.
    let mut entered = enter(env, dir, &PlaceSettings::default(), Purpose::Repair)?;
    let _places = entered.occupy(&*env.fs)?;
    check_owner(dir, entered.claim()?)?;
    for (file, _) in kinds().filter(|(_, kind)| *kind == FileKind::Current) {
        fs.remove(&dir.join(&file.name))?;
        fs.sync_dir(dir)?;
    }
    for place in entered.beside() {
        remove_below(&*env.fs, place)?;
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

/// Keeps the claim on the further directories, unless they have tables that the MANIFEST does not name.
///
/// # Errors
/// `NotSupported`: they have such tables.
fn check_owner(dir: &Path, mut claims: Claims) -> Result<()> {
    if claims.strays {
        let e = Error::not_supported(
            "the directories beside the database have tables that may be those of another one",
        );
        return Err(e
            .at_path(dir)
            .hint("Open the database once, or remove the files there and here by hand"));
    }
    claims.stand();
    Ok(())
}

/// Removes the files of a database in another directory, and the directory if it is empty then.
fn remove_below(fs: &dyn Fs, below: &Path) -> Result<()> {
    if fs.metadata(below)?.is_none_or(|entry| entry.kind != EntryKind::Dir) {
        return Ok(());
    }
    for file in fs.files(below)? {
        if FileKind::parse(&file.name).is_some() || file.name == OWNER {
            fs.remove(&below.join(&file.name))?;
        }
    }
    if fs.list(below)?.is_empty() { fs.remove_dir(below) } else { Ok(()) }
}

//! Salvage: a repair beside a damaged database, which stays as it is, byte for byte.
//!
//! ```text
//! LOCK of the source -> tables and blob files linked, or copied -> logs, MANIFESTs, OPTIONS, IDENTITY copied
//!                    -> all of it durable -> CURRENT copied -> the repair of the copy
//! ```
//! 1. In the source no byte is changed, and no name is made or taken away but a `LOCK` where there is none.
//! 2. A linked file belongs to both for as long as both are there. That is safe, for as long as the copy lives, because no
//!    table or blob file is ever written into once it is whole: the engine writes each of them once, under a number that
//!    no file of the directory has, and later only takes names away or moves them. What is written again or replaced
//!    (logs, MANIFESTs, `CURRENT`, OPTIONS, `IDENTITY`) is copied.
//! 3. `CURRENT` comes last: a salvage that is interrupted leaves what an open refuses, or a whole copy of the source, as
//!    damaged as that. Neither is of use: it is to be removed, and the salvage begun again.
//! 4. Info logs and directories below the source, `lost/` among them, are not brought along.

use super::RepairReport;
use crate::db::{Db, OpenFamily};
use crate::inspect::Verified;
use crate::open::make_directory;
use crate::options::{DbOptions, FamilyOptions};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{EntryKind, Env, FileLock, Fs};
use ashlar_format::filename::FileKind;
use std::path::Path;

/// Bytes copied at a time.
const PIECE: usize = 1 << 20;

impl Db {
    /// Makes a database that opens of what is left in `dir`, as [`Db::repair`] does, but in the directory `into`, which is
    /// made. `dir` stays as it is; nobody may have it open. Tables and blob files are shared by hard links where the file
    /// system can. If it does not come to its end, `into` is to be removed.
    ///
    /// # Errors
    /// Those of [`Db::repair`]. `InvalidArgument` too: `into` holds something, or lies in `dir`.
    /// # Cost
    /// That of the repair, and a pass over all files that are copied.
    pub fn salvage(
        env: Env,
        dir: &Path,
        into: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
        progress: &mut dyn FnMut(&Verified),
    ) -> Result<RepairReport> {
        let fs = &*env.fs;
        if fs.metadata(dir)?.is_none() {
            return Err(Error::invalid("there is no such directory").at_path(dir));
        }
        check_target(fs, dir, into)?;
        let _lock = lock(fs, dir)?;
        bring_over(fs, dir, into)?;
        Db::repair(env, into, options, families, others, progress)
    }
}

/// Takes the LOCK. On a read-only file system there is none to be had, and nobody who could write.
fn lock(fs: &dyn Fs, dir: &Path) -> Result<Option<Box<dyn FileLock>>> {
    match fs.lock(&dir.join(FileKind::Lock.name())) {
        Ok(lock) => Ok(Some(lock)),
        Err(e) if e.kind() == ErrorKind::Io(IoKind::ReadOnly) => Ok(None),
        Err(e) => Err(e),
    }
}

fn check_target(fs: &dyn Fs, dir: &Path, into: &Path) -> Result<()> {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if whole(into).starts_with(whole(dir)) {
        let e = Error::invalid("the copy would lie in the directory that is to stay as it is").at_path(into);
        return Err(e.hint("Name a directory elsewhere"));
    }
    match fs.metadata(into)? {
        None => Ok(()),
        Some(entry) if entry.kind == EntryKind::Dir && fs.list(into)?.is_empty() => Ok(()),
        Some(_) => Err(Error::invalid("there is something in the place of the copy")
            .at_path(into)
            .hint("Name another directory; or remove this one, if a salvage was interrupted there")),
    }
}

/// Makes `into` a copy of the database, durably.
fn bring_over(fs: &dyn Fs, dir: &Path, into: &Path) -> Result<()> {
    make_directory(fs, into)?;
    let mut current = None;
    for entry in fs.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
        let (from, to) = (dir.join(&entry.name), into.join(&entry.name));
        match FileKind::parse(&entry.name) {
            Some(FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_)) => {
                link_or_copy(fs, &from, &to)?;
            }
            Some(FileKind::Wal(_) | FileKind::Manifest(_) | FileKind::Options(_) | FileKind::Identity) => {
                copy(fs, &from, &to)?
            }
            Some(FileKind::Current) => current = Some((from, to)),
            _ => {}
        }
    }
    fs.sync_dir(into)?;
    let Some((from, to)) = current else { return Ok(()) };
    copy(fs, &from, &to)?;
    fs.sync_dir(into)
}

fn link_or_copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    match fs.link(from, to) {
        Err(e) if e.kind() == ErrorKind::NotSupported => copy(fs, from, to),
        linked => linked,
    }
}

/// Copies a file; its bytes are durable then, its name is not.
fn copy(fs: &dyn Fs, from: &Path, to: &Path) -> Result<()> {
    let (source, target) = (fs.open_read(from)?, fs.create(to)?);
    let mut piece = vec![0; usize::try_from(source.len()).unwrap_or(PIECE).clamp(1, PIECE)];
    let mut at = 0;
    loop {
        match source.read_at(&mut piece, at)? {
            0 => return target.sync_all(),
            read => {
                target.write_at(piece.get(..read).unwrap_or_default(), at)?;
                at += read as u64;
            }
        }
    }
}

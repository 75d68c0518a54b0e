//! The LOCK file: one owner of a database directory on the machine.
//!
//! Between processes a POSIX record lock on the whole file decides, as in RocksDB, so that both engines keep each other
//! out. Such a lock belongs to the process, which brings two traps:
//! 1. A second lock by the same process succeeds. So a table of held files, by (device, inode), is checked first.
//! 2. Closing *any* descriptor of the file drops the process's lock. So the table is checked *before* the file is
//!    opened. If an opened descriptor turns out to belong to a held file, it is never closed.
//! 3. The file is never unlinked: another process may be about to lock the inode that it has already opened.
//!
//! A user may remove LOCK all the same. So the directory of the file is locked too: within the process by the same
//! table, between processes by `flock`. Where the file system has no `flock` of directories, the table and the record
//! lock remain. RocksDB does not check this second lock.
//!
//! Source: RocksDB `env/fs_posix.cc` (`LockFile`, `UnlockFile`).

use super::Process;
use super::file;
use super::place::{Held, Place};
use crate::{FileLock, folder_of};
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FlockOperation, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

type FileId = (u64, u64);

/// LOCK files and their directories that a process has locked. One table per process, as the record locks are; a leaf lock.
static HELD: Mutex<(Option<Process>, BTreeSet<FileId>)> = Mutex::new((None, BTreeSet::new()));

/// The table of this process.
fn held() -> MutexGuard<'static, (Option<Process>, BTreeSet<FileId>)> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if !held.0.is_some_and(|process| process.is_current()) {
        // A forked child has the table of its parent, and none of its locks.
        *held = (Some(Process::current()), BTreeSet::new());
    }
    held
}

fn id_of(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// A held LOCK file.
#[derive(Debug)]
pub(super) struct OsLock {
    // Both are `None` only while dropping.
    file: Option<File>,
    dir: Option<LockedDir>,
    ids: [FileId; 2],
}

impl OsLock {
    pub(super) fn take(dirs: &Held, path: &Path) -> Result<OsLock> {
        let place = dirs.place("lock", path)?;
        let failed = |action: &str, e: Errno| Error::io(action, path, &e.into());
        let (_, ref mut held) = *held();
        let dir = parent(dirs, path)?;
        let dir_id = id_of(&rustix::fs::fstat(&dir).map_err(|e| failed("stat", e))?);
        if held.contains(&dir_id) {
            return Err(held_here(path));
        }
        // Follows links: no name of a held file may be opened.
        match rustix::fs::statat(&place, place.name, AtFlags::empty()) {
            Ok(stat) if held.contains(&id_of(&stat)) => return Err(held_here(path)),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(e) => return Err(failed("stat", e)),
        }
        let dir = LockedDir::take(dir).ok_or_else(|| dir_held_elsewhere(&place, path, held))?;
        let file = file::open("open", &place, path, OFlags::RDWR | OFlags::CREATE)?;
        let id = id_of(&rustix::fs::fstat(&file).map_err(|e| failed("stat", e))?);
        if held.contains(&id) {
            // The name was moved onto a held file between our look and our open: closing would drop that lock.
            std::mem::forget(file);
            return Err(held_here(path));
        }
        loop {
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::ACCESS) => return Err(held_elsewhere(path, holder(&file))),
                Err(e) => return Err(failed("lock", e)),
            }
        }
        let ids = [dir_id, id];
        held.extend(ids);
        Ok(OsLock { file: Some(file), dir: Some(dir), ids })
    }

    /// Looks whether the lock is held. The lock of the directory is not looked at: the only way to look is to take it, and
    /// an open that came meanwhile would fail.
    pub(super) fn look(dirs: &Held, path: &Path) -> Result<()> {
        let place = dirs.place("lock", path)?;
        let failed = |e: Errno| Error::io("stat", path, &e.into());
        let (_, ref mut held) = *held();
        let dir = parent(dirs, path)?;
        if held.contains(&id_of(&rustix::fs::fstat(&dir).map_err(failed)?)) {
            return Err(held_here(path));
        }
        match rustix::fs::statat(&place, place.name, AtFlags::empty()) {
            Ok(stat) if held.contains(&id_of(&stat)) => return Err(held_here(path)),
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(failed(e)),
        }
        let file = file::open("open", &place, path, OFlags::RDONLY)?;
        if held.contains(&id_of(&rustix::fs::fstat(&file).map_err(failed)?)) {
            // As in `take`: closing would drop that lock.
            std::mem::forget(file);
            return Err(held_here(path));
        }
        match fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)) {
            Ok(Some(_)) => Err(held_elsewhere(path, holder(&file))),
            // An error says that the file system has no such locks.
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

/// Opens the directory that the file at `path` is in.
fn parent(dirs: &Held, path: &Path) -> Result<File> {
    let above = folder_of(path);
    let opened = dirs.place("lock", above)?.open_dir();
    opened.map_err(|e| Error::io("open the directory", above, &e.into()))
}

/// A directory locked against other processes of this engine.
#[derive(Debug)]
struct LockedDir {
    dir: File,
    by: Process,
}

impl LockedDir {
    /// Locks the directory. `None`: another process has it.
    fn take(dir: File) -> Option<LockedDir> {
        loop {
            match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return None,
                // An error says that the file system has no such locks.
                Ok(()) | Err(_) => return Some(LockedDir { dir, by: Process::current() }),
            }
        }
    }
}

impl Drop for LockedDir {
    fn drop(&mut self) {
        // Closing is not enough: a child process that was forked meanwhile has the descriptor too. In that child closing
        // must be all, or the parent loses its lock.
        if self.by.is_current() {
            let _ = rustix::fs::flock(&self.dir, FlockOperation::Unlock);
        }
    }
}

#[track_caller]
fn busy(path: &Path, holder: &str) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Locked), format!("the lock is held by {holder}")).at_path(path)
}

#[track_caller]
fn held_here(path: &Path) -> Error {
    let pid = std::process::id();
    busy(path, &format!("this process (pid {pid})"))
        .hint("Close the handle that is open already, or share it")
}

/// The process that has the record lock on `file`, if the system tells.
fn holder(file: &File) -> Option<i32> {
    let found = fcntl_getlk(file, &Flock::from(FlockType::WriteLock)).ok().flatten();
    Some(found?.pid?.as_raw_nonzero().get())
}

/// The error for a directory that another process has locked. The LOCK file, if it still exists, tells which process.
#[track_caller]
fn dir_held_elsewhere(place: &Place<'_>, path: &Path, held: &BTreeSet<FileId>) -> Error {
    let Ok(file) = file::open("open", place, path, OFlags::RDONLY) else { return held_elsewhere(path, None) };
    match rustix::fs::fstat(&file) {
        Ok(stat) if !held.contains(&id_of(&stat)) => held_elsewhere(path, holder(&file)),
        _ => {
            // Closing could drop a lock of this process.
            std::mem::forget(file);
            held_elsewhere(path, None)
        }
    }
}

#[track_caller]
fn held_elsewhere(path: &Path, holder: Option<i32>) -> Error {
    match holder {
        Some(pid) => busy(path, &format!("another process (pid {pid})"))
            .hint("Close the database there, or read beside that process with a read-only open"),
        None => busy(path, "another process"),
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        if self.dir.as_ref().is_some_and(|dir| !dir.by.is_current()) {
            // A child has no record lock of its parent's. If it has one of its own on this file, closing would drop that.
            std::mem::forget(self.file.take());
            return;
        }
        // Under the table's lock: otherwise an open could find the table empty and the file still locked. Closing unlocks.
        let (_, ref mut held) = *held();
        drop((self.file.take(), self.dir.take()));
        held.retain(|id| !self.ids.contains(id));
    }
}

impl FileLock for OsLock {}

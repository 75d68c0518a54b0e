//! The LOCK file: one owner of a database directory on the machine.
//!
//! Between processes a POSIX record lock on the whole file decides, as in RocksDB, so that both engines keep each
//! other out. Such a lock belongs to the process, which brings two traps:
//! 1. A second lock by the same process succeeds. So a table of held files, by (device, inode), is asked first.
//! 2. Closing *any* descriptor of the file drops the process's lock. So the table is asked *before* the file is
//!    opened; a descriptor that turns out to belong to a held file is never closed.
//! 3. The file is never unlinked: another process may be about to lock the inode it has already opened.
//!
//! Source: RocksDB `env/fs_posix.cc` (`LockFile`, `UnlockFile`).

use super::file;
use crate::FileLock;
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

type FileId = (u64, u64);

/// Files this process has locked. One table per process, as the locks themselves are; a leaf lock.
static HELD: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<FileId>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id_of(meta: &Metadata) -> FileId {
    (meta.dev(), meta.ino())
}

/// A held LOCK file.
#[derive(Debug)]
pub(super) struct OsLock {
    // `None` only while dropping.
    file: Option<File>,
    id: FileId,
}

impl OsLock {
    pub(super) fn take(path: &Path) -> Result<OsLock> {
        let mut held = held();
        // Follows links: whatever name leads to a held file must not open it.
        match std::fs::metadata(path) {
            Ok(meta) if held.contains(&id_of(&meta)) => return Err(held_here(path)),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("stat", path, &e)),
        }
        let file = file::open("open", path, OFlags::RDWR | OFlags::CREATE)?;
        let id = id_of(&file.metadata().map_err(|e| Error::io("stat", path, &e))?);
        if held.contains(&id) {
            // The name was moved onto a held file between our look and our open: closing would drop that lock.
            std::mem::forget(file);
            return Err(held_here(path));
        }
        loop {
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::ACCESS) => return Err(held_elsewhere(path, &file)),
                Err(e) => return Err(Error::io("lock", path, &e.into())),
            }
        }
        held.insert(id);
        Ok(OsLock { file: Some(file), id })
    }
}

#[track_caller]
fn busy(path: &Path, who: &str) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Locked), format!("the lock is held by {who}")).at_path(path)
}

#[track_caller]
fn held_here(path: &Path) -> Error {
    let pid = std::process::id();
    busy(path, &format!("this process (pid {pid})"))
        .hint("Close the handle that is open already, or share it")
}

#[track_caller]
fn held_elsewhere(path: &Path, file: &File) -> Error {
    let holder = fcntl_getlk(file, &Flock::from(FlockType::WriteLock)).ok().flatten().and_then(|f| f.pid);
    match holder {
        Some(pid) => {
            let pid = pid.as_raw_nonzero();
            busy(path, &format!("another process (pid {pid})")).hint(format!("Stop process {pid}"))
        }
        None => busy(path, "another process"),
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Under the table's lock, so that nobody finds the table empty and the file still locked. Closing unlocks.
        let mut held = held();
        drop(self.file.take());
        held.remove(&self.id);
    }
}

impl FileLock for OsLock {}

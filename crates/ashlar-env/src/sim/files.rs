//! The traits of a file system for the simulated disk. Every call is recorded before it has an effect.

use super::disk::Disk;
use super::fault::{Call, CallClass};
use super::inode::{FileState, Inode};
use crate::{FileLock, Fs, FsEntry, PreparedPiece, ReadFile, WriteFile, mem};
use ashlar_base::error::{BusyKind, IoKind};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_sync::{Mutex, Rank};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};

/// The file system of a simulated machine. Clones share the disk.
#[derive(Clone)]
pub(super) struct SimFs {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) handles: Arc<Handles>,
}

/// Open files of all directions. Relaxed: the counts order nothing, and a file may end where no lock may be taken.
#[derive(Debug)]
pub(super) struct Handles {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Handles {
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    fn give(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes one, if there is one.
    fn take(&self, action: &str, path: &Path) -> Result<()> {
        const EMFILE: i32 = 24;
        let most = self.most.load(Ordering::Relaxed);
        if self.open.fetch_add(1, Ordering::Relaxed) < most {
            return Ok(());
        }
        self.give();
        Err(Error::io(action, path, &io::Error::from_raw_os_error(EMFILE)))
    }
}

impl SimFs {
    pub(super) fn new(disk: Disk) -> Self {
        let handles = Handles { open: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX) };
        SimFs { disk: Arc::new(Mutex::new(Rank::Env, disk)), handles: Arc::new(handles) }
    }

    /// Opens a file through `open`, if a handle is left.
    fn handle(
        &self,
        class: CallClass,
        name: &'static str,
        path: &Path,
        open: impl FnOnce(&mut Disk) -> Result<Arc<Inode>>,
    ) -> Result<Arc<SimFile>> {
        let inode = self.plain(class, name, path, |disk| {
            self.handles.take(name, path)?;
            let opened = open(disk);
            if opened.is_err() {
                self.handles.give();
            }
            opened
        })?;
        let len = inode.file().map_or(0, |f| f.now.len() as u64);
        let (disk, handles) = (Arc::clone(&self.disk), Arc::clone(&self.handles));
        Ok(Arc::new(SimFile { disk, handles, inode, path: path.to_path_buf(), len }))
    }

    /// Notes a call that has a path and nothing else, and does it.
    fn plain<R>(
        &self,
        class: CallClass,
        name: &'static str,
        path: &Path,
        f: impl FnOnce(&mut Disk) -> Result<R>,
    ) -> Result<R> {
        let mut disk = self.disk.lock();
        disk.call(&Call { class, name, path, offset: 0, len: 0, data: &[] })?;
        f(&mut disk)
    }
}

impl Fs for SimFs {
    /// Not a call that can fail: on this machine no other process renames a directory, so nothing is held.
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        self.disk.lock().dir("open the directory", dir)?;
        Ok(Arc::new(self.clone()))
    }

    fn free_space(&self, _: &Path) -> Result<Option<u64>> {
        Ok(self.disk.lock().free_space())
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(self.handle(CallClass::Read, "open", path, |disk| disk.open("open", path))?)
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(self.handle(CallClass::Write, "create", path, |disk| disk.create(path))?)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let open = |disk: &mut Disk| disk.open("open for writing", path);
        Ok(self.handle(CallClass::Write, "open for writing", path, open)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let data = to.as_os_str().as_encoded_bytes();
        disk.call(&Call { class: CallClass::Write, name: "rename", path: from, offset: 0, len: 0, data })?;
        disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let data = to.as_os_str().as_encoded_bytes();
        disk.call(&Call { class: CallClass::Write, name: "link", path: from, offset: 0, len: 0, data })?;
        disk.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.plain(CallClass::Write, "remove", path, |disk| disk.remove(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        self.plain(CallClass::Read, "list", dir, |disk| disk.list(dir))
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        self.plain(CallClass::Read, "stat", path, |disk| disk.metadata(path))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.plain(CallClass::Write, "create the directory", path, |disk| disk.create_dir_all(path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.plain(CallClass::Sync, "sync the directory", path, |disk| disk.sync_dir(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.plain(CallClass::Write, "remove the directory", path, |disk| disk.remove_dir(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let dir = self.plain(CallClass::Write, "lock", path, |disk| {
            disk.open_or_create("lock", path)?;
            disk.dir("lock", path.parent().unwrap_or(path))
        })?;
        if dir.dir().is_some_and(|mut dir| std::mem::replace(&mut dir.locked, true)) {
            return Err(held(path));
        }
        Ok(Box::new(SimLock(dir)))
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        let above = path.parent().unwrap_or(path);
        let dir = self.plain(CallClass::Read, "lock", path, |disk| disk.dir("lock", above))?;
        if dir.dir().is_some_and(|dir| dir.locked) { Err(held(path)) } else { Ok(()) }
    }
}

#[track_caller]
fn held(path: &Path) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Locked), "the lock is held by this process").at_path(path)
}

impl fmt::Debug for SimFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimFs")
    }
}

/// An open file of the simulated disk, for either direction.
struct SimFile {
    disk: Arc<Mutex<Disk>>,
    handles: Arc<Handles>,
    inode: Arc<Inode>,
    path: PathBuf,
    len: u64,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimFile").field(&self.path).finish()
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.handles.give();
    }
}

impl SimFile {
    #[expect(clippy::expect_used, reason = "the simulated disk is a judge: what cannot be must not go on")]
    fn state(&self) -> MutexGuard<'_, FileState> {
        self.inode.file().expect("only files are opened")
    }

    fn call<'a>(
        &'a self,
        class: CallClass,
        name: &'static str,
        offset: u64,
        len: u64,
        data: &'a [u8],
    ) -> Call<'a> {
        Call { class, name, path: &self.path, offset, len, data }
    }

    fn sync(&self, name: &'static str) -> Result<()> {
        let mut disk = self.disk.lock();
        let called = disk.call(&self.call(CallClass::Sync, name, 0, 0, &[]));
        let mut file = self.state();
        match called {
            Ok(()) => file.sync().map_err(|e| Error::io("sync", &self.path, &e)),
            Err(e) => {
                disk.fail_sync(&mut file).map_err(|e| Error::io("sync", &self.path, &e))?;
                Err(e)
            }
        }
    }
}

impl ReadFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut disk = self.disk.lock();
        let called = disk.call(&self.call(CallClass::Read, "read", offset, buf.len() as u64, &[]));
        called.map_err(|e| e.at(&self.path, offset))?;
        let state = self.state();
        if offset < state.spoiled.end && offset.saturating_add(buf.len() as u64) > state.spoiled.start {
            let e = Error::new(ErrorKind::Io(IoKind::Other), "the device does not read this");
            return Err(e.at(&self.path, offset));
        }
        Ok(mem::copy_out(&state.now, buf, offset))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl WriteFile for SimFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        let failing = disk.call(&self.call(CallClass::Write, "write", offset, data.len() as u64, data)).err();
        let failing = failing.map(|e| e.at(&self.path, offset));
        disk.write(&mut self.state(), &self.path, data, offset, failing)
    }

    fn sync_data(&self) -> Result<()> {
        self.sync("sync data of")
    }

    fn sync_all(&self) -> Result<()> {
        self.sync("sync")
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.call(&self.call(CallClass::Write, "truncate", 0, len, &[]))?;
        disk.truncate(&mut self.state(), &self.path, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.call(&self.call(CallClass::Write, "allocate", offset, len, &[]))?;
        disk.allocate(&mut self.state(), &self.path, offset.saturating_add(len))
    }

    fn prepare(&self, offset: u64, len: usize) -> Result<Option<Box<dyn PreparedPiece>>> {
        self.write_at(&vec![0; len], offset)?;
        let (disk, inode) = (Arc::clone(&self.disk), Arc::clone(&self.inode));
        let range = offset..offset.saturating_add(len as u64);
        Ok(Some(Box::new(SimPiece { disk, inode, path: self.path.clone(), range, tripped: false })))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A mapped piece of a file. Each copy into it is a call of its own, and a write: so a crash may come between the parts of
/// a store.
struct SimPiece {
    disk: Arc<Mutex<Disk>>,
    inode: Arc<Inode>,
    path: PathBuf,
    range: Range<u64>,
    /// A page was missing.
    tripped: bool,
}

impl fmt::Debug for SimPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimPiece").field(&self.path).field(&self.range).finish()
    }
}

impl PreparedPiece for SimPiece {
    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Once a page is missing, all stores go to memory that the file does not see.
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        let outside = || Error::invalid("a store outside of the mapped piece").at(&self.path, offset);
        let end = offset.checked_add(len).filter(|end| *end <= self.range.end).ok_or_else(outside)?;
        if offset < self.range.start {
            return Err(outside());
        }
        let mut disk = self.disk.lock();
        let call =
            Call { class: CallClass::Write, name: "store", path: &self.path, offset, len, data: bytes };
        let trap = disk.call(&call).err().map(|e| e.at(&self.path, offset));
        let Some(mut file) = self.inode.file() else { return Err(outside()) };
        let cut = (file.now.len() as u64) < end;
        let trap = trap.or_else(|| {
            let what = "cannot store: the system could not provide a page of the mapped file";
            let missing = || Error::new(ErrorKind::Io(IoKind::Other), what).at(&self.path, offset);
            (cut || self.tripped).then(missing)
        });
        match trap {
            Some(_) if planted(Bug::GuardUnread) => self.tripped = true,
            Some(e) => {
                self.tripped = true;
                return Err(e);
            }
            None => disk.write(&mut file, &self.path, bytes, offset, None)?,
        }
        Ok(())
    }
}

struct SimLock(Arc<Inode>);

impl fmt::Debug for SimLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimLock")
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Some(mut dir) = self.0.dir() {
            dir.locked = false;
        }
    }
}

impl FileLock for SimLock {}

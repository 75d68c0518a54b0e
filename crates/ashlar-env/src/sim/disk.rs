//! The simulated disk: one tree of inodes, the list of directory changes that are not durable yet, and the record of
//! calls.
//!
//! 1. A directory change, also a rename, is one event: after a crash it happened or it did not.
//! 2. `sync_dir(d)` makes every pending event that touches `d` durable, and the earlier events of the other directories
//!    that those events touch. A rename ties two directories together, as in a journal.
//! 3. Syncing a file does not make its name durable.
//! 4. A write that exceeds the capacity, or that a plan makes fail, leaves a prefix of its bytes in the file.
//! 5. Reserved space counts as used. If a reservation does not fit, the part that fits is reserved, as on ext4.

use super::camera::Camera;
use super::crash::{CrashMode, DirMode, surviving};
use super::fault::{Call, CallClass, Record, SyncFault};
use super::inode::{FileEvent, FileState, Inode, Kind};
use crate::mem::names_of;
use crate::{EntryKind, FsEntry, SeededRand};
use ashlar_base::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A change of directories that happens as a whole.
struct DirEvent {
    /// Directory, name, and what the name leads to afterwards.
    changes: Vec<(Arc<Inode>, String, Option<Arc<Inode>>)>,
}

impl DirEvent {
    fn touches(&self, dirs: &[u64]) -> bool {
        self.changes.iter().any(|(d, _, _)| dirs.contains(&d.id))
    }

    fn make_durable(&self) {
        for (dir, name, to) in &self.changes {
            let Some(mut dir) = dir.dir() else { continue };
            match to {
                Some(inode) => drop(dir.durable.insert(name.clone(), Arc::clone(inode))),
                None => drop(dir.durable.remove(name)),
            }
        }
    }
}

pub(super) struct Disk {
    root: Arc<Inode>,
    next_id: u64,
    pending: Vec<DirEvent>,
    capacity: u64,
    used: u64,
    pub(super) record: Record,
    pub(super) camera: Camera,
}

#[track_caller]
pub(super) fn refuse(action: &str, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(action, path, &io::Error::from(kind))
}

impl Disk {
    pub(super) fn new(faults: SeededRand) -> Disk {
        let root = Inode::new_dir(0);
        Disk {
            root,
            next_id: 1,
            pending: Vec::new(),
            capacity: u64::MAX,
            used: 0,
            record: Record::new(faults),
            camera: Camera::default(),
        }
    }

    pub(super) fn set_capacity(&mut self, bytes: u64) {
        self.capacity = bytes;
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// `None`: there is no limit.
    pub(super) fn free_space(&self) -> Option<u64> {
        (self.capacity < u64::MAX).then(|| self.capacity.saturating_sub(self.used))
    }

    /// Notes a call, and fails it if a plan says so. Photographs planned for it are taken first.
    #[track_caller]
    pub(super) fn call(&mut self, call: &Call<'_>) -> Result<()> {
        if call.class != CallClass::Read {
            let number = self.record.count(CallClass::Change) + 1;
            for shot in self.camera.due(number) {
                let photograph = shot.take(self);
                self.camera.keep(photograph);
            }
        }
        match self.record.note(call) {
            None => Ok(()),
            Some(kind) => {
                let cause =
                    format!("injected by the simulation at call {}", self.record.count(CallClass::Any));
                let message = format!("cannot {}", call.name);
                Err(Error::new(ErrorKind::Io(kind), message).at_path(call.path).because(cause))
            }
        }
    }

    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn walk(&self, names: &[String], action: &str, path: &Path) -> Result<Arc<Inode>> {
        let mut at = Arc::clone(&self.root);
        for name in names {
            let next = match at.dir() {
                Some(dir) => dir.now.get(name).cloned(),
                None => return Err(refuse(action, path, io::ErrorKind::NotADirectory)),
            };
            at = next.ok_or_else(|| refuse(action, path, io::ErrorKind::NotFound))?;
        }
        Ok(at)
    }

    /// The directory at `path`.
    pub(super) fn dir(&self, action: &str, path: &Path) -> Result<Arc<Inode>> {
        let dir = self.walk(&names_of(path)?, action, path)?;
        match dir.kind {
            Kind::Dir(_) => Ok(dir),
            Kind::File(_) => Err(refuse(action, path, io::ErrorKind::NotADirectory)),
        }
    }

    /// The directory above `path` and the last name.
    fn parent(&self, action: &str, path: &Path) -> Result<(Arc<Inode>, String)> {
        let mut names = names_of(path)?;
        let Some(last) = names.pop() else {
            return Err(Error::invalid("the root directory is no file").at_path(path));
        };
        let dir = self.walk(&names, action, path)?;
        match dir.kind {
            Kind::Dir(_) => Ok((dir, last)),
            Kind::File(_) => Err(refuse(action, path, io::ErrorKind::NotADirectory)),
        }
    }

    /// The file or directory at `path`, with its parent directory and last name.
    fn lookup(&self, action: &str, path: &Path) -> Result<(Arc<Inode>, String, Option<Arc<Inode>>)> {
        let (dir, name) = self.parent(action, path)?;
        let found = dir.dir().and_then(|d| d.now.get(&name).cloned());
        Ok((dir, name, found))
    }

    fn change(&mut self, changes: Vec<(Arc<Inode>, String, Option<Arc<Inode>>)>) {
        for (dir, name, to) in &changes {
            let Some(mut dir) = dir.dir() else { continue };
            let before = match to {
                Some(inode) => dir.now.insert(name.clone(), Arc::clone(inode)),
                None => dir.now.remove(name),
            };
            drop(dir);
            if let Some(mut file) = to.as_ref().and_then(|inode| inode.file()) {
                file.names += 1;
            }
            if let Some(mut file) = before.as_ref().and_then(|inode| inode.file()) {
                file.names -= 1;
                let freed = if file.names == 0 { file.space() } else { 0 };
                self.used = self.used.saturating_sub(freed);
            }
        }
        self.pending.push(DirEvent { changes });
    }

    pub(super) fn open(&self, action: &str, path: &Path) -> Result<Arc<Inode>> {
        match self.lookup(action, path)? {
            (_, _, Some(inode)) if matches!(inode.kind, Kind::File(_)) => Ok(inode),
            (_, _, Some(_)) => Err(Error::invalid(format!("cannot {action} a directory")).at_path(path)),
            (_, _, None) => Err(refuse(action, path, io::ErrorKind::NotFound)),
        }
    }

    pub(super) fn open_or_create(&mut self, action: &str, path: &Path) -> Result<Arc<Inode>> {
        match self.lookup(action, path)? {
            (dir, name, None) => {
                let inode = Inode::new_file(self.fresh_id());
                self.change(vec![(dir, name, Some(Arc::clone(&inode)))]);
                Ok(inode)
            }
            _ => self.open(action, path),
        }
    }

    /// Creates an empty file. One that has the name loses it first: after a crash the old file, none or the new one may
    /// have it.
    pub(super) fn create(&mut self, path: &Path) -> Result<Arc<Inode>> {
        if self.lookup("create", path)?.2.is_some() {
            self.open("create", path)?;
            self.remove(path)?;
        }
        self.open_or_create("create", path)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        let (old_dir, old_name, source) = self.lookup("rename", from)?;
        let source = source.ok_or_else(|| refuse("rename", from, io::ErrorKind::NotFound))?;
        if names_of(to)? == names_of(from)? {
            return Ok(());
        }
        if names_of(to)?.starts_with(&names_of(from)?) {
            return Err(refuse("rename", from, io::ErrorKind::InvalidInput));
        }
        let (new_dir, new_name, target) = self.lookup("rename", to)?;
        if target.as_ref().is_some_and(|target| Arc::ptr_eq(target, &source)) {
            return Ok(());
        }
        let refused = match (&source.kind, target.as_ref().map(|t| &t.kind)) {
            (_, None) | (Kind::File(_), Some(Kind::File(_))) => None,
            (Kind::File(_), Some(Kind::Dir(_))) => Some(io::ErrorKind::IsADirectory),
            (Kind::Dir(_), Some(Kind::File(_))) => Some(io::ErrorKind::NotADirectory),
            (Kind::Dir(_), Some(Kind::Dir(_))) => {
                let empty = target.as_ref().and_then(|t| t.dir()).is_none_or(|d| d.now.is_empty());
                (!empty).then_some(io::ErrorKind::DirectoryNotEmpty)
            }
        };
        if let Some(kind) = refused {
            return Err(refuse("rename", to, kind));
        }
        self.change(vec![(new_dir, new_name, Some(source)), (old_dir, old_name, None)]);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> Result<()> {
        let file = self.open("link", from)?;
        let (dir, name, None) = self.lookup("link", to)? else {
            return Err(refuse("link", to, io::ErrorKind::AlreadyExists));
        };
        self.change(vec![(dir, name, Some(file))]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<()> {
        match self.lookup("remove", path)? {
            (dir, name, Some(inode)) if matches!(inode.kind, Kind::File(_)) => {
                self.change(vec![(dir, name, None)]);
                Ok(())
            }
            (_, _, Some(_)) => Err(refuse("remove", path, io::ErrorKind::IsADirectory)),
            (_, _, None) => Err(refuse("remove", path, io::ErrorKind::NotFound)),
        }
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> Result<()> {
        let action = "remove the directory";
        let (dir, name, found) = self.lookup(action, path)?;
        let found = found.ok_or_else(|| refuse(action, path, io::ErrorKind::NotFound))?;
        match found.dir().map(|d| d.now.is_empty()) {
            Some(true) => {}
            Some(false) => return Err(refuse(action, path, io::ErrorKind::DirectoryNotEmpty)),
            None => return Err(refuse(action, path, io::ErrorKind::NotADirectory)),
        }
        self.change(vec![(dir, name, None)]);
        Ok(())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> Result<()> {
        let mut at = Arc::clone(&self.root);
        for name in names_of(path)? {
            let next = match at.dir() {
                Some(dir) => dir.now.get(&name).cloned(),
                None => return Err(refuse("create the directory", path, io::ErrorKind::AlreadyExists)),
            };
            at = match next {
                Some(inode) => inode,
                None => {
                    let made = Inode::new_dir(self.fresh_id());
                    self.change(vec![(at, name, Some(Arc::clone(&made)))]);
                    made
                }
            };
        }
        match at.kind {
            Kind::Dir(_) => Ok(()),
            Kind::File(_) => Err(refuse("create the directory", path, io::ErrorKind::AlreadyExists)),
        }
    }

    pub(super) fn list(&self, path: &Path) -> Result<Vec<FsEntry>> {
        let inode = self.walk(&names_of(path)?, "list", path)?;
        match inode.dir() {
            Some(dir) => Ok(dir.now.iter().map(|(name, inode)| entry(name, inode)).collect()),
            None => Err(refuse("list", path, io::ErrorKind::NotADirectory)),
        }
    }

    pub(super) fn spoil(&self, path: &Path, bytes: Range<u64>) -> Result<()> {
        let inode = self.walk(&names_of(path)?, "spoil", path)?;
        match inode.file() {
            Some(mut file) => file.spoiled = bytes,
            None => return Err(refuse("spoil", path, io::ErrorKind::IsADirectory)),
        }
        Ok(())
    }

    pub(super) fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        let names = names_of(path)?;
        match self.walk(&names, "stat", path) {
            Ok(inode) => Ok(Some(entry(names.last().map_or("", String::as_str), &inode))),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> Result<()> {
        let dir = self.dir("sync the directory", path)?;
        let mut tied = vec![dir.id];
        let mut due = vec![false; self.pending.len()];
        for (event, due) in self.pending.iter().zip(&mut due).rev() {
            if event.touches(&tied) {
                *due = true;
                tied.extend(event.changes.iter().map(|(d, _, _)| d.id));
            }
        }
        let events = std::mem::take(&mut self.pending);
        for (event, due) in events.into_iter().zip(due) {
            if due {
                event.make_durable();
            } else {
                self.pending.push(event);
            }
        }
        Ok(())
    }

    /// Writes to a file, within the capacity; `failing` leaves a drawn prefix and answers that error.
    pub(super) fn write(
        &mut self,
        file: &mut FileState,
        path: &Path,
        data: &[u8],
        offset: u64,
        failing: Option<Error>,
    ) -> Result<()> {
        let mut data = data;
        let mut error = failing;
        if error.is_some() {
            let keep = self.record.rand.below(data.len() as u64 + 1);
            data = &data[..usize::try_from(keep).unwrap_or(0)];
        }
        let (before, free) = (file.space(), self.free(file));
        let growth = offset.saturating_add(data.len() as u64).saturating_sub(before);
        if growth > free {
            let lacking = usize::try_from(growth - free).unwrap_or(usize::MAX);
            data = &data[..data.len().saturating_sub(lacking)];
            error =
                error.or_else(|| Some(refuse("write", path, io::ErrorKind::StorageFull).at(path, offset)));
        }
        if !data.is_empty() {
            let event = FileEvent::Write { offset, data: data.to_vec() };
            file.change(event).map_err(|e| Error::io("write", path, &e))?;
        }
        self.charge(file, before);
        error.map_or(Ok(()), Err)
    }

    pub(super) fn truncate(&mut self, file: &mut FileState, path: &Path, len: u64) -> Result<()> {
        let before = file.space();
        if len.saturating_sub(before) > self.free(file) {
            return Err(refuse("truncate", path, io::ErrorKind::StorageFull));
        }
        file.reserved = 0;
        if len != file.now.len() as u64 {
            file.change(FileEvent::Truncate { len }).map_err(|e| Error::io("truncate", path, &e))?;
        }
        self.charge(file, before);
        Ok(())
    }

    /// A sync of the file fails, in the way that is planned.
    pub(super) fn fail_sync(&mut self, file: &mut FileState) -> io::Result<()> {
        let Record { sync_fault, rand, .. } = &self.record;
        let (fault, before) = (*sync_fault, file.space());
        let late = match (fault, file.pending.len() as u64) {
            (SyncFault::Late, pending @ 1..) => 1 + rand.below(pending),
            _ => 0,
        };
        self.record.failed_syncs += 1;
        self.record.reverted |= fault == SyncFault::Reverted && !file.pending.is_empty();
        file.fail_sync(fault, usize::try_from(late).unwrap_or(usize::MAX))?;
        self.charge(file, before);
        Ok(())
    }

    /// Reserves space up to `end`; when there is not so much, what there is.
    pub(super) fn allocate(&mut self, file: &mut FileState, path: &Path, end: u64) -> Result<()> {
        let (before, free) = (file.space(), self.free(file));
        let growth = end.saturating_sub(before);
        file.reserved = before.saturating_add(growth.min(free));
        self.charge(file, before);
        if growth > free { Err(refuse("allocate", path, io::ErrorKind::StorageFull)) } else { Ok(()) }
    }

    /// What the file may grow by.
    fn free(&self, file: &FileState) -> u64 {
        if file.names == 0 { u64::MAX } else { self.capacity.saturating_sub(self.used) }
    }

    fn charge(&mut self, file: &FileState, before: u64) {
        if file.names > 0 {
            self.used = self.used.saturating_sub(before).saturating_add(file.space());
        }
    }

    /// The disk as the next boot finds it. This one stays as it is.
    pub(super) fn after_crash(&self, mode: CrashMode, rand: &SeededRand, faults: SeededRand) -> Disk {
        let mut changes = DirView::default();
        let keep = match mode.dirs {
            DirMode::DropAll => 0,
            DirMode::Prefix => usize::try_from(rand.below(self.pending.len() as u64 + 1)).unwrap_or(0),
            DirMode::Subset | DirMode::KeepAll => self.pending.len(),
        };
        let mut lost = BTreeSet::new();
        for event in self.pending.iter().take(keep) {
            let names = event.changes.iter().map(|(dir, name, _)| (dir.id, name.clone()));
            let behind = names.clone().any(|name| lost.contains(&name));
            if mode.dirs == DirMode::Subset && (behind || rand.below(2) == 0) {
                lost.extend(names);
                continue;
            }
            for (dir, name, to) in &event.changes {
                changes.entry(dir.id).or_default().insert(name.clone(), to.clone());
            }
        }
        let mut disk = Disk::new(faults);
        let mut copy = Copy { changes, mode, rand, disk: &mut disk, made: BTreeMap::new() };
        let root = copy.dir(&self.root);
        disk.root = root;
        disk.capacity = self.capacity;
        disk
    }
}

/// By directory: what the surviving events say about its names.
type DirView = BTreeMap<u64, BTreeMap<String, Option<Arc<Inode>>>>;

/// The copying of a disk into its life after the crash.
struct Copy<'a> {
    changes: DirView,
    mode: CrashMode,
    rand: &'a SeededRand,
    disk: &'a mut Disk,
    made: BTreeMap<u64, Arc<Inode>>,
}

impl Copy<'_> {
    fn dir(&mut self, old: &Inode) -> Arc<Inode> {
        let mut entries = old.dir().map(|d| d.durable.clone()).unwrap_or_default();
        for (name, to) in self.changes.remove(&old.id).unwrap_or_default() {
            match to {
                Some(inode) => drop(entries.insert(name, inode)),
                None => drop(entries.remove(&name)),
            }
        }
        let new = Inode::new_dir(self.disk.fresh_id());
        for (name, inode) in entries {
            let copied = match inode.kind {
                Kind::Dir(_) => self.dir(&inode),
                Kind::File(_) => self.file(&inode),
            };
            if let Some(mut file) = copied.file() {
                file.names += 1;
            }
            if let Some(mut dir) = new.dir() {
                dir.now.insert(name.clone(), Arc::clone(&copied));
                dir.durable.insert(name, copied);
            }
        }
        new
    }

    fn file(&mut self, old: &Inode) -> Arc<Inode> {
        // Two names can lead to one file: a link, or a pair of renames of which only one half is durable.
        if let Some(made) = self.made.get(&old.id) {
            return Arc::clone(made);
        }
        let bytes = old.file().map(|f| surviving(&f, self.mode.data, self.rand)).unwrap_or_default();
        let new = Inode::new_file(self.disk.fresh_id());
        if let Some(mut file) = new.file() {
            file.base = bytes.clone();
            file.now = bytes;
            file.reserved = old.file().map_or(0, |f| f.reserved);
            self.disk.used += file.space();
        }
        self.made.insert(old.id, Arc::clone(&new));
        new
    }
}

fn entry(name: &str, inode: &Inode) -> FsEntry {
    match inode.file() {
        Some(file) => FsEntry { name: name.to_owned(), len: file.now.len() as u64, kind: EntryKind::File },
        None => FsEntry { name: name.to_owned(), len: 0, kind: EntryKind::Dir },
    }
}

//! Files and directories of the simulated disk, each with a volatile and a durable side.
//!
//! 1. A file's durable side is its bytes at the last sync. Later changes are a list of events.
//! 2. A directory's durable side changes only by whole directory events, see `disk.rs`.
//! 3. An inode lives as long as a name, a durable name, a pending event or a handle refers to it.

use super::fault::SyncFault;
use crate::mem;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file or directory. Its lock is a leaf, taken under the disk's.
pub(super) struct Inode {
    pub(super) id: u64,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    File(Mutex<FileState>),
    Dir(Mutex<DirState>),
}

/// The bytes of a file.
#[derive(Default)]
pub(super) struct FileState {
    /// What reads see.
    pub(super) now: Vec<u8>,
    /// What the disk had at the last sync.
    pub(super) base: Vec<u8>,
    /// What happened since, oldest first.
    pub(super) pending: Vec<FileEvent>,
    /// The end of the reserved space, which may be after the end of the file. A crash does not give it back.
    pub(super) reserved: u64,
    /// Names that lead here now. Without any, growth is not charged to the disk's capacity.
    pub(super) names: usize,
    /// The device does not read these bytes.
    pub(super) spoiled: Range<u64>,
}

/// A change of a file that is not durable yet.
pub(super) enum FileEvent {
    Write { offset: u64, data: Vec<u8> },
    Truncate { len: u64 },
}

/// The entries of a directory.
#[derive(Default)]
pub(super) struct DirState {
    pub(super) now: BTreeMap<String, Arc<Inode>>,
    pub(super) durable: BTreeMap<String, Arc<Inode>>,
    /// A file in it is locked.
    pub(super) locked: bool,
}

impl Inode {
    pub(super) fn new_file(id: u64) -> Arc<Inode> {
        Arc::new(Inode { id, kind: Kind::File(Mutex::default()) })
    }

    pub(super) fn new_dir(id: u64) -> Arc<Inode> {
        Arc::new(Inode { id, kind: Kind::Dir(Mutex::default()) })
    }

    /// The file, if it is one.
    pub(super) fn file(&self) -> Option<MutexGuard<'_, FileState>> {
        match &self.kind {
            Kind::File(f) => Some(f.lock().unwrap_or_else(PoisonError::into_inner)),
            Kind::Dir(_) => None,
        }
    }

    /// The directory, if it is one.
    pub(super) fn dir(&self) -> Option<MutexGuard<'_, DirState>> {
        match &self.kind {
            Kind::Dir(d) => Some(d.lock().unwrap_or_else(PoisonError::into_inner)),
            Kind::File(_) => None,
        }
    }
}

impl FileEvent {
    /// Does to `bytes` what was done to the file.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            FileEvent::Write { offset, data } => mem::copy_in(bytes, data, *offset),
            FileEvent::Truncate { len } => mem::set_len(bytes, *len),
        }
    }

    /// The file's length after the event, from the length before.
    pub(super) fn len_after(&self, before: u64) -> u64 {
        match self {
            FileEvent::Write { offset, data } => before.max(offset.saturating_add(data.len() as u64)),
            FileEvent::Truncate { len } => *len,
        }
    }
}

impl FileState {
    /// What the file takes of the disk.
    pub(super) fn space(&self) -> u64 {
        self.reserved.max(self.now.len() as u64)
    }

    /// Changes the volatile bytes and remembers how.
    pub(super) fn change(&mut self, event: FileEvent) -> io::Result<()> {
        event.apply(&mut self.now)?;
        self.pending.push(event);
        Ok(())
    }

    /// Makes everything so far durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        for event in self.pending.drain(..) {
            event.apply(&mut self.base)?;
        }
        Ok(())
    }

    /// The disk fails under a sync; `late` of the events since the last one were lost before it, if it is of that kind.
    /// No later sync writes what is lost here.
    pub(super) fn fail_sync(&mut self, fault: SyncFault, late: usize) -> io::Result<()> {
        match fault {
            SyncFault::Kept => self.pending.clear(),
            SyncFault::Reverted => {
                self.pending.clear();
                self.now.clone_from(&self.base);
            }
            SyncFault::Late => {
                self.pending.drain(..late.min(self.pending.len()));
                self.sync()?;
            }
            SyncFault::Spurious => self.sync()?,
        }
        Ok(())
    }
}

//! Which calls fail, and the record of all calls.

use crate::SeededRand;
use ashlar_base::checksum::crc32c;
use ashlar_base::error::IoKind;
use std::path::Path;

/// Kinds of calls, to count and to make fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallClass {
    /// Every call.
    Any,
    /// Calls that read: open, read, list, metadata.
    Read,
    /// Calls that change something but are no sync: create, write, truncate, rename, link, remove, lock …
    Write,
    /// Syncs of files and directories.
    Sync,
    /// [`CallClass::Write`] and [`CallClass::Sync`].
    Change,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// One call fails.
    Once,
    /// That call and all later ones of its class fail.
    Sticky,
}

/// What a file's sync that fails has done. In all of them the error is reported once: a later sync of the file answers `Ok`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncFault {
    /// F1: nothing is durable, the pages count as clean, reads go on showing the new bytes (ext4, XFS).
    #[default]
    Kept,
    /// F2: nothing is durable, and reads show the old bytes again (btrfs).
    Reverted,
    /// F3: a write-back before the sync had failed, and only the sync tells of it: what was written before that moment is
    /// not durable, what was written after it is.
    Late,
    /// F4: everything is durable all the same.
    Spurious,
}

impl SyncFault {
    /// All of them.
    pub const ALL: [SyncFault; 4] =
        [SyncFault::Kept, SyncFault::Reverted, SyncFault::Late, SyncFault::Spurious];
}

/// A call of the file system, as the record keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) class: CallClass,
    pub(super) name: &'static str,
    pub(super) path: &'a Path,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) data: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    class: CallClass,
    at: u64,
    repeat: Repeat,
    kind: IoKind,
}

/// Counts, hash and fault plans.
#[derive(Debug)]
pub(super) struct Record {
    reads: u64,
    writes: u64,
    syncs: u64,
    hash: u64,
    plans: Vec<Plan>,
    injected: u64,
    /// Syncs of files among them.
    pub(super) failed_syncs: u64,
    /// What a file's sync that fails does.
    pub(super) sync_fault: SyncFault,
    /// Unsynced bytes went out of the cache.
    pub(super) reverted: bool,
    /// Draws how much of a failing write reaches the file, and of what a write-back lost.
    pub(super) rand: SeededRand,
}

impl Record {
    pub(super) fn new(rand: SeededRand) -> Self {
        Record {
            reads: 0,
            writes: 0,
            syncs: 0,
            hash: 0,
            plans: Vec::new(),
            injected: 0,
            failed_syncs: 0,
            sync_fault: SyncFault::default(),
            reverted: false,
            rand,
        }
    }

    pub(super) fn count(&self, class: CallClass) -> u64 {
        match class {
            CallClass::Any => self.reads + self.writes + self.syncs,
            CallClass::Read => self.reads,
            CallClass::Write => self.writes,
            CallClass::Sync => self.syncs,
            CallClass::Change => self.writes + self.syncs,
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn injected(&self) -> u64 {
        self.injected
    }

    pub(super) fn plan(&mut self, class: CallClass, at: u64, repeat: Repeat, kind: IoKind) {
        self.plans.push(Plan { class, at, repeat, kind });
    }

    pub(super) fn forget_plans(&mut self) {
        self.plans.clear();
    }

    /// Notes a call; the kind of error it has to fail with, if a plan says so.
    pub(super) fn note(&mut self, call: &Call<'_>) -> Option<IoKind> {
        match call.class {
            CallClass::Read => self.reads += 1,
            CallClass::Sync => self.syncs += 1,
            CallClass::Any | CallClass::Write | CallClass::Change => self.writes += 1,
        }
        self.mix(u64::from(crc32c(call.name.as_bytes())));
        self.mix(u64::from(crc32c(call.path.as_os_str().as_encoded_bytes())));
        self.mix(call.offset);
        self.mix(call.len);
        self.mix(u64::from(crc32c(call.data)));
        let hit = self.plans.iter().find(|p| {
            let n = self.count(p.class);
            p.covers(call.class) && (n == p.at || p.repeat == Repeat::Sticky && n > p.at)
        });
        let kind = hit.map(|p| p.kind);
        self.injected += u64::from(kind.is_some());
        kind
    }

    fn mix(&mut self, x: u64) {
        self.hash = (self.hash.rotate_left(23) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Plan {
    fn covers(&self, class: CallClass) -> bool {
        match self.class {
            CallClass::Any => true,
            CallClass::Change => class != CallClass::Read,
            one => one == class,
        }
    }
}

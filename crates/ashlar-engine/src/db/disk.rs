//! The limits on disk space: the callers of [`DiskSpace`](crate::pressure::DiskSpace), and the bytes that they report.
//!
//! 1. The WAL asks in front of each piece that it reserves for writes other than deletions. A refusal is a lack of space for the
//!    WAL (`Source::LogRoom`): puts are refused, deletions go on, memtables are flushed, and the room job asks again. So do writes
//!    that skip the WAL, each before it is copied into its memtable.
//! 2. A compaction asks before it begins. A refusal is a failure of that compaction for lack of space.
//! 3. An ingestion or an import asks before it brings a file.
//! 4. A purge lists the directory, and a commit tells the files that it adds.

use super::Db;
use super::core::{Core, State};
use super::room_job::ROOM_FOR_OTHERS;
use crate::health::Source;
use crate::pressure::{DiskClaim, DiskLimits, DiskUse, Pace};
use crate::wal::ROOM_FOR_DELETIONS;
use ashlar_base::{Error, Result};
use ashlar_log::RoomLimit;
use ashlar_tree::files::bytes_of_database;
use std::sync::{Arc, Weak};

impl Db {
    /// Changes the quota of disk space and the reserve of free space; 0: no limit. The new limits are in the OPTIONS file. The
    /// WAL may still use the piece that it has reserved, of at most 1 MiB.
    ///
    /// # Errors
    /// `Shutdown`. `NotSupported`: the database is open for reading only. The error that refuses changes.
    pub fn limit_disk(&self, limits: DiskLimits) -> Result<()> {
        self.core().check_outside("limit_disk()")?;
        self.core().limit_disk(limits)
    }

    /// The disk space of the database, and its limits.
    pub fn disk_use(&self) -> DiskUse {
        let core = self.core();
        if core.database.is_inherited() { DiskUse::default() } else { core.disk_use() }
    }
}

/// The limit that each WAL file of the database asks before it reserves space.
pub(super) fn room_limit(core: &Weak<Core>) -> RoomLimit {
    let core = Weak::clone(core);
    Arc::new(move |bytes| core.upgrade().map_or(Ok(()), |core| core.check_room(bytes)))
}

fn again(e: Error) -> Error {
    e.hint("Delete data or raise the limit, and call again")
}

impl Core {
    /// Called with the lock of the log held.
    fn check_room(&self, bytes: u64) -> Result<()> {
        let refused = self.health.is_failing(Source::LogRoom);
        self.disk.check(bytes, self.active_bytes(), refused)
    }

    /// Whether the limits have room for `bytes` that skip the log.
    ///
    /// # Errors
    /// `Io(NoSpace)`.
    pub(super) fn check_unlogged(&self, bytes: u64) -> Result<()> {
        let refused = self.health.is_failing(Source::LogRoom);
        self.disk.check_unlogged(bytes, self.active_bytes(), refused)
    }

    /// The bytes of the memtables that take writes. Needs no lock.
    fn active_bytes(&self) -> u64 {
        self.committer.current().families.iter().map(|slot| slot.mem.filled() as u64).sum()
    }

    /// Whether a limit has refused one write that is too large, and has room for others.
    pub(super) fn refuses_this_write_only(&self) -> bool {
        self.disk.is_limited() && self.ask_room_for_others().is_ok()
    }

    /// Asks for room for some writes other than deletions: in the WAL, and within the limits for those that skip the WAL.
    ///
    /// # Errors
    /// `Io(NoSpace)`.
    pub(super) fn ask_room_for_others(&self) -> Result<()> {
        let set = self.committer.current();
        set.wal.log().ask_room(ROOM_FOR_OTHERS, ROOM_FOR_DELETIONS)?;
        if self.disk.is_limited() { self.check_unlogged(ROOM_FOR_OTHERS) } else { Ok(()) }
    }

    /// Tells how much waits for a flush, after a change of the memtables.
    pub(super) fn note_waiting(&self, state: &State) {
        let waits = |held: usize, active: usize| held.saturating_sub(active) as u64;
        let families = state.families.iter().map(|f| &f.memtables);
        self.disk.await_flush(families.map(|m| waits(m.held(), m.current().rep.held())).sum());
    }

    /// The space for the outputs of a compaction with inputs of `bytes`.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the compaction must not begin now.
    pub(super) fn claim_space(&self, bytes: u64) -> Result<DiskClaim> {
        let stopped = self.health.is_failing(Source::LogRoom) || self.pressure.pace() == Pace::Stop;
        self.disk.claim(bytes, stopped)
    }

    /// Writers are stopped: a compaction that the limits have refused begins now.
    pub(super) fn begin_beyond_limits(&self) {
        if self.disk.refuses_compaction() {
            self.wake_jobs();
        }
    }

    /// Claims the space of a file that is brought into the directory.
    ///
    /// # Errors
    /// `Io(NoSpace)`.
    pub(super) fn claim_file(&self, bytes: u64) -> Result<DiskClaim> {
        self.disk.bring(bytes).map_err(again)
    }

    /// # Errors
    /// `Io(NoSpace)`: the reserve has no room for the copy of a file that is brought.
    pub(super) fn check_copy(&self, bytes: u64) -> Result<()> {
        self.disk.check_copy(bytes).map_err(again)
    }

    /// Begins a listing. Returns the bytes that files took since the last listing, and the bytes that the WAL has reserved ahead.
    pub(super) fn begin_listing(&self) -> (u64, u64) {
        (self.disk.begin_listing(), self.committer.current().wal.log().reserved_ahead())
    }

    /// The listing of a purge found so many bytes. If that gives refused writes the room that they lacked, the room job asks
    /// again at once. Where there was room before, the cause is another one, and the room job keeps to its pauses.
    pub(super) fn note_listing(&self, bytes: u64, (begun, ahead): (u64, u64)) {
        let room = ROOM_FOR_OTHERS + ROOM_FOR_DELETIONS;
        let lacks = || {
            let failing = self.health.is_failing(Source::LogRoom);
            failing && !self.disk.has_room_again(room, self.active_bytes())
        };
        let lacked = lacks();
        self.disk.listed(bytes.saturating_add(ahead), begun);
        if lacked && !lacks() {
            self.wake_jobs();
        }
    }

    /// Counts the files after the open. `listed`: the bytes that its purge has found.
    pub(super) fn begin_disk(&self, listed: Option<u64>) {
        self.note_waiting(&self.state());
        let (_, ahead) = self.begin_listing();
        let bytes = listed.unwrap_or_else(|| bytes_of_database(&*self.env.fs, &self.dir));
        self.note_listing(bytes, (0, ahead));
    }

    /// The disk space now.
    pub(super) fn disk_use(&self) -> DiskUse {
        if self.health.is_read_only() {
            // Nothing else lists.
            self.disk.listed(bytes_of_database(&*self.env.fs, &self.dir), 0);
        }
        self.disk.report(self.active_bytes())
    }

    fn limit_disk(self: &Arc<Self>, limits: DiskLimits) -> Result<()> {
        let _claim = self.claim()?;
        self.health.check_working()?;
        {
            let _changing = self.changing.lock();
            let mut options = (*self.options()).clone();
            (options.disk_quota_bytes, options.disk_reserve_bytes) = (limits.quota, limits.reserve);
            self.options.set(Arc::new(options));
            self.disk.limit(limits);
        }
        if let Some(lead) = self.committer.try_lead() {
            // The next write asks again. While another thread has the lead, the log uses up its piece.
            let wal = Arc::clone(&self.committer.current().wal);
            wal.log().give_back();
            if self.health.is_failing(Source::LogRoom) && self.ask_room_for_others().is_ok() {
                self.succeeded(Source::LogRoom);
            }
            drop(lead);
            self.seal_waiting();
        }
        self.settings_changed();
        self.wake_jobs();
        Ok(())
    }
}

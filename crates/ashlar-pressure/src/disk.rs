//! The disk space of a database: what its files take, what they will take soon, and when that is too much.
//!
//! ```text
//! quota ≥ files + what unflushed memtables will take as tables + what running compactions will write
//! free space of the file system ≥ reserve + the last two
//! ```
//! 1. Three sides ask before they take space. The WAL asks before it reserves its next piece for writes other than deletions
//!    ([`DiskSpace::check`]), and so does each group of writes that skip the WAL ([`DiskSpace::check_unlogged`]). A compaction asks
//!    before it begins ([`DiskSpace::claim`]). All are refused with `Io(NoSpace)`, and then go the way of a full disk.
//! 2. Flushes never ask. Their tables were counted when the writes were taken, so a flush keeps the limits.
//! 3. The bytes of files are those of the last listing of the directory, which each purge makes anyway, and what was taken
//!    since. Between two listings the sum may be too high. The sum is too low by what deletions logged, and by what the
//!    MANIFEST, OPTIONS files and info logs grew.
//! 4. When one of the limits is passed, or `last_resort` says that writers are refused, one compaction at a time may begin
//!    although it does not fit: without it deletions would free nothing.

use crate::rates::HORIZON;
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Fs;
use ashlar_options::DbOptions;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// After a refusal, writes resume when this part of the limit is free …
const RESUMES_AT: u64 = 64;
/// … but at most so much.
const RESUMES_AT_MOST: u64 = 64 << 20;

/// The limits of a database on disk space, in bytes. 0: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskLimits {
    /// The most that the files of the database take.
    pub quota: u64,
    /// What writes leave free on each file system with files of the database.
    pub reserve: u64,
}

/// The disk space of a database at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskUse {
    /// The files in the directories of the database: tables and blob files, also those that only readers still hold, WAL
    /// files, MANIFEST, OPTIONS files and info logs. Not the files in `lost/` and in the archive of WAL files.
    pub used: u64,
    /// What unflushed memtables will take as tables, and running compactions for their outputs.
    pub expected: u64,
    /// The quota; 0: none.
    pub quota: u64,
    /// The reserve of free space; 0: none.
    pub reserve: u64,
    /// The free space of the file system with the least, as far as this process may use it. `None`: unknown.
    pub free: Option<u64>,
    /// What quota and reserve leave for writes. `None`: there is neither.
    pub room: Option<u64>,
}

impl fmt::Display for DiskUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |bytes: Option<u64>, none: &str| bytes.map_or(none.to_owned(), |bytes| bytes.to_string());
        let limit = |bytes: u64| known((bytes > 0).then_some(bytes), "none");
        write!(f, "{} bytes in files, {} expected; ", self.used, self.expected)?;
        write!(f, "quota {}, reserve {}; ", limit(self.quota), limit(self.reserve))?;
        write!(f, "{} free, room for {}", known(self.free, "unknown"), known(self.room, "all of it"))
    }
}

/// See the module. All methods may be called from any thread and under the lock of a log.
#[derive(Debug)]
pub struct DiskSpace {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    quota: AtomicU64,
    reserve: AtomicU64,
    /// The bytes of files at the last listing.
    listed: AtomicU64,
    /// What was taken since.
    taken: AtomicU64,
    /// Memtables that wait for a flush.
    waiting: AtomicU64,
    /// The inputs of the compactions that run.
    claimed: AtomicU64,
    /// The files that ingestions and imports bring, until they are committed.
    brought: AtomicU64,
    /// The limits have refused the last compaction that asked.
    refuses_compaction: AtomicBool,
    /// The free space at the last look that the file system answered; `u64::MAX`: it has not answered yet.
    known_free: AtomicU64,
}

/// Space for the outputs of a compaction or for a file that is brought, until the drop.
#[derive(Debug)]
pub struct DiskClaim {
    space: Arc<DiskSpace>,
    bytes: u64,
    is_compaction: bool,
}

impl Drop for DiskClaim {
    fn drop(&mut self) {
        self.space.counter(self.is_compaction).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl DiskSpace {
    /// The space of the files in `dir` of a file system that knows all directories of the database.
    pub fn new(fs: &Arc<dyn Fs>, dir: &Path, options: &DbOptions) -> Arc<DiskSpace> {
        let zero = || AtomicU64::new(0);
        Arc::new(DiskSpace {
            fs: Arc::clone(fs),
            dir: dir.to_path_buf(),
            quota: AtomicU64::new(options.disk_quota_bytes),
            reserve: AtomicU64::new(options.disk_reserve_bytes),
            listed: zero(),
            taken: zero(),
            waiting: zero(),
            claimed: zero(),
            brought: zero(),
            refuses_compaction: AtomicBool::new(false),
            known_free: AtomicU64::new(u64::MAX),
        })
    }

    /// Changes the limits.
    pub fn limit(&self, limits: DiskLimits) {
        self.quota.store(limits.quota, Ordering::Relaxed);
        self.reserve.store(limits.reserve, Ordering::Relaxed);
    }

    /// Whether there is a quota or a reserve.
    pub fn is_limited(&self) -> bool {
        self.quota.load(Ordering::Relaxed) > 0 || self.reserve.load(Ordering::Relaxed) > 0
    }

    /// Counts `bytes` that a file has taken since the last listing.
    pub fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the bytes of memtables that wait for a flush.
    pub fn await_flush(&self, bytes: u64) {
        self.waiting.store(bytes, Ordering::Relaxed);
    }

    /// Begins a listing. The answer goes to [`DiskSpace::listed`].
    pub fn begin_listing(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends a listing: `bytes` are in files. `begun` is the answer of [`DiskSpace::begin_listing`].
    pub fn listed(&self, bytes: u64, begun: u64) {
        // In this order a concurrent look is too high, and never too low.
        self.listed.store(bytes, Ordering::Relaxed);
        self.taken.fetch_sub(begun, Ordering::Relaxed);
    }

    /// Asks for `bytes` of the WAL, which are taken then. As many must be free for the table that the memtable becomes.
    /// `active`: bytes of the memtables that take writes. `refused`: writes were refused since the last success, so a part of the
    /// limit must be free.
    ///
    /// # Errors
    /// `Io(NoSpace)`: there is not so much room.
    pub fn check(&self, bytes: u64, active: u64, refused: bool) -> Result<()> {
        self.look(active).check(bytes.saturating_mul(2), refused)?;
        self.take(bytes);
        Ok(())
    }

    /// Asks for `bytes` that skip the WAL, and are in none of the `active` memtables yet.
    ///
    /// # Errors
    /// As [`DiskSpace::check`].
    pub fn check_unlogged(&self, bytes: u64, active: u64, refused: bool) -> Result<()> {
        self.look(active).check(bytes, refused)
    }

    /// True if a limit is set, and a write of `bytes` that was refused before would be accepted.
    pub fn has_room_again(&self, bytes: u64, active: u64) -> bool {
        let now = self.look(active);
        let on_disk = now.free.is_none_or(|free| free >= bytes);
        on_disk && now.room.is_some() && now.check(bytes.saturating_mul(2), true).is_ok()
    }

    /// Claims `bytes`, the inputs of a compaction, for its outputs. `last_resort`: writers are refused for want of space.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the compaction must not begin now.
    pub fn claim(self: &Arc<Self>, bytes: u64, last_resort: bool) -> Result<DiskClaim> {
        let claim = self.hold(true, bytes, |now, others| {
            let lacks = match (now.quota_lack(), now.reserve_lack()) {
                (0, 0) => return Ok(()),
                (0, _) => now.in_reserve(bytes),
                _ => now.over_quota(bytes),
            };
            let passed = last_resort || now.quota_lack() > bytes || now.reserve_lack() > bytes;
            let fits_at_all = now.free.is_none_or(|free| free >= bytes);
            self.refuses_compaction.store(fits_at_all, Ordering::Relaxed);
            match passed && others == 0 && fits_at_all {
                true => Ok(()),
                false => Err(lacks.hint(
                    "The compaction can begin when its outputs have room, or when writes are refused for want of space",
                )),
            }
        });
        if claim.is_ok() {
            self.refuses_compaction.store(false, Ordering::Relaxed);
        }
        claim
    }

    /// Whether the last compaction that asked was refused although the file system has the space. Such a compaction begins when
    /// writers wait for it.
    pub fn refuses_compaction(&self) -> bool {
        self.refuses_compaction.load(Ordering::Relaxed)
    }

    /// Claims `bytes` of the quota for a file that comes into the directory.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the file would pass the quota.
    pub fn bring(self: &Arc<Self>, bytes: u64) -> Result<DiskClaim> {
        self.hold(
            false,
            bytes,
            |now, _| if now.quota_lack() > 0 { Err(now.over_quota(bytes)) } else { Ok(()) },
        )
    }

    /// # Errors
    /// `Io(NoSpace)`: a copy of so many bytes would use the reserve.
    pub fn check_copy(&self, bytes: u64) -> Result<()> {
        let now = self.look(0);
        if now.reserve_room().is_some_and(|room| room < bytes) { Err(now.in_reserve(bytes)) } else { Ok(()) }
    }

    /// Counts `bytes` if `may` allows it for the space with them and for what is counted already. A refusal is never visible.
    fn hold(
        self: &Arc<Self>,
        is_compaction: bool,
        bytes: u64,
        may: impl Fn(&DiskUse, u64) -> Result<()>,
    ) -> Result<DiskClaim> {
        let counter = self.counter(is_compaction);
        let mut others = counter.load(Ordering::Relaxed);
        loop {
            let now = self.look(0);
            let with = match is_compaction {
                true => DiskUse { expected: now.expected.saturating_add(bytes), ..now },
                false => DiskUse { used: now.used.saturating_add(bytes), ..now },
            };
            may(&with, others)?;
            let sum = others.saturating_add(bytes);
            match counter.compare_exchange(others, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    return Ok(DiskClaim { space: Arc::clone(self), bytes: sum - others, is_compaction });
                }
                Err(changed) => others = changed,
            }
        }
    }

    fn counter(&self, is_compaction: bool) -> &AtomicU64 {
        if is_compaction { &self.claimed } else { &self.brought }
    }

    /// The space now. `active`: bytes of the memtables that take writes.
    pub fn look(&self, active: u64) -> DiskUse {
        let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        let (quota, reserve) = (of(&self.quota), of(&self.reserve));
        let now = DiskUse {
            used: of(&self.listed).saturating_add(of(&self.taken)).saturating_add(of(&self.brought)),
            expected: of(&self.waiting).saturating_add(of(&self.claimed)).saturating_add(active),
            quota,
            reserve,
            // Asked only where needed: a system call.
            free: if quota > 0 || reserve > 0 { self.free() } else { None },
            room: None,
        };
        DiskUse { room: now.quota_room().into_iter().chain(now.reserve_room()).min(), ..now }
    }

    /// The free space; where the file system does not answer, the last answer.
    fn free(&self) -> Option<u64> {
        match self.fs.free_space(&self.dir) {
            Ok(free) => {
                self.known_free.store(free.unwrap_or(u64::MAX), Ordering::Relaxed);
                free
            }
            Err(_) => Some(self.known_free.load(Ordering::Relaxed)).filter(|free| *free < u64::MAX),
        }
    }

    /// [`DiskSpace::look`], with the free space in any case.
    pub fn report(&self, active: u64) -> DiskUse {
        let now = self.look(active);
        let free = now.free.or_else(|| self.free());
        DiskUse { free, ..now }
    }
}

impl DiskUse {
    /// The known numbers with their names.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let known = [
            ("used", self.used),
            ("expected", self.expected),
            ("quota", self.quota),
            ("reserve", self.reserve),
        ];
        let others = [("free", self.free), ("room", self.room)];
        known.into_iter().chain(others.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)))).collect()
    }

    fn check(&self, bytes: u64, refused: bool) -> Result<()> {
        let need = |limit: u64| {
            let more = if refused { (limit / RESUMES_AT).min(RESUMES_AT_MOST) } else { 0 };
            bytes.saturating_add(more)
        };
        if self.quota_room().is_some_and(|room| room < need(self.quota)) {
            return Err(self.over_quota(need(self.quota)));
        }
        if self.reserve_room().is_some_and(|room| room < need(self.reserve)) {
            return Err(self.in_reserve(need(self.reserve)));
        }
        Ok(())
    }

    fn needs(&self) -> u64 {
        self.used.saturating_add(self.expected)
    }

    /// When the room is used up, or without limits the free space, if files grow by so many bytes per second. `None`: not at
    /// this rate within the horizon of forecasts, or the free space is unknown.
    pub fn time_to_full(&self, bytes_per_second: f64) -> Option<Duration> {
        let free = self.free.map(|free| free.saturating_sub(self.expected));
        let room = [self.room, free].into_iter().flatten().min()? as f64;
        let seconds = if room > 0.0 { room / bytes_per_second } else { 0.0 };
        Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= HORIZON)
    }

    fn quota_room(&self) -> Option<u64> {
        (self.quota > 0).then(|| self.quota.saturating_sub(self.needs()))
    }

    fn reserve_room(&self) -> Option<u64> {
        let free = self.free.filter(|_| self.reserve > 0)?;
        Some(free.saturating_sub(self.reserve.saturating_add(self.expected)))
    }

    /// By how much the quota is passed.
    fn quota_lack(&self) -> u64 {
        if self.quota == 0 { 0 } else { self.needs().saturating_sub(self.quota) }
    }

    /// How much of the reserve is used.
    fn reserve_lack(&self) -> u64 {
        let lack = |free| self.reserve.saturating_add(self.expected).saturating_sub(free);
        if self.reserve == 0 { 0 } else { self.free.map_or(0, lack) }
    }

    #[cold]
    fn over_quota(&self, more: u64) -> Error {
        let DiskUse { used, expected, quota, .. } = self;
        refused(format!(
            "the quota of {quota} bytes of disk space is used up: {used} bytes are in files, {expected} are expected for \
             memtables and compactions, and {more} more are needed"
        ))
    }

    #[cold]
    fn in_reserve(&self, more: u64) -> Error {
        let DiskUse { expected, reserve, free, .. } = self;
        let free = free.unwrap_or_default();
        refused(format!(
            "the file system has {free} bytes free, the reserve is {reserve} bytes, {expected} are expected for memtables and \
             compactions, and {more} more are needed"
        ))
    }
}

fn refused(text: String) -> Error {
    Error::new(ErrorKind::Io(IoKind::NoSpace), text)
}

#[cfg(test)]
mod tests;

//! The entries of the health state: one per source of errors.

use super::{Health, Severity};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE_FOR_SPACE: Duration = Duration::from_secs(10);

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A write or a sync of the WAL.
    Log,
    /// The reservation of disk space ahead of the WAL.
    LogRoom,
    /// The creation of the next WAL file.
    NextLog,
    /// A commit to the MANIFEST.
    Manifest,
    /// A switch of `CURRENT` whose outcome is unknown.
    Current,
    /// A panic in background work.
    Panic,
    /// A family's flush.
    Flush(FamilyId),
    /// A family's compaction.
    Compaction(FamilyId),
    /// The removal of obsolete files.
    Purge,
    /// The OPTIONS file.
    Options,
}

impl Source {
    /// The name of the failed operation.
    pub fn name(self) -> &'static str {
        match self {
            Source::Log => "log",
            Source::LogRoom => "log's room",
            Source::NextLog => "next log",
            Source::Manifest => "MANIFEST",
            Source::Current => "CURRENT",
            Source::Panic => "background work",
            Source::Flush(_) => "flush",
            Source::Compaction(_) => "compaction",
            Source::Purge => "purge",
            Source::Options => "OPTIONS file",
        }
    }

    /// The severity of `cause` from this source.
    pub(super) fn severity(self, cause: &Error) -> Severity {
        match self {
            _ if cause.is_corruption() => Severity::Corrupt,
            Source::Current | Source::Panic => Severity::Fatal,
            Source::Log | Source::Manifest => Severity::Hard,
            Source::LogRoom | Source::Flush(_) if lacks_space(cause) => Severity::Full,
            Source::LogRoom
            | Source::NextLog
            | Source::Flush(_)
            | Source::Compaction(_)
            | Source::Purge
            | Source::Options => Severity::Soft,
        }
    }

    /// Whether resuming clears the error.
    fn is_resumed(self) -> bool {
        matches!(self, Source::Log | Source::LogRoom | Source::NextLog | Source::Manifest | Source::Flush(_))
    }

    /// Whether writers may have to wait for this work.
    fn holds_writers(self) -> bool {
        matches!(self, Source::Flush(_) | Source::Compaction(_))
    }
}

/// Whether the disk was full.
pub fn lacks_space(cause: &Error) -> bool {
    cause.kind() == ErrorKind::Io(IoKind::NoSpace)
}

/// The pause before retrying work that has failed `times` in a row.
fn pause(times: u32, cause: &Error) -> Duration {
    let longest = if lacks_space(cause) { LONGEST_PAUSE_FOR_SPACE } else { LONGEST_PAUSE };
    FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(8)).min(longest)
}

#[derive(Debug)]
struct Entry {
    severity: Severity,
    cause: Error,
    /// The time of the first failure, of the last one, and the number of failures since the first.
    since: Duration,
    last: Duration,
    times: u32,
}

/// Repeatedly failing work that writers may have to wait for.
pub struct Failing {
    /// The time of the first failure.
    pub since: Duration,
    /// The time of the last failure.
    pub last: Duration,
    /// The error.
    pub cause: Error,
}

/// The health state.
#[derive(Debug)]
pub struct HealthState {
    /// A copy of the severity for the write path: a hint; the exact value is under the lock.
    severity: AtomicU8,
    /// Errors reported so far; the counter orders no other memory access.
    failures: AtomicU64,
    entries: Mutex<BTreeMap<Source, Entry>>,
    /// The error that every write returns; `None` for a writable database.
    read_only: Option<Error>,
}

impl HealthState {
    /// A healthy state. For a read-only database: with the error that writes return.
    pub fn new(read_only: Option<Error>) -> Self {
        HealthState {
            severity: AtomicU8::new(0),
            failures: AtomicU64::new(0),
            entries: Mutex::new(Rank::Leaf, BTreeMap::new()),
            read_only,
        }
    }

    /// True when the database was opened read-only: there is no background work.
    pub fn is_read_only(&self) -> bool {
        self.read_only.is_some()
    }

    /// The severity of the most severe entry.
    pub fn severity(&self) -> Severity {
        Severity::from_u8(self.severity.load(Ordering::Acquire))
    }

    /// How many errors were reported since the open.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether `source` has an error that is not cleared.
    pub fn is_failing(&self, source: Source) -> bool {
        self.severity() > Severity::Healthy && self.entries.lock().contains_key(&source)
    }

    /// The severity and the error behind it: of the most severe entries the oldest. `None` when there is no error.
    pub fn state(&self) -> Health {
        let entries = self.entries.lock();
        let worst = entries.values().max_by_key(|e| (e.severity, std::cmp::Reverse(e.since)));
        worst.map_or_else(Health::default, |e| Health { severity: e.severity, cause: Some(e.cause.clone()) })
    }

    /// Records an error at the time `now`. Returns the pause before the retry.
    pub fn report(&self, source: Source, cause: &Error, now: Duration) -> Duration {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let severity = source.severity(cause);
        let mut entries = self.entries.lock();
        let new = || Entry { severity, cause: cause.clone(), since: now, last: now, times: 0 };
        let entry = entries.entry(source).or_insert_with(new);
        (entry.times, entry.last) = (entry.times.saturating_add(1), now);
        // The newest cause of the same severity: it says what prevents the work now.
        if severity >= entry.severity {
            (entry.severity, entry.cause) = (severity, cause.clone());
        }
        let pause = pause(entry.times, cause);
        self.settle(&entries);
        pause
    }

    /// Records that `source` succeeded or was cancelled, and clears its background errors. Errors that need more than a
    /// success stay.
    pub fn succeeded(&self, source: Source) {
        if self.severity() == Severity::Healthy {
            return;
        }
        let mut entries = self.entries.lock();
        if entries.get(&source).is_some_and(|e| e.severity < Severity::Hard) {
            entries.remove(&source);
        }
        self.settle(&entries);
    }

    /// Records that the corrupt `file` was removed from the database. Clears the error of `source` if that file caused
    /// it.
    pub fn file_removed(&self, source: Source, file: &str) {
        let mut entries = self.entries.lock();
        let for_it = |e: &Entry| e.cause.path().and_then(Path::file_name).is_some_and(|name| name == file);
        if entries.get(&source).is_some_and(|e| e.severity == Severity::Corrupt && for_it(e)) {
            entries.remove(&source);
        }
        self.settle(&entries);
    }

    /// Records that the engine has resumed: WAL, MANIFEST and flushes work again.
    pub fn resumed(&self) {
        let mut entries = self.entries.lock();
        entries.retain(|source, e| !source.is_resumed() || e.severity > Severity::Hard);
        self.settle(&entries);
    }

    fn settle(&self, entries: &BTreeMap<Source, Entry>) {
        let worst = entries.values().map(|e| e.severity).max().unwrap_or_default();
        self.severity.store(worst as u8, Ordering::Release);
    }

    /// The work that writers may have to wait for and that has failed for longest.
    pub fn failing(&self) -> Option<Failing> {
        if self.severity() == Severity::Healthy {
            return None;
        }
        let entries = self.entries.lock();
        let failing = entries.iter().filter(|(source, _)| source.holds_writers()).map(|(_, e)| e);
        let oldest = failing.min_by_key(|e| e.since)?;
        Some(Failing { since: oldest.since, last: oldest.last, cause: oldest.cause.clone() })
    }

    /// The refusal of writes other than deletions, if the disk lacks space for work that writers may have to wait for.
    pub fn out_of_space(&self) -> Option<Error> {
        let cause = self.failing().map(|failing| failing.cause).filter(lacks_space)?;
        Some(refusal(cause, Severity::Full))
    }

    /// # Errors
    /// The cause, when writes are refused, or all except deletions; `NotSupported`: the database is read-only.
    pub fn check_writable(&self) -> Result<()> {
        self.check_below(Severity::Full)
    }

    /// # Errors
    /// The cause, when all changes are refused; `NotSupported`: the database is read-only.
    pub fn check_working(&self) -> Result<()> {
        self.check_below(Severity::Hard)
    }

    /// # Errors
    /// The cause, when even dropping data to free space is refused; `NotSupported`: the database is read-only.
    pub fn check_dropping(&self) -> Result<()> {
        self.check_below(Severity::Fatal)
    }

    /// # Errors
    /// The cause, when an error other than corruption prevents changes of the tree; `NotSupported`: the database is
    /// read-only.
    pub fn check_mendable(&self) -> Result<()> {
        if let Some(answer) = &self.read_only {
            return Err(answer.clone());
        }
        let entries = self.entries.lock();
        let hinders = |e: &&Entry| (Severity::Hard..Severity::Corrupt).contains(&e.severity);
        let worst = entries.values().filter(hinders).max_by_key(|e| e.severity);
        worst.map_or(Ok(()), |e| Err(refusal(e.cause.clone(), e.severity)))
    }

    fn check_below(&self, limit: Severity) -> Result<()> {
        if let Some(answer) = &self.read_only {
            return Err(answer.clone());
        }
        if self.severity() < limit {
            return Ok(());
        }
        match self.state() {
            Health { severity, cause: Some(cause) } if severity >= limit => Err(refusal(cause, severity)),
            // The error was cleared since.
            _ => Ok(()),
        }
    }
}

/// The error for a refused call, with what the caller can do.
fn refusal(cause: Error, severity: Severity) -> Error {
    cause.hint(match severity {
        Severity::Full => {
            "Only deletions are taken since this error; reads go on. Other writes resume by themselves once there is room"
        }
        Severity::Hard => {
            "Writes are refused since this error; reads go on. Writes resume by themselves once the cause is gone"
        }
        Severity::Corrupt => {
            "Writes are refused since this error; reads go on. Put the damaged table in quarantine, or close the database and repair it"
        }
        _ => "Writes are refused since this error; reads go on. Close the database and open it again",
    })
}

//! The state that all handles of an open database share.

use super::pins::Retired;
use super::work::{Slots, Work};
use crate::column_family::{DatabaseId, Family, FamilySet};
use crate::health::{Failing, HealthState, Severity, lacks_space};
use crate::pressure::{DiskSpace, Memory, Pressure};
use crate::write::Committer;
use ashlar_base::panics::contained;
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNum};
use ashlar_compaction::{RateLimiter, Running, Writer};
use ashlar_env::{Env, FileLock, JobId, JobKind};
use ashlar_observe::{Counters, Events, Scrubbed};
use ashlar_options::DbOptions;
use ashlar_read::snapshot::SnapshotList;
use ashlar_recovery::{PreparedSet, RecoveryReport};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{EpochCell, Mutex, MutexGuard, Signal, Waited};
use ashlar_tree::files::{Archive, PendingOutputs};
use ashlar_tree::places::Places;
use ashlar_tree::version::{OpenTables, VersionSet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The shared state of a database. Handles and jobs hold it by `Arc`; a close empties it but does not free it.
pub(crate) struct Core {
    /// The id of this open; its families carry the same id.
    pub(super) database: DatabaseId,
    pub(crate) env: Env,
    pub(super) places: Arc<Places>,
    /// Where WAL files go that are no longer needed; `None`: they are removed.
    pub(super) archive: Option<Archive>,
    pub(crate) dir: PathBuf,
    pub(super) options: EpochCell<DbOptions>,
    /// Held by a thread that changes settings of the database or of a family.
    pub(super) changing: Mutex<()>,
    pub(crate) tables: Arc<OpenTables>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) events: Events,
    pub(crate) versions: Arc<VersionSet>,
    pub(crate) committer: Committer,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) pending: Arc<PendingOutputs>,
    pub(crate) health: HealthState,
    pub(crate) pressure: Arc<Pressure>,
    pub(super) disk: Arc<DiskSpace>,
    pub(super) limiter: Mutex<RateLimiter>,
    /// What the scrubber has read and found.
    pub(super) scrubbed: Mutex<Scrubbed>,
    pub(super) counters: Counters,
    pub(crate) recovery: RecoveryReport,
    pub(super) writer: Writer,
    /// Notified whenever background work ends, whether it succeeded or failed.
    pub(crate) progress: Signal,
    /// The number of flushes and compactions that have begun, which numbers them in events.
    pub(super) jobs_begun: AtomicU64,
    /// The number of callers that abort compactions, running ones included.
    pub(super) aborts: AtomicUsize,
    /// Some family has `disallow_memtable_writes`: every batch is checked before it is written.
    pub(super) some_disallow: AtomicBool,
    /// Whether the values of some family have a time to live.
    pub(super) some_expire: AtomicBool,
    /// Set once, under the state lock; refuses new operations and new background work.
    pub(crate) closed: AtomicBool,
    pub(crate) state: Mutex<State>,
    /// The locks of directories that were added after the open.
    pub(super) joined: Mutex<Vec<Box<dyn FileLock>>>,
    /// The transactions that are prepared and not decided on. Only leaders of the writers change it.
    pub(super) prepared: Mutex<Arc<PreparedSet>>,
    /// Held from the open to the end of the close. A close keeps the mutex locked while it runs.
    pub(crate) hold: Mutex<Option<Hold>>,
}

/// What an open database holds of its directory: the LOCK, or nothing when it was opened read-only beside other
/// processes.
pub(crate) struct Hold {
    _lock: Option<Box<dyn FileLock>>,
}

impl Hold {
    pub(super) fn new(lock: Option<Box<dyn FileLock>>) -> Hold {
        Hold { _lock: lock }
    }
}

/// A caller that waits for background work gives up once that work has kept failing for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// A waiting caller does not trigger a retry of work that failed less than this long ago.
const TRIED_JUST_NOW: Duration = Duration::from_secs(1);

/// Failures of one kind of background work.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) times: u64,
    pub(crate) last: Error,
}

/// The state that the state lock guards.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) families: FamilySet,
    /// The running compactions, by family.
    pub(crate) running: BTreeMap<FamilyId, Vec<Running>>,
    /// The number of jobs that were submitted and have not ended.
    pub(crate) jobs: usize,
    /// How many of those jobs compact.
    pub(crate) compactors: usize,
    /// The number of callers whose compactions run alone.
    pub(crate) exclusive: usize,
    /// The number of callers that wait for all due work; due work then starts without delay.
    pub(crate) idle_waiters: usize,
    /// The number of callers that pause background work.
    pub(crate) pauses: usize,
    /// The leader of the writers waits for background work: for a flush (`true`), or for compactions (`false`).
    pub(crate) stalled: Option<bool>,
    /// A close has begun: writers do not wait for background work.
    pub(crate) closing: bool,
    /// The ids of the jobs submitted since there was last no job. A few of these jobs may have ended.
    pub(crate) submitted: Vec<JobId>,
    /// The slots of work that has at most one job at a time.
    pub(super) work: Slots,
    /// The failures of each family's background work, and their count since the open.
    pub(crate) failed: BTreeMap<(FamilyId, JobKind), Failed>,
    /// When writes were last refused because readers hold the memory.
    pub(super) refused_at: Option<Duration>,
    /// The OPTIONS file could not be written and is out of date; the purge rewrites it.
    pub(crate) options_stale: bool,
    /// Super versions were replaced, or files became obsolete, since the last purge began.
    pub(crate) purge_wanted: bool,
    /// A thread held a replaced version when the last purge began: the purge may have kept files of that version.
    pub(super) purge_met_holders: bool,
    /// The number of callers that keep all files. No purge begins meanwhile.
    pub(super) file_holds: usize,
    /// Files that move to `lost/` once no reader needs them.
    pub(crate) quarantined: BTreeSet<FileNumber>,
    /// Replaced super versions. The purge drops them, outside every epoch pin and every lock but
    /// `Lifecycle`.
    pub(super) retired: Vec<Arc<Retired>>,
}

impl State {
    /// True if no job of any kind exists.
    pub(crate) fn is_quiet(&self) -> bool {
        self.jobs == 0 && self.work.are_free()
    }

    /// Whether a purge runs or is due. A purge that waits to retry, or for callers that keep all files, does not count.
    pub(super) fn is_purge_due(&self) -> bool {
        if self.file_holds > 0 {
            return false;
        }
        if self.work.is_free(Work::Purge) { self.purge_wanted } else { self.work.is_awaited(Work::Purge) }
    }

    /// Records that one of `jobs` ended. The submitted ids are cleared only when no job is left: a waiting job may be
    /// older than all jobs submitted and ended after it.
    pub(super) fn job_ended(&mut self) {
        self.jobs -= 1;
        if self.jobs == 0 {
            self.submitted.clear();
        }
    }

    /// The bytes that the memtables which take writes or wait for a flush take from the budget.
    pub(crate) fn live_memtable_bytes(&self) -> usize {
        self.families.iter().map(|f| f.memtables.held()).sum()
    }
}

impl Core {
    /// Takes the state lock.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The current settings.
    pub(crate) fn options(&self) -> Arc<DbOptions> {
        self.options.get()
    }

    /// # Errors
    /// `Shutdown(Closed)` once the database is closed, `Shutdown(Forked)` in a child of the process that opened it.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.database.check_process()?;
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// # Errors
    /// `InvalidArgument`: the call comes from a callback, on a thread that works for this database. `Shutdown(Forked)`.
    pub(super) fn check_outside(&self, call: &str) -> Result<()> {
        self.database.check_outside(self.executor(), call)
    }

    /// Whether this thread works for the database.
    pub(super) fn is_inside(&self) -> bool {
        self.database.is_entered(self.executor())
    }

    /// The executor of the jobs, as an address.
    pub(super) fn executor(&self) -> usize {
        Arc::as_ptr(&self.env.jobs).addr()
    }

    /// Runs `act`, which may call a comparator. Returns `None` after a panic. The database then takes no more changes,
    /// as after the panic of a job, and waiting callers get an error.
    pub(super) fn contained<T>(&self, what: &str, act: impl FnOnce() -> T) -> Option<T> {
        let _inside = self.database.enter();
        let done = contained(act);
        if done.is_none() {
            self.panicked(what);
            self.progress.notify();
        }
        done
    }

    /// # Errors
    /// `InvalidArgument`: the family belongs to another database, or to another open of this one. `Shutdown(Forked)`.
    #[inline]
    pub(super) fn check_own(&self, family: &Family) -> Result<()> {
        self.database.check_process()?;
        if family.database() == self.database { Ok(()) } else { Err(foreign(family)) }
    }

    /// # Errors
    /// `InvalidArgument`: the family belongs to another database, or was dropped.
    pub(super) fn check_live(&self, family: &Family) -> Result<()> {
        self.check_own(family)?;
        match family.is_dropped() {
            false => Ok(()),
            true => Err(Error::invalid(format!("column family {:?} was dropped", family.name()))),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The number of the next flush or compaction in events.
    pub(super) fn new_job(&self) -> u64 {
        // Relaxed: nothing depends on the order, and each number is drawn once.
        self.jobs_begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether compactions must end and none may begin.
    pub(crate) fn compactions_aborted(&self) -> bool {
        // Relaxed: a job that misses the change sees it at its next step.
        self.aborts.load(Ordering::Relaxed) > 0
    }

    /// The newest sequence that reads may see.
    pub(crate) fn visible(&self) -> SeqNum {
        self.committer.visible()
    }

    /// [`Core::wait_until`], but with a time limit on work that fails repeatedly. If the work has been failing for
    /// long, the call triggers one retry and returns the outcome of that retry.
    ///
    /// # Errors
    /// Those of [`Core::wait_until`], and the cause when flushes or compactions keep failing.
    pub(crate) fn wait_patiently(&self, done: impl FnMut(&mut State) -> bool) -> Result<()> {
        self.wait_patiently_until(None, done)
    }

    /// [`Core::wait_patiently`], but at most until `end` by the clock: `Ok` then, too.
    ///
    /// # Errors
    /// Those of [`Core::wait_patiently`].
    pub(super) fn wait_patiently_until(
        &self,
        end: Option<Duration>,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<()> {
        let start = self.env.clock.now();
        let too_long = |f: &Failing| self.since(f.since) >= PATIENCE;
        if self.health.failing().is_some_and(|f| too_long(&f) && self.since(f.last) >= TRIED_JUST_NOW) {
            self.wake_jobs();
        }
        let mut given_up = None;
        self.wait_outside_until(end, || {
            if done(&mut self.state()) {
                given_up = None;
                return true;
            }
            let tried = |f: &Failing| f.last.saturating_add(TRIED_JUST_NOW) > start;
            given_up = self.health.failing().filter(|f| too_long(f) && tried(f));
            given_up.is_some()
        })?;
        match given_up {
            None => Ok(()),
            Some(Failing { cause, .. }) if lacks_space(&cause) => Err(cause
                .hint("Free space on the device: the background work that this call needs keeps failing")),
            Some(failing) => Err(failing.cause.hint("Background work that callers need keeps failing")),
        }
    }

    fn since(&self, start: Duration) -> Duration {
        self.env.clock.now().saturating_sub(start)
    }

    /// Waits until `done` returns true; `done` is called again after every piece of background work.
    ///
    /// # Errors
    /// `Shutdown` when the database is closed meanwhile, the cause when it enters an error state, `Aborted` when
    /// nothing could ever make `done` true.
    pub(crate) fn wait_until(&self, mut done: impl FnMut(&mut State) -> bool) -> Result<()> {
        self.wait_outside(|| done(&mut self.state()))
    }

    /// [`Core::wait_until`] for a question that is asked without the state lock.
    ///
    /// # Errors
    /// Those of [`Core::wait_until`].
    pub(super) fn wait_outside(&self, done: impl FnMut() -> bool) -> Result<()> {
        self.wait_outside_until(None, done)
    }

    /// [`Core::wait_outside`], but at most until `end` by the clock: `Ok` then, too.
    fn wait_outside_until(&self, end: Option<Duration>, mut done: impl FnMut() -> bool) -> Result<()> {
        loop {
            let seen = self.progress.seen();
            if done() {
                return Ok(());
            }
            let left = end.map(|end| end.saturating_sub(self.env.clock.now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            self.check_open()?;
            if self.health.severity() >= Severity::Hard {
                return self.health.check_writable();
            }
            // Wakes up when the time limit for failing work ends.
            let failing = self.health.failing().map(|f| PATIENCE.saturating_sub(self.since(f.since)));
            let failing = failing.filter(|left| !left.is_zero());
            let longest = failing.into_iter().chain(left).min();
            if self.progress.wait(seen, longest) == Waited::Stuck {
                return Err(Error::new(
                    ErrorKind::Aborted,
                    "waiting for background work that does not exist",
                ));
            }
        }
    }
}

#[cold]
fn foreign(family: &Family) -> Error {
    let text = format!("column family {:?} belongs to another open database", family.name());
    Error::invalid(text).hint("Ask this database for the family of that name")
}

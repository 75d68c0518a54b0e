//! Flush and resume on request, and control of all background work: waiting for it, pausing it, aborting compactions.

use super::Db;
use super::compaction_job::aborted;
use super::core::Core;
use crate::column_family::Family;
use crate::health::Severity;
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_env::JobKind;
use ashlar_sync::Waited;
use ashlar_sync::atomic::Ordering;
use std::sync::Arc;

impl Db {
    /// Writes the memtables of `families` to tables and waits for the tables. Dropped families are skipped, unless all
    /// were dropped.
    ///
    /// # Errors
    /// `Io`: a table could not be written. `Aborted`: background work is paused, or compactions are aborted and a
    /// writer waits for one. `InvalidArgument`: a family belongs to another database, or all were dropped. `Shutdown`.
    pub fn flush(&self, families: &[Arc<Family>]) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("flush()")?;
        families.iter().try_for_each(|family| core.check_own(family))?;
        if families.iter().all(|family| family.is_dropped()) {
            families.iter().try_for_each(|family| core.check_live(family))?;
        }
        core.health.check_working()?;
        core.flush(&families.iter().map(|f| f.id()).collect::<Vec<_>>())
    }

    /// Tries to leave an error state at once, instead of after the automatic pause, and waits for the outcome of that
    /// attempt. Succeeds when there is no error.
    ///
    /// # Errors
    /// The cause, when writes are still refused. `Aborted`: background work is paused. `Shutdown`.
    pub fn resume(&self) -> Result<()> {
        let core = self.core();
        core.check_outside("resume()")?;
        let failures = core.health.failures();
        core.schedule();
        core.wake_jobs();
        loop {
            let seen = core.progress.seen();
            core.check_open()?;
            let (severity, tried) = (core.health.severity(), core.health.failures() != failures);
            let over = tried || !matches!(severity, Severity::Soft | Severity::Full | Severity::Hard);
            if over {
                return core.health.check_writable();
            }
            Core::check_unpaused(core.state().pauses)?;
            if core.progress.wait(seen, None) == Waited::Stuck {
                return core.health.check_writable();
            }
        }
    }

    /// Waits until no background work is running or due, and replaced files are removed. During the call no compaction
    /// is delayed to collect more input. While a cursor reads replaced files, these files stay, and the call takes 63 ms
    /// longer.
    ///
    /// # Errors
    /// The cause, when background work cannot go on. `Aborted`: work is due, and background work is paused. `Shutdown`.
    pub fn wait_for_background(&self) -> Result<()> {
        let core = self.core();
        core.check_outside("wait_for_background()")?;
        core.state().idle_waiters += 1;
        core.schedule();
        let outcome = loop {
            let mut is_paused = false;
            let waited = core.wait_patiently(|state| {
                is_paused = state.pauses > 0;
                is_paused || !Core::busy(state)
            });
            if waited.is_err() {
                break waited;
            }
            if !is_paused {
                // A job that has just ended may still choose what comes next.
                core.schedule();
                if Core::busy(&core.state()) {
                    continue;
                }
                break waited;
            }
            if !core.is_due() {
                break waited;
            }
            // Unless the pause has ended meanwhile, the work stays due.
            let pauses = core.state().pauses;
            if let Err(paused) = Core::check_unpaused(pauses) {
                break Err(paused);
            }
        };
        core.state().idle_waiters -= 1;
        if outcome.is_ok() && core.state().purge_met_holders {
            core.await_purge();
        }
        outcome
    }

    /// Prevents new background work, and waits until running work has ended. Calls add up: each needs one
    /// [`Db::continue_background_work`]. During the pause writers go on until the memtables are full, and requests for
    /// a flush or a compaction fail. (RocksDB: `PauseBackgroundWork`.)
    ///
    /// # Errors
    /// The cause, when running work cannot end. `Shutdown`. After an error nothing is paused.
    pub fn pause_background_work(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("pause_background_work()")?;
        {
            let mut state = core.state();
            // A close flushes data that no WAL holds; a pause would prevent that flush.
            if state.closing {
                return Err(Error::closed());
            }
            state.pauses += 1;
        }
        core.refuse_waiting();
        core.wake_jobs();
        core.wait_patiently(|state| state.jobs == 0).inspect_err(|_| {
            let mut state = core.state();
            // A close that began meanwhile has ended all pauses.
            state.pauses = state.pauses.saturating_sub(1);
        })
    }

    /// Ends one [`Db::pause_background_work`].
    ///
    /// # Errors
    /// `InvalidArgument`: no pause is in force. `Shutdown`.
    pub fn continue_background_work(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        {
            let mut state = core.state();
            // A close ends all pauses.
            if state.closing {
                return Err(Error::closed());
            }
            state.pauses = less_one(state.pauses)?;
        }
        core.schedule();
        core.progress.notify();
        Ok(())
    }

    /// Aborts running compactions and prevents new ones. Their outputs are removed, their inputs stay; requests for a
    /// compaction fail with `Aborted`. Waits until no compaction is left. Calls add up: each needs one
    /// [`Db::resume_compactions`]. (RocksDB: `AbortAllCompactions`.)
    ///
    /// # Errors
    /// The background error, when running work cannot end. `Shutdown`. After an error nothing is aborted.
    pub fn abort_compactions(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("abort_compactions()")?;
        // Under the lock: a thread that claims files either sees the count, or the wait below sees its claim.
        {
            let _state = core.state();
            core.aborts.fetch_add(1, Ordering::Relaxed);
        }
        core.refuse_waiting();
        core.wake_jobs();
        core.wait_until(|state| state.compactors == 0).inspect_err(|_| {
            {
                let _state = core.state();
                // A call of `resume_compactions` meanwhile may have ended this abort.
                let aborts = core.aborts.load(Ordering::Relaxed);
                core.aborts.store(aborts.saturating_sub(1), Ordering::Relaxed);
            }
            core.schedule();
            core.progress.notify();
        })
    }

    /// Ends one [`Db::abort_compactions`].
    ///
    /// # Errors
    /// `InvalidArgument`: no abort is in force. `Shutdown`.
    pub fn resume_compactions(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        {
            let _state = core.state();
            core.aborts.store(less_one(core.aborts.load(Ordering::Relaxed))?, Ordering::Relaxed);
        }
        core.schedule();
        core.progress.notify();
        Ok(())
    }
}

fn less_one(calls: usize) -> Result<usize> {
    calls.checked_sub(1).ok_or_else(|| Error::invalid("background work was not paused or aborted"))
}

impl Core {
    /// The error of a request for background work while background work is paused.
    pub(super) fn check_unpaused(pauses: usize) -> Result<()> {
        if pauses == 0 {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Aborted, "background work is paused").hint("Continue it first"))
    }

    /// Refuses the calls that wait for the lead while the leader waits for background work that is paused or aborted. While the
    /// leader waits for any such work, also refuses the writers that must not wait, or whose deadline has passed. Called when
    /// such a call or writer arrives, when the leader begins to wait, and when background work is paused or aborted. The last of
    /// these three events sees the other two, so no waiter is missed.
    pub(super) fn refuse_waiting(&self) {
        if self.pressure.is_holding() {
            self.committer.refuse_hurried();
        }
        let cause = {
            let state = self.state();
            match state.stalled {
                Some(_) if state.pauses > 0 => Self::check_unpaused(state.pauses).err(),
                Some(false) if self.compactions_aborted() => Some(aborted().hint("Resume them first")),
                _ => None,
            }
        };
        if let Some(cause) = cause {
            self.committer.refuse_waiting(&cause);
        }
    }

    pub(super) fn flush(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        Self::check_unpaused(self.state().pauses)?;
        self.committer.lead_alone(|| self.seal(families))?;
        self.flush_immutable(families)
    }

    /// Seals the non-empty memtables of `families`. Called by a leader.
    pub(super) fn seal(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        let filled = {
            let state = self.state();
            let holds = |id: &FamilyId| {
                state.families.get(*id).is_some_and(|f| !f.memtables.current().rep.is_empty())
            };
            families.iter().copied().filter(holds).collect::<Vec<_>>()
        };
        if filled.is_empty() { Ok(()) } else { self.switch(&filled) }
    }

    /// Waits until no immutable memtable of `families` is left.
    pub(super) fn flush_immutable(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        self.schedule();
        let before = self.failures_of(families, JobKind::Flush);
        let mut failure = None;
        self.wait_until(|state| {
            let waits =
                |id: &FamilyId| state.families.get(*id).is_some_and(|f| f.memtables.immutable_len() > 0);
            if !families.iter().any(waits) {
                return true;
            }
            failure = Self::check_unpaused(state.pauses).err();
            if failure.is_some() {
                return true;
            }
            failure = before.iter().find_map(|(id, n)| state.failed_since((*id, JobKind::Flush), *n));
            failure.is_some()
        })?;
        failure.map_or(Ok(()), Err)
    }

    pub(super) fn failures_of(&self, families: &[FamilyId], kind: JobKind) -> Vec<(FamilyId, u64)> {
        let state = self.state();
        families.iter().map(|id| (*id, state.failures((*id, kind)))).collect()
    }
}

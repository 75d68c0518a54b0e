//! Flush on request, and background work as a whole: waiting for it, pausing it, aborting compactions.

use super::Db;
use super::compaction_job::aborted;
use super::core::Core;
use crate::column_family::Family;
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_env::JobKind;
use ashlar_sync::atomic::Ordering;
use std::sync::Arc;

impl Db {
    /// Writes the memtables of `families` to tables and waits for it. Of several families, those that were dropped are
    /// passed over.
    ///
    /// # Errors
    /// `Io`: a table could not be written. `Aborted`: background work is paused, or compactions are aborted and a writer
    /// waits for one. `InvalidArgument`: a family belongs to another database, or all were dropped.
    /// `Shutdown`.
    pub fn flush(&self, families: &[Arc<Family>]) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("flush()")?;
        families.iter().try_for_each(|family| core.check_own(family))?;
        if families.iter().all(|family| family.is_dropped()) {
            families.iter().try_for_each(|family| core.check_live(family))?;
        }
        core.health.check_writable()?;
        core.flush(&families.iter().map(|f| f.id()).collect::<Vec<_>>())
    }

    /// Waits until no background work is under way or due. Meanwhile no compaction waits for more to compact.
    ///
    /// # Errors
    /// The cause, when background work cannot go on. `Aborted`: work is due, and background work is paused. `Shutdown`.
    pub fn wait_for_background(&self) -> Result<()> {
        let core = self.core();
        core.check_outside("wait_for_background()")?;
        core.state().hurried += 1;
        core.schedule();
        let mut paused = Ok(());
        let outcome = core.wait_patiently(|state| {
            let due = if state.pauses > 0 { core.is_due(state) } else { Core::busy(state) };
            paused = if due { Core::check_unpaused(state.pauses) } else { Ok(()) };
            !due || paused.is_err()
        });
        core.state().hurried -= 1;
        outcome.and(paused)
    }

    /// Lets no new background work begin, and waits until what is under way has ended. Calls add up: each wants a
    /// [`Db::continue_background_work`]. Meanwhile writers go on until the memtables are full, and requests for a flush or
    /// a compaction fail. (RocksDB: `PauseBackgroundWork`.)
    ///
    /// # Errors
    /// The cause, when what is under way cannot end. `Shutdown`. Nothing is paused then.
    pub fn pause_background_work(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("pause_background_work()")?;
        {
            let mut state = core.state();
            // A close flushes what no log holds: a pause would keep it from that.
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

    /// Takes one [`Db::pause_background_work`] back.
    ///
    /// # Errors
    /// `InvalidArgument`: there was none. `Shutdown`.
    pub fn continue_background_work(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        {
            let mut state = core.state();
            state.pauses = less_one(state.pauses)?;
        }
        core.schedule();
        core.progress.notify();
        Ok(())
    }

    /// Ends the compactions under way, whatever they have done, and lets none begin. What they wrote is removed, what they
    /// read stays; requests for a compaction fail with `Aborted`. Waits until none is left. Calls add up: each wants a
    /// [`Db::resume_compactions`]. (RocksDB: `AbortAllCompactions`.)
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn abort_compactions(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("abort_compactions()")?;
        // Under the lock: whoever claims files has seen it, or is seen below.
        {
            let _state = core.state();
            core.aborts.fetch_add(1, Ordering::Relaxed);
        }
        core.refuse_waiting();
        core.wake_jobs();
        core.wait_until(|state| state.compactors == 0)
    }

    /// Takes one [`Db::abort_compactions`] back.
    ///
    /// # Errors
    /// `InvalidArgument`: there was none. `Shutdown`.
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
    /// The error of a request that nobody would serve.
    pub(super) fn check_unpaused(pauses: usize) -> Result<()> {
        if pauses == 0 {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Aborted, "background work is paused").hint("Continue it first"))
    }

    /// Refuses the calls that wait for the lead while its holder waits for background work that is not done now. To be
    /// called when such a call comes, when the leader begins to wait, and when background work is paused or aborted: the
    /// last of them sees the others.
    pub(super) fn refuse_waiting(&self) {
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
        self.flush_sealed(families)
    }

    /// Seals the memtables of `families` that hold something. To be called by a leader.
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

    /// Waits until no sealed memtable of `families` is left.
    pub(super) fn flush_sealed(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        self.schedule();
        let before = self.failures_of(families, JobKind::Flush);
        let mut failure = None;
        self.wait_until(|state| {
            let waits = |id: &FamilyId| state.families.get(*id).is_some_and(|f| f.memtables.sealed_len() > 0);
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

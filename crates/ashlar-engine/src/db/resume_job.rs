//! Resuming from a hard state: the way back to taking writes, in the same handle, with nothing acknowledged lost.
//!
//! A log or MANIFEST that failed is never written again. But all that was acknowledged and is in no table is in the
//! memtables. So: *seal* them with the lead, while writes are refused; *flush* them, family by family, into new files;
//! *commit* all tables and a new log number for every family in one atomic group; begin with that log. Whatever the old
//! logs hold is not needed any more then, not even to know whether a write that failed is in: it is out.
//!
//! 1. Writes are refused from the seal to the end, so nothing enters the new memtables or any log meanwhile.
//! 2. A table that was written stays for the next attempt; one attempt that fails costs a pause, never the database.
//! 3. Records that a log held back in the process (`manual_wal_flush`) when it failed are in the memtables too, so they
//!    are not lost. (RocksDB calls that fatal: it flushes family by family.)
//! 4. Sequences that failed writes may have brought into a file are left out (`Committer`, rule 2).
//! 5. A commit with an unknown outcome is repeated with the same files, so it does not matter which of the two counts.
//! 6. It waits for nobody: a lead that is taken, or a flush that is under way, is looked for again soon.

use super::Db;
use super::core::Core;
use super::output::numbers;
use crate::health::{Severity, Source};
use crate::wal::Wal;
use ashlar_base::stats::Ticker;
use ashlar_base::{FamilyId, Result};
use ashlar_compaction::flush::{self, FlushInput, FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::Event;
use ashlar_sync::Waited;
use ashlar_tree::version::FamilyState;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How soon a job looks again for what it must not wait for.
const SOON: Duration = Duration::from_millis(1);

enum Phase {
    Seal,
    Flush,
    Commit,
}

/// One way back.
pub(super) struct ResumeJob {
    core: Arc<Core>,
    phase: Phase,
    /// Families whose memtables are still to be flushed.
    left: VecDeque<FamilyId>,
    run: Option<(FamilyId, FlushRun)>,
    done: BTreeMap<FamilyId, FlushOutcome>,
    wal: Option<Arc<Wal>>,
    in_step: bool,
}

impl ResumeJob {
    pub(super) fn new(core: Arc<Core>) -> Self {
        ResumeJob {
            core,
            phase: Phase::Seal,
            left: VecDeque::new(),
            run: None,
            done: BTreeMap::new(),
            wal: None,
            in_step: false,
        }
    }

    /// One step. `Done` when writes are taken again, or never will be.
    fn advance(&mut self, budget: StepBudget) -> Result<StepResult> {
        if self.core.is_closed() || self.core.health.severity() != Severity::Hard {
            return Ok(StepResult::Done);
        }
        match self.phase {
            Phase::Seal => Ok(self.seal()),
            Phase::Flush => self.flush(budget),
            Phase::Commit => self.commit(),
        }
    }

    fn seal(&mut self) -> StepResult {
        let core = &self.core;
        let Some(lead) = core.committer.try_lead() else { return StepResult::Wait(SOON) };
        let (_, Some(cause)) = core.health.state() else { return StepResult::Done };
        core.statistics.tick(Ticker::ErrorHandlerAutoResumeCount);
        core.committer.refuse(&cause);
        let mut state = core.state();
        if state.families.iter().any(|f| f.flushing) {
            return StepResult::Wait(SOON);
        }
        let (number, last) = (core.versions.new_file_number(), core.visible());
        let families: Vec<FamilyId> = state.families.iter().map(|f| f.family.id()).collect();
        core.seal_memtables(&mut state, &families, number, last);
        let set = Core::write_set(&state, &core.memory, Arc::clone(&core.committer.current().wal));
        core.committer.install(set);
        families.iter().for_each(|id| core.publish(&mut state, *id));
        let waits = |id: &FamilyId| state.families.get(*id).is_some_and(|f| f.memtables.sealed_len() > 0);
        self.left = families.into_iter().filter(waits).collect();
        drop(state);
        drop(lead);
        self.phase = Phase::Flush;
        StepResult::Again
    }

    fn flush(&mut self, budget: StepBudget) -> Result<StepResult> {
        if let Some((family, run)) = &mut self.run {
            if run.step(budget.bytes)? == Progress::More {
                return Ok(StepResult::Again);
            }
            let family = *family;
            if let Some((_, run)) = self.run.take() {
                self.done.insert(family, run.finish()?);
                self.left.pop_front();
            }
        }
        match self.left.front() {
            None => self.phase = Phase::Commit,
            Some(family) => match self.pick(*family)? {
                Some(run) => self.run = Some((*family, run)),
                None => drop(self.left.pop_front()),
            },
        }
        Ok(StepResult::Again)
    }

    fn pick(&self, id: FamilyId) -> Result<Option<FlushRun>> {
        let core = &self.core;
        let picked = {
            let state = core.state();
            let Some(live) = state.families.get(id) else { return Ok(None) };
            flush::pick(&live.memtables.sealed_newest_first(), false).map(|m| (m, Arc::clone(&live.family)))
        };
        let Some((memtables, family)) = picked else { return Ok(None) };
        FlushRun::new(FlushInput {
            family: id,
            memtables,
            snapshots: core.snapshots.all(),
            output: core.writer.plan(&core.dir, (id, family.name()), &family.options()),
            numbers: numbers(&core.versions, &core.pending),
        })
        .map(Some)
    }

    fn commit(&mut self) -> Result<StepResult> {
        let core = &self.core;
        let Some(_lead) = core.committer.try_lead() else { return Ok(StepResult::Wait(SOON)) };
        let wal = match &self.wal {
            Some(wal) => Arc::clone(wal),
            None => {
                let number = core.versions.new_file_number();
                let shape = core.committer.current().wal.shape();
                let made = Wal::create(&core.env, &core.dir, number, shape)?;
                Arc::clone(self.wal.insert(Arc::new(made)))
            }
        };
        core.versions.raise_last_sequence(core.committer.last_reserved());
        let families: Vec<FamilyId> = core.state().families.iter().map(|f| f.family.id()).collect();
        let edit = |id: &FamilyId| VersionEdit {
            log_number: Some(wal.number()),
            ..self.done.get(id).map_or_else(|| VersionEdit::of(*id), |outcome| outcome.edit.clone())
        };
        let mut edits: Vec<VersionEdit> = families.iter().map(edit).collect();
        if let Some(first) = edits.first_mut() {
            first.min_log_to_keep = Some(wal.number());
        }
        let flushed = self.done.iter().map(|(id, outcome)| (*id, outcome.memtables)).collect();
        let installer = Arc::clone(core);
        let install = Box::new(move |changed: &[_]| installer.install_resumed(changed, &flushed, wal));
        core.versions.commit_with(edits, install)?;
        for outcome in std::mem::take(&mut self.done).into_values() {
            // Several families share one try: none has a time of its own.
            core.counters.flushed(&outcome, Duration::ZERO, &core.statistics);
            let entries = outcome.counters.entries_in;
            core.tell_flushed(&outcome.edit, outcome.memtables, entries, Duration::ZERO);
        }
        core.health.resumed();
        Ok(StepResult::Done)
    }

    /// The last thing a job does. The files of what was begun in vain go first: once nobody waits for it any more, the
    /// directory may be another process's, and their names too.
    fn end(&mut self) {
        self.run = None;
        {
            let mut state = self.core.state();
            state.resuming = false;
            state.job_ended();
        }
        self.core.after_job();
    }
}

impl Job for ResumeJob {
    fn kind(&self) -> JobKind {
        JobKind::Flush
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        self.in_step = true;
        let advanced = self.advance(budget);
        self.in_step = false;
        match advanced {
            Ok(StepResult::Done) => {
                if self.core.health.severity() == Severity::Well && !self.core.is_closed() {
                    self.core.statistics.tick(Ticker::ErrorHandlerAutoResumeSuccessCount);
                    self.core.events.tell(&Event::ErrorRecovered);
                }
                self.end();
                StepResult::Done
            }
            Ok(more) => more,
            Err(e) => {
                self.run = None;
                let core = &self.core;
                let source = core.manifest_trouble();
                let source = source.or_else(|| self.left.front().map(|f| Source::Flush(*f)));
                let pause = core.report(source.unwrap_or(Source::Log), &e);
                core.progress.notify();
                StepResult::Wait(pause)
            }
        }
    }

    fn abort(mut self: Box<Self>) {
        if self.in_step {
            self.core.panicked("resuming");
        }
        self.end();
    }
}

impl Core {
    /// Shows the tables that hold all that was in memory, and lets writers in again, into the new log. Runs inside the
    /// commit, with the lead.
    fn install_resumed(
        &self,
        changed: &[Arc<FamilyState>],
        flushed: &BTreeMap<FamilyId, usize>,
        wal: Arc<Wal>,
    ) {
        let mut state = self.state();
        for family in changed {
            let Some(live) = state.families.get_mut(family.id) else { continue };
            live.version = Arc::clone(&family.version);
            live.memtables.flushed(flushed.get(&family.id).copied().unwrap_or(0));
            live.memtables.advance_empty(wal.number());
            self.publish(&mut state, family.id);
        }
        state.purge_wanted = true;
        let set = Core::write_set(&state, &self.memory, wal);
        self.committer.resume(set);
    }
}

impl Db {
    /// Tries now to leave an error state, instead of after the pause that it would take by itself, and waits for the
    /// outcome of that one attempt. Fine when nothing is wrong.
    ///
    /// # Errors
    /// The cause, when writes are refused still. `Aborted`: background work is paused. `Shutdown`.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::WriteBatch;
    use ashlar_base::Error;
    use ashlar_env::sim::SimEnv;
    use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
    use std::path::Path;

    #[test]
    fn a_job_that_ended_has_no_files_left_to_remove() {
        let env = SimEnv::new(1).env();
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let dir = Path::new("/db");
        let family = FamilyOptions::default();
        let db = Db::open(env.clone(), dir, options, Vec::new(), family).unwrap();
        let mut batch = WriteBatch::new();
        for key in 0..2000_u32 {
            batch.put(FamilyId::DEFAULT, &key.to_be_bytes(), &[7; 100]).unwrap();
        }
        db.write(&mut batch, WriteOptions::default()).unwrap();
        let core = Arc::clone(db.core());
        core.health.report(Source::Log, &Error::closed(), Duration::ZERO);
        let mut job = ResumeJob::new(Arc::clone(&core));
        {
            let mut state = core.state();
            state.jobs += 1;
            state.resuming = true;
        }
        let tables = || env.fs.list(dir).unwrap().iter().filter(|f| f.name.ends_with(".sst")).count();
        let few = StepBudget { bytes: 1 << 10 };
        for _ in 0..10 {
            assert!(matches!(job.step(few), StepResult::Again));
        }
        assert_eq!(tables(), 1, "it writes one");
        core.closed.store(true, ashlar_sync::atomic::Ordering::Release);
        assert!(matches!(job.step(few), StepResult::Done));
        assert_eq!((core.state().jobs, tables()), (0, 0), "before the job itself goes");
        drop(job);
    }
}

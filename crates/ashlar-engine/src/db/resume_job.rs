//! Resuming from a hard error: makes the open database take writes again, without losing an acknowledged write.
//!
//! A failed WAL or MANIFEST file is never written again. But every acknowledged write that is in no table is in the
//! memtables. So the job *seals* the memtables with the lead, while writes are refused. It *flushes* them family by
//! family into new files. It *commits* all tables and a new WAL number for every family in one atomic group, and
//! continues with that WAL file. The old WAL files are then obsolete. The commit leaves out every failed write.
//!
//! 1. Writes are refused from the seal to the end, so nothing enters the new memtables or any WAL file meanwhile.
//! 2. Finished tables stay for the next attempt; a failed attempt costs a pause, never the database.
//! 3. Records that `manual_wal_flush` kept in the process when the WAL failed are in the memtables too, so they are not
//!    lost. (RocksDB treats that case as fatal, because it flushes family by family.)
//! 4. Sequences that failed writes may have written to a file are not used again (`Committer`, rule 2).
//! 5. A commit with an unknown outcome is repeated with the same files, so either of the two may count.
//! 6. The job never blocks: if the lead is taken or a flush is running, it retries soon.

use super::core::Core;
use super::install::Change;
use super::job::Run;
use super::work::Work;
use crate::column_family::Reads;
use crate::health::{Severity, Source};
use crate::wal::Wal;
use ashlar_base::stats::Ticker;
use ashlar_base::{Error, FamilyId, Result};
use ashlar_compaction::flush::{FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{JobKind, Lane, StepBudget, StepResult};
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::Event;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The pause before the job retries what it must not wait for.
const SOON: Duration = Duration::from_millis(1);

enum Phase {
    Seal,
    Flush,
    Commit,
}

/// One attempt to resume.
pub(super) struct ResumeJob {
    phase: Phase,
    /// Families whose memtables must still be flushed.
    left: VecDeque<FamilyId>,
    run: Option<(FamilyId, FlushRun)>,
    done: BTreeMap<FamilyId, FlushOutcome>,
    wal: Option<Arc<Wal>>,
}

impl ResumeJob {
    pub(super) fn new() -> Self {
        ResumeJob { phase: Phase::Seal, left: VecDeque::new(), run: None, done: BTreeMap::new(), wal: None }
    }

    /// Runs one step. `Done` when writes are accepted again, or never will be.
    fn work(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        if core.health.severity() != Severity::Hard {
            return Ok(StepResult::Done);
        }
        match self.phase {
            Phase::Seal => Ok(self.seal(core)),
            Phase::Flush => self.flush(core, budget),
            Phase::Commit => self.commit(core),
        }
    }

    fn seal(&mut self, core: &Core) -> StepResult {
        let Some(lead) = core.committer.try_lead() else { return StepResult::Wait(SOON) };
        let Some(cause) = core.health.state().cause else { return StepResult::Done };
        core.statistics.tick(Ticker::ErrorHandlerAutoResumeCount);
        core.committer.refuse(&cause);
        let mut state = core.state();
        if state.families.iter().any(|f| f.flushing.is_some()) {
            return StepResult::Wait(SOON);
        }
        let (number, last) = (core.versions.new_file_number(), core.visible());
        let families: Vec<FamilyId> = state.families.iter().map(|f| f.family.id()).collect();
        core.seal_memtables(&mut state, &families, number, last);
        let set = Core::write_set(&state, &core.memory, Arc::clone(&core.committer.current().wal));
        core.committer.install(set);
        families.iter().for_each(|id| core.publish(&mut state, *id, Reads::Other));
        let waits = |id: &FamilyId| state.families.get(*id).is_some_and(|f| f.memtables.immutable_len() > 0);
        self.left = families.into_iter().filter(waits).collect();
        drop(state);
        drop(lead);
        self.phase = Phase::Flush;
        StepResult::Again
    }

    fn flush(&mut self, core: &Core, budget: StepBudget) -> Result<StepResult> {
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
            Some(family) => match core.flush_of(*family)? {
                Some(run) => self.run = Some((*family, run)),
                None => drop(self.left.pop_front()),
            },
        }
        Ok(StepResult::Again)
    }

    fn commit(&mut self, core: &Arc<Core>) -> Result<StepResult> {
        let Some(_lead) = core.committer.try_lead() else { return Ok(StepResult::Wait(SOON)) };
        let wal = match &self.wal {
            Some(wal) => Arc::clone(wal),
            None => {
                let number = core.versions.new_file_number();
                let before = Arc::clone(&core.committer.current().wal);
                let mut made = Wal::create(&core.env, &core.dir, number, before.shape())?;
                made.log().limit_room_as(before.log());
                let (last, undecided) = (core.committer.last_reserved(), core.prepared());
                if !undecided.is_empty() {
                    // A crash before the commit below may take the end of the file before: then the copies do not count.
                    let next = last.checked_add(1).unwrap_or(last);
                    made.begin_at(next, Some(before.link()), &undecided)?;
                }
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
        let counts = self.done.values().flat_map(|outcome| outcome.counts.iter().copied()).collect();
        // The outcomes keep their files pending: after a failure the next attempt commits the same files.
        core.apply(Change { edits, flushed, counts, log: Some(wal), ..Change::default() })?;
        for outcome in std::mem::take(&mut self.done).into_values() {
            // The families share one attempt, so no family has a time of its own.
            core.counters.flushed(&outcome, Duration::ZERO, &core.statistics);
            let counts = (outcome.job, outcome.memtables, outcome.counters.entries_in);
            core.notify_flushed(&outcome.edit, outcome.collector_failures, counts, Duration::ZERO);
        }
        core.health.resumed();
        Ok(StepResult::Done)
    }
}

impl Run for ResumeJob {
    const KIND: JobKind = JobKind::Flush;
    const LANE: Lane = Lane::High;
    const NAME: &'static str = "resuming";
    const WORK: Option<Work> = Some(Work::Resume);

    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        let next = self.work(core, budget)?;
        if matches!(next, StepResult::Done)
            && core.health.severity() == Severity::Healthy
            && !core.is_closed()
        {
            core.statistics.tick(Ticker::ErrorHandlerAutoResumeSuccessCount);
            core.events.tell(&Event::ErrorRecovered);
        }
        Ok(next)
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        self.run = None;
        let source = core.manifest_trouble();
        let source = source.or_else(|| self.left.front().map(|f| Source::Flush(*f)));
        let pause = core.report(source.unwrap_or(Source::Log), cause);
        core.progress.notify();
        pause
    }

    fn give_up(&mut self, _: &Core) {
        self.run = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Db;
    use super::super::job::JobShell;
    use super::*;
    use crate::batch::WriteBatch;
    use ashlar_env::Job;
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
        let mut job = JobShell::new(&core, ResumeJob::new());
        {
            let mut state = core.state();
            state.jobs += 1;
            assert!(state.work.take(Work::Resume));
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

//! The flush of several families in one atomic step: after a crash a database has all of its tables or none.
//!
//! 1. Under `atomic_flush` a switch seals the memtables of all families at one sequence. This job takes every immutable
//!    memtable under one lock, so the taken memtables of all families end at the same write.
//! 2. The tables are written one after the other and committed as one atomic group: recovery, here and in RocksDB,
//!    applies all records of the group or none. So families stay consistent even for writes that skipped the WAL.
//! 3. One such job runs at a time, and no other flush runs beside it. A failed job starts again with all families.
//!
//! Source: RocksDB `db/db_impl/db_impl_compaction_flush.cc` (`AtomicFlushMemTablesToOutputFiles`).

use super::core::{Core, State};
use super::install::Change;
use super::job::Run;
use super::limited::Limited;
use crate::column_family::{LiveFamily, Reads};
use crate::health::{Severity, Source};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_compaction::flush::{FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{JobKind, Lane, StepBudget, StepResult};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One flush of all families that have immutable memtables.
pub(super) struct AtomicFlushJob {
    /// The families that the schedule marked, and those created since.
    marked: Vec<FamilyId>,
    left: VecDeque<(FamilyId, FlushRun)>,
    done: Vec<(FamilyId, FlushOutcome)>,
    limited: Limited,
    /// When the current run began.
    started: Duration,
}

impl AtomicFlushJob {
    pub(super) fn new(marked: Vec<FamilyId>) -> Self {
        let (left, done) = (VecDeque::new(), Vec::new());
        AtomicFlushJob { marked, left, done, limited: Limited::default(), started: Duration::ZERO }
    }

    /// Runs one step; `true` when nothing is left to do.
    fn work(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<bool> {
        if self.left.is_empty() && self.done.is_empty() {
            self.started = core.env.clock.now();
            self.pick(core)?;
            self.limited.begin();
            return Ok(self.left.is_empty());
        }
        if let Some((family, mut run)) = self.left.pop_front() {
            let progress = run.step(budget.bytes)?;
            self.limited.wrote(core, JobKind::Flush, run.bytes_written());
            if progress == Progress::More {
                self.left.push_front((family, run));
            } else {
                self.done.push((family, run.finish()?));
                self.limited.begin();
            }
            return Ok(false);
        }
        self.install(core)?;
        Ok(true)
    }

    /// Takes every immutable memtable of every family. From then on a failure of this job is reported to callers that wait
    /// for a flush of any of these families. That includes families created after the schedule marked the families.
    fn pick(&mut self, core: &Core) -> Result<()> {
        let picked: Vec<_> = {
            let mut state = core.state();
            let made = state.families.iter_mut().filter(|f| f.flushing.is_none());
            self.marked.extend(made.map(|family| {
                family.flushing = Some(self.started);
                family.family.id()
            }));
            state.families.iter().filter_map(LiveFamily::to_flush).collect()
        };
        for (family, memtables) in picked {
            let run = core.begin_flush(&family, memtables)?;
            self.left.push_back((family.id(), run));
        }
        Ok(())
    }

    fn install(&mut self, core: &Arc<Core>) -> Result<()> {
        let took = core.env.clock.now().saturating_sub(self.started);
        let (mut edits, mut flushed, mut counts, mut pending) = (vec![], vec![], vec![], vec![]);
        let mut told = Vec::new();
        {
            let state = core.state();
            // Drops the output of families that were dropped meanwhile.
            for (id, outcome) in self.done.drain(..).filter(|(id, _)| state.families.get(*id).is_some()) {
                core.counters.flushed(&outcome, took, &core.statistics);
                let mut edit = outcome.edit;
                edit.log_number =
                    state.families.get(id).map(|f| f.memtables.first_wal_after(outcome.memtables));
                flushed.push((id, outcome.memtables));
                counts.extend(outcome.counts);
                pending.extend(outcome.pending);
                let counts = (outcome.job, outcome.memtables, outcome.counters.entries_in);
                told.push((edit.clone(), outcome.collector_failures, counts));
                edits.push(edit);
            }
            let first_wal = |f: &LiveFamily| {
                let own = flushed.iter().find(|(id, _)| *id == f.family.id());
                f.memtables.first_wal_after(own.map_or(0, |(_, count)| *count))
            };
            if let Some(first) = edits.first_mut() {
                first.min_log_to_keep = state.families.iter().map(first_wal).min();
            }
        }
        core.committer.sync_closed()?;
        core.apply(Change { edits, flushed, counts, pending, reads: Reads::AsBefore, ..Change::default() })?;
        for (edit, failures, counts) in told {
            core.notify_flushed(&edit, failures, counts, took);
        }
        Ok(())
    }

    /// Drops the outputs; the next purge removes the finished tables.
    fn forget(&mut self, core: &Core) {
        self.left.clear();
        if !self.done.is_empty() {
            self.done.clear();
            core.state().purge_wanted = true;
        }
    }
}

impl Run for AtomicFlushJob {
    const KIND: JobKind = JobKind::Flush;
    const LANE: Lane = Lane::High;
    const NAME: &'static str = "a flush";

    /// While a hard error is in force, the resume job flushes instead.
    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed() && core.health.severity() < Severity::Hard
    }

    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        if !self.work(core, budget)? {
            return Ok(self.limited.go_on());
        }
        self.marked.iter().for_each(|id| core.succeeded(Source::Flush(*id)));
        Ok(StepResult::Done)
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        self.forget(core);
        let failed = |id: &FamilyId| core.background_failed(*id, JobKind::Flush, cause);
        self.marked.iter().map(failed).max().unwrap_or_default()
    }

    fn give_up(&mut self, core: &Core) {
        self.forget(core);
    }

    fn release(&mut self, state: &mut State) {
        for id in &self.marked {
            if let Some(live) = state.families.get_mut(*id) {
                live.flushing = None;
            }
        }
    }
}

//! The flush of several families in one step: after whatever crash a database has all of it or nothing.
//!
//! 1. Under `atomic_flush` a switch seals the memtables of all families at one sequence. This job takes every sealed
//!    memtable there is under one lock, so that what it takes of each family ends at the same write.
//! 2. The tables are written one after the other and committed as one atomic group: recovery, here and by RocksDB, takes
//!    all records of the group or none. So families stay in step even for writes that skipped the log.
//! 3. There is one such job at a time, and no other flush beside it. A failed one begins anew, with all families.
//!
//! Source: RocksDB `db/db_impl/db_impl_compaction_flush.cc` (`AtomicFlushMemTablesToOutputFiles`).

use super::core::{Core, State};
use super::install::Change;
use super::job::Run;
use super::limited::Limited;
use crate::column_family::LiveFamily;
use crate::health::{Severity, Source};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_compaction::flush::{self, FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{JobKind, Lane, StepBudget, StepResult};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One flush of all families that have something sealed.
pub(super) struct AtomicFlushJob {
    /// The families that the schedule marked, and those that were made since.
    marked: Vec<FamilyId>,
    left: VecDeque<(FamilyId, FlushRun)>,
    done: Vec<(FamilyId, FlushOutcome)>,
    limited: Limited,
    /// When its present run began.
    started: Duration,
}

impl AtomicFlushJob {
    pub(super) fn new(marked: Vec<FamilyId>) -> Self {
        let (left, done) = (VecDeque::new(), Vec::new());
        AtomicFlushJob { marked, left, done, limited: Limited::default(), started: Duration::ZERO }
    }

    /// One step; `true` when nothing is left to do.
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

    /// Takes every sealed memtable of every family, and answers for all of them from then on: who waits for the flush of a family
    /// that was made after the schedule marked them is told of a failure too.
    fn pick(&mut self, core: &Core) -> Result<()> {
        let picked: Vec<_> = {
            let mut state = core.state();
            let made = state.families.iter_mut().filter(|f| !f.flushing);
            self.marked.extend(made.map(|family| {
                family.flushing = true;
                family.family.id()
            }));
            let sealed = |f: &LiveFamily| {
                let memtables = flush::pick(&f.memtables.sealed_newest_first(), false)?;
                Some((Arc::clone(&f.family), memtables))
            };
            state.families.iter().filter_map(sealed).collect()
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
            // Of a family that was dropped meanwhile nothing is kept.
            for (id, outcome) in self.done.drain(..).filter(|(id, _)| state.families.get(*id).is_some()) {
                core.counters.flushed(&outcome, took, &core.statistics);
                let mut edit = outcome.edit;
                edit.log_number =
                    state.families.get(id).map(|f| f.memtables.first_wal_after(outcome.memtables));
                flushed.push((id, outcome.memtables));
                counts.extend(outcome.counts);
                pending.extend(outcome.pending);
                told.push((edit.clone(), outcome.memtables, outcome.counters.entries_in));
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
        core.apply(Change { edits, flushed, counts, pending, log: None })?;
        for (edit, memtables, entries) in told {
            core.tell_flushed(&edit, memtables, entries, took);
        }
        Ok(())
    }

    /// Drops what was written; the next purge removes the tables that are finished.
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

    /// In a hard state the resume job flushes.
    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed() && core.health.severity() < Severity::Hard
    }

    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        if !self.work(core, budget)? {
            return Ok(self.limited.go_on());
        }
        self.marked.iter().for_each(|id| core.well(Source::Flush(*id)));
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
                live.flushing = false;
            }
        }
    }
}

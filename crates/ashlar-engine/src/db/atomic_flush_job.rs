//! The flush of several families in one step: after whatever crash a database has all of it or nothing.
//!
//! 1. Under `atomic_flush` a switch seals the memtables of all families at one sequence. This job takes every sealed
//!    memtable there is under one lock, so that what it takes of each family ends at the same write.
//! 2. The tables are written one after the other and committed as one atomic group: recovery, here and by RocksDB, takes
//!    all records of the group or none. So families stay in step even for writes that skipped the log.
//! 3. There is one such job at a time, and no other flush beside it. A failed one begins anew, with all families.
//!
//! Source: RocksDB `db/db_impl/db_impl_compaction_flush.cc` (`AtomicFlushMemTablesToOutputFiles`).

use super::core::Core;
use super::install::note_counts;
use super::limited::Limited;
use crate::column_family::LiveFamily;
use crate::health::{Severity, Source};
use ashlar_base::{FamilyId, Result};
use ashlar_compaction::flush::{self, FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One flush of all families that have something sealed.
pub(super) struct AtomicFlushJob {
    core: Arc<Core>,
    /// The families that the schedule marked, and those that were made since.
    marked: Vec<FamilyId>,
    left: VecDeque<(FamilyId, FlushRun)>,
    done: Vec<(FamilyId, FlushOutcome)>,
    in_step: bool,
    limited: Limited,
    /// When its present run began.
    started: Duration,
}

impl AtomicFlushJob {
    pub(super) fn new(core: Arc<Core>, marked: Vec<FamilyId>) -> Self {
        let (left, done) = (VecDeque::new(), Vec::new());
        AtomicFlushJob {
            core,
            marked,
            left,
            done,
            in_step: false,
            limited: Limited::default(),
            started: Duration::ZERO,
        }
    }

    /// One step; `true` when nothing is left to do.
    fn advance(&mut self, budget: StepBudget) -> Result<bool> {
        if self.core.is_closed() {
            self.forget();
            return Ok(true);
        }
        if self.left.is_empty() && self.done.is_empty() {
            self.started = self.core.env.clock.now();
            self.pick()?;
            self.limited.begin();
            return Ok(self.left.is_empty());
        }
        if let Some((family, mut run)) = self.left.pop_front() {
            let progress = run.step(budget.bytes)?;
            self.limited.wrote(&self.core, JobKind::Flush, run.bytes_written());
            if progress == Progress::More {
                self.left.push_front((family, run));
            } else {
                self.done.push((family, run.finish()?));
                self.limited.begin();
            }
            return Ok(false);
        }
        self.install()?;
        Ok(true)
    }

    /// Takes every sealed memtable of every family, and answers for all of them from then on: who waits for the flush of a family
    /// that was made after the schedule marked them is told of a failure too.
    fn pick(&mut self) -> Result<()> {
        let core = &self.core;
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

    fn install(&mut self) -> Result<()> {
        let core = &self.core;
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
        let installer = Arc::clone(core);
        core.versions.commit_with(
            edits,
            Box::new(move |changed| {
                note_counts(changed, &counts);
                installer.install(changed, &flushed);
            }),
        )?;
        drop(pending);
        for (edit, memtables, entries) in told {
            core.tell_flushed(&edit, memtables, entries, took);
        }
        Ok(())
    }

    /// What was written goes again: tables that are finished with the next purge.
    fn forget(&mut self) {
        self.left.clear();
        if !self.done.is_empty() {
            self.done.clear();
            self.core.state().purge_wanted = true;
        }
    }

    fn end(&self) {
        {
            let mut state = self.core.state();
            for id in &self.marked {
                if let Some(live) = state.families.get_mut(*id) {
                    live.flushing = false;
                }
            }
            state.job_ended();
        }
        self.core.after_job();
    }
}

impl Job for AtomicFlushJob {
    fn kind(&self) -> JobKind {
        JobKind::Flush
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        if self.core.health.severity() >= Severity::Hard {
            self.forget();
            self.end();
            return StepResult::Done;
        }
        self.in_step = true;
        let advanced = self.advance(budget);
        self.in_step = false;
        match advanced {
            Ok(false) => self.limited.go_on(),
            Ok(true) => {
                self.marked.iter().for_each(|id| self.core.well(Source::Flush(*id)));
                self.end();
                StepResult::Done
            }
            Err(e) => {
                self.forget();
                let failed = |id: &FamilyId| self.core.background_failed(*id, JobKind::Flush, &e);
                let pause = self.marked.iter().map(failed).max().unwrap_or_default();
                if self.core.is_closed() || self.core.health.severity() >= Severity::Hard {
                    self.end();
                    return StepResult::Done;
                }
                StepResult::Wait(pause)
            }
        }
    }

    fn abort(mut self: Box<Self>) {
        self.forget();
        if self.in_step {
            self.core.panicked("a flush");
        }
        self.end();
    }
}

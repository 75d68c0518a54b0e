//! A flush as a background job: pick, run in steps, install.
//!
//! 1. Before a table with data of one family becomes durable, the closed logs are synced if there are other families:
//!    a power cut must not keep this family's writes and lose earlier ones of another.
//! 2. A failed flush is tried again, into a new file, after a pause. In a hard state it is left to the resume job.

use super::core::Core;
use super::install::note_counts;
use super::limited::Limited;
use super::output::numbers;
use crate::column_family::Family;
use crate::health::{Severity, Source};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{FamilyId, Result};
use ashlar_compaction::flush::{self, FlushInput, FlushOutcome, FlushRun};
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use ashlar_memtable::MemtableRep;
use std::sync::Arc;
use std::time::Duration;

/// One flush of one family.
pub(super) struct FlushJob {
    core: Arc<Core>,
    family: FamilyId,
    run: Option<FlushRun>,
    in_step: bool,
    limited: Limited,
    /// When its present run began.
    started: Duration,
}

impl FlushJob {
    pub(super) fn new(core: Arc<Core>, family: FamilyId) -> Self {
        FlushJob {
            core,
            family,
            run: None,
            in_step: false,
            limited: Limited::default(),
            started: Duration::ZERO,
        }
    }

    /// One step; `true` when nothing is left to do.
    fn advance(&mut self, budget: StepBudget) -> Result<bool> {
        if self.core.is_closed() {
            // What it would flush is in the log; a close has flushed what is not.
            self.run = None;
            return Ok(true);
        }
        let Some(run) = &mut self.run else {
            self.started = self.core.env.clock.now();
            self.run = self.pick()?;
            self.limited.begin();
            return Ok(self.run.is_none());
        };
        let progress = run.step(budget.bytes)?;
        self.limited.wrote(&self.core, JobKind::Flush, run.bytes_written());
        if progress == Progress::More {
            return Ok(false);
        }
        if let Some(run) = self.run.take() {
            self.install(run.finish()?)?;
        }
        Ok(true)
    }

    fn pick(&self) -> Result<Option<FlushRun>> {
        let core = &self.core;
        let picked = {
            let state = core.state();
            let Some(live) = state.families.get(self.family) else { return Ok(None) };
            // `flushing` is this job's own mark.
            flush::pick(&live.memtables.sealed_newest_first(), false).map(|m| (m, Arc::clone(&live.family)))
        };
        let Some((memtables, family)) = picked else { return Ok(None) };
        core.begin_flush(&family, memtables).map(Some)
    }

    fn install(&self, outcome: FlushOutcome) -> Result<()> {
        let core = &self.core;
        let took = core.env.clock.now().saturating_sub(self.started);
        core.counters.flushed(&outcome, took, &core.statistics);
        let FlushOutcome { mut edit, memtables, counts, pending, counters, .. } = outcome;
        let (log_number, min_log, families) = {
            let state = core.state();
            let Some(live) = state.families.get(self.family) else { return Ok(()) };
            let own = live.memtables.first_wal_after(memtables);
            let others =
                state.families.iter().filter(|f| f.family.id() != self.family).map(|f| f.first_wal()).min();
            (own, others.map_or(own, |o| o.min(own)), state.families.len())
        };
        if families > 1 && !planted(Bug::FlushBeforeLogs) {
            core.committer.sync_closed()?;
        }
        edit.log_number = Some(log_number);
        // In one record: a crash tears a commit of one record at its end only.
        edit.min_log_to_keep = Some(min_log);
        let installer = Arc::clone(core);
        let family = self.family;
        let made = edit.clone();
        core.versions.commit_with(
            vec![edit],
            Box::new(move |changed| {
                note_counts(changed, &counts);
                installer.install(changed, &[(family, memtables)]);
            }),
        )?;
        drop(pending);
        core.tell_flushed(&made, memtables, counters.entries_in, took);
        Ok(())
    }

    fn end(&self) {
        {
            let mut state = self.core.state();
            if let Some(live) = state.families.get_mut(self.family) {
                live.flushing = false;
            }
            state.job_ended();
        }
        self.core.after_job();
    }
}

impl Core {
    /// Begins to write these memtables of a family, newest first, to a table.
    pub(super) fn begin_flush(
        &self,
        family: &Family,
        memtables: Vec<Arc<dyn MemtableRep>>,
    ) -> Result<FlushRun> {
        self.tell_flush_begin(family, &memtables);
        FlushRun::new(FlushInput {
            family: family.id(),
            memtables,
            snapshots: self.snapshots.all(),
            output: self.writer.plan(&self.dir, (family.id(), family.name()), &family.options()),
            numbers: numbers(&self.versions, &self.pending),
        })
    }
}

impl Job for FlushJob {
    fn kind(&self) -> JobKind {
        JobKind::Flush
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        if self.core.health.severity() >= Severity::Hard {
            self.run = None;
            self.end();
            return StepResult::Done;
        }
        self.in_step = true;
        let advanced = self.advance(budget);
        self.in_step = false;
        match advanced {
            Ok(false) => self.limited.go_on(),
            Ok(true) => {
                self.core.well(Source::Flush(self.family));
                self.end();
                StepResult::Done
            }
            Err(e) => {
                self.run = None;
                if planted(Bug::NoPauseAfterFailure) {
                    return StepResult::Again;
                }
                let pause = self.core.background_failed(self.family, JobKind::Flush, &e);
                if self.core.is_closed() || self.core.health.severity() >= Severity::Hard {
                    self.end();
                    return StepResult::Done;
                }
                StepResult::Wait(pause)
            }
        }
    }

    fn abort(mut self: Box<Self>) {
        self.run = None;
        if self.in_step {
            self.core.panicked("a flush");
        }
        self.end();
    }
}

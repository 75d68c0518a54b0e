//! A flush as a background job: pick, run in steps, install.
//!
//! 1. If there are several families, the closed WAL files are synced before a table with data of one family becomes
//!    durable. A power cut must not keep this family's writes and lose earlier writes of another family.
//! 2. A failed flush is retried into a new file after a pause. While a hard error is in force, the resume job flushes.

use super::core::{Core, State};
use super::install::Change;
use super::job::Run;
use super::limited::Limited;
use crate::column_family::{Family, LiveFamily, Memtables, Reads};
use crate::health::{Severity, Source};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_compaction::flush::{FlushInput, FlushOutcome, FlushRun};
use ashlar_compaction::output_numbers;
use ashlar_compaction::rewrite::Progress;
use ashlar_env::{JobKind, Lane, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// One flush of one family.
pub(super) struct FlushJob {
    family: FamilyId,
    run: Option<FlushRun>,
    limited: Limited,
    /// When the current run began.
    started: Duration,
}

impl FlushJob {
    pub(super) fn new(family: FamilyId) -> Self {
        FlushJob { family, run: None, limited: Limited::default(), started: Duration::ZERO }
    }

    fn install(&self, core: &Arc<Core>, outcome: FlushOutcome) -> Result<()> {
        let took = core.env.clock.now().saturating_sub(self.started);
        core.counters.flushed(&outcome, took, &core.statistics);
        let FlushOutcome { job, mut edit, memtables, counts, collector_failures, pending, counters, .. } =
            outcome;
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
        // In one record: a crash can tear a single-record commit only at its end.
        edit.min_log_to_keep = Some(min_log);
        let flushed = vec![(self.family, memtables)];
        let made = edit.clone();
        core.apply(Change {
            edits: vec![edit],
            flushed,
            counts,
            pending,
            reads: Reads::AsBefore,
            ..Change::default()
        })?;
        core.notify_flushed(&made, collector_failures, (job, memtables, counters.entries_in), took);
        Ok(())
    }
}

impl Core {
    /// Starts writing all immutable memtables of the family to a table. `None`: there are none. The caller has set the
    /// family's `flushing`, or is the resume job, beside which no other flush runs.
    pub(super) fn flush_of(&self, family: FamilyId) -> Result<Option<FlushRun>> {
        let picked = self.state().families.get(family).and_then(LiveFamily::to_flush);
        picked.map(|(family, memtables)| self.begin_flush(&family, memtables)).transpose()
    }

    /// Starts writing these memtables of a family, newest first, to a table.
    pub(super) fn begin_flush(&self, family: &Family, memtables: Memtables) -> Result<FlushRun> {
        let job = self.new_job();
        self.notify_flush_begin(job, family, &memtables);
        FlushRun::new(FlushInput {
            job,
            family: family.id(),
            memtables,
            snapshots: self.snapshots.all(),
            output: self.writer.plan(&self.dir, (family.id(), family.name()), &family.options()),
            numbers: output_numbers(&self.versions, &self.pending),
        })
    }
}

impl Run for FlushJob {
    const KIND: JobKind = JobKind::Flush;
    const LANE: Lane = Lane::High;
    const NAME: &'static str = "a flush";

    /// Once the database is closed the WAL has the memtables' data. While a hard error is in force, the resume job
    /// flushes.
    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed() && core.health.severity() < Severity::Hard
    }

    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        if let Some(run) = &mut self.run {
            let progress = run.step(budget.bytes)?;
            self.limited.wrote(core, JobKind::Flush, run.bytes_written());
            if progress == Progress::More {
                return Ok(self.limited.go_on());
            }
            if let Some(run) = self.run.take() {
                self.install(core, run.finish()?)?;
            }
        } else {
            self.started = core.env.clock.now();
            self.run = core.flush_of(self.family)?;
            self.limited.begin();
            if self.run.is_some() {
                return Ok(self.limited.go_on());
            }
        }
        core.succeeded(Source::Flush(self.family));
        Ok(StepResult::Done)
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        self.run = None;
        if planted(Bug::NoPauseAfterFailure) {
            return Duration::ZERO;
        }
        core.background_failed(self.family, JobKind::Flush, cause)
    }

    fn give_up(&mut self, _: &Core) {
        self.run = None;
    }

    fn release(&mut self, state: &mut State) {
        if let Some(live) = state.families.get_mut(self.family) {
            live.flushing = None;
        }
    }
}

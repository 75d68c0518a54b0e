//! A compaction as a background job: claimed under the state lock, run in steps, installed.
//!
//! A failed compaction gives its files back and changes nothing; the next one is picked after a pause.

use super::core::{Core, State};
use super::output::numbers;
use crate::column_family::{Family, LiveFamily};
use crate::compaction::{Compaction, CompactionInput, CompactionOutcome, CompactionRun, Running, move_edit};
use crate::rewrite::{BlobPlan, Progress};
use crate::version::Version;
use ashlar_base::{FamilyId, Level, Result};
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// After a failure the files stay claimed this long, so that a full disk is not written to in a circle.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

enum Phase {
    Begin,
    Run(CompactionRun),
    Failed,
}

/// One compaction.
pub(super) struct CompactionJob {
    core: Arc<Core>,
    family: Arc<Family>,
    version: Arc<Version>,
    plan: Compaction,
    claim: Option<Running>,
    phase: Phase,
}

impl CompactionJob {
    /// Takes the files and the range of `plan`. Under the state lock.
    pub(super) fn claim(
        core: &Arc<Core>,
        running: &mut BTreeMap<FamilyId, Vec<Running>>,
        family: &LiveFamily,
        plan: Compaction,
    ) -> Self {
        plan.set_compacting(true);
        let claim = plan.running(&family.version.order);
        running.entry(family.family.id()).or_default().extend(claim.clone());
        CompactionJob {
            core: Arc::clone(core),
            family: Arc::clone(&family.family),
            version: Arc::clone(&family.version),
            plan,
            claim,
            phase: Phase::Begin,
        }
    }

    /// One step; `true` when it is installed or not wanted any more.
    fn advance(&mut self, budget: StepBudget) -> Result<bool> {
        if self.core.is_closed() || self.family.is_dropped() {
            return Ok(true);
        }
        match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::Failed => Ok(true),
            Phase::Begin if self.plan.trivial_move => {
                self.commit(move_edit(self.family.id(), &self.plan))?;
                Ok(true)
            }
            Phase::Begin => {
                self.phase = Phase::Run(self.begin()?);
                Ok(false)
            }
            Phase::Run(mut run) => {
                if run.step(budget.bytes)? == Progress::More {
                    self.phase = Phase::Run(run);
                    return Ok(false);
                }
                let CompactionOutcome { edit, pending, counters } = run.finish()?;
                self.core.counters.compacted(&counters);
                self.commit(edit)?;
                drop(pending);
                Ok(true)
            }
        }
    }

    fn begin(&self) -> Result<CompactionRun> {
        let core = &self.core;
        let family = (self.family.id(), self.family.name());
        let options = self.family.options();
        let mut output = core.writer.plan(&core.dir, family, &options);
        let (level, bottommost) = (self.plan.output_level.0, self.plan.is_bottommost());
        // Where the data below level 0 begins, this output included.
        let base = (1..level).find(|above| !self.version.level(Level(*above)).is_empty()).unwrap_or(level);
        output.table = options.table.for_level(i32::from(level), i32::from(base), bottommost);
        output.blobs = BlobPlan::new(self.family.id(), &options.blob, level);
        CompactionRun::new(CompactionInput {
            family: self.family.id(),
            plan: self.plan.clone(),
            version: Arc::clone(&self.version),
            snapshots: core.snapshots.all(),
            output,
            numbers: numbers(&core.versions, &core.pending),
        })
    }

    fn commit(&self, edit: ashlar_format::version_edit::VersionEdit) -> Result<()> {
        let installer = Arc::clone(&self.core);
        self.core.versions.commit_with(vec![edit], Box::new(move |changed| installer.install(changed, None)))
    }

    /// The last thing a compaction does. What it has not installed goes first: a close waits for the count of jobs, and
    /// after it not a file may be removed any more, as the directory may have another owner.
    fn end(&mut self) {
        self.phase = Phase::Failed;
        {
            let mut state = self.core.state();
            self.plan.set_compacting(false);
            self.release(&mut state);
            state.jobs -= 1;
            state.purge_wanted = true;
        }
        self.core.update_pressure();
        self.core.schedule();
        self.core.progress.notify();
    }

    fn release(&self, state: &mut State) {
        let Some(claims) = state.running.get_mut(&self.family.id()) else { return };
        if let Some(at) = claims.iter().position(|c| Some(c) == self.claim.as_ref()) {
            claims.swap_remove(at);
        }
    }
}

impl Job for CompactionJob {
    fn kind(&self) -> JobKind {
        JobKind::Compaction
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        match self.advance(budget) {
            Ok(false) => StepResult::Again,
            Ok(true) => {
                self.end();
                StepResult::Done
            }
            Err(e) => {
                self.phase = Phase::Failed;
                self.core.background_failed(self.family.id(), JobKind::Compaction, &e);
                StepResult::Wait(PAUSE_AFTER_FAILURE)
            }
        }
    }

    fn abort(mut self: Box<Self>) {
        self.phase = Phase::Failed;
        self.end();
    }
}

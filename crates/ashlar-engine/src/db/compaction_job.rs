//! A compaction as background jobs: claimed under the state lock, run in steps, installed.
//!
//! 1. A compaction begins as one job. A compaction that is cut into parts becomes one job per part; the jobs share the
//!    claim.
//! 2. The job that finishes the last part installs the outputs of all parts. The job that ends last releases the claim,
//!    after everything that was not installed is removed. A close waits for the count of jobs; after the close no file
//!    may be removed, because another process may own the directory.
//! 3. A failed compaction changes nothing. Its files stay claimed during a pause, so that retries do not write to a
//!    full disk without end. Then the next compaction is picked.
//! 4. A compaction ends at its next step when the database closes, the family is dropped, or
//!    [`Core::compactions_aborted`] is true.

use super::candidate::{Candidate, Choice, Report};
use super::core::{Core, State};
use super::install::Change;
use super::job::{JobShell, Run};
use super::limited::Limited;
use super::notify::begun;
use crate::column_family::{Family, Reads};
use crate::health::Source;
use crate::pressure::DiskClaim;
use ashlar_base::stats::{Distribution, Ticker};
use ashlar_base::{Error, ErrorKind, Level, Result, SeqNum};
use ashlar_compaction::rewrite::{BlobPlan, Progress};
use ashlar_compaction::{
    Action, Compaction, CompactionCounters, CompactionInput, CompactionOutcome, CompactionPart, Reason,
    Running, edit_without_io, filter_of, output_numbers,
};
use ashlar_env::{JobKind, StepBudget, StepResult};
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::Event;
use ashlar_sync::{Mutex, Rank};
use ashlar_tree::version::Version;
use std::sync::Arc;
use std::time::Duration;

/// Only the phases hold a version. [`Run::give_up`] ends them, so that the purge which a caller awaits after the job finds the
/// replaced files without a user.
enum Phase {
    Begin(Arc<Version>),
    Run(CompactionPart),
    Over,
}

/// One compaction, or one part of a compaction.
pub(super) struct CompactionJob {
    shared: Arc<Shared>,
    phase: Phase,
    limited: Limited,
    /// True if no other job of the compaction is left. Set when this job gives up.
    is_last: bool,
}

/// The state that all jobs of one compaction share.
struct Shared {
    job: u64,
    core: Arc<Core>,
    family: Arc<Family>,
    plan: Compaction,
    claim: Option<Running>,
    report: Option<Report>,
    started: Duration,
    parts: Mutex<Parts>,
}

struct Parts {
    /// The number of jobs that have not ended.
    jobs: usize,
    /// The number of parts that are not finished.
    unfinished: usize,
    finished: Vec<CompactionPart>,
    /// `CompactionBegin` was sent.
    begun: bool,
    /// A part failed, so the other parts stop.
    failed: bool,
    /// The error of the first part that failed.
    cause: Option<Error>,
    /// The outputs are installed in the tree.
    installed: bool,
    /// The disk space for the outputs.
    space: Option<DiskClaim>,
    /// The newest snapshot when the compaction began.
    newest_snapshot: Option<SeqNum>,
}

impl CompactionJob {
    /// Claims the files and the key range of `choice`, and counts the job. Runs under the state lock; `candidate` is current.
    pub(super) fn claim(core: &Arc<Core>, state: &mut State, candidate: &Candidate, choice: Choice) -> Self {
        let Choice { plan, claim, report } = choice;
        plan.set_compacting(true);
        state.running.entry(candidate.family.id()).or_default().extend(claim.clone());
        state.jobs += 1;
        state.compactors += 1;
        if plan.inputs.iter().any(|(level, _)| *level == Level::ZERO)
            && let Some(live) = state.families.get_mut(candidate.family.id())
        {
            live.level0_taken_at = core.env.clock.now();
        }
        let parts = Parts {
            jobs: 1,
            unfinished: 1,
            finished: Vec::new(),
            begun: false,
            failed: false,
            cause: None,
            installed: false,
            space: None,
            newest_snapshot: None,
        };
        let shared = Shared {
            job: core.new_job(),
            core: Arc::clone(core),
            family: Arc::clone(&candidate.family),
            plan,
            claim,
            report,
            started: core.env.clock.now(),
            parts: Mutex::new(Rank::Leaf, parts),
        };
        CompactionJob {
            shared: Arc::new(shared),
            phase: Phase::Begin(Arc::clone(&candidate.version)),
            limited: Limited::default(),
            is_last: false,
        }
    }

    /// Runs one step; `true` when nothing is left for this job.
    fn work(&mut self, budget: StepBudget) -> Result<bool> {
        let shared = &self.shared;
        if shared.is_given_up() {
            shared.core.statistics.tick(Ticker::CompactionCancelled);
            return Ok(true);
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => Ok(true),
            Phase::Begin(version) => {
                let edit = shared.edit_without_io();
                if edit.is_none() {
                    let space = shared.core.claim_space(shared.plan.input_bytes())?;
                    shared.parts.lock().space = Some(space);
                }
                shared.parts.lock().begun = true;
                shared.core.events.tell(&Event::CompactionBegin(begun(
                    shared.job,
                    &shared.family,
                    &shared.plan,
                )));
                if let Some(edit) = edit {
                    shared.install_without_io(edit)?;
                    return Ok(true);
                }
                let mut parts = shared.begin(version)?.into_iter();
                self.phase = parts.next().map_or(Phase::Over, Phase::Run);
                shared.spread(parts.collect());
                Ok(false)
            }
            Phase::Run(mut part) => {
                let progress = part.step(budget.bytes)?;
                self.limited.wrote(&shared.core, JobKind::Compaction, part.bytes_written());
                if progress == Progress::More {
                    self.phase = Phase::Run(part);
                } else if let Some(all) = shared.finished(part) {
                    shared.install(all)?;
                }
                Ok(matches!(self.phase, Phase::Over))
            }
        }
    }
}

impl Shared {
    /// Whether the result of the compaction is no longer needed.
    fn is_given_up(&self) -> bool {
        self.core.is_closed()
            || self.core.compactions_aborted()
            || self.family.is_dropped()
            || self.parts.lock().failed
    }

    /// Whether the output level's tables are in the same directory as the inputs. Otherwise a move is a copy.
    fn stays_in_place(&self) -> bool {
        let level = self.plan.output_level.0;
        let (_, path_id) = self.core.writer.place(&self.core.dir, &self.family.options(), level);
        self.plan.files().all(|file| file.1.file.path_id == path_id)
    }

    /// The edit of a move or a drop; `None` for a rewrite, and for a move to another directory, which is a copy.
    fn edit_without_io(&self) -> Option<VersionEdit> {
        if self.plan.action == Action::Move && !self.stays_in_place() {
            return None;
        }
        edit_without_io(self.family.id(), &self.plan)
    }

    fn install_without_io(&self, edit: VersionEdit) -> Result<()> {
        let counters =
            CompactionCounters { tables_written: edit.added.len() as u64, ..CompactionCounters::default() };
        let made = edit.clone();
        let reads = if self.plan.action == Action::Move { Reads::AsBefore } else { Reads::Other };
        self.apply(Change { edits: vec![edit], reads, ..Change::default() })?;
        if self.plan.action == Action::Move {
            self.core.counters.moved(self.family.id(), &self.plan);
        }
        self.tell(&made, &counters, self.took());
        Ok(())
    }

    /// Reports the installed compaction, to its request too.
    fn tell(&self, made: &VersionEdit, counters: &CompactionCounters, took: Duration) {
        let event = self.core.notify_compacted(self.job, (&self.family, &self.plan), made, (counters, took));
        if let Some(report) = &self.report {
            let _ = report.set(event);
        }
    }

    /// Reports a compaction that began and changed nothing. Sends nothing while the database closes.
    fn tell_failed(&self) {
        let cause = {
            let parts = self.parts.lock();
            if !parts.begun || parts.installed || self.core.is_closed() {
                return;
            }
            parts.cause.clone().unwrap_or_else(|| self.why_in_vain())
        };
        let compaction = begun(self.job, &self.family, &self.plan);
        self.core.events.tell(&Event::CompactionFailed { compaction, cause });
    }

    fn begin(&self, version: Arc<Version>) -> Result<Vec<CompactionPart>> {
        let core = &self.core;
        let family = (self.family.id(), self.family.name());
        let options = self.family.options();
        let mut output = core.writer.plan(&core.dir, family, &options);
        let (level, bottommost) = (self.plan.output_level.0, self.plan.is_bottommost());
        // The first level below level 0 with data, this output included.
        let base = (1..level).find(|above| !version.level(Level(*above)).is_empty()).unwrap_or(level);
        (output.dir, output.path_id) = core.writer.place(&core.dir, &options, level);
        output.table =
            core.writer.form(options.table.for_level(i32::from(level), i32::from(base), bottommost));
        output.table.compression = self.plan.compression.unwrap_or(output.table.compression);
        output.identity.level = Some(self.plan.output_level);
        output.blobs = BlobPlan::new(self.family.id(), &options.blob, level);
        let snapshots = core.snapshots.all();
        self.parts.lock().newest_snapshot = snapshots.last().copied();
        CompactionPart::start(CompactionInput {
            plan: Compaction { action: Action::Rewrite, ..self.plan.clone() },
            version,
            snapshots,
            filter: filter_of(&options, &core.env.clock),
            partitioner: options.sst_partitioner.clone(),
            output,
            numbers: output_numbers(&core.versions, &core.pending),
            parts_max: self.parts_max(),
        })
    }

    /// Only compactions that other work waits for use several threads: those of level 0, and those a caller requested.
    fn parts_max(&self) -> usize {
        let (reason, asked) = (self.plan.reason, self.plan.parts_max);
        if !matches!(reason, Reason::Level0 | Reason::Manual | Reason::Chosen) {
            return 1;
        }
        let per_part = self.plan.target_file_bytes.max(1);
        let worth = usize::try_from(self.plan.input_bytes() / per_part).unwrap_or(usize::MAX);
        let free = self.core.idle_compactors() + 1;
        match (asked, self.core.options().max_subcompactions) {
            (0, 0) => free.min(worth),
            (0, most) | (most, _) => most.min(worth),
        }
    }

    /// Creates one job for each further part.
    fn spread(self: &Arc<Self>, parts: Vec<CompactionPart>) {
        self.core.statistics.measure(Distribution::NumSubcompactionsScheduled, parts.len() as u64 + 1);
        if parts.is_empty() {
            return;
        }
        {
            let mut state = self.core.state();
            state.jobs += parts.len();
            state.compactors += parts.len();
        }
        {
            let mut shared = self.parts.lock();
            shared.jobs += parts.len();
            shared.unfinished += parts.len();
        }
        for part in parts {
            let shared = Arc::clone(self);
            let job = CompactionJob {
                shared,
                phase: Phase::Run(part),
                limited: Limited::default(),
                is_last: false,
            };
            self.core.submit(JobShell::due(&self.core, job));
        }
    }

    /// Records a finished part; returns all parts when it is the last.
    fn finished(&self, part: CompactionPart) -> Option<Vec<CompactionPart>> {
        let mut parts = self.parts.lock();
        parts.finished.push(part);
        parts.unfinished -= 1;
        (parts.unfinished == 0).then(|| std::mem::take(&mut parts.finished))
    }

    fn install(&self, parts: Vec<CompactionPart>) -> Result<()> {
        let outcome = CompactionPart::finish(self.family.id(), &self.plan, parts)?;
        let CompactionOutcome { edit, counts, collector_failures, partitioner_failed, pending, counters } =
            outcome;
        let (core, family) = (&self.core, self.family.id());
        let took = self.took();
        core.counters.compacted((family, &self.plan), &counters, took, &core.statistics);
        let made = VersionEdit { deleted: Vec::new(), ..edit.clone() };
        let has_filtered = counters.entries.filtered + counters.entries.filter_changed > 0;
        let filtered = has_filtered.then(|| (family, self.parts.lock().newest_snapshot));
        let filtered = filtered.into_iter().collect();
        let reads = if has_filtered { Reads::Other } else { Reads::AsBefore };
        self.apply(Change { edits: vec![edit], counts, pending, filtered, reads, ..Change::default() })?;
        core.notify_created(&made);
        core.notify_uncollected(self.family.name(), collector_failures);
        if partitioner_failed {
            core.notify_unpartitioned(&self.family, self.plan.output_level);
        }
        self.tell(&made, &counters, took);
        Ok(())
    }

    /// The time since the compaction began.
    fn took(&self) -> Duration {
        self.core.env.clock.now().saturating_sub(self.started)
    }

    fn apply(&self, change: Change) -> Result<()> {
        self.core.apply(change)?;
        self.parts.lock().installed = true;
        self.core.succeeded(Source::Compaction(self.family.id()));
        Ok(())
    }

    /// Why the compaction changed nothing, without an error of its own.
    fn why_in_vain(&self) -> Error {
        match self.core.check_live(&self.family) {
            _ if self.core.is_closed() => Error::closed(),
            Err(dropped) => dropped,
            Ok(()) => aborted(),
        }
    }

    /// Releases the claimed files, after the last job.
    fn release(&self, state: &mut State) {
        let in_vain = {
            let mut parts = self.parts.lock();
            parts.space = None;
            !parts.installed && !parts.failed
        };
        if in_vain {
            // The caller that requested the compaction gets an error; for the database this is no failure.
            state.note_failure((self.family.id(), JobKind::Compaction), &self.why_in_vain());
        }
        self.plan.set_compacting(false);
        state.purge_wanted = true;
        let Some(claims) = state.running.get_mut(&self.family.id()) else { return };
        if let Some(at) = claims.iter().position(|c| Some(c) == self.claim.as_ref()) {
            claims.swap_remove(at);
        }
    }
}

/// The error for callers that wait for an aborted compaction.
pub(super) fn aborted() -> Error {
    Error::new(ErrorKind::Aborted, "compactions were aborted")
}

impl Run for CompactionJob {
    const KIND: JobKind = JobKind::Compaction;
    const NAME: &'static str = "a compaction";

    /// The files stay claimed during the pause after a failure, so a failure alone does not end the job.
    fn is_wanted(&self, _: &Core) -> bool {
        true
    }

    fn advance(&mut self, _: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        let done = self.work(budget)?;
        Ok(if done { StepResult::Done } else { self.limited.go_on() })
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        self.phase = Phase::Over;
        {
            let mut parts = self.shared.parts.lock();
            parts.failed = true;
            parts.cause.get_or_insert_with(|| cause.clone());
        }
        core.background_failed(self.shared.family.id(), JobKind::Compaction, cause)
    }

    fn aborted(&mut self) {
        self.shared.parts.lock().failed = true;
    }

    fn give_up(&mut self, _: &Core) {
        self.phase = Phase::Over;
        let shared = &self.shared;
        let left = {
            let mut parts = shared.parts.lock();
            parts.jobs -= 1;
            self.is_last = parts.jobs == 0;
            if self.is_last { std::mem::take(&mut parts.finished) } else { Vec::new() }
        };
        // Files of parts that finished but were not installed are removed before the caller gets its answer.
        drop(left);
        if self.is_last {
            shared.tell_failed();
        }
    }

    fn release(&mut self, state: &mut State) {
        if self.is_last {
            self.shared.release(state);
        }
        state.compactors -= 1;
    }
}

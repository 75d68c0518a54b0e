//! Decides which background work runs: one flush per family, several compactions, and one job each for the purge, the
//! resume, the WAL space, the level-0 delay, the timer and the scrub.

use super::atomic_flush_job::AtomicFlushJob;
use super::candidate::{Candidate, Choice};
use super::compaction_job::CompactionJob;
use super::core::{Core, State};
use super::flush_job::FlushJob;
use super::job::JobShell;
use super::l0_delay_job::{L0DelayJob, delayed_until};
use super::purge_job::PurgeJob;
use super::resume_job::ResumeJob;
use super::room_job::RoomJob;
use super::switch::LONGEST_DELAY;
use super::work::Work;
use crate::column_family::{Family, LiveFamily};
use crate::health::{Severity, Source};
use crate::pressure::{
    Bounds, Forecast, Gauges, Outlook, Pace, Rates, Resources, WritePressure, lanes, pace,
};
use ashlar_base::{FamilyId, Level, SeqNum};
use ashlar_compaction::picker::{PickInput, Shape, Style};
use ashlar_compaction::{Compaction, Reason};
use ashlar_env::{Env, Job, Lane};
use ashlar_options::{DbPath, FamilyOptions};
use ashlar_tree::version::Version;
use std::sync::Arc;
use std::time::Duration;

impl Core {
    /// Submits all work that is due and not running. Cheap if no work is due.
    pub(crate) fn schedule(self: &Arc<Self>) {
        self.contained("choosing background work", || self.schedule_due());
    }

    fn schedule_due(self: &Arc<Self>) {
        let severity = self.health.severity();
        if severity >= Severity::Fatal || self.health.is_read_only() {
            return;
        }
        let look = self.look(severity);
        let mut kept = false;
        let (candidates, now) = self.submit_due(severity);
        for candidate in candidates {
            kept |= self.submit_compactions(candidate, now, &look);
        }
        if kept {
            self.state().purge_wanted = true;
            drop(self.submit_due(severity));
        }
    }

    /// Submits the due work other than compactions. Returns the families that may need a compaction, and the time at
    /// which to ask whether a flush is expected.
    fn submit_due(self: &Arc<Self>, severity: Severity) -> (Vec<Candidate>, Option<Duration>) {
        let mut due: Vec<(Box<dyn Job>, Lane)> = Vec::new();
        let now = self.env.clock.now();
        let (candidates, now) = {
            let mut guard = self.state();
            let state = &mut *guard;
            // Under the lock: a close that counts the jobs either counts these jobs or prevents them.
            if self.is_closed() || state.pauses > 0 {
                return (Vec::new(), None);
            }
            let now = (state.idle_waiters == 0).then_some(now);
            let atomic = self.options().atomic_flush;
            if atomic && severity < Severity::Hard {
                let marked = mark_for_atomic_flush(state, self.env.clock.now());
                if !marked.is_empty() {
                    due.push(JobShell::due(self, AtomicFlushJob::new(marked)));
                }
            }
            for family in state.families.iter_mut().filter(|_| severity < Severity::Hard && !atomic) {
                if family.memtables.immutable_len() > 0 && family.flushing.is_none() {
                    family.flushing = Some(self.env.clock.now());
                    due.push(JobShell::due(self, FlushJob::new(family.family.id())));
                }
            }
            let families = state.families.iter().filter(|_| severity < Severity::Hard);
            let candidates = families.map(|f| Candidate::of(f, &state.running, now)).collect();
            for work in Work::ALL {
                if state.work.is_free(work)
                    && let Some(job) = self.job_of(work, state, severity, now)
                {
                    state.work.take(work);
                    due.push(job);
                }
            }
            state.jobs += due.len();
            (candidates, now)
        };
        due.into_iter().for_each(|job| self.submit(job));
        (candidates, now)
    }

    /// Submits the due compactions of one family while there are slots. Returns whether the family's version was replaced
    /// meanwhile: a purge may have kept the files of the old one.
    fn submit_compactions(
        self: &Arc<Self>,
        mut candidate: Candidate,
        now: Option<Duration>,
        look: &Look<'_>,
    ) -> bool {
        let mut replaced = false;
        loop {
            let next = self.submit_compaction(&candidate, now, look);
            // Without a lock: the last use of a version closes its tables.
            replaced |= candidate.was_last_of_its_version();
            match next {
                Some(next) => candidate = next,
                None => return replaced,
            }
        }
    }

    /// Submits one compaction of a family, if one is due. Returns what to choose the next one from; `None`: nothing more is due.
    fn submit_compaction(
        self: &Arc<Self>,
        candidate: &Candidate,
        now: Option<Duration>,
        look: &Look<'_>,
    ) -> Option<Candidate> {
        let family = candidate.family.id();
        let choice = pick(candidate, look).map(|plan| Choice::new(plan, candidate));
        if choice.is_none() && look.severity == Severity::Healthy {
            return None;
        }
        let (next, job) = {
            let mut guard = self.state();
            let state = &mut *guard;
            if self.is_closed() || state.pauses > 0 {
                return None;
            }
            let job = match choice {
                // The family has changed, so the choice is made again.
                _ if !candidate.is_current(state) => None,
                None => {
                    if candidate.running.is_empty() {
                        // No compaction of the family is due, so an earlier failure no longer matters.
                        self.health.succeeded(Source::Compaction(family));
                    }
                    return None;
                }
                Some(choice) => {
                    let most = self.compactors_max();
                    // Without this rule, level 0 of a family under writes would have its next compaction claimed whenever one
                    // ends, and a request would never get its tables. While writers are stopped, one compaction goes first.
                    let live = state.families.get(family);
                    let waits = live.is_some_and(|live| live.waiting_requests > 0);
                    let passes = live.is_some_and(|live| live.passed_request.is_none());
                    let passes = passes && self.is_stopped(state);
                    let may = !self.compactions_aborted() && state.exclusive == 0 && (!waits || passes);
                    // The job that has taken a table schedules again when it ends.
                    if !may || !has_slot(&choice.plan, state.compactors, most) || choice.is_taken() {
                        return None;
                    }
                    if let Some(live) = state.families.get_mut(family) {
                        live.passed_request = choice.claim.clone().filter(|_| waits);
                    }
                    Some(CompactionJob::claim(self, state, candidate, choice))
                }
            };
            (state.families.get(family).map(|live| Candidate::of(live, &state.running, now)), job)
        };
        if let Some(job) = job {
            self.submit(JobShell::due(self, job));
        }
        next
    }

    /// The job of `work`, if it has something to do. The open and changes of settings start the timer and the scrubber.
    fn job_of(
        self: &Arc<Self>,
        work: Work,
        state: &mut State,
        severity: Severity,
        now: Option<Duration>,
    ) -> Option<(Box<dyn Job>, Lane)> {
        let lacks_room = || severity == Severity::Full && self.health.is_failing(Source::LogRoom);
        let delays = || severity < Severity::Hard && delayed_until(state, now).is_some();
        match work {
            Work::Resume => (severity == Severity::Hard).then(|| JobShell::due(self, ResumeJob::new())),
            Work::LogRoom => lacks_room().then(|| JobShell::due(self, RoomJob)),
            Work::L0Delay => delays().then(|| JobShell::due(self, L0DelayJob)),
            Work::Purge => {
                let wanted = state.file_holds == 0 && std::mem::take(&mut state.purge_wanted);
                wanted.then(|| JobShell::due(self, PurgeJob::new()))
            }
            Work::Timer | Work::Scrub => None,
        }
    }

    /// What a compaction is chosen by now, beside the shape of a tree.
    pub(super) fn look(&self, severity: Severity) -> Look<'_> {
        let (oldest, unix_secs) = (self.snapshots.oldest(), self.unix_secs());
        Look { oldest, severity, unix_secs, db_paths: &self.writer.db_paths }
    }

    /// Whether there is work that no job does while background work is paused.
    pub(super) fn is_due(&self) -> bool {
        let look = self.look(self.health.severity());
        let candidates: Vec<_> = {
            let state = self.state();
            if Core::busy(&state) {
                return true;
            }
            state.families.iter().map(|f| Candidate::of(f, &state.running, None)).collect()
        };
        let _inside = self.database.enter();
        candidates.iter().any(|candidate| pick(candidate, &look).is_some())
    }

    /// How many jobs may compact at once.
    fn compactors_max(&self) -> usize {
        match self.options().max_background_jobs {
            0 => self.env.jobs.width(Lane::Low).max(1),
            jobs => lanes(jobs).1,
        }
    }

    /// How many more jobs may compact now.
    pub(super) fn idle_compactors(&self) -> usize {
        self.compactors_max().saturating_sub(self.state().compactors)
    }

    /// Updates the writers' pace from the gauges of all families, and the sequence below which compactions wait for
    /// snapshots to end.
    pub(crate) fn update_pressure(&self) {
        self.contained("measuring the debt of compactions", || self.measure_pressure());
    }

    fn measure(&self) -> Rates {
        let runs = self.state().compactors > 0;
        self.pressure.measure(self.env.clock.now(), self.counters.carried(), runs)
    }

    fn measure_pressure(&self) {
        let before = self.pressure.pace();
        let sustained = self.measure().sustained();
        {
            let state = self.state();
            let oldest = self.snapshots.oldest();
            let awaited = state
                .families
                .iter()
                .filter_map(|f| {
                    let options = f.family.options();
                    let shape = Shape::within(&f.version, &options.compaction);
                    Style::of(&options.compaction).awaited_snapshot(&shape, oldest)
                })
                .min();
            self.snapshots.await_past(awaited);
            let gauges: Vec<_> = state.families.iter().map(|f| (gauges(f), f.family.options())).collect();
            self.pressure.set(gauges.iter().map(|(g, options)| pace(g, options, sustained)));
            self.pressure.set_low_priority(gauges.iter().any(|(g, _)| g.debt_bytes > 0), sustained);
        }
        self.notify_pace(before);
    }

    /// Whether writers wait until background work has caught up: with compactions, or with flushes.
    pub(super) fn is_stopped(&self, state: &State) -> bool {
        self.pressure.pace() == Pace::Stop || state.stalled.is_some()
    }

    /// Predicts writer stalls from the gauges of all families and the measured rates.
    pub(super) fn write_pressure(&self) -> WritePressure {
        let rates = self.measure();
        let pace = self.pressure.pace();
        let state = self.state();
        let (mut debt, mut forecast) = (0u64, Forecast::default());
        for family in state.families.iter() {
            let gauges = gauges(family);
            debt = debt.saturating_add(gauges.debt_bytes);
            let outlook = self.outlook(family, &gauges, pace, &state);
            forecast = forecast.or_sooner(outlook.forecast(&rates));
        }
        if pace != Pace::Free {
            forecast.slowdown = Some(Duration::ZERO);
        }
        let mut told = WritePressure::default();
        told.debt_bytes = debt;
        (told.drain_rate, told.inflow_rate, told.sustained_rate) =
            (rates.drain, rates.inflow, rates.sustained());
        told.delay_per_mebibyte = pace.delay(1 << 20);
        told.stopped = self.is_stopped(&state);
        (told.time_to_slowdown, told.time_to_stop) = (forecast.slowdown, forecast.stop);
        drop(state);
        told.disk = self.disk_use();
        told.time_to_full = match self.health.is_failing(Source::LogRoom) {
            true => Some(Duration::ZERO),
            false => told.disk.time_to_full(told.inflow_rate),
        };
        told
    }

    /// What decides when writers of the family will be slowed and stopped.
    fn outlook(&self, family: &LiveFamily, gauges: &Gauges, pace: Pace, state: &State) -> Outlook {
        let (options, now) = (family.family.options(), self.env.clock.now());
        let compaction = &options.compaction;
        let level0 = family.version.level(Level::ZERO);
        let taken = level0.iter().filter(|file| file.is_compacting()).count();
        let inputs = family.version.files().filter(|(_, file)| taken > 0 && file.is_compacting());
        let (immutable, current) = (family.memtables.immutable_len(), family.memtables.current());
        // All memtables together have limits too.
        let limit = options.write_buffer_bytes.min(self.committer.current().limit.bytes).max(1);
        let filled = current.rep.filled() as f64 / limit as f64;
        let written = self.committer.tally().totals();
        let flushes = self.counters.work(family.family.id()).level(0);
        Outlook {
            tables: gauges.l0_tables + immutable,
            trigger: compaction.l0_trigger,
            bounds: Bounds::of(&options),
            memtable_bytes: limit as f64,
            filled,
            fill_time: family.flush_rate.fill_time(now, filled),
            delay_max: LONGEST_DELAY.as_secs_f64() / written.bytes.max(1) as f64 * written.groups as f64,
            delay: pace.delay(1 << 20).as_secs_f64() / f64::from(1 << 20),
            taken,
            taken_bytes: inputs.map(|(_, file)| file.size() as f64).sum(),
            taken_for: now.saturating_sub(family.level0_taken_at).as_secs_f64(),
            compacts: compaction.automatic && !self.compactions_aborted() && state.pauses == 0,
            immutable,
            memtables_max: options.max_write_buffers.min(self.memory.memtables_max() / limit).max(2),
            flush_time: flushes.micros as f64 / 1e6 / flushes.written.max(1) as f64 * limit as f64,
            flushing_for: family.flushing.map_or(0.0, |since| now.saturating_sub(since).as_secs_f64()),
            debt: gauges.debt_bytes as f64,
        }
    }

    /// True while background work is running or due. A purge that waits to retry does not count, nor does a level 0
    /// that waits for another table, or a WAL that waits for disk space.
    pub(crate) fn busy(state: &State) -> bool {
        state.jobs > state.work.waiting() || state.families.iter().any(|f| f.memtables.immutable_len() > 0)
    }
}

/// Marks all families for one flush, unless a flush is running or no memtable is immutable. Families without one are
/// marked too, because a memtable of theirs may become immutable before the job picks.
fn mark_for_atomic_flush(state: &mut State, now: Duration) -> Vec<FamilyId> {
    let waits = state.families.iter().any(|f| f.memtables.immutable_len() > 0);
    if !waits || state.families.iter().any(|f| f.flushing.is_some()) {
        return Vec::new();
    }
    let mark = |family: &mut LiveFamily| {
        family.flushing = Some(now);
        family.family.id()
    };
    state.families.iter_mut().map(mark).collect()
}

/// Raises the executor's threads to the number for `jobs` background jobs. 0: unchanged. Threads that databases share stay as
/// many as they are.
pub(super) fn widen(env: &Env, resources: &Resources, jobs: usize) {
    if jobs > 0 && !resources.are_common() {
        let (high, low) = lanes(jobs);
        env.jobs.widen(Lane::High, high);
        env.jobs.widen(Lane::Low, low);
    }
}

/// Level 0 has one extra slot, so that writers do not wait for a large compaction that is not urgent.
fn has_slot(compaction: &Compaction, compactors: usize, most: usize) -> bool {
    let urgent = matches!(compaction.reason, Reason::Level0 | Reason::SizeRatio | Reason::RunCount);
    compactors < most || (urgent && compactors == most)
}

/// Inputs of the decision beside the shape of a tree.
pub(super) struct Look<'a> {
    oldest: Option<SeqNum>,
    severity: Severity,
    /// Seconds since 1970.
    unix_secs: u64,
    /// The table directories for families without their own.
    db_paths: &'a [DbPath],
}

/// The next compaction of a family. Compares keys, so the caller holds no lock.
fn pick(candidate: &Candidate, look: &Look<'_>) -> Option<Compaction> {
    let options = candidate.family.options();
    if !options.compaction.automatic {
        return None;
    }
    Style::of(&options.compaction).pick(&pick_input(candidate, &options, look))
}

/// What the pickers of a style see of a family.
pub(super) fn pick_input<'a>(
    candidate: &'a Candidate,
    options: &'a FamilyOptions,
    look: &Look<'a>,
) -> PickInput<'a> {
    let version = &candidate.version;
    // A compaction does not wait for a failing flush.
    let arriving = look.severity < Severity::Soft && candidate.arriving;
    let paths = if options.cf_paths.is_empty() { look.db_paths } else { &options.cf_paths };
    PickInput {
        shape: Shape {
            table: Some(&options.table),
            paths,
            partitioner: options.sst_partitioner.as_deref(),
            arriving,
            unflushed_since: candidate.unflushed_since,
            ..Shape::within(version, &options.compaction)
        },
        options: &options.compaction,
        running: &candidate.running,
        oldest_snapshot: look.oldest,
        now: look.unix_secs,
        blob_options: &options.blob,
        blobs: version.blobs(),
    }
}

fn gauges(family: &LiveFamily) -> Gauges {
    gauges_in(&family.version, family.memtables.unflushed_since(), &family.family)
}

/// The gauges of a family whose tables are those of `version`.
pub(super) fn gauges_of(version: &Version, family: &Family) -> Gauges {
    gauges_in(version, None, family)
}

fn gauges_in(version: &Version, unflushed_since: Option<SeqNum>, family: &Family) -> Gauges {
    let options = family.options();
    let (options, style) = (&options.compaction, Style::of(&options.compaction));
    let shape = Shape { unflushed_since, ..Shape::within(version, options) };
    Gauges { l0_tables: style.counted_runs(&shape), debt_bytes: style.debt(&shape, options) }
}

//! Deciding what background work there is: one flush per family, some compactions, one purge.

use super::atomic_flush_job::AtomicFlushJob;
use super::compaction_job::CompactionJob;
use super::core::{Core, State};
use super::flush_job::FlushJob;
use super::gather_job::GatherJob;
use super::purge_job::PurgeJob;
use super::resume_job::ResumeJob;
use super::room_job::RoomJob;
use crate::column_family::{DatabaseId, Family, LiveFamily};
use crate::health::{Severity, Source};
use crate::pressure::{Forecast, Gauges, Pace, pace};
use ashlar_base::{FamilyId, Level, SeqNum};
use ashlar_compaction::picker::{self, Shape, Targets};
use ashlar_compaction::{Compaction, Reason, Running};
use ashlar_env::{Env, Job, JobId, JobKind, Lane, StepBudget, StepResult};
use ashlar_options::DbPath;
use ashlar_tree::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// More noted jobs than this are looked through for those that ended: a database that is never idle notes more and more.
const SUBMITTED_MANY: usize = 64;

impl Core {
    /// Submits whatever work is due and not under way. Cheap when nothing is.
    pub(crate) fn schedule(self: &Arc<Self>) {
        self.contained("choosing background work", || self.schedule_due());
    }

    fn schedule_due(self: &Arc<Self>) {
        let severity = self.health.severity();
        if severity >= Severity::Fatal || self.health.is_read_only() {
            return;
        }
        let mut due: Vec<(Box<dyn Job>, Lane)> = Vec::new();
        let (now, unix_secs) = (self.env.clock.now(), self.unix_secs());
        {
            let mut guard = self.state();
            // Under the lock: a close that counts the jobs counts these, or they are never made.
            if self.is_closed() {
                return;
            }
            let state = &mut *guard;
            if state.pauses > 0 {
                return;
            }
            if severity == Severity::Hard && !std::mem::replace(&mut state.resuming, true) {
                due.push((Box::new(ResumeJob::new(Arc::clone(self))), Lane::High));
            }
            if severity == Severity::Full
                && self.health.is_failing(Source::LogRoom)
                && !std::mem::replace(&mut state.asking_room, true)
            {
                due.push((Box::new(RoomJob::new(Arc::clone(self))), Lane::High));
            }
            let (most, oldest) = (self.compactors_max(), self.snapshots.oldest());
            let now = (state.hurried == 0).then_some(now);
            let atomic = self.options().atomic_flush;
            if atomic && severity < Severity::Hard {
                let marked = mark_for_atomic_flush(state);
                if !marked.is_empty() {
                    due.push((Box::new(AtomicFlushJob::new(Arc::clone(self), marked)), Lane::High));
                }
            }
            for family in state.families.iter_mut().filter(|_| severity < Severity::Hard) {
                if !atomic && family.memtables.sealed_len() > 0 && !family.flushing {
                    family.flushing = true;
                    due.push((Box::new(FlushJob::new(Arc::clone(self), family.family.id())), Lane::High));
                }
                let look = Look { oldest, severity, now, unix_secs, db_paths: &self.writer.db_paths };
                while !self.compactions_aborted()
                    && state.exclusive == 0
                    && let Some(compaction) = pick(family, &state.running, &look)
                    && has_slot(&compaction, state.compactors, most)
                {
                    let job = CompactionJob::claim(self, &mut state.running, family, compaction);
                    due.push((Box::new(job), Lane::Low));
                    state.compactors += 1;
                }
                let runs = state.running.get(&family.family.id()).is_some_and(|r| !r.is_empty());
                if severity > Severity::Well && !runs && pick(family, &state.running, &look).is_none() {
                    // Whatever failed is not wanted any more.
                    self.health.well(Source::Compaction(family.family.id()));
                }
            }
            if severity < Severity::Hard && !state.gathering && gathers_until(state, now).is_some() {
                state.gathering = true;
                due.push((Box::new(GatherJob::new(Arc::clone(self))), Lane::Low));
            }
            if state.purge_wanted && !state.purging {
                (state.purge_wanted, state.purging) = (false, true);
                due.push((Box::new(PurgeJob::new(Arc::clone(self))), Lane::Low));
            }
            state.jobs += due.len();
        }
        for (job, lane) in due {
            self.submit(job, lane);
        }
    }

    /// Whether there is work that no job does while background work is paused.
    pub(super) fn is_due(&self, state: &State) -> bool {
        let (oldest, unix_secs) = (self.snapshots.oldest(), self.unix_secs());
        let (severity, db_paths) = (self.health.severity(), &*self.writer.db_paths);
        let look = Look { oldest, severity, now: None, unix_secs, db_paths };
        Core::busy(state) || state.families.iter().any(|f| pick(f, &state.running, &look).is_some())
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

    /// A job that changed what there is to do is over, and counted so: everybody looks again.
    pub(super) fn after_job(self: &Arc<Self>) {
        self.update_pressure();
        self.schedule();
        self.progress.notify();
    }

    /// Hands a job that was counted in `State::jobs` to the executor, and remembers it for [`Core::wake_jobs`].
    pub(super) fn submit(&self, job: Box<dyn Job>, lane: Lane) {
        let id = self.run(job, lane);
        let (urged, many) = {
            let mut state = self.state();
            state.submitted.push(id);
            let many = state.submitted.len() > SUBMITTED_MANY;
            (self.is_closed() || state.pauses > 0, many.then(|| state.submitted.clone()))
        };
        if let Some(many) = many {
            let ended: BTreeSet<_> = many.into_iter().filter(|id| !self.env.jobs.knows(*id)).collect();
            self.state().submitted.retain(|id| !ended.contains(id));
        }
        // Who woke all jobs before this id was known could not wake it.
        if urged {
            self.env.jobs.wake(id);
        }
    }

    /// Hands a job to the executor. Its steps are work for this database.
    pub(super) fn run(&self, job: Box<dyn Job>, lane: Lane) -> JobId {
        let of = (self.database, self.executor());
        self.env.jobs.submit(Box::new(OwnJob { of, job }), lane)
    }

    /// Ends the pauses of jobs that failed and wait to try again, so that they see a close or a hard state at once.
    pub(super) fn wake_jobs(&self) {
        let (submitted, timer, scrub) = {
            let state = self.state();
            (state.submitted.clone(), state.timer.flatten(), state.scrub.flatten())
        };
        for id in submitted.into_iter().chain(timer).chain(scrub) {
            self.env.jobs.wake(id);
        }
    }

    /// Takes over the gauges of all families into the pace of writers, and for which snapshots' end compactions wait.
    pub(crate) fn update_pressure(&self) {
        self.contained("measuring the debt of compactions", || self.measure_pressure());
    }

    fn measure_pressure(&self) {
        let before = self.pressure.pace();
        let (flushed, drained) = self.counters.carried();
        let sustained = self.pressure.measure(self.env.clock.now(), flushed, drained).sustained();
        {
            let state = self.state();
            let oldest = self.snapshots.oldest();
            let awaited =
                state.families.iter().filter_map(|f| picker::awaited_snapshot(&shape(f), oldest)).min();
            self.snapshots.await_past(awaited);
            let gauges: Vec<_> = state.families.iter().map(|f| (gauges(f), f.family.options())).collect();
            self.pressure.set(gauges.iter().map(|(g, options)| pace(g, options, sustained)));
            self.pressure.set_low_priority(gauges.iter().any(|(g, _)| g.debt_bytes > 0), sustained);
        }
        self.tell_pace(before);
    }

    /// What the gauges of all families and the measured rates let expect.
    pub(super) fn forecast(&self) -> Forecast {
        let (flushed, drained) = self.counters.carried();
        let rates = self.pressure.measure(self.env.clock.now(), flushed, drained);
        let pace = self.pressure.pace();
        let state = self.state();
        let (mut debt, mut time_to_stop) = (0u64, None::<Duration>);
        for family in state.families.iter() {
            let (gauges, options) = (gauges(family), family.family.options());
            debt = debt.saturating_add(gauges.debt_bytes);
            let tables = options.compaction.l0_stop.saturating_sub(gauges.l0_tables) as u64;
            let level0 = tables.saturating_mul(options.write_buffer_bytes as u64);
            let left = options.compaction.debt_bounds().1.saturating_sub(gauges.debt_bytes).min(level0);
            let time = rates.time_to(left).filter(|_| options.compaction.works());
            time_to_stop = [time_to_stop, time].into_iter().flatten().min();
        }
        Forecast {
            debt_bytes: debt,
            drain_rate: rates.drain,
            inflow_rate: rates.inflow,
            sustained_rate: rates.sustained(),
            delay_per_mebibyte: pace.delay(1 << 20),
            stopped: pace == Pace::Stop,
            time_to_stop,
        }
    }

    /// True while any background work is under way or due; a purge that waits to try again is neither, nor is a level 0
    /// that waits for more, or a log that waits for room.
    pub(crate) fn busy(state: &State) -> bool {
        let waiting = [state.purge_pauses, state.gathering, state.asking_room];
        state.jobs > waiting.into_iter().filter(|waits| *waits).count()
            || state.families.iter().any(|f| f.memtables.sealed_len() > 0)
    }
}

/// A job that notes for which database, on which executor, its thread is at work.
struct OwnJob {
    of: (DatabaseId, usize),
    job: Box<dyn Job>,
}

impl Job for OwnJob {
    fn kind(&self) -> JobKind {
        self.job.kind()
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        let (database, executor) = self.of;
        let _inside = database.enter_job(executor);
        self.job.step(budget)
    }

    fn abort(self: Box<Self>) {
        let (database, executor) = self.of;
        let _inside = database.enter_job(executor);
        self.job.abort();
    }
}

/// Marks all families for one flush, unless one is under way or nothing is sealed. Those without anything sealed too: one
/// of their memtables may be sealed before the job picks.
fn mark_for_atomic_flush(state: &mut State) -> Vec<FamilyId> {
    let waits = state.families.iter().any(|f| f.memtables.sealed_len() > 0);
    if !waits || state.families.iter().any(|f| f.flushing) {
        return Vec::new();
    }
    let mark = |family: &mut LiveFamily| {
        family.flushing = true;
        family.family.id()
    };
    state.families.iter_mut().map(mark).collect()
}

type RunningByFamily = BTreeMap<FamilyId, Vec<Running>>;

/// How many of so many background jobs flush, and how many do everything else.
/// Source: RocksDB `db/db_impl/db_impl_compaction_flush.cc` (`GetBGJobLimits`).
fn lanes(jobs: usize) -> (usize, usize) {
    let high = (jobs / 4).max(1);
    (high, jobs.saturating_sub(high).max(1))
}

/// Gives the executor threads enough for so many jobs. 0: it keeps what it has.
pub(super) fn widen(env: &Env, jobs: usize) {
    if jobs > 0 {
        let (high, low) = lanes(jobs);
        env.jobs.widen(Lane::High, high);
        env.jobs.widen(Lane::Low, low);
    }
}

/// Level 0 has a slot beyond all others: writers must not wait for the end of a large compaction that is in no hurry.
fn has_slot(compaction: &Compaction, compactors: usize, most: usize) -> bool {
    compactors < most || (compaction.reason == Reason::Level0 && compactors == most)
}

/// What decides besides the shape of a tree.
struct Look<'a> {
    oldest: Option<SeqNum>,
    severity: Severity,
    /// `None`: somebody waits for all that is due.
    now: Option<Duration>,
    /// Since 1970.
    unix_secs: u64,
    /// The directories of tables of families that have none of their own.
    db_paths: &'a [DbPath],
}

fn pick(family: &LiveFamily, running: &RunningByFamily, look: &Look<'_>) -> Option<Compaction> {
    let options = family.family.options();
    if !options.compaction.works() {
        return None;
    }
    let running = running.get(&family.family.id()).map_or(&[][..], Vec::as_slice);
    // A flush that fails is not waited for.
    let under_way = family.flushing || family.memtables.sealed_len() > 0;
    let expected = look.now.is_some_and(|now| family.arrivals.is_expected(now));
    let arriving = look.severity < Severity::Soft && (under_way || expected);
    let paths = if options.cf_paths.is_empty() { look.db_paths } else { &options.cf_paths };
    let shape = Shape { table: Some(&options.table), paths, arriving, ..shape(family) };
    let unhurried = || picker::pick_tombstones(&shape, &options.compaction, running, look.oldest);
    let aged = || picker::pick_aged(&shape, &options.compaction, running, look.unix_secs);
    picker::pick(&shape, &options.compaction, running).or_else(unhurried).or_else(aged).or_else(|| {
        if !options.blob.collect_garbage {
            return None;
        }
        let files: Vec<_> = family.version.blobs().files().values().map(|f| f.live()).collect();
        picker::pick_blob_garbage(&shape, &files, &options.blob, &options.compaction, running)
    })
}

/// When to look again at the first family whose level 0 waits for a table that writers have yet to fill; `now` as in
/// [`Look`].
pub(super) fn gathers_until(state: &State, now: Option<Duration>) -> Option<Duration> {
    let now = now?;
    let gathers = |f: &&LiveFamily| {
        let options = f.family.options();
        let shape = Shape { arriving: f.arrivals.is_expected(now), ..shape(f) };
        options.compaction.works() && picker::gathers(&shape, &options.compaction)
    };
    state.families.iter().filter(gathers).filter_map(|f| f.arrivals.expected_until()).min()
}

/// A family's tree, as pickers see it.
pub(super) fn shape(family: &LiveFamily) -> Shape<'_> {
    Shape::of(&family.version)
}

fn gauges(family: &LiveFamily) -> Gauges {
    gauges_of(&family.version, &family.family)
}

/// What the gauges of a family show when its tables are these.
pub(super) fn gauges_of(version: &Version, family: &Family) -> Gauges {
    let options = family.options();
    let options = &options.compaction;
    let shape = Shape::of(version);
    let level_bytes: Vec<u64> = (0..shape.levels.len()).map(|level| shape.bytes(level)).collect();
    let targets = Targets::new(&level_bytes, options);
    Gauges {
        l0_tables: version.level(Level::ZERO).len(),
        debt_bytes: picker::debt(&shape, &targets, options),
    }
}

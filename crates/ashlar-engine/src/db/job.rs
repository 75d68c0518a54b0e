//! The shell of every background job: it runs the steps of one piece of work, reports failures and panics, and ends it.
//!
//! 1. [`Run::give_up`] is called once, as the last call that touches files. Then the marks in the state are cleared. A
//!    close waits for the marks, so it returns only after the last change of the directory.
//! 2. After a panic every waiting caller gets an error, and the database takes no more changes.
//! 3. A step is marked as work for the database, so that calls from listeners, comparators and merge operators are
//!    recognised.

use super::core::{Core, State};
use super::work::Work;
use ashlar_base::{Error, Result};
use ashlar_env::{Job, JobId, JobKind, Lane, StepBudget, StepResult};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// When more ids than this are noted, the ended jobs are removed from the list. Otherwise the list of a database that
/// is never idle would grow without bound.
const SUBMITTED_MANY: usize = 64;

/// The work of one background job.
pub(super) trait Run: Send {
    /// The kind of the job, for the executor.
    const KIND: JobKind;
    /// The executor lane that runs the job.
    const LANE: Lane = Lane::Low;
    /// The subject of the error after a panic, such as "a flush".
    const NAME: &'static str;
    /// The slot of the work, if a database has at most one such job.
    const WORK: Option<Work> = None;

    /// Whether the result is still needed. Asked before each step and after a failure; the job ends if the answer is
    /// false.
    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed()
    }

    /// Runs one step of about `budget` at most.
    ///
    /// # Errors
    /// Any error; it is passed to [`Run::failed`].
    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult>;

    /// Records the error of a step, drops work that cannot be continued, and returns the pause before the retry.
    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration;

    /// The executor runs no further step, because the last one panicked or the executor closes. [`Run::give_up`]
    /// follows.
    fn aborted(&mut self) {}

    /// Drops everything that was begun and is not installed, with its files. Called with no lock held.
    fn give_up(&mut self, _core: &Core) {}

    /// Clears the marks of the job. The shell clears the job's slot and the count of jobs.
    fn release(&mut self, _state: &mut State) {}

    /// Called after the job has ended and was removed from the counts.
    fn ended(&self, core: &Arc<Core>) {
        core.after_job();
    }
}

/// A job of a database, as the executor runs it.
pub(super) struct JobShell<R: Run> {
    core: Arc<Core>,
    run: R,
    in_step: bool,
}

impl<R: Run + 'static> JobShell<R> {
    pub(super) fn new(core: &Arc<Core>, run: R) -> Self {
        JobShell { core: Arc::clone(core), run, in_step: false }
    }

    /// The job for the executor, with its lane.
    pub(super) fn due(core: &Arc<Core>, run: R) -> (Box<dyn Job>, Lane) {
        (Box::new(JobShell::new(core, run)), R::LANE)
    }

    fn end(&mut self) {
        self.run.give_up(&self.core);
        {
            let mut state = self.core.state();
            self.run.release(&mut state);
            if let Some(work) = R::WORK {
                state.work.free(work);
            }
            if R::WORK.is_none_or(Work::is_counted) {
                state.job_ended();
            }
        }
        self.run.ended(&self.core);
    }

    /// Records the error of a step.
    fn fail(&mut self, cause: &Error) -> StepResult {
        let pause = self.run.failed(&self.core, cause);
        if self.run.is_wanted(&self.core) { StepResult::Wait(pause) } else { StepResult::Done }
    }
}

impl<R: Run + 'static> Job for JobShell<R> {
    fn kind(&self) -> JobKind {
        R::KIND
    }

    fn owner(&self) -> u64 {
        self.core.database.number()
    }

    fn step(&mut self, budget: StepBudget) -> StepResult {
        let _inside = self.core.database.enter_job(self.core.executor());
        self.in_step = true;
        let next = if self.run.is_wanted(&self.core) {
            self.run.advance(&self.core, budget).unwrap_or_else(|e| self.fail(&e))
        } else {
            StepResult::Done
        };
        self.in_step = false;
        if matches!(next, StepResult::Done) {
            self.end();
        }
        next
    }

    fn abort(mut self: Box<Self>) {
        let _inside = self.core.database.enter_job(self.core.executor());
        self.run.aborted();
        if self.in_step {
            self.core.panicked(R::NAME);
        }
        self.end();
    }
}

impl Core {
    /// Hands the only job of `work` to the executor, unless such a job exists. The job is not counted in `State::jobs`.
    pub(super) fn start<R: Run + 'static>(self: &Arc<Self>, work: Work, run: R) {
        debug_assert!(R::WORK == Some(work) && !work.is_counted(), "the slot is that of the job");
        {
            let mut state = self.state();
            if self.is_closed() || !state.work.take(work) {
                return;
            }
        }
        let (job, lane) = JobShell::due(self, run);
        let id = self.env.jobs.submit(job, lane);
        self.state().work.set_id(work, id);
        // A close that ran before the id was known could not wake the job.
        if self.is_closed() {
            self.env.jobs.wake(id);
        }
    }

    /// Hands a job that was counted in `State::jobs` to the executor, and notes its id for [`Core::wake_jobs`].
    pub(super) fn submit(&self, (job, lane): (Box<dyn Job>, Lane)) {
        let id = self.env.jobs.submit(job, lane);
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
        // A caller that woke all jobs before this id was known could not wake this one.
        if urged {
            self.env.jobs.wake(id);
        }
    }

    /// Ends the pauses of failed jobs that wait to retry, so that they notice a close or a hard error at once.
    pub(super) fn wake_jobs(&self) {
        let ids: Vec<JobId> = {
            let state = self.state();
            state.submitted.iter().copied().chain(state.work.ids()).collect()
        };
        for id in ids {
            self.env.jobs.wake(id);
        }
    }

    /// After a job has ended: wakes all waiting threads, and schedules the work that has become due.
    pub(super) fn after_job(self: &Arc<Self>) {
        self.update_pressure();
        self.schedule();
        self.progress.notify();
    }
}

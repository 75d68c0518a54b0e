//! Background work: jobs in small steps, on threads or in the caller's thread.
//!
//! 1. A job does at most its budget of work per step and holds no lock between steps.
//! 2. Jobs of the inline executor interleave only between steps.
//! 3. A job that returns `Done` is dropped. After a panic in a step, or at `close`, the executor calls `abort` instead.

mod inline;
mod ready;
mod threads;

#[cfg(test)]
mod tests;

pub use inline::InlineExecutor;
pub use threads::ThreadExecutor;

use ashlar_sync::Signal;
use std::fmt::Debug;
use std::time::Duration;

/// The purpose of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Writes memtables to tables.
    Flush,
    /// Merges tables.
    Compaction,
    /// Deletes obsolete files.
    Purge,
    /// Anything else, by name.
    Other(&'static str),
}

/// The threads on which a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Few and short jobs that writers wait for: flushes.
    High,
    /// All other work: compactions, deletion of files.
    Low,
}

/// The name of a submitted job. The ids of one executor grow from job to job; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// The budget of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBudget {
    /// Bytes of input or output, roughly.
    pub bytes: usize,
}

impl Default for StepBudget {
    fn default() -> Self {
        StepBudget { bytes: 64 << 10 }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// More to do at once.
    Again,
    /// Nothing to do until this long has passed, or until [`JobExecutor::wake`]. `Duration::MAX`: only a wake counts.
    Wait(Duration),
    /// Finished.
    Done,
}

/// A piece of background work.
pub trait Job: Send {
    /// The purpose of the job.
    fn kind(&self) -> JobKind;

    /// The number of the job's owner. Jobs of several owners that wait for the same threads are run in turns, owner by owner.
    fn owner(&self) -> u64 {
        0
    }

    /// Does some work, at most about `budget`. The executor catches a panic and then calls `abort`.
    fn step(&mut self, budget: StepBudget) -> StepResult;

    /// Ends the job, because it panicked, or because the executor closes or was closed before the job was submitted.
    /// Releases the job's resources and wakes the threads that wait for it. Does no further work.
    fn abort(self: Box<Self>);
}

/// Runs jobs.
pub trait JobExecutor: Send + Sync + Debug {
    /// False in a forked child of the process whose threads run the jobs. There no other method may be called.
    fn serves(&self) -> bool {
        true
    }

    /// Takes a job. After `close` the job is aborted at once.
    fn submit(&self, job: Box<dyn Job>, lane: Lane) -> JobId;

    /// Ends the wait of a job that returned `Wait`. If the job's step runs at this moment, the wake is remembered.
    /// Unknown or finished ids are ignored.
    fn wake(&self, id: JobId);

    /// Whether a job exists that has not ended. A job that ended stays ended.
    fn knows(&self, id: JobId) -> bool;

    /// How many jobs of a lane run at once.
    fn width(&self, lane: Lane) -> usize;

    /// Lets at least this many jobs of a lane run at once. Never lowers the number, because other databases may use the
    /// same executor.
    fn widen(&self, lane: Lane, width: usize);

    /// A signal on which callers wait for changes that this executor's jobs make.
    fn signal(&self) -> Signal;

    /// The inline executor: runs up to `steps` steps in the caller and returns how many it ran. When all jobs wait for
    /// time, the virtual clock jumps to the earliest time. It runs fewer steps only when no job is runnable, now or at
    /// a later time, without a wake. The threaded executor returns 0.
    fn drive(&self, steps: usize) -> usize;

    /// Stops the executor: no further step begins, unfinished jobs get `abort`, threads are joined. May be called
    /// twice. Must not be called from a job.
    fn close(&self);
}

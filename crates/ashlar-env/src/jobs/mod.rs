//! Background work: jobs in small steps, on threads or in the caller's thread.
//!
//! 1. A job does at most its budget of work per step and holds no lock between steps.
//! 2. Jobs of the inline executor interleave only between steps.
//! 3. A job that returns `Done` is dropped. After a panic in a step, or at `close`, the executor calls `abort` instead.

mod inline;
mod threads;

#[cfg(test)]
mod tests;

pub use inline::InlineExecutor;
pub use threads::ThreadExecutor;

use ashlar_sync::Signal;
use std::fmt::Debug;
use std::time::Duration;

/// What a job does.
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

/// Which threads a job runs on.
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

/// How much work a step may do.
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

/// What a job wants after a step.
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
    /// What it does.
    fn kind(&self) -> JobKind;

    /// Does some work, at most about `budget`. A panic is caught by the executor and followed by `abort`.
    fn step(&mut self, budget: StepBudget) -> StepResult;

    /// Gives up: the job panicked, or the executor closes, or was closed before the job was submitted. Releases what
    /// the job holds and wakes the threads that wait for it. Runs no further work.
    fn abort(self: Box<Self>);
}

/// Runs jobs.
pub trait JobExecutor: Send + Sync + Debug {
    /// False in a child of the process whose threads run the jobs: nothing may be asked of it there.
    fn serves(&self) -> bool {
        true
    }

    /// Takes a job. After `close` the job is aborted at once.
    fn submit(&self, job: Box<dyn Job>, lane: Lane) -> JobId;

    /// Ends the wait of a job that said `Wait`; remembered when the job is just being stepped. Unknown or finished
    /// ids are ignored.
    fn wake(&self, id: JobId);

    /// Whether a job is there that has not ended. One that ended never is again.
    fn knows(&self, id: JobId) -> bool;

    /// How many jobs of a lane run at once.
    fn width(&self, lane: Lane) -> usize;

    /// Lets at least this many jobs of a lane run at once. Never takes any back: others may use the same executor.
    fn widen(&self, lane: Lane, width: usize);

    /// A signal to wait on for what this executor's jobs do.
    fn signal(&self) -> Signal;

    /// Inline form: runs up to `steps` steps in the caller, and says how many it ran. When all jobs wait for time, the
    /// virtual clock jumps to the earliest; fewer steps are run only when no job is runnable or ever will be without
    /// a wake. With threads: 0.
    fn drive(&self, steps: usize) -> usize;

    /// Stops: no further step begins, unfinished jobs get `abort`, threads are joined. May be called twice. Not to be
    /// called from a job.
    fn close(&self);
}

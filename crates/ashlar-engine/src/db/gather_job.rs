//! Looks again at level 0 where it waits for a table that writers were expected to fill.
//!
//! While they do, each table that comes moves the time on. When they stop, the compaction that was put off begins. The job
//! ends when nothing waits any more; what begins to wait later gets another one.

use super::core::Core;
use super::schedule::gathers_until;
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The one such job of a database.
pub(super) struct GatherJob {
    core: Arc<Core>,
}

impl GatherJob {
    pub(super) fn new(core: Arc<Core>) -> Self {
        GatherJob { core }
    }

    /// How long there is nothing to do.
    fn wait(&self) -> Option<Duration> {
        let now = self.core.env.clock.now();
        let state = self.core.state();
        if self.core.is_closed() || state.pauses > 0 || state.hurried > 0 {
            return None;
        }
        gathers_until(&state, Some(now)).map(|until| until.saturating_sub(now))
    }

    fn end(&self) {
        {
            let mut state = self.core.state();
            state.gathering = false;
            state.job_ended();
        }
        self.core.schedule();
        self.core.progress.notify();
    }
}

impl Job for GatherJob {
    fn kind(&self) -> JobKind {
        JobKind::Other("gather")
    }

    fn step(&mut self, _: StepBudget) -> StepResult {
        match self.wait() {
            Some(time) => StepResult::Wait(time),
            None => {
                self.end();
                StepResult::Done
            }
        }
    }

    fn abort(self: Box<Self>) {
        self.end();
    }
}

//! The timer: what is due by the clock alone, the dump of statistics and compactions of tables for their age.
//!
//! 1. There is one as long as some setting wants it. It is no background work that anybody waits for but a close.
//! 2. It sleeps until the next moment that matters, on the clock of the environment: simulated runs repeat.

use super::core::Core;
use super::job::Run;
use super::work::Work;
use ashlar_base::{Error, Result};
use ashlar_compaction::picker::{Shape, next_age};
use ashlar_env::{JobKind, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The timer of a database.
pub(super) struct TimerJob {
    /// When statistics were dumped last, or the timer began.
    dumped: Duration,
}

impl TimerJob {
    /// Does what is due. When the next thing is; `None`: no setting wants a timer.
    fn tick(&mut self, core: &Arc<Core>) -> Option<Duration> {
        let mut next = core.next_age();
        if next.is_some() {
            core.schedule();
        }
        let period = core.options().stats_dump_secs;
        if period > 0 {
            let now = core.env.clock.now();
            let mut left = Duration::from_secs(period).saturating_sub(now.saturating_sub(self.dumped));
            if left.is_zero() {
                core.dump_statistics();
                (self.dumped, left) = (now, Duration::from_secs(period));
            }
            next = Some(next.map_or(left, |next| next.min(left)));
        }
        next
    }
}

impl Run for TimerJob {
    const KIND: JobKind = JobKind::Other("timer");
    const NAME: &'static str = "the timer";
    const WORK: Option<Work> = Some(Work::Timer);

    fn advance(&mut self, core: &Arc<Core>, _: StepBudget) -> Result<StepResult> {
        Ok(self.tick(core).map_or(StepResult::Done, StepResult::Wait))
    }

    fn failed(&mut self, _: &Arc<Core>, _: &Error) -> Duration {
        Duration::ZERO
    }

    fn ended(&self, core: &Arc<Core>) {
        core.progress.notify();
        // Settings may have changed since the last look.
        core.arm_timer();
    }
}

impl Core {
    /// Begins a timer when settings want one and there is none; the one there is looks at them anew.
    pub(super) fn arm_timer(self: &Arc<Self>) {
        if self.options().stats_dump_secs == 0 && self.next_age().is_none() {
            return;
        }
        let there = self.state().work.id(Work::Timer);
        match there {
            Some(id) => self.env.jobs.wake(id),
            None => self.start(Work::Timer, TimerJob { dumped: self.env.clock.now() }),
        }
    }

    /// Until the next table comes of age.
    fn next_age(&self) -> Option<Duration> {
        let now = self.unix_secs();
        let state = self.state();
        let ages = state
            .families
            .iter()
            .filter_map(|f| next_age(&Shape::of(&f.version), &f.family.options().compaction, now));
        ages.min().map(Duration::from_secs)
    }

    /// Seconds since 1970.
    pub(super) fn unix_secs(&self) -> u64 {
        self.env.clock.unix_micros() / 1_000_000
    }
}

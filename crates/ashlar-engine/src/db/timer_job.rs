//! The timer: runs work that only the clock makes due, which is the dump of statistics and the compaction of old
//! tables.
//!
//! 1. The timer exists as long as a setting needs it. Only a close waits for it.
//! 2. It sleeps until the next due time by the environment's clock, so simulated runs are repeatable.

use super::core::Core;
use super::job::Run;
use super::work::Work;
use ashlar_base::{Error, Result};
use ashlar_compaction::picker::{Shape, Style};
use ashlar_env::{JobKind, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The timer of a database.
pub(super) struct TimerJob {
    /// When statistics were last dumped, or the timer began.
    dumped: Duration,
}

impl TimerJob {
    /// Runs the due work. Returns when the next work is due; `None`: no setting needs a timer.
    fn tick(&mut self, core: &Arc<Core>) -> Option<Duration> {
        let mut next = core.next_look();
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
        // Settings may have changed since the last check.
        core.arm_timer();
    }
}

impl Core {
    /// Starts the timer if a setting needs one and none exists; wakes an existing timer to re-read the settings.
    pub(super) fn arm_timer(self: &Arc<Self>) {
        if self.options().stats_dump_secs == 0 && self.next_look().is_none() {
            return;
        }
        let there = self.state().work.id(Work::Timer);
        match there {
            Some(id) => self.env.jobs.wake(id),
            None => self.start(Work::Timer, TimerJob { dumped: self.env.clock.now() }),
        }
    }

    /// The time until the clock may make a compaction due.
    fn next_look(&self) -> Option<Duration> {
        let now = self.unix_secs();
        let state = self.state();
        let looks = state.families.iter().filter_map(|f| {
            let options = f.family.options();
            let shape = Shape::within(&f.version, &options.compaction);
            Style::of(&options.compaction).next_look(&shape, &options.compaction, now)
        });
        looks.min().map(Duration::from_secs)
    }

    /// Seconds since 1970.
    pub(super) fn unix_secs(&self) -> u64 {
        self.env.clock.unix_micros() / 1_000_000
    }
}

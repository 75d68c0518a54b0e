//! The timer: what is due by the clock alone, the dump of statistics and compactions of tables for their age.
//!
//! 1. There is one as long as some setting wants it. It is no background work that anybody waits for but a close.
//! 2. It sleeps until the next moment that matters, on the clock of the environment: simulated runs repeat.

use super::core::Core;
use super::schedule::shape;
use ashlar_compaction::picker::next_age;
use ashlar_env::{Job, JobKind, Lane, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The timer of a database.
pub(super) struct TimerJob {
    core: Arc<Core>,
    /// When statistics were dumped last, or the timer began.
    dumped: Duration,
}

impl TimerJob {
    /// Does what is due. When the next thing is; `None`: no setting wants a timer.
    fn tick(&mut self) -> Option<Duration> {
        let core = &self.core;
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

impl Job for TimerJob {
    fn kind(&self) -> JobKind {
        JobKind::Other("timer")
    }

    fn step(&mut self, _: StepBudget) -> StepResult {
        let next = if self.core.is_closed() { None } else { self.tick() };
        match next {
            Some(wait) => StepResult::Wait(wait),
            None => {
                self.core.timer_ended();
                StepResult::Done
            }
        }
    }

    fn abort(self: Box<Self>) {
        self.core.timer_ended();
    }
}

impl Core {
    /// Begins a timer when settings want one and there is none; the one there is looks at them anew.
    pub(super) fn arm_timer(self: &Arc<Self>) {
        if self.options().stats_dump_secs == 0 && self.next_age().is_none() {
            return;
        }
        let there = {
            let mut state = self.state();
            if self.is_closed() {
                return;
            }
            let there = state.timer;
            state.timer.get_or_insert(None);
            there
        };
        match there {
            Some(id) => id.into_iter().for_each(|id| self.env.jobs.wake(id)),
            None => {
                let timer = TimerJob { core: Arc::clone(self), dumped: self.env.clock.now() };
                let id = self.run(Box::new(timer), Lane::Low);
                if let Some(timer) = &mut self.state().timer {
                    *timer = Some(id);
                }
                // A close that came before the id was known could not wake it.
                if self.is_closed() {
                    self.env.jobs.wake(id);
                }
            }
        }
    }

    fn timer_ended(self: &Arc<Self>) {
        self.state().timer = None;
        self.progress.notify();
        // Settings may have changed since it looked.
        self.arm_timer();
    }

    /// Until the next table comes of age.
    fn next_age(&self) -> Option<Duration> {
        let now = self.unix_secs();
        let state = self.state();
        let ages =
            state.families.iter().filter_map(|f| next_age(&shape(f), &f.family.options().compaction, now));
        ages.min().map(Duration::from_secs)
    }

    /// Seconds since 1970.
    pub(super) fn unix_secs(&self) -> u64 {
        self.env.clock.unix_micros() / 1_000_000
    }
}

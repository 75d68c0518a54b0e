//! The account of a background job under the limit on background writing: the bytes it has reported, and the pauses
//! they cost.

use super::core::Core;
use crate::pressure::{Pace, Paced};
use ashlar_base::stats::Ticker;
use ashlar_compaction::{Limit, Written};
use ashlar_env::{JobKind, StepResult};
use std::time::Duration;

/// The account of one job.
#[derive(Default)]
pub(super) struct Limited {
    /// Bytes of the current run that were reported to the limit.
    told: u64,
    pause: Duration,
}

impl Limited {
    /// Starts a run that has written nothing.
    pub(super) fn begin(&mut self) {
        self.told = 0;
    }

    /// Records that a step ended; `written` counts the bytes since the run began. The pause for a run's last step falls
    /// on the next job that writes.
    pub(super) fn wrote(&mut self, core: &Core, kind: JobKind, written: u64) {
        let new = written.saturating_sub(std::mem::replace(&mut self.told, written));
        self.pause = core.pause_for(kind, new);
    }

    /// Requests the next step, after the pause of the last step if there is one.
    pub(super) fn go_on(&mut self) -> StepResult {
        let pause = std::mem::take(&mut self.pause);
        if pause.is_zero() { StepResult::Again } else { StepResult::Wait(pause) }
    }
}

impl Paced for Core {
    fn rate_changed(&self) {
        self.wake_jobs();
    }
}

impl Core {
    /// How long background work must pause after a step that wrote `bytes`.
    fn pause_for(&self, kind: JobKind, bytes: u64) -> Duration {
        let (options, resources) = (self.options(), self.memory.resources());
        let limit = Limit { rate: options.rate_limit_bytes, auto_tuned: options.rate_limit_auto_tuned };
        let tunes = limit.auto_tuned || resources.limit().auto_tuned;
        let written =
            Written { bytes, is_flush: kind == JobKind::Flush, is_urgent: tunes && self.writers_wait() };
        let own = self.limiter.lock().wrote(written, limit, self.env.clock.now());
        let pause = own.max(resources.pause(written));
        if limit.rate > 0 && bytes > 0 {
            let delayed = u64::from(!pause.is_zero());
            self.statistics.add_all([
                (Ticker::RateLimiterRequestsWrite, 1),
                (Ticker::RateLimiterBytesWrite, bytes),
                (Ticker::NumberRateLimiterDrains, delayed),
                (Ticker::RateLimiterDelayedRequestsWrite, delayed),
                (
                    Ticker::RateLimiterTotalWaitMicrosWrite,
                    u64::try_from(pause.as_micros()).unwrap_or(u64::MAX),
                ),
            ]);
        }
        pause
    }

    fn writers_wait(&self) -> bool {
        self.pressure.pace() != Pace::Free
            || self.pressure.is_holding()
            || self.committer.current().any_full()
    }
}

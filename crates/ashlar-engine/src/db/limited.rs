//! The account of a background job under the limit on background writing: the bytes it has reported, and the pauses
//! they cost.

use super::core::Core;
use crate::pressure::Paced;
use ashlar_base::stats::Ticker;
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
        let rate = self.options().rate_limit_bytes;
        let is_flush = kind == JobKind::Flush;
        let own = self.limiter.wrote(is_flush, bytes, rate, self.env.clock.now());
        let pause = own.max(self.memory.resources().pause(is_flush, bytes));
        if rate > 0 && bytes > 0 {
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
}

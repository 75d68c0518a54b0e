//! Re-checks level 0 of families whose compaction waits for a table that writers are expected to fill.
//!
//! Each new table moves the expected time on. When writers stop, the delayed compaction begins. The job ends when no
//! level 0 waits; a later wait starts a new job.

use super::core::{Core, State};
use super::job::Run;
use super::work::Work;
use crate::column_family::LiveFamily;
use ashlar_base::{Error, Result};
use ashlar_compaction::picker::{Shape, Style};
use ashlar_env::{JobKind, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The job that re-checks waiting level 0s; a database has at most one.
pub(super) struct L0DelayJob;

impl Run for L0DelayJob {
    const KIND: JobKind = JobKind::Other("l0-delay");
    const NAME: &'static str = "the level-0 delay job";
    const WORK: Option<Work> = Some(Work::L0Delay);

    fn advance(&mut self, core: &Arc<Core>, _: StepBudget) -> Result<StepResult> {
        let now = core.env.clock.now();
        let state = core.state();
        if state.pauses > 0 || state.idle_waiters > 0 {
            return Ok(StepResult::Done);
        }
        let until = delayed_until(&state, Some(now));
        Ok(until.map_or(StepResult::Done, |until| StepResult::Wait(until.saturating_sub(now))))
    }

    fn failed(&mut self, _: &Arc<Core>, _: &Error) -> Duration {
        Duration::ZERO
    }
}

/// When to re-check the first family whose level 0 waits for a table that writers have yet to fill. `now` is `None`
/// while a caller waits for all due compactions, because then no level 0 waits.
pub(super) fn delayed_until(state: &State, now: Option<Duration>) -> Option<Duration> {
    let now = now?;
    let waits = |f: &&LiveFamily| {
        let options = f.family.options();
        let options = &options.compaction;
        let shape = Shape { arriving: f.flush_rate.is_expected(now), ..Shape::within(&f.version, options) };
        options.automatic && Style::of(options).waits_for_table(&shape, options)
    };
    state.families.iter().filter(waits).filter_map(|f| f.flush_rate.expected_until()).min()
}

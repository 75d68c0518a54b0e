//! After the disk was full, periodically tries to reserve WAL space again. Without this job no thread would retry,
//! because refused writers do not.
//!
//! Each attempt reserves the space kept for deletions plus some for other writes, so that the state does not end for a
//! single write. If the disk has the space, writes are accepted again. Otherwise memtables are sealed and flushed,
//! unless a flush is running. Compactions can then apply the deletions, and a table is mostly smaller than its WAL
//! file.

use super::core::Core;
use super::job::Run;
use super::work::Work;
use crate::health::{Severity, Source};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_env::{JobKind, Lane, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// The state ends only if this much space is available for writes other than deletions.
pub(super) const ROOM_FOR_OTHERS: u64 = 16 << 10;

/// The pause before retrying when the lead is taken.
const SOON: Duration = Duration::from_millis(1);

/// The job that reserves WAL space; a database has at most one.
pub(super) struct RoomJob;

impl RoomJob {
    /// Seals the memtables and schedules their flush; false when all are empty, or some already wait for
    /// their flush.
    fn seal(core: &Arc<Core>) -> Result<bool> {
        let families: Vec<FamilyId> = {
            let state = core.state();
            let waits = state.families.iter().any(|f| f.memtables.immutable_len() > 0);
            let used = state.families.iter().any(|f| !f.memtables.current().rep.is_empty());
            if waits || !used {
                return Ok(false);
            }
            state.families.iter().map(|f| f.family.id()).collect()
        };
        core.check_memory()?;
        core.seal(&families).map(|()| true)
    }
}

impl Run for RoomJob {
    const KIND: JobKind = JobKind::Other("room");
    const LANE: Lane = Lane::High;
    const NAME: &'static str = "the WAL space job";
    const WORK: Option<Work> = Some(Work::LogRoom);

    fn is_wanted(&self, core: &Core) -> bool {
        let over = core.is_closed() || core.state().pauses > 0 || core.health.severity() >= Severity::Hard;
        !over && core.health.is_failing(Source::LogRoom)
    }

    fn advance(&mut self, core: &Arc<Core>, _: StepBudget) -> Result<StepResult> {
        let Some(lead) = core.committer.try_lead() else { return Ok(StepResult::Wait(SOON)) };
        let asked = match core.ask_room_for_others() {
            Ok(()) => {
                core.succeeded(Source::LogRoom);
                Ok(StepResult::Done)
            }
            Err(lack) => {
                Self::seal(core).and_then(|sealed| if sealed { Ok(StepResult::Again) } else { Err(lack) })
            }
        };
        drop(lead);
        core.seal_waiting();
        asked
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        let pause = core.report(Source::LogRoom, cause);
        // The space that the attempt has asked for counts until the next listing, although the disk did not have it.
        core.state().purge_wanted = true;
        core.schedule();
        core.progress.notify();
        pause
    }
}

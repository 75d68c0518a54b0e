//! Asks for room for the log on a disk that had none: nobody writes then who would.
//!
//! Each try asks for what is kept for deletions and some for other writes, so that the state does not end for a single one
//! of them. When the disk has it, writes are taken again. When it has not, memtables are sealed and flushed, unless that
//! is under way: deletions get to where compactions see them, and a table is mostly smaller than its log.

use super::core::Core;
use crate::health::{Severity, Source};
use crate::wal::ROOM_FOR_DELETIONS;
use ashlar_base::{FamilyId, Result};
use ashlar_env::{Job, JobKind, StepBudget, StepResult};
use std::sync::Arc;
use std::time::Duration;

/// With less room for writes other than deletions the state does not end.
const ROOM_FOR_OTHERS: u64 = 16 << 10;

/// How soon it looks again for a lead that is taken.
const SOON: Duration = Duration::from_millis(1);

/// The one such job of a database.
pub(super) struct RoomJob {
    core: Arc<Core>,
    in_step: bool,
}

impl RoomJob {
    pub(super) fn new(core: Arc<Core>) -> Self {
        RoomJob { core, in_step: false }
    }

    fn advance(&self) -> StepResult {
        let core = &self.core;
        let over = core.is_closed() || core.state().pauses > 0 || core.health.severity() >= Severity::Hard;
        if over || !core.health.is_failing(Source::LogRoom) {
            return StepResult::Done;
        }
        let Some(_lead) = core.committer.try_lead() else { return StepResult::Wait(SOON) };
        let set = core.committer.current();
        let asked = set.wal.log().ask_room(ROOM_FOR_OTHERS, ROOM_FOR_DELETIONS);
        let Err(lack) = asked else {
            core.well(Source::LogRoom);
            return StepResult::Done;
        };
        match self.seal() {
            Ok(true) => StepResult::Again,
            Ok(false) => self.wait(&lack),
            Err(e) => self.wait(&e),
        }
    }

    fn wait(&self, lack: &ashlar_base::Error) -> StepResult {
        let pause = self.core.report(Source::LogRoom, lack);
        self.core.progress.notify();
        StepResult::Wait(pause)
    }

    /// Begins a new log and has the memtables flushed; false when there are none, or some wait for their flush already.
    fn seal(&self) -> Result<bool> {
        let families: Vec<FamilyId> = {
            let state = self.core.state();
            let waits = state.families.iter().any(|f| f.memtables.sealed_len() > 0);
            let used = state.families.iter().any(|f| !f.memtables.current().rep.is_empty());
            if waits || !used {
                return Ok(false);
            }
            state.families.iter().map(|f| f.family.id()).collect()
        };
        self.core.check_memory()?;
        self.core.seal(&families).map(|()| true)
    }

    fn end(&self) {
        {
            let mut state = self.core.state();
            state.asking_room = false;
            state.job_ended();
        }
        self.core.after_job();
    }
}

impl Job for RoomJob {
    fn kind(&self) -> JobKind {
        JobKind::Other("room")
    }

    fn step(&mut self, _: StepBudget) -> StepResult {
        self.in_step = true;
        let advanced = self.advance();
        self.in_step = false;
        if matches!(advanced, StepResult::Done) {
            self.end();
        }
        advanced
    }

    fn abort(self: Box<Self>) {
        if self.in_step {
            self.core.panicked("asking for room");
        }
        self.end();
    }
}

//! The purge: drops super versions that no reader uses, and removes obsolete files.
//!
//! The code that makes files obsolete commits its edit durably before it sets `purge_wanted`. A failed removal is
//! retried after a pause, and so is an OPTIONS file that could not be written.

use super::core::Core;
use super::job::Run;
use super::work::Work;
use crate::health::{Severity, Source};
use ashlar_base::{Error, Result};
use ashlar_env::{JobKind, StepBudget, StepResult};
use ashlar_sync::ReadPin;
use ashlar_tree::files::{Live, Spared, remove_obsolete};
use std::sync::Arc;
use std::time::Duration;

/// The first and the last pause of a caller between two purges. Each pause is twice as long as the one before: 63 ms together.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

/// One purge.
pub(super) struct PurgeJob {
    /// The source of errors for the current step.
    source: Source,
}

impl PurgeJob {
    pub(super) fn new() -> Self {
        PurgeJob { source: Source::Purge }
    }
}

impl Run for PurgeJob {
    const KIND: JobKind = JobKind::Purge;
    const NAME: &'static str = "a purge";
    const WORK: Option<Work> = Some(Work::Purge);

    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed() && core.health.severity() < Severity::Fatal
    }

    fn advance(&mut self, core: &Arc<Core>, _: StepBudget) -> Result<StepResult> {
        if !core.begins_purge() {
            return Ok(StepResult::Done);
        }
        self.source = Source::Purge;
        core.purge()?;
        core.succeeded(Source::Purge);
        self.source = Source::Options;
        core.write_stale_options()?;
        core.succeeded(Source::Options);
        Ok(StepResult::Done)
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        let pause = core.report(self.source, cause);
        core.state().work.set_awaited(Work::Purge, false);
        core.progress.notify();
        pause
    }
}

impl Core {
    /// Whether a purge may begin. While callers keep all files, the purge waits for the end of the last hold.
    fn begins_purge(&self) -> bool {
        let mut state = self.state();
        let free = state.file_holds == 0;
        state.work.set_awaited(Work::Purge, free);
        state.purge_wanted |= !free;
        free
    }

    /// Writes the OPTIONS file if an earlier write of it failed.
    fn write_stale_options(&self) -> Result<()> {
        if !std::mem::take(&mut self.state().options_stale) {
            return Ok(());
        }
        self.write_options().inspect_err(|_| self.state().options_stale = true)
    }

    /// Waits for a purge of the files that earlier work made obsolete. A get, or the choice of a compaction, may hold a
    /// replaced version for a moment. So the purge is repeated a few times. The files that a cursor reads stay.
    pub(super) fn await_purge(self: &Arc<Self>) {
        let (mut pause, last) = PAUSES;
        while self.purge_met_holders() && pause <= last {
            self.env.clock.sleep(pause);
            pause *= 2;
        }
    }

    /// Waits for a purge. Returns whether the purge may have kept files, because a thread held a replaced version at its
    /// beginning. False when the purge cannot run or fails: the job retries, without the caller.
    fn purge_met_holders(self: &Arc<Self>) -> bool {
        self.let_go();
        self.state().purge_wanted = true;
        self.schedule();
        let mut met = false;
        // The caller's work has succeeded: an error here is not the caller's.
        let waited = self.wait_until(|state| {
            let ran = state.pauses == 0 && state.file_holds == 0 && state.work.is_free(Work::Purge);
            met = ran && state.purge_met_holders;
            state.pauses > 0 || !state.is_purge_due()
        });
        met && waited.is_ok()
    }

    /// Removes the files that nothing needs.
    ///
    /// # Errors
    /// `Io`: a file was not removed. The next purge tries it again.
    /// # Cost
    /// Lists every directory of the database: about a microsecond for each file.
    pub(super) fn purge(&self) -> Result<()> {
        self.let_go();
        // Asked before the live files: a version that is released in between keeps no file.
        let held = self.versions.holds_replaced();
        self.state().purge_met_holders = held;
        let (min_wal, begun) = (self.versions.min_wal(), self.begin_listing());
        let live = Live::now(&self.versions, &self.pending, Spared::Nothing);
        // Read after the live files: a number is in this set before its file becomes obsolete.
        let quarantined = self.state().quarantined.clone();
        let live = Live { quarantined, ..live };
        let archive = self.archive.as_ref();
        let done = remove_obsolete(&*self.env.fs, &self.dir, &self.versions, &live, archive)?;
        if let Some(bytes) = done.stays {
            self.note_listing(bytes, begun);
        }
        self.notify_deleted(&done.removed);
        archive.map_or(Ok(()), |archive| archive.trim(&*self.env.fs, self.unix_secs()))?;
        self.committer.wals().forget_below(min_wal);
        Ok(())
    }

    /// Drops replaced super versions that no reader holds, outside every lock but `Lifecycle`.
    pub(super) fn let_go(&self) {
        // A super version that the epoch still defers counts as held.
        ReadPin::settle();
        let free: Vec<_> = self.state().retired.extract_if(.., |version| version.readers() == 0).collect();
        drop(free);
    }
}

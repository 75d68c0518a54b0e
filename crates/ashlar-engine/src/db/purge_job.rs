//! The purge: lets go of what nobody reads any more and removes the files behind it.
//!
//! Whoever makes files obsolete has made the edit behind it durable before it sets `purge_wanted`.

use super::core::Core;
use crate::files::{Live, PendingOutputs, find_obsolete, unlink};
use crate::version::VersionSet;
use ashlar_base::Result;
use ashlar_env::{Env, Job, JobKind, StepBudget, StepResult};
use std::path::Path;
use std::sync::Arc;

/// One purge.
pub(super) struct PurgeJob {
    core: Arc<Core>,
}

impl PurgeJob {
    pub(super) fn new(core: Arc<Core>) -> Self {
        PurgeJob { core }
    }

    fn end(&self) {
        {
            let mut state = self.core.state();
            state.purging = false;
            state.jobs -= 1;
        }
        self.core.schedule();
        self.core.progress.notify();
    }
}

impl Job for PurgeJob {
    fn kind(&self) -> JobKind {
        JobKind::Purge
    }

    fn step(&mut self, _: StepBudget) -> StepResult {
        if let Err(e) = self.core.purge() {
            self.core.health.report(crate::health::Severity::Soft, &e);
        }
        self.end();
        StepResult::Done
    }

    fn abort(self: Box<Self>) {
        self.end();
    }
}

/// Removes every obsolete file; tables that an open cannot place go to `lost/`, and their names come back. Keeps all of
/// them while it is in doubt which MANIFEST a crash would leave.
pub(super) fn purge(
    env: &Env,
    dir: &Path,
    versions: &VersionSet,
    pending: &PendingOutputs,
    tail_dropped: bool,
) -> Result<Vec<String>> {
    if !versions.may_unlink() {
        return Ok(Vec::new());
    }
    let live = Live::now(versions, pending, tail_dropped);
    let entries = env.fs.list(dir)?;
    let obsolete = find_obsolete(entries.iter().map(|e| e.name.as_str()), &live);
    let done = unlink(&*env.fs, dir, &obsolete);
    match done.failed.into_iter().next() {
        Some(e) => Err(e),
        None => Ok(done.lost),
    }
}

impl Core {
    fn purge(&self) -> Result<()> {
        self.let_go();
        let min_wal = self.versions.min_wal();
        purge(&self.env, &self.dir, &self.versions, &self.pending, false)?;
        self.committer.wals().forget_below(min_wal);
        Ok(())
    }

    /// Drops replaced super versions that no reader holds, outside of every lock.
    fn let_go(&self) {
        let retired = std::mem::take(&mut self.state().retired);
        let (held, free): (Vec<_>, Vec<_>) = retired.into_iter().partition(|v| Arc::strong_count(v) > 1);
        self.state().retired.extend(held);
        drop(free);
    }
}

//! The purge: lets go of what nobody reads any more and removes the files behind it.
//!
//! Whoever makes files obsolete has made the edit behind it durable before it sets `purge_wanted`. What fails is tried
//! again after a pause, and so is an OPTIONS file that could not be written.

use super::core::Core;
use super::job::Run;
use super::unused_files::UnusedFiles;
use super::work::Work;
use crate::health::{Severity, Source};
use crate::open::RecoveryReport;
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::{Env, JobKind, StepBudget, StepResult};
use ashlar_format::filename::FileKind;
use ashlar_sync::ReadPin;
use ashlar_tree::files::{
    Live, PendingOutputs, RepairMark, Spared, Unlinked, find_obsolete, in_quarantine, lost_is_usable, unlink,
};
use ashlar_tree::version::VersionSet;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One purge.
pub(super) struct PurgeJob {
    /// What the present step does.
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
        core.state().work.set_awaited(Work::Purge, true);
        self.source = Source::Purge;
        core.purge()?;
        core.well(Source::Purge);
        self.source = Source::Options;
        core.write_stale_options()?;
        core.well(Source::Options);
        Ok(StepResult::Done)
    }

    fn failed(&mut self, core: &Arc<Core>, cause: &Error) -> Duration {
        let pause = core.report(self.source, cause);
        core.state().work.set_awaited(Work::Purge, false);
        core.progress.notify();
        pause
    }
}

/// Removes every file that is obsolete beside what is `live`; what is spared goes to `lost/`. Keeps all of them while it is in
/// doubt which MANIFEST a crash would leave.
pub(super) fn purge(env: &Env, dir: &Path, versions: &VersionSet, live: &Live) -> Result<Unlinked> {
    if !versions.may_unlink() {
        return Ok(Unlinked::default());
    }
    let entries = env.fs.files(dir)?;
    let obsolete = find_obsolete(entries.iter().map(|e| e.name.as_str()), live);
    let mut done = unlink(&*env.fs, dir, &obsolete);
    match done.failed.pop() {
        Some(e) => Err(e),
        None => Ok(done),
    }
}

/// The purge of an open, after its commit. The report says what is in `lost/` now: tables and blob files behind a tail that
/// was dropped, everything after a repair that did not end, what is in quarantine, damaged OPTIONS files, and what of the logs was
/// not used.
/// `strays`: orphans may be those of another database. They go to `lost/` too, and that is no anomaly: RocksDB leaves
/// orphans when it is killed. Returns the files that later purges move there.
pub(super) fn purge_at_open(
    env: &Env,
    dir: &Path,
    (versions, pending): (&VersionSet, &PendingOutputs),
    report: &mut RecoveryReport,
    unused: &UnusedFiles,
    strays: bool,
) -> Result<BTreeSet<FileNumber>> {
    if !lost_is_usable(&*env.fs, dir)? {
        // It may hold accounts of what is in quarantine, so that no file is known to be of no use.
        return Ok(BTreeSet::new());
    }
    let mark = RepairMark::of(&*env.fs, dir);
    let unended = mark.stands()?;
    let spared = match (unended, report.tail_dropped() || strays) {
        (true, _) => Spared::Everything,
        (false, true) => Spared::Orphans,
        (false, false) => Spared::Nothing,
    };
    let mut quarantined = in_quarantine(&*env.fs, dir)?;
    quarantined.extend(&unused.whole);
    let live = Live { quarantined: quarantined.clone(), ..Live::now(versions, pending, spared) };
    let done = purge(env, dir, versions, &live)?;
    if unended {
        mark.clear()?;
    }
    let is_stray = |name: &String| {
        let number = FileKind::parse(name).and_then(FileKind::number);
        matches!(spared, Spared::Orphans)
            && !report.tail_dropped()
            && number.is_some_and(|n| !quarantined.contains(&n))
    };
    let (moved_aside, lost): (Vec<_>, Vec<_>) = done.lost.into_iter().partition(is_stray);
    report.lost = [unused.tails.clone(), lost].concat();
    report.foreign.extend(moved_aside.iter().map(|name| {
        format!("{name} is not named by the MANIFEST, and may be needed: moved to lost/, not removed")
    }));
    Ok(quarantined)
}

impl Core {
    /// Writes the OPTIONS file if an earlier write of it failed.
    fn write_stale_options(&self) -> Result<()> {
        if !std::mem::take(&mut self.state().options_stale) {
            return Ok(());
        }
        self.write_options().inspect_err(|_| self.state().options_stale = true)
    }

    pub(super) fn purge(&self) -> Result<()> {
        self.let_go();
        let min_wal = self.versions.min_wal();
        let live = Live::now(&self.versions, &self.pending, Spared::Nothing);
        // Looked at behind what is live: a number is there before its file becomes obsolete.
        let quarantined = self.state().quarantined.clone();
        let done = purge(&self.env, &self.dir, &self.versions, &Live { quarantined, ..live })?;
        self.tell_deleted(&done.removed);
        self.committer.wals().forget_below(min_wal);
        Ok(())
    }

    /// Drops replaced super versions that no reader holds, outside of every lock.
    pub(super) fn let_go(&self) {
        // What the epoch still holds counts as held.
        ReadPin::settle();
        let retired = std::mem::take(&mut self.state().retired);
        let (held, free): (Vec<_>, Vec<_>) = retired.into_iter().partition(|v| Arc::strong_count(v) > 1);
        self.state().retired.extend(held);
        drop(free);
    }
}

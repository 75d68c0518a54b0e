//! Installing: a commit makes a change of the tree durable, then readers see it.

use super::core::{Core, Failed, State};
use crate::health::{Health, Severity, Source};
use crate::wal::Wal;
use ashlar_base::error::IoKind;
use ashlar_base::stats::Ticker;
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result};
use ashlar_env::JobKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::Event;
use ashlar_tree::files::PendingFile;
use ashlar_tree::version::{FamilyState, TableCounts};
use std::sync::Arc;
use std::time::Duration;

/// A change of the tree.
#[derive(Default)]
pub(super) struct Change {
    /// Committed as one.
    pub(super) edits: Vec<VersionEdit>,
    /// The families whose oldest memtables are in the added tables, and how many of their memtables.
    pub(super) flushed: Vec<(FamilyId, usize)>,
    /// What is in the added tables.
    pub(super) counts: Vec<(FileNumber, TableCounts)>,
    /// Keeps the added files from the purge until the change counts.
    pub(super) pending: Vec<PendingFile>,
    /// Lets writers in again, into this log. Every unflushed write of before is in the added tables.
    pub(super) log: Option<Arc<Wal>>,
}

impl Core {
    /// Makes a change durable, then shows it to readers: the new trees, and the memtables that stay. Runs in commit order,
    /// with no lock held over I/O.
    ///
    /// # Errors
    /// Those of [`VersionSet::commit`](ashlar_tree::version::VersionSet::commit). Then readers see the tree of before.
    pub(super) fn apply(self: &Arc<Self>, change: Change) -> Result<()> {
        let Change { edits, flushed, counts, pending, log } = change;
        let core = Arc::clone(self);
        let install = move |changed: &[Arc<FamilyState>]| {
            note_counts(changed, &counts);
            core.install(changed, &flushed, log);
        };
        self.versions.commit_with(edits, Box::new(install))?;
        drop(pending);
        Ok(())
    }

    fn install(&self, changed: &[Arc<FamilyState>], flushed: &[(FamilyId, usize)], log: Option<Arc<Wal>>) {
        let mut state = self.state();
        for family in changed {
            let Some(live) = state.families.get_mut(family.id) else { continue };
            live.version = Arc::clone(&family.version);
            if let Some((_, count)) = flushed.iter().find(|(id, _)| *id == family.id) {
                live.memtables.flushed(*count);
            }
            if let Some(log) = &log {
                live.memtables.advance_empty(log.number());
            }
            self.publish(&mut state, family.id);
        }
        state.purge_wanted = true;
        if let Some(log) = log {
            let set = Core::write_set(&state, &self.memory, log);
            self.committer.resume(set);
        }
    }

    /// Takes in an error of a family's background work, and tells those who wait for it. Returns how long to wait before
    /// that work is tried again.
    pub(super) fn background_failed(
        self: &Arc<Self>,
        family: FamilyId,
        kind: JobKind,
        cause: &Error,
    ) -> Duration {
        let source = match kind {
            JobKind::Flush => Source::Flush(family),
            _ => Source::Compaction(family),
        };
        let pause = self.report(self.manifest_trouble().unwrap_or(source), cause);
        {
            let mut state = self.state();
            state.note_failure((family, kind), cause);
            // Files that readers held when the last purge looked may be free by now.
            state.purge_wanted |= cause.kind() == ErrorKind::Io(IoKind::NoSpace);
        }
        self.schedule();
        self.progress.notify();
        pause
    }

    /// Takes in that a commit failed which a caller waits for: he is told and may try again, unless only a new open helps.
    pub(super) fn commit_failed(&self, cause: &Error) {
        if self.versions.fatal().is_some() {
            self.report(Source::Current, cause);
        }
    }

    /// What to blame an error on while the MANIFEST is in doubt.
    pub(super) fn manifest_trouble(&self) -> Option<Source> {
        match self.versions.fatal() {
            Some(_) => Some(Source::Current),
            None => (!self.versions.may_unlink()).then_some(Source::Manifest),
        }
    }

    /// Takes in an error; see [`crate::health`]. Jobs that pause look at the new state at once.
    pub(super) fn report(&self, source: Source, cause: &Error) -> Duration {
        self.statistics.tick(Ticker::ErrorHandlerBgErrorCount);
        if matches!(cause.kind(), ErrorKind::Io(_)) {
            self.statistics.tick(Ticker::ErrorHandlerBgIoErrorCount);
        }
        self.events.tell(&Event::BackgroundError { work: source.name(), cause: cause.clone() });
        if cause.kind() == ErrorKind::Io(IoKind::TooManyFiles) {
            self.tables.close_some();
        }
        let before = self.health.severity();
        let pause = self.health.report(source, cause, self.env.clock.now());
        if matches!(cause.kind(), ErrorKind::Io(_)) && self.health.severity() < Severity::Fatal {
            self.statistics.tick(Ticker::ErrorHandlerBgRetryableIoErrorCount);
        }
        if before < Severity::Hard && self.health.severity() >= Severity::Hard {
            self.wake_jobs();
        }
        pause
    }

    /// Takes in that what had failed works again.
    pub(super) fn well(&self, source: Source) {
        self.heal(|health| health.well(source));
    }

    /// Takes in that a damaged table of a family is out of the tree.
    pub(super) fn mended(&self, family: FamilyId, table: &str) {
        self.heal(|health| health.mended(Source::Compaction(family), table));
    }

    fn heal(&self, heal: impl FnOnce(&Health)) {
        let before = self.health.severity();
        heal(&self.health);
        if before > Severity::Well && self.health.severity() == Severity::Well {
            self.events.tell(&Event::ErrorRecovered);
        }
    }

    /// Takes in that a job panicked.
    pub(super) fn panicked(&self, what: &str) {
        let e = Error::new(ErrorKind::Aborted, format!("{what} panicked"));
        self.report(Source::Panic, &e.hint("This is a defect. Close the database and open it again"));
    }
}

/// Tells the trees of `changed` what is in the tables that were just written.
fn note_counts(changed: &[Arc<FamilyState>], counts: &[(FileNumber, TableCounts)]) {
    for (_, file) in changed.iter().flat_map(|family| family.version.files()) {
        if let Some((_, counts)) = counts.iter().find(|(number, _)| *number == file.number()) {
            file.note_counts(Some(*counts));
        }
    }
}

impl State {
    /// How often that work has failed since the open.
    pub(super) fn failures(&self, work: (FamilyId, JobKind)) -> u64 {
        self.failed.get(&work).map_or(0, |f| f.times)
    }

    /// Tells those who wait for that work that it failed.
    pub(super) fn note_failure(&mut self, work: (FamilyId, JobKind), cause: &Error) {
        let times = self.failures(work) + 1;
        self.failed.insert(work, Failed { times, last: cause.clone() });
    }

    /// The last failure of that work if it is newer than `before`.
    pub(super) fn failed_since(&self, work: (FamilyId, JobKind), before: u64) -> Option<Error> {
        self.failed.get(&work).filter(|f| f.times > before).map(|f| f.last.clone())
    }
}

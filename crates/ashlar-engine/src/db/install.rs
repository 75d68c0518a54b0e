//! Installing: a commit makes a change of the tree durable, then readers see it.

use super::core::{Core, Failed, State};
use crate::column_family::Reads;
use crate::health::{HealthState, Severity, Source};
use crate::pressure::DiskClaim;
use crate::wal::Wal;
use ashlar_base::error::IoKind;
use ashlar_base::stats::Ticker;
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNum};
use ashlar_env::JobKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::Event;
use ashlar_tree::files::PendingFile;
use ashlar_tree::version::{FamilyState, TableCounts};
use std::sync::Arc;
use std::time::Duration;

/// A family, and the sequence number above which its snapshots would see something else; `None`: all snapshots.
pub(super) type Filtered = (FamilyId, Option<SeqNum>);

/// A change of the tree.
#[derive(Default)]
pub(super) struct Change {
    /// The version edits, committed atomically.
    pub(super) edits: Vec<VersionEdit>,
    /// The families whose oldest memtables are in the added tables, and the number of those memtables.
    pub(super) flushed: Vec<(FamilyId, usize)>,
    /// The counts of entries in the added tables.
    pub(super) counts: Vec<(FileNumber, TableCounts)>,
    /// Protects the added files from the purge until the change is committed.
    pub(super) pending: Vec<PendingFile>,
    /// The disk space of added files, until they count as files of the database.
    pub(super) space: Vec<DiskClaim>,
    /// The families in which snapshots would see something else: a filter removed or changed entries, or tables came behind them.
    pub(super) filtered: Vec<Filtered>,
    /// Whether reads see the same as before.
    pub(super) reads: Reads,
    /// Readers see this sequence number with the change, so that snapshots from before have another one.
    pub(super) raised: Option<SeqNum>,
    /// Resumes writing with this WAL file. All earlier unflushed writes are in the added tables.
    pub(super) log: Option<Arc<Wal>>,
}

impl Core {
    /// Commits a change, then shows it to readers: the new trees, and the memtables that stay. Runs in commit order,
    /// with no lock held over I/O. After a flush, switches memtables that waited for its end.
    ///
    /// # Errors
    /// Those of [`VersionSet::commit`](ashlar_tree::version::VersionSet::commit). Readers then keep the previous tree.
    pub(super) fn apply(self: &Arc<Self>, change: Change) -> Result<()> {
        let Change { edits, flushed, counts, pending, space, filtered, reads, raised, log } = change;
        let (core, is_flush) = (Arc::clone(self), !flushed.is_empty());
        let added = edits.iter().map(VersionEdit::bytes_added).fold(0, u64::saturating_add);
        let install = move |changed: &[Arc<FamilyState>]| {
            note_counts(changed, &counts);
            // Before the memtables go: their space counts until then.
            core.disk.take(added);
            core.install(changed, &flushed, (&filtered, raised, reads), log);
        };
        self.versions.commit_with(edits, Box::new(install))?;
        drop((pending, space));
        if is_flush {
            self.seal_waiting();
        }
        Ok(())
    }

    fn install(
        &self,
        changed: &[Arc<FamilyState>],
        flushed: &[(FamilyId, usize)],
        (filtered, raised, reads): (&[Filtered], Option<SeqNum>, Reads),
        log: Option<Arc<Wal>>,
    ) {
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
            match filtered.iter().find(|(id, _)| *id == family.id) {
                Some((id, seen)) => {
                    let view = live.family.super_version.get();
                    self.snapshots.keep_views(*id, &view, *seen, || {
                        raised.into_iter().for_each(|seq| self.committer.take_sequences(seq));
                        self.publish(&mut state, *id, Reads::Other);
                    });
                }
                None => self.publish(&mut state, family.id, reads),
            }
        }
        state.purge_wanted = true;
        self.note_waiting(&state);
        if let Some(log) = log {
            let set = Core::write_set(&state, &self.memory, log);
            self.committer.resume(set);
        }
    }

    /// Records an error of a family's background work, and reports it to the callers that wait for that work. Returns
    /// the pause before the retry.
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
            // Readers may have released files since the last purge.
            state.purge_wanted |= cause.kind() == ErrorKind::Io(IoKind::NoSpace);
        }
        self.schedule();
        self.progress.notify();
        pause
    }

    /// Records a failed commit that a caller waits for. The caller gets the error and may try again, unless only a new
    /// open helps.
    pub(super) fn commit_failed(&self, cause: &Error) {
        if self.versions.fatal().is_some() {
            self.report(Source::Current, cause);
        }
    }

    /// The source to record for an error while the outcome of a MANIFEST commit is unknown.
    pub(super) fn manifest_trouble(&self) -> Option<Source> {
        match self.versions.fatal() {
            Some(_) => Some(Source::Current),
            None => (!self.versions.may_unlink()).then_some(Source::Manifest),
        }
    }

    /// Records an error; see [`crate::health`]. Pausing jobs wake up and look at the new state.
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

    /// Records that `source` succeeded, and clears its background errors.
    pub(super) fn succeeded(&self, source: Source) {
        self.heal(|health| health.succeeded(source));
    }

    /// Records that a damaged table of a family was removed from the tree.
    pub(super) fn file_removed(&self, family: FamilyId, table: &str) {
        self.heal(|health| health.file_removed(Source::Compaction(family), table));
    }

    fn heal(&self, heal: impl FnOnce(&HealthState)) {
        let before = self.health.severity();
        heal(&self.health);
        if before > Severity::Healthy && self.health.severity() == Severity::Healthy {
            self.events.tell(&Event::ErrorRecovered);
        }
    }

    /// Records that a job panicked.
    pub(super) fn panicked(&self, what: &str) {
        let e = Error::new(ErrorKind::Aborted, format!("{what} panicked"));
        self.report(Source::Panic, &e.hint(PANIC_HINT));
    }
}

/// What to do after the panic of a job, which also calls the program's comparator and merge operator.
const PANIC_HINT: &str = "If your comparator or merge operator panicked, correct it; otherwise this is a defect. Close the \
                          database and open it again";

/// Stores the entry counts of new tables in the families of `changed`.
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

    /// Reports the failure of that work to the callers that wait for it.
    pub(super) fn note_failure(&mut self, work: (FamilyId, JobKind), cause: &Error) {
        let times = self.failures(work) + 1;
        self.failed.insert(work, Failed { times, last: cause.clone() });
    }

    /// The last failure of that work, if it happened after the first `before` failures.
    pub(super) fn failed_since(&self, work: (FamilyId, JobKind), before: u64) -> Option<Error> {
        self.failed.get(&work).filter(|f| f.times > before).map(|f| f.last.clone())
    }
}

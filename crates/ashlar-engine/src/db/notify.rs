//! Assembles the events of a database.

use super::core::{Core, State};
use crate::column_family::Family;
use crate::pressure::Pace;
use ashlar_base::panics::contained;
use ashlar_base::{FamilyId, FileNumber, Level, SeqNum};
use ashlar_compaction::{Action, Compaction, CompactionCounters};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_memtable::{Memtable, MemtableRep};
use ashlar_options::{BlobsEvent, CompactionEvent, Event, FileEvent, FlushEvent, StallCondition};
use ashlar_recovery::RecoveryReport;
use ashlar_table::CollectorFailure;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;
use std::time::Duration;

/// The header of an info log: `benchmark.sh` reads the fifth word of the first two lines.
pub(super) fn log_header(report: &RecoveryReport) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("RocksDB version: AshlarDB-{version}\nGit sha not-recorded\nRecovered: {report}")
}

impl Core {
    fn name(&self, family: FamilyId) -> String {
        self.state().families.get(family).map(|f| f.family.name().to_owned()).unwrap_or_default()
    }

    /// The current number of tables per level of a family.
    fn tree(&self, family: FamilyId) -> Vec<usize> {
        let state = self.state();
        state
            .families
            .get(family)
            .map(|f| f.version.levels.iter().map(Vec::len).collect())
            .unwrap_or_default()
    }

    /// Reports that a flush begins.
    pub(super) fn notify_flush_begin(&self, job: u64, family: &Family, memtables: &[Arc<dyn MemtableRep>]) {
        let entries = memtables.iter().map(|m| m.len()).sum();
        let family = (family.name().to_owned(), family.id());
        let event = FlushEvent::begun(job, family, memtables.len(), entries);
        self.events.tell(&Event::FlushBegin(event));
    }

    /// Reports an installed flush: its number, and how many memtables and entries it wrote; `edit` added its files.
    pub(super) fn notify_flushed(
        &self,
        edit: &VersionEdit,
        failures: Vec<(FileNumber, CollectorFailure)>,
        (job, memtables, entries): (u64, usize, u64),
        took: Duration,
    ) {
        self.notify_created(edit);
        let family = self.name(edit.family);
        self.notify_uncollected(&family, failures);
        let mut event = FlushEvent::begun(job, (family, edit.family), memtables, entries);
        event.tables = edit.added.iter().map(|(_, file)| file.number).collect();
        event.blobs = added_blobs(edit);
        let smallest = edit.added.iter().map(|(_, file)| file.smallest_seq).min();
        let largest = edit.added.iter().map(|(_, file)| file.largest_seq).max();
        event.sequences = (smallest.unwrap_or(SeqNum::ZERO), largest.unwrap_or(SeqNum::ZERO));
        event.bytes = edit.added.iter().map(|(_, f)| f.size).sum();
        (event.micros, event.levels) = (micros(took), self.tree(edit.family));
        self.events.tell(&Event::FlushCompleted(event));
    }

    /// Reports a compaction that was installed, whose `edit` added its files. Returns the event.
    pub(super) fn notify_compacted(
        &self,
        job: u64,
        (family, plan): (&Family, &Compaction),
        edit: &VersionEdit,
        (counters, took): (&CompactionCounters, Duration),
    ) -> CompactionEvent {
        let mut event = begun(job, family, plan);
        (event.output_bytes, event.outputs) = (counters.bytes_written, counters.tables_written);
        let entries = &counters.entries;
        (event.input_entries, event.output_entries) = (entries.entries_in, entries.entries_out);
        event.output_tables = edit.added.iter().map(|(_, file)| file.number).collect();
        event.output_blobs = added_blobs(edit);
        let garbage = edit.blob_garbage.iter();
        event.garbage_blobs =
            garbage.map(|left| BlobsEvent::new(left.number, left.count, left.bytes)).collect();
        (event.hidden_entries, event.ended_deletions) = (entries.dropped_hidden, entries.dropped_tombstones);
        event.filtered_entries = entries.filtered;
        (event.micros, event.levels) = (micros(took), self.tree(family.id()));
        self.events.tell(&Event::CompactionCompleted(event.clone()));
        event
    }

    /// Reports the files that a durable edit added.
    pub(super) fn notify_created(&self, edit: &VersionEdit) {
        let family = self.name(edit.family);
        for (_, file) in &edit.added {
            let (family, number, bytes) = (family.clone(), file.number, file.size);
            self.events.tell(&Event::TableFileCreated(FileEvent::new(family, number, bytes)));
        }
        for file in &edit.blob_added {
            let (family, number, bytes) = (family.clone(), file.number, file.bytes);
            self.events.tell(&Event::BlobFileCreated(FileEvent::new(family, number, bytes)));
        }
    }

    /// Reports the tables that lack properties of a collector.
    pub(super) fn notify_uncollected(&self, family: &str, failures: Vec<(FileNumber, CollectorFailure)>) {
        for (number, CollectorFailure { collector, cause }) in failures {
            let family = family.to_owned();
            self.events.tell(&Event::CollectorFailed { family, number, collector, cause });
        }
    }

    /// Reports a compaction into `output_level` in which the family's partitioner panicked.
    pub(super) fn notify_unpartitioned(&self, family: &Family, output_level: Level) {
        let options = family.options();
        let name =
            options.sst_partitioner.as_ref().and_then(|factory| contained(|| factory.name().to_owned()));
        let (family, partitioner) = (family.name().to_owned(), name.unwrap_or_default());
        self.events.tell(&Event::PartitionerFailed { family, partitioner, output_level });
    }

    /// Reports the unlinked files by name.
    pub(super) fn notify_deleted(&self, names: &[String]) {
        let gone = |number| FileEvent::new(String::new(), number, 0);
        for name in names {
            match FileKind::parse(name) {
                Some(FileKind::Table(n) | FileKind::LevelDbTable(n)) => {
                    self.events.tell(&Event::TableFileDeleted(gone(n)));
                }
                Some(FileKind::Blob(n)) => self.events.tell(&Event::BlobFileDeleted(gone(n))),
                _ => {}
            }
        }
    }

    /// The events to report once the memtables of `families` are sealed at `last`.
    pub(super) fn sealed_events(state: &State, families: &[FamilyId], last: SeqNum) -> Vec<Event> {
        let live = state.families.iter().filter(|f| families.contains(&f.family.id()));
        let event = |family: &Family, memtable: &Memtable| Event::MemtableSealed {
            family: family.name().to_owned(),
            entries: memtable.rep.len(),
            deletions: memtable.rep.deletions(),
            bytes: memtable.rep.memory() as u64,
            last,
        };
        live.filter(|f| !f.memtables.current().rep.is_empty())
            .map(|f| event(&f.family, f.memtables.current()))
            .collect()
    }

    /// Reports a change of the writers' pace since `before`.
    pub(super) fn notify_pace(&self, before: Pace) {
        let (before, now) = (condition(before), condition(self.pressure.pace()));
        if before != now && !self.is_closed() {
            self.events.tell(&Event::StallConditionsChanged { before, now });
        }
    }
}

/// The blob files that an edit adds.
fn added_blobs(edit: &VersionEdit) -> Vec<BlobsEvent> {
    edit.blob_added.iter().map(|file| BlobsEvent::new(file.number, file.count, file.bytes)).collect()
}

/// The compaction `job`, which begins.
pub(super) fn begun(job: u64, family: &Family, plan: &Compaction) -> CompactionEvent {
    let numbers = |files: &[Arc<FileMeta>]| files.iter().map(|f| f.number()).collect();
    let inputs = plan.inputs.iter().map(|(level, files)| (*level, numbers(files))).collect();
    let (named, reason, bytes) =
        ((family.name().to_owned(), family.id()), plan.reason.name(), plan.input_bytes());
    let mut event = CompactionEvent::begun(job, named, reason, inputs, plan.output_level, bytes);
    event.trivial_move = plan.action == Action::Move;
    event
}

fn condition(pace: Pace) -> StallCondition {
    match pace {
        Pace::Free => StallCondition::Normal,
        Pace::Slow { .. } => StallCondition::Delayed,
        Pace::Stop => StallCondition::Stopped,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

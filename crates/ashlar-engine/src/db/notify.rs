//! Assembles the events of a database.

use super::core::{Core, State};
use crate::column_family::Family;
use crate::memtable::Memtable;
use crate::pressure::Pace;
use ashlar_base::panics::contained;
use ashlar_base::{FamilyId, FileNumber, Level, SeqNum};
use ashlar_compaction::{Action, Compaction, CompactionCounters};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_memtable::MemtableRep;
use ashlar_options::{CompactionEvent, Event, FileEvent, FlushEvent, StallCondition};
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
    pub(super) fn notify_flush_begin(&self, family: &Family, memtables: &[Arc<dyn MemtableRep>]) {
        let entries = memtables.iter().map(|m| m.len()).sum();
        let event = FlushEvent::begun(family.name().to_owned(), memtables.len(), entries);
        self.events.tell(&Event::FlushBegin(event));
    }

    /// Reports an installed flush of so many memtables and entries; `edit` added its files.
    pub(super) fn notify_flushed(
        &self,
        edit: &VersionEdit,
        failures: Vec<(FileNumber, CollectorFailure)>,
        (memtables, entries): (usize, u64),
        took: Duration,
    ) {
        self.notify_created(edit);
        let family = self.name(edit.family);
        self.notify_uncollected(&family, failures);
        let mut event = FlushEvent::begun(family, memtables, entries);
        event.bytes = edit.added.iter().map(|(_, f)| f.size).sum();
        (event.micros, event.levels) = (micros(took), self.tree(edit.family));
        self.events.tell(&Event::FlushCompleted(event));
    }

    /// Reports a compaction that was installed, whose `edit` added its files. Returns the event.
    pub(super) fn notify_compacted(
        &self,
        family: &Family,
        plan: &Compaction,
        edit: &VersionEdit,
        (counters, took): (&CompactionCounters, Duration),
    ) -> CompactionEvent {
        let mut event = begun(family, plan);
        (event.output_bytes, event.outputs) = (counters.bytes_written, counters.tables_written);
        let entries = &counters.entries;
        (event.input_entries, event.output_entries) = (entries.entries_in, entries.entries_out);
        event.output_tables = edit.added.iter().map(|(_, file)| file.number).collect();
        event.output_blobs = edit.blob_added.iter().map(|file| file.number).collect();
        (event.filtered_entries, event.garbage_blobs) = (entries.filtered, edit.blob_garbage.len());
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

/// A compaction that begins.
pub(super) fn begun(family: &Family, plan: &Compaction) -> CompactionEvent {
    let numbers = |files: &[Arc<FileMeta>]| files.iter().map(|f| f.number()).collect();
    let inputs = plan.inputs.iter().map(|(level, files)| (*level, numbers(files))).collect();
    let (name, reason, bytes) = (family.name().to_owned(), plan.reason.name(), plan.input_bytes());
    let mut event = CompactionEvent::begun(name, reason, inputs, plan.output_level, bytes);
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

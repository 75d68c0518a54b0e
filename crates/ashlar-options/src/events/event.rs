//! The events, and their form in the info log.

use super::info_log::InfoLogLevel;
use super::json::Object;
use ashlar_base::{Error, FamilyId, FileNumber, Level, SeqNum};

/// Blobs of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobsEvent {
    /// The number of the blob file.
    pub file: FileNumber,
    /// The number of blobs.
    pub count: u64,
    /// The bytes of their records.
    pub bytes: u64,
}

impl BlobsEvent {
    /// So many blobs with so many bytes in `file`.
    pub fn new(file: FileNumber, count: u64, bytes: u64) -> BlobsEvent {
        BlobsEvent { file, count, bytes }
    }
}

/// A flush.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlushEvent {
    /// The number of the flush among the flushes and compactions since the open.
    pub job: u64,
    /// The family's name.
    pub family: String,
    /// The family's number.
    pub family_id: FamilyId,
    /// The number of memtables that the flush writes.
    pub memtables: usize,
    /// The number of entries in those memtables.
    pub entries: u64,
    /// Bytes written; 0 in [`Event::FlushBegin`].
    pub bytes: u64,
    /// The tables written; none in [`Event::FlushBegin`], and if no entry was left to write.
    pub tables: Vec<FileNumber>,
    /// The blob files written; none in [`Event::FlushBegin`].
    pub blobs: Vec<BlobsEvent>,
    /// The smallest and the largest sequence number in the tables; zeros without a table.
    pub sequences: (SeqNum, SeqNum),
    /// Microseconds since the flush began; 0 in [`Event::FlushBegin`].
    pub micros: u64,
    /// The number of tables per level after the flush; empty in [`Event::FlushBegin`].
    pub levels: Vec<usize>,
}

impl FlushEvent {
    /// A flush that begins.
    pub fn begun(
        job: u64,
        (family, family_id): (String, FamilyId),
        memtables: usize,
        entries: u64,
    ) -> FlushEvent {
        FlushEvent {
            job,
            family,
            family_id,
            memtables,
            entries,
            bytes: 0,
            tables: Vec::new(),
            blobs: Vec::new(),
            sequences: (SeqNum::ZERO, SeqNum::ZERO),
            micros: 0,
            levels: Vec::new(),
        }
    }
}

/// A compaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionEvent {
    /// The number of the compaction among the flushes and compactions since the open.
    pub job: u64,
    /// The family's name.
    pub family: String,
    /// The family's number.
    pub family_id: FamilyId,
    /// The reason for the compaction, in one word.
    pub reason: &'static str,
    /// The input tables, by level.
    pub inputs: Vec<(Level, Vec<FileNumber>)>,
    /// The level of the output tables.
    pub output_level: Level,
    /// The tables change their level without being read or written.
    pub trivial_move: bool,
    /// Bytes of the inputs.
    pub input_bytes: u64,
    /// Bytes written; 0 in [`Event::CompactionBegin`].
    pub output_bytes: u64,
    /// The number of tables written or moved; 0 in [`Event::CompactionBegin`].
    pub outputs: u64,
    /// The number of entries read; 0 in [`Event::CompactionBegin`].
    pub input_entries: u64,
    /// The number of entries written; 0 in [`Event::CompactionBegin`].
    pub output_entries: u64,
    /// The number of values and operands that the compaction filter removed; 0 in [`Event::CompactionBegin`].
    pub filtered_entries: u64,
    /// The number of entries that newer ones or range deletions hide, which were dropped; 0 in [`Event::CompactionBegin`].
    pub hidden_entries: u64,
    /// The number of deletions that hid nothing any more, which were dropped; 0 in [`Event::CompactionBegin`].
    pub ended_deletions: u64,
    /// The tables written or moved; none in [`Event::CompactionBegin`].
    pub output_tables: Vec<FileNumber>,
    /// The blob files written; none in [`Event::CompactionBegin`].
    pub output_blobs: Vec<BlobsEvent>,
    /// What the compaction left without a reader in blob files; nothing in [`Event::CompactionBegin`].
    pub garbage_blobs: Vec<BlobsEvent>,
    /// Microseconds since the compaction began; 0 in [`Event::CompactionBegin`].
    pub micros: u64,
    /// The number of tables per level after the compaction; empty in [`Event::CompactionBegin`].
    pub levels: Vec<usize>,
}

impl CompactionEvent {
    /// A compaction that begins, and reads its inputs.
    pub fn begun(
        job: u64,
        (family, family_id): (String, FamilyId),
        reason: &'static str,
        inputs: Vec<(Level, Vec<FileNumber>)>,
        output_level: Level,
        input_bytes: u64,
    ) -> CompactionEvent {
        CompactionEvent {
            job,
            family,
            family_id,
            reason,
            inputs,
            output_level,
            trivial_move: false,
            input_bytes,
            output_bytes: 0,
            outputs: 0,
            input_entries: 0,
            output_entries: 0,
            filtered_entries: 0,
            hidden_entries: 0,
            ended_deletions: 0,
            output_tables: Vec::new(),
            output_blobs: Vec::new(),
            garbage_blobs: Vec::new(),
            micros: 0,
            levels: Vec::new(),
        }
    }
}

/// A table or blob file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileEvent {
    /// The family's name; empty when the file is deleted, because its family is not known then.
    pub family: String,
    /// The file's number.
    pub number: FileNumber,
    /// The length of the file in bytes; 0 when the file is deleted.
    pub bytes: u64,
}

impl FileEvent {
    /// A file that was made, or deleted.
    pub fn new(family: String, number: FileNumber, bytes: u64) -> FileEvent {
        FileEvent { family, number, bytes }
    }
}

/// An ingested file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IngestEvent {
    /// The family's name.
    pub family: String,
    /// The file as the caller named it.
    pub source: String,
    /// The number of the table in the database.
    pub number: FileNumber,
    /// The level that the table went to.
    pub level: Level,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The sequence number of all entries.
    pub sequence: SeqNum,
}

impl IngestEvent {
    /// A file `source` that became the table `number` in `level`.
    pub fn new(
        family: String,
        source: String,
        (number, level): (FileNumber, Level),
        bytes: u64,
        sequence: SeqNum,
    ) -> Self {
        IngestEvent { family, source, number, level, bytes, sequence }
    }
}

/// The delay of writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallCondition {
    /// Writers are not delayed.
    #[default]
    Normal,
    /// Writers are slowed down.
    Delayed,
    /// Writers wait until background work has caught up.
    Stopped,
}

impl StallCondition {
    fn name(self) -> &'static str {
        match self {
            StallCondition::Normal => "normal",
            StallCondition::Delayed => "delayed",
            StallCondition::Stopped => "stopped",
        }
    }
}

/// An event of a database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A flush begins.
    FlushBegin(FlushEvent),
    /// A flush has ended, and its table is durable in the tree.
    FlushCompleted(FlushEvent),
    /// A compaction begins.
    CompactionBegin(CompactionEvent),
    /// A compaction has ended, and the change of the tree is durable.
    CompactionCompleted(CompactionEvent),
    /// A compaction that had begun has ended without a change of the tree. After a failure the engine begins a new one. Not sent
    /// while the database closes.
    CompactionFailed {
        /// The compaction, as in [`Event::CompactionBegin`].
        compaction: CompactionEvent,
        /// The cause: `Aborted` if a caller ended it, or the family was dropped.
        cause: Error,
    },
    /// A new table is in the tree.
    TableFileCreated(FileEvent),
    /// A file that was written outside is in the tree.
    FileIngested(IngestEvent),
    /// An obsolete table was unlinked.
    TableFileDeleted(FileEvent),
    /// A new blob file is in the tree.
    BlobFileCreated(FileEvent),
    /// An obsolete blob file was unlinked.
    BlobFileDeleted(FileEvent),
    /// A memtable takes no more writes and waits for its flush.
    MemtableSealed {
        /// The family's name.
        family: String,
        /// The number of entries in the memtable.
        entries: u64,
        /// The number of deletions of single keys among them.
        deletions: u64,
        /// The memory of the memtable in bytes.
        bytes: u64,
        /// The largest sequence number that the memtable may hold.
        last: SeqNum,
    },
    /// A table was written without all properties of a collector, because the collector failed or gave wrong ones.
    CollectorFailed {
        /// The family's name.
        family: String,
        /// The number of the table.
        number: FileNumber,
        /// The name of the collector's factory.
        collector: String,
        /// What happened.
        cause: String,
    },
    /// The partitioner of a family panicked in a compaction, whose tables are in part cut without it.
    PartitionerFailed {
        /// The family's name.
        family: String,
        /// The name of the partitioner's factory.
        partitioner: String,
        /// The level of the compaction's output.
        output_level: Level,
    },
    /// The delay of writers changed.
    StallConditionsChanged {
        /// The condition before.
        before: StallCondition,
        /// The condition after.
        now: StallCondition,
    },
    /// Background work failed.
    BackgroundError {
        /// The failed work, in one word.
        work: &'static str,
        /// The cause.
        cause: Error,
    },
    /// Background work that had failed has succeeded.
    ErrorRecovered,
    /// The scrubber found a damage.
    DamageFound {
        /// The file's name.
        file: String,
        /// The offset, the cause, and the keys at risk.
        cause: String,
    },
}

impl Event {
    /// The name of the event in the info log.
    pub fn name(&self) -> &'static str {
        match self {
            Event::FlushBegin(_) => "flush_started",
            Event::FlushCompleted(_) => "flush_finished",
            Event::CompactionBegin(_) => "compaction_started",
            Event::CompactionCompleted(c) if c.trivial_move => "trivial_move",
            Event::CompactionCompleted(_) => "compaction_finished",
            Event::CompactionFailed { .. } => "compaction_failed",
            Event::TableFileCreated(_) => "table_file_creation",
            Event::FileIngested(_) => "ingest_finished",
            Event::TableFileDeleted(_) => "table_file_deletion",
            Event::BlobFileCreated(_) => "blob_file_creation",
            Event::BlobFileDeleted(_) => "blob_file_deletion",
            Event::MemtableSealed { .. } => "memtable_sealed",
            Event::CollectorFailed { .. } => "table_properties_collector_failed",
            Event::PartitionerFailed { .. } => "sst_partitioner_failed",
            Event::StallConditionsChanged { .. } => "stall_conditions_changed",
            Event::BackgroundError { .. } => "background_error",
            Event::ErrorRecovered => "error_recovered",
            Event::DamageFound { .. } => "damage_found",
        }
    }

    /// The info log level: that of an error or warning, or of an ordinary event.
    pub fn level(&self) -> InfoLogLevel {
        match self {
            Event::BackgroundError { .. } | Event::DamageFound { .. } => InfoLogLevel::Error,
            Event::CompactionFailed { .. }
            | Event::CollectorFailed { .. }
            | Event::PartitionerFailed { .. } => InfoLogLevel::Warn,
            Event::StallConditionsChanged { now, .. } if *now != StallCondition::Normal => InfoLogLevel::Warn,
            _ => InfoLogLevel::Info,
        }
    }

    /// The line of the event in the info log, without the time in front. `micros`: microseconds since 1970.
    pub fn line(&self, micros: u64) -> String {
        match self {
            Event::BackgroundError { work, cause } => format!("{work} failed: {cause}"),
            _ => format!("EVENT_LOG_v1 {}", self.json(micros)),
        }
    }

    /// The event as a JSON object on one line. `micros`: microseconds since 1970.
    pub fn json(&self, micros: u64) -> String {
        let object = Object::new(micros);
        let named = |family: &str| match family {
            "" => Object::new(micros).text("event", self.name()),
            family => Object::new(micros).text("cf_name", family).text("event", self.name()),
        };
        let job = |job: u64, family: &str| {
            Object::new(micros).text("cf_name", family).number("job", job).text("event", self.name())
        };
        let object = match self {
            Event::FlushBegin(f) => job(f.job, &f.family)
                .number("num_memtables", f.memtables)
                .number("total_num_input_entries", f.entries),
            Event::FlushCompleted(f) => job(f.job, &f.family)
                .number("num_memtables", f.memtables)
                .number("total_output_size", f.bytes)
                .number("flush_time_micros", f.micros)
                .list("lsm_state", f.levels.iter().map(|n| *n as u64)),
            Event::CompactionBegin(c) => begun(c, job(c.job, &c.family)),
            Event::CompactionCompleted(c) => ended(c, job(c.job, &c.family)),
            Event::CompactionFailed { compaction, cause } => {
                begun(compaction, job(compaction.job, &compaction.family)).text("status", &cause.to_string())
            }
            Event::TableFileCreated(f) | Event::BlobFileCreated(f) => {
                named(&f.family).number("file_number", f.number.0).number("file_size", f.bytes)
            }
            Event::FileIngested(f) => named(&f.family)
                .text("file", &f.source)
                .number("file_number", f.number.0)
                .number("output_level", f.level.0)
                .number("file_size", f.bytes)
                .number("global_seqno", f.sequence.get()),
            Event::TableFileDeleted(f) | Event::BlobFileDeleted(f) => {
                named(&f.family).number("file_number", f.number.0)
            }
            Event::MemtableSealed { family, entries, deletions, bytes, last } => named(family)
                .number("num_entries", entries)
                .number("num_deletes", deletions)
                .number("memory_bytes", bytes)
                .number("largest_seqno", last.get()),
            Event::CollectorFailed { family, number, collector, cause } => named(family)
                .number("file_number", number.0)
                .text("collector", collector)
                .text("status", cause),
            Event::PartitionerFailed { family, partitioner, output_level } => {
                named(family).text("partitioner", partitioner).number("output_level", output_level.0)
            }
            Event::StallConditionsChanged { before, now } => {
                named("").text("before", before.name()).text("now", now.name())
            }
            Event::BackgroundError { work, cause } => {
                named("").text("work", work).text("status", &cause.to_string())
            }
            Event::ErrorRecovered => object.text("event", self.name()),
            Event::DamageFound { file, cause } => {
                object.text("event", self.name()).text("file", file).text("status", cause)
            }
        };
        object.end()
    }
}

/// A compaction that begins, in `object`.
fn begun(c: &CompactionEvent, object: Object) -> Object {
    let mut object = object.text("compaction_reason", c.reason);
    for (level, files) in &c.inputs {
        object = object.list(&format!("files_L{}", level.0), files.iter().map(|n| n.0));
    }
    object.number("output_level", c.output_level.0).number("input_data_size", c.input_bytes)
}

/// A compaction that has ended, in `object`.
fn ended(c: &CompactionEvent, object: Object) -> Object {
    let object = if c.trivial_move {
        object
            .number("destination_level", c.output_level.0)
            .number("files", c.outputs)
            .number("total_files_size", c.input_bytes)
    } else {
        object
            .number("compaction_time_micros", c.micros)
            .number("output_level", c.output_level.0)
            .number("num_output_files", c.outputs)
            .number("total_output_size", c.output_bytes)
            .number("num_input_records", c.input_entries)
            .number("num_output_records", c.output_entries)
    };
    object.list("lsm_state", c.levels.iter().map(|n| *n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_that_tools_for_rocksdb_read() {
        let default = || ("default".to_owned(), FamilyId::DEFAULT);
        let flush = FlushEvent {
            bytes: 1000,
            micros: 17,
            levels: vec![1, 0],
            ..FlushEvent::begun(3, default(), 1, 9)
        };
        assert_eq!(
            Event::FlushBegin(flush.clone()).json(5),
            "{\"time_micros\": 5, \"cf_name\": \"default\", \"job\": 3, \"event\": \"flush_started\", \"num_memtables\": 1, \
             \"total_num_input_entries\": 9}"
        );
        assert!(Event::FlushCompleted(flush).json(5).ends_with(", \"lsm_state\": [1, 0]}"));
        let inputs = vec![(Level(0), vec![FileNumber(8), FileNumber(7)])];
        let compaction = CompactionEvent::begun(4, default(), "manual", inputs, Level(6), 10);
        assert_eq!(
            Event::CompactionBegin(compaction.clone()).json(5),
            "{\"time_micros\": 5, \"cf_name\": \"default\", \"job\": 4, \"event\": \"compaction_started\", \
             \"compaction_reason\": \"manual\", \"files_L0\": [8, 7], \"output_level\": 6, \"input_data_size\": 10}"
        );
        let moved = CompactionEvent {
            trivial_move: true,
            outputs: 2,
            levels: vec![0, 2],
            output_level: Level(1),
            ..compaction
        };
        assert_eq!(
            Event::CompactionCompleted(moved).json(5),
            "{\"time_micros\": 5, \"cf_name\": \"default\", \"job\": 4, \"event\": \"trivial_move\", \"destination_level\": 1, \
             \"files\": 2, \"total_files_size\": 10, \"lsm_state\": [0, 2]}"
        );
        let ingested = (FileNumber(8), Level(6));
        let ingested = IngestEvent::new("one".into(), "/a.sst".into(), ingested, 10, SeqNum::ZERO);
        assert_eq!(
            Event::FileIngested(ingested).json(5),
            "{\"time_micros\": 5, \"cf_name\": \"one\", \"event\": \"ingest_finished\", \"file\": \"/a.sst\", \
             \"file_number\": 8, \"output_level\": 6, \"file_size\": 10, \"global_seqno\": 0}"
        );
        let gone = FileEvent { family: String::new(), number: FileNumber(8), bytes: 0 };
        assert_eq!(
            Event::TableFileDeleted(gone).json(5),
            "{\"time_micros\": 5, \"event\": \"table_file_deletion\", \"file_number\": 8}"
        );
    }
}

//! One flush, in steps.
//!
//! 1. The memtables are immutable: they get no further entries.
//! 2. All immutable memtables are flushed together, so that a key overwritten in several of them is written once.
//! 3. All tombstones are kept, whatever the levels hold: they cost the flush nothing, and compaction knows what lies
//!    beneath them.

use crate::rewrite::{
    BlobCounters, CutLimits, OutputPlan, Progress, Retention, Rewrite, RewriteCounters, TableOutputs,
    shared_prefix, start,
};
use ashlar_base::memory::MemoryBudget;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result, RunCursor, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use ashlar_memtable::MemtableRep;
use ashlar_table::CollectorFailure;
use ashlar_tree::files::{Numbers, PendingFile};
use ashlar_tree::version::TableCounts;
use std::sync::Arc;

/// The input of a flush.
pub struct FlushInput {
    /// The number of the flush, for its report.
    pub job: u64,
    /// The family.
    pub family: FamilyId,
    /// All immutable memtables of the family, newest first. Only one flush of a family runs at a time, because tables of
    /// level 0 must be installed oldest first.
    pub memtables: Vec<Arc<dyn MemtableRep>>,
    /// Live snapshots, ascending, read after the memtables were sealed.
    pub snapshots: Vec<SeqNum>,
    /// Where and how the table is written.
    pub output: OutputPlan,
    /// Draws the file numbers.
    pub numbers: Numbers,
}

/// A flush in progress. If it is dropped before its end, it leaves no file behind.
pub struct FlushRun {
    job: u64,
    family: FamilyId,
    memtables: usize,
    rewrite: Box<dyn Rewrite<TableOutputs>>,
}

/// The result of a flush.
#[derive(Debug)]
pub struct FlushOutcome {
    /// The number of [`FlushInput`].
    pub job: u64,
    /// Adds the table to level 0, and its blob files; no table when the memtables were empty. The family is set; log
    /// number, sequence and epoch number are not.
    pub edit: VersionEdit,
    /// The number of memtables, from the oldest on, that the edit replaces.
    pub memtables: usize,
    /// The entry counts of the table.
    pub counts: Vec<(FileNumber, TableCounts)>,
    /// Properties that collectors did not give.
    pub collector_failures: Vec<(FileNumber, CollectorFailure)>,
    /// Drop these once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// Bytes of the table and of its blob files.
    pub bytes_written: u64,
    /// The counts of read and dropped entries.
    pub counters: RewriteCounters,
    /// The counts of blob work.
    pub blobs: BlobCounters,
}

impl FlushRun {
    /// Opens the memtables. No file is created before the first step.
    ///
    /// # Errors
    /// `Corruption`: an entry of a memtable with checksums has changed in memory.
    pub fn new(input: FlushInput) -> Result<FlushRun> {
        let FlushInput { job, family, memtables, snapshots, output, numbers } = input;
        let count = memtables.len();
        let order = output.table.order.clone();
        let skip = common_prefix(&order, &memtables);
        let (tombstones, added) = tombstones(&order, &memtables, output.budget.as_ref());
        let retention =
            Retention::above_unknown(snapshots, tombstones).with_operator(output.merge_operator.clone());
        let mut runs: Vec<Box<dyn RunCursor>> = Vec::with_capacity(count);
        for memtable in memtables {
            let mut cursor = memtable.cursor();
            cursor.seek(None)?;
            runs.push(cursor);
        }
        let sink = TableOutputs::new(output, CutLimits::none(), numbers)
            .with_tombstones(retention.survivors(&order), added);
        let rewrite = start(&order, skip, runs, retention, sink)?;
        Ok(FlushRun { job, family, memtables: count, rewrite })
    }

    /// Writes about `budget_bytes` of entries. The last step makes the table durable.
    ///
    /// # Errors
    /// `Io` of the table; `NotSupported` for kinds of entries that this engine's tables cannot hold. The table is
    /// removed when the run is dropped.
    pub fn step(&mut self, budget_bytes: usize) -> Result<Progress> {
        self.rewrite.step(budget_bytes)
    }

    /// Bytes of the table so far.
    pub fn bytes_written(&mut self) -> u64 {
        self.rewrite.sink().bytes_written()
    }

    /// Entries and bytes so far.
    pub fn counters(&self) -> RewriteCounters {
        self.rewrite.counters()
    }

    /// The result, after [`FlushRun::step`] returned `Done`.
    ///
    /// # Errors
    /// `InvalidArgument` if the flush is not done; the table is removed.
    pub fn finish(mut self) -> Result<FlushOutcome> {
        if self.rewrite.step(0)? != Progress::Done {
            return Err(Error::invalid("a flush was finished before its end"));
        }
        let mut edit = VersionEdit::of(self.family);
        let (mut pending, mut counts, mut bytes_written) = (Vec::new(), Vec::new(), 0);
        let mut collector_failures = Vec::new();
        for output in self.rewrite.sink().take() {
            bytes_written += output.file.size;
            let number = output.file.number;
            counts.push((number, output.counts));
            collector_failures.extend(output.collector_failures.into_iter().map(|failure| (number, failure)));
            edit.add_file(Level::ZERO, output.file);
            pending.push(output.pending);
        }
        let blobs = self.rewrite.sink().take_blobs();
        bytes_written += blobs.counters.bytes_written;
        edit.blob_added = blobs.added;
        pending.extend(blobs.pending);
        let (memtables, counters) = (self.memtables, self.rewrite.counters());
        let blobs = blobs.counters;
        Ok(FlushOutcome {
            job: self.job,
            edit,
            memtables,
            counts,
            collector_failures,
            pending,
            bytes_written,
            counters,
            blobs,
        })
    }
}

/// The range tombstones of all memtables, and the memory that they take beside the memtables.
fn tombstones(
    order: &Order,
    memtables: &[Arc<dyn MemtableRep>],
    budget: Option<&Arc<MemoryBudget>>,
) -> (Arc<FragmentedTombstones>, usize) {
    let parts: Vec<_> = memtables.iter().filter_map(|m| m.range_tombstones()).collect();
    let parts: Vec<_> = parts.iter().flat_map(|parts| parts.iter()).collect();
    if let [one] = parts[..] {
        return (Arc::clone(one), 0);
    }
    let all: Vec<_> = parts.iter().flat_map(|part| part.tombstones()).collect();
    let joined = FragmentedTombstones::cut(order, &all, budget);
    let added = joined.memory();
    (Arc::new(joined), added)
}

/// The length of the prefix that all keys share.
fn common_prefix(order: &Order, memtables: &[Arc<dyn MemtableRep>]) -> usize {
    let ranges: Vec<_> = memtables.iter().filter_map(|m| m.smallest_and_largest()).collect();
    let smallest = ranges.iter().map(|r| r.0.as_key().user_key()).min_by(|a, b| order.compare(a, b));
    let largest = ranges.iter().map(|r| r.1.as_key().user_key()).max_by(|a, b| order.compare(a, b));
    match (smallest, largest) {
        (Some(a), Some(b)) => shared_prefix(a, b),
        _ => 0,
    }
}

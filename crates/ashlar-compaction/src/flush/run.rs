//! One flush, in steps.
//!
//! 1. Memtables are sealed: nothing enters them any more.
//! 2. All sealed memtables go together, so that a key overwritten in several of them is written once.
//! 3. Tombstones stay, whatever the levels hold: they do not cost a flush anything, and compaction knows better.

use crate::rewrite::{
    BlobCounters, CutLimits, OutputPlan, Progress, Retention, Rewrite, RewriteCounters, TableOutputs,
    shared_prefix, start,
};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result, RunCursor, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use ashlar_memtable::MemtableRep;
use ashlar_tree::files::{Numbers, PendingFile};
use ashlar_tree::version::TableCounts;
use std::sync::Arc;

/// Which of a family's sealed memtables (newest first) the next flush takes: all, or none while `flushing` says that
/// another flush of the family runs, because tables of level 0 must arrive oldest first.
pub fn pick(
    sealed_newest_first: &[Arc<dyn MemtableRep>],
    flushing: bool,
) -> Option<Vec<Arc<dyn MemtableRep>>> {
    (!flushing && !sealed_newest_first.is_empty()).then(|| sealed_newest_first.to_vec())
}

/// What a flush works on.
pub struct FlushInput {
    /// The family.
    pub family: FamilyId,
    /// The memtables, newest first, as [`pick`] gave them.
    pub memtables: Vec<Arc<dyn MemtableRep>>,
    /// Live snapshots, ascending, read after the memtables were sealed.
    pub snapshots: Vec<SeqNum>,
    /// Where the table goes.
    pub output: OutputPlan,
    /// Where its number comes from.
    pub numbers: Numbers,
}

/// A flush in progress. Dropped before its end, it leaves no file behind.
pub struct FlushRun {
    family: FamilyId,
    memtables: usize,
    rewrite: Box<dyn Rewrite<TableOutputs>>,
}

/// What a flush made.
#[derive(Debug)]
pub struct FlushOutcome {
    /// Adds the table to level 0, and its blob files; no table when the memtables were empty. Family set; log number, sequence
    /// and epoch number not.
    pub edit: VersionEdit,
    /// How many memtables, from the oldest on, the edit replaces.
    pub memtables: usize,
    /// What is in the table.
    pub counts: Vec<(FileNumber, TableCounts)>,
    /// To be dropped once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// Bytes of the table and of its blob files.
    pub bytes_written: u64,
    /// What was read and dropped.
    pub counters: RewriteCounters,
    /// What was done with blobs.
    pub blobs: BlobCounters,
}

impl FlushRun {
    /// Opens the memtables. No file is made before the first step.
    ///
    /// # Errors
    /// None that memtables in memory cause; kept for cursors that read.
    pub fn new(input: FlushInput) -> Result<FlushRun> {
        let FlushInput { family, memtables, snapshots, output, numbers } = input;
        let count = memtables.len();
        let order = output.table.order.clone();
        let skip = common_prefix(&order, &memtables);
        let retention = Retention::above_unknown(snapshots, tombstones(&order, &memtables))
            .with_operator(output.merge_operator.clone());
        let mut runs: Vec<Box<dyn RunCursor>> = Vec::with_capacity(count);
        for memtable in memtables {
            let mut cursor = memtable.cursor();
            cursor.seek(None)?;
            runs.push(cursor);
        }
        let sink = TableOutputs::new(output, CutLimits::none(), numbers)
            .with_tombstones(retention.surviving_tombstones(&order));
        let rewrite = start(&order, skip, runs, retention, sink)?;
        Ok(FlushRun { family, memtables: count, rewrite })
    }

    /// Writes about `budget_bytes` of entries. The last step makes the table durable.
    ///
    /// # Errors
    /// `Io` of the table; `NotSupported` for entries of a kind that tables here cannot hold. The table is removed
    /// when the run is dropped.
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

    /// The result, after [`FlushRun::step`] answered `Done`.
    ///
    /// # Errors
    /// `InvalidArgument` before that; the table is removed.
    pub fn finish(mut self) -> Result<FlushOutcome> {
        if self.rewrite.step(0)? != Progress::Done {
            return Err(Error::invalid("a flush was finished before its end"));
        }
        let mut edit = VersionEdit::of(self.family);
        let (mut pending, mut counts, mut bytes_written) = (Vec::new(), Vec::new(), 0);
        for output in self.rewrite.sink().take() {
            bytes_written += output.file.size;
            counts.push((output.file.number, output.counts));
            edit.add_file(Level::ZERO, output.file);
            pending.push(output.pending);
        }
        let blobs = self.rewrite.sink().take_blobs();
        bytes_written += blobs.counters.bytes_written;
        edit.blob_added = blobs.added;
        pending.extend(blobs.pending);
        let (memtables, counters) = (self.memtables, self.rewrite.counters());
        Ok(FlushOutcome { edit, memtables, counts, pending, bytes_written, counters, blobs: blobs.counters })
    }
}

/// The range tombstones of all memtables.
fn tombstones(order: &Order, memtables: &[Arc<dyn MemtableRep>]) -> FragmentedTombstones {
    let parts: Vec<_> = memtables.iter().filter_map(|m| m.range_tombstones()).collect();
    let all: Vec<_> = parts.iter().flat_map(|p| p.iter()).flat_map(|part| part.tombstones()).collect();
    FragmentedTombstones::new(order, &all)
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

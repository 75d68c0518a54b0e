//! Carrying a compaction out: tables in, tables and an edit out.
//!
//! 1. Every table of level 0 is a run of its own, newest first; the tables of a deeper level are one run, behind those
//!    of the levels above it.
//! 2. A compaction is one part, or several over disjoint user keys that may be stepped at once, in any order and by
//!    different threads. What they make together is one edit.
//! 3. The edit deletes every input and adds every output, blob files and what became garbage in older ones included; it
//!    changes nothing else.
//! 4. Dropped before its end, or after an error, a part leaves no file behind; nor does one that is not gathered.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc` (behaviour).

use crate::inputs::{parts, runs, tombstones};
use crate::plan::{Compaction, user_range};
use crate::rewrite::{
    BlobCounters, OutputPlan, Progress, Rewrite, RewriteCounters, TableOutputs, shared_prefix, start,
};
use crate::split::KeyRange;
use ashlar_base::{Error, FamilyId, FileNumber, Result, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use ashlar_tree::files::{Numbers, PendingFile};
use ashlar_tree::version::{TableCounts, Version};
use std::sync::Arc;

/// What a compaction works on.
pub struct CompactionInput {
    /// What was picked.
    pub plan: Compaction,
    /// The version it was picked from; keeps the input tables alive.
    pub version: Arc<Version>,
    /// Live snapshots, ascending.
    pub snapshots: Vec<SeqNum>,
    /// Where the tables go. The oldest ancestor time is taken from the inputs where they know it.
    pub output: OutputPlan,
    /// Where their numbers come from.
    pub numbers: Numbers,
    /// How many parts it may have.
    pub parts_max: usize,
}

/// A part of a compaction in progress.
pub struct CompactionPart {
    rewrite: Box<dyn Rewrite<TableOutputs>>,
    /// Nothing lies beneath, and no snapshot was alive.
    spent: bool,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionCounters {
    /// Bytes of the input tables.
    pub bytes_read: u64,
    /// Bytes of the output tables and blob files.
    pub bytes_written: u64,
    /// Input tables.
    pub tables_read: u64,
    /// Output tables.
    pub tables_written: u64,
    /// Entries read and dropped.
    pub entries: RewriteCounters,
    /// What was done with blobs.
    pub blobs: BlobCounters,
}

/// What a compaction made.
#[derive(Debug)]
pub struct CompactionOutcome {
    /// Deletes the inputs and adds the outputs. Epoch numbers are not set: the commit gives the smallest of the inputs.
    pub edit: VersionEdit,
    /// What is in the outputs.
    pub counts: Vec<(FileNumber, TableCounts)>,
    /// To be dropped once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// For statistics.
    pub counters: CompactionCounters,
}

impl CompactionPart {
    /// Bytes of its tables so far.
    pub fn bytes_written(&mut self) -> u64 {
        self.rewrite.sink().bytes_written()
    }

    /// Starts a compaction: its parts, ascending, at least one.
    ///
    /// # Errors
    /// `Io` and `Corruption` of the tables; `NotSupported` where a table has what this engine does not rewrite.
    /// # Cost
    /// Opens every table of level 0 and the first of each deeper level; of the others it reads the range tombstones.
    pub fn start(input: CompactionInput) -> Result<Vec<CompactionPart>> {
        let CompactionInput { plan, version, snapshots, mut output, numbers, parts_max } = input;
        let order = version.order.clone();
        let range = user_range(&order, plan.files().map(|(_, f)| f));
        let skip = range.map_or(0, |range| shared_prefix(range.smallest, range.largest));
        if let Some(oldest) = oldest_ancestor_time(&plan) {
            output.identity.creation_time = oldest;
        }
        output.blobs = output.blobs.with_inputs(Arc::clone(version.blobs()));
        // Snapshots that see all there is keep nothing more than a read at "now" does.
        let newest = plan.files().map(|(_, f)| f.file.largest_seq).max();
        let all_seen = snapshots.first().is_none_or(|oldest| newest.is_none_or(|newest| newest <= *oldest));
        let spent = plan.is_bottommost() && all_seen;
        let all = tombstones(&version, &plan)?;
        let ranges = parts(&version, &plan, parts_max)?;
        let count = ranges.len();
        let part = |range: KeyRange| {
            let retention = plan
                .retention(snapshots.clone(), range.cut(&order, &all))
                .with_operator(output.merge_operator.clone())
                .with_blobs(Arc::clone(version.blobs()));
            let sink = TableOutputs::new(output.clone(), plan.cut_limits(), Arc::clone(&numbers))
                .with_tombstones(retention.surviving_tombstones(&order));
            let rewrite = start(&order, skip, runs(&version, &plan, &range, count)?, retention, sink)?;
            Ok(CompactionPart { rewrite, spent })
        };
        ranges.into_iter().map(part).collect()
    }

    /// Rewrites about `budget_bytes` of entries. A step may fsync an output; the last one does.
    ///
    /// # Errors
    /// As [`CompactionPart::start`], and `Io` of the outputs, which are removed when the part is dropped.
    pub fn step(&mut self, budget_bytes: usize) -> Result<Progress> {
        self.rewrite.step(budget_bytes)
    }

    /// Puts together what all parts made, after each answered `Done`. They may come in any order.
    ///
    /// # Errors
    /// `InvalidArgument` before that; the outputs are removed.
    pub fn gather(
        family: FamilyId,
        plan: &Compaction,
        mut parts: Vec<CompactionPart>,
    ) -> Result<CompactionOutcome> {
        let mut edit = deletions(family, plan);
        let mut counters = CompactionCounters {
            bytes_read: plan.input_bytes(),
            tables_read: edit.deleted.len() as u64,
            ..CompactionCounters::default()
        };
        for part in &mut parts {
            if part.rewrite.step(0)? != Progress::Done {
                return Err(Error::invalid("a compaction was finished before its end"));
            }
            counters.entries += part.rewrite.counters();
        }
        check_count(plan, counters.entries.entries_in)?;
        let spent = parts.iter().all(|part| part.spent);
        let mut outputs: Vec<_> = parts.iter_mut().flat_map(|part| part.rewrite.sink().take()).collect();
        // In the order of their numbers, whichever part was gathered first.
        outputs.sort_by_key(|output| output.file.number);
        let (mut pending, mut counts) = (Vec::new(), Vec::new());
        for output in outputs {
            counters.bytes_written += output.file.size;
            counters.tables_written += 1;
            counts.push((output.file.number, TableCounts { spent, ..output.counts }));
            edit.add_file(plan.output_level, output.file);
            pending.push(output.pending);
        }
        for blobs in parts.iter_mut().map(|part| part.rewrite.sink().take_blobs()) {
            counters.bytes_written += blobs.counters.bytes_written;
            counters.blobs += blobs.counters;
            edit.blob_added.extend(blobs.added);
            // More than one part may have made garbage in one file: what the records say adds up.
            edit.blob_garbage.extend(blobs.garbage);
            pending.extend(blobs.pending);
        }
        edit.blob_added.sort_by_key(|added| added.number);
        edit.blob_garbage.sort_by_key(|garbage| garbage.number);
        Ok(CompactionOutcome { edit, counts, pending, counters })
    }
}

/// That as many entries were read as the inputs say they have: none is lost where a block reads as an end. Releases
/// differ in whether the number of entries has the range tombstones in it.
fn check_count(plan: &Compaction, read: u64) -> Result<()> {
    let (mut points, mut all) = (0u64, 0u64);
    for (_, file) in plan.files() {
        let Some(counts) = file.counts.get() else { return Ok(()) };
        points = points.saturating_add(counts.entries.saturating_sub(counts.range_deletions));
        all = all.saturating_add(counts.entries);
    }
    if (points..=all).contains(&read) {
        return Ok(());
    }
    let text = format!("compaction {plan} read {read} entries where its inputs have {points}");
    Err(Error::corruption(text).hint("Verify the tables with their checksums"))
}

/// The edit of a trivial move: every input leaves its level and enters the output level as it is.
pub fn move_edit(family: FamilyId, plan: &Compaction) -> VersionEdit {
    let mut edit = deletions(family, plan);
    for (_, file) in plan.files() {
        edit.add_file(plan.output_level, file.file.clone());
    }
    edit
}

fn deletions(family: FamilyId, plan: &Compaction) -> VersionEdit {
    let mut edit = VersionEdit::of(family);
    for (level, file) in plan.files() {
        edit.delete_file(level, file.number());
    }
    edit
}

fn oldest_ancestor_time(plan: &Compaction) -> Option<u64> {
    plan.files().filter_map(|(_, f)| f.file.oldest_ancestor_time).filter(|t| *t > 0).min()
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;

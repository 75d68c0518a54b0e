//! Runs a compaction: reads its input tables, writes output tables, and returns an edit.
//!
//! 1. Every table of level 0 is a run of its own, newest first; the tables of a deeper level are one run, behind those
//!    of the levels above it.
//! 2. A compaction has one part, or several over disjoint ranges of user keys. Several parts may be stepped
//!    concurrently, in any order and by different threads. All their outputs are in one edit.
//! 3. The edit deletes every input and adds every output, including blob files and the garbage in older blob files; it
//!    changes nothing else.
//! 4. A part that is dropped before its end, or after an error, leaves no file behind; nor does a part that is never
//!    passed to `finish`.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc` (behaviour).

use crate::inputs::{index_limit, parts, runs, tombstones};
use crate::plan::{Action, Compaction, user_range};
use crate::rewrite::{
    BlobCounters, Filtering, OutputPlan, Progress, Rewrite, RewriteCounters, TableOutputs, shared_prefix,
    start_filtered,
};
use crate::split::{KeyRange, cut_tombstones};
use ashlar_base::ext::compaction_filter::FilterContext;
use ashlar_base::ext::sst_partitioner::SstPartitionerFactory;
use ashlar_base::{Error, FamilyId, FileNumber, FilterSource, Result, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use ashlar_table::{CollectorFailure, TableIdentity};
use ashlar_tree::files::{Numbers, PendingFile};
use ashlar_tree::version::{TableCounts, Version};
use std::sync::Arc;

/// The input of a compaction.
pub struct CompactionInput {
    /// The picked compaction.
    pub plan: Compaction,
    /// The version that the compaction was picked from; keeps the input tables alive.
    pub version: Arc<Version>,
    /// Live snapshots, ascending.
    pub snapshots: Vec<SeqNum>,
    /// The compaction filter of the family.
    pub filter: Option<FilterSource>,
    /// The partitioner of the family.
    pub partitioner: Option<Arc<dyn SstPartitionerFactory>>,
    /// Where and how the tables are written. The oldest ancestor time is taken from the inputs that store one.
    pub output: OutputPlan,
    /// Draws the file numbers.
    pub numbers: Numbers,
    /// The largest number of parts.
    pub parts_max: usize,
}

/// A part of a compaction in progress.
pub struct CompactionPart {
    rewrite: Box<dyn Rewrite<TableOutputs>>,
    /// Nothing lies beneath, and no snapshot was alive.
    spent: bool,
}

/// The counts of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionCounters {
    /// Bytes of the input tables.
    pub bytes_read: u64,
    /// Bytes of the output tables and blob files.
    pub bytes_written: u64,
    /// The number of input tables.
    pub tables_read: u64,
    /// The number of output tables.
    pub tables_written: u64,
    /// The counts of read and dropped entries.
    pub entries: RewriteCounters,
    /// The counts of blob work.
    pub blobs: BlobCounters,
}

/// The result of a compaction.
#[derive(Debug)]
pub struct CompactionOutcome {
    /// Deletes the inputs and adds the outputs. Epoch numbers are not set: the commit uses the smallest of the inputs.
    pub edit: VersionEdit,
    /// The entry counts of the outputs.
    pub counts: Vec<(FileNumber, TableCounts)>,
    /// Properties that collectors did not give.
    pub collector_failures: Vec<(FileNumber, CollectorFailure)>,
    /// The partitioner panicked, and some of the outputs are cut without it.
    pub partitioner_failed: bool,
    /// Drop these once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// The counts for statistics.
    pub counters: CompactionCounters,
}

impl CompactionPart {
    /// Bytes of the part's tables so far.
    pub fn bytes_written(&mut self) -> u64 {
        self.rewrite.sink().bytes_written()
    }

    /// Starts a compaction: returns its parts, ascending, at least one.
    ///
    /// # Errors
    /// `Io` and `Corruption` of the tables; `NotSupported` for tables with data that this engine does not rewrite; `Aborted`:
    /// the filter factory panicked.
    /// # Cost
    /// Opens every table of level 0 and the first of each deeper level; reads the range tombstones of the others.
    pub fn start(input: CompactionInput) -> Result<Vec<CompactionPart>> {
        let CompactionInput { plan, version, snapshots, filter, partitioner, mut output, numbers, parts_max } =
            input;
        let order = version.order.clone();
        let range = user_range(&order, plan.files().map(|(_, f)| f));
        let skip = range.map_or(0, |range| shared_prefix(range.smallest, range.largest));
        if let Some(oldest) = oldest_ancestor_time(&plan) {
            output.identity.creation_time = oldest;
        }
        output.blobs = output.blobs.with_inputs(Arc::clone(version.blobs()));
        // A snapshot that sees all inputs keeps nothing more than a read of the newest state does.
        let newest = plan.files().map(|(_, f)| f.file.largest_seq).max();
        let all_seen = snapshots.first().is_none_or(|oldest| newest.is_none_or(|newest| newest <= *oldest));
        let spent = plan.is_bottommost() && all_seen;
        let tombstones = tombstones(&version, &plan)?;
        let ranges = parts(&version, &plan, parts_max)?;
        let count = ranges.len();
        let tombstones = cut_tombstones(&order, &ranges, tombstones, version.tables().budget());
        let part = |(range, (tombstones, added)): (KeyRange, (_, usize))| {
            let retention = plan
                .retention(snapshots.clone(), tombstones)
                .with_operator(output.merge_operator.clone())
                .with_blobs(Arc::clone(version.blobs()));
            let is_full = plan.files().count() == version.files().count();
            let partitioning =
                partitioner.as_ref().and_then(|factory| plan.partitioning(&order, &**factory, is_full));
            let sink = TableOutputs::new(output.clone(), plan.cut_limits(), Arc::clone(&numbers))
                .partitioned_by(partitioning)
                .with_index_limit(index_limit(&version, &plan))
                .with_tombstones(retention.survivors(&order), added);
            let runs = runs(&version, &plan, &range, count)?;
            let filter = filter.as_ref().map(|source| filter_of(source, &plan, &version, &output.identity));
            let filter = filter.transpose()?.flatten();
            let rewrite = start_filtered(&order, skip, runs, retention, filter, sink)?;
            Ok(CompactionPart { rewrite, spent })
        };
        ranges.into_iter().zip(tombstones).map(part).collect()
    }

    /// Rewrites about `budget_bytes` of entries. A step may fsync an output; the last one does.
    ///
    /// # Errors
    /// As [`CompactionPart::start`], and `Io` of the outputs, which are removed when the part is dropped.
    pub fn step(&mut self, budget_bytes: usize) -> Result<Progress> {
        self.rewrite.step(budget_bytes)
    }

    /// Combines the results of all parts, in any order, after each part returned `Done`.
    ///
    /// # Errors
    /// `InvalidArgument` if a part is not done; the outputs are removed.
    pub fn finish(
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
        let partitioner_failed = parts.iter_mut().any(|part| part.rewrite.sink().partitioner_failed());
        let mut outputs: Vec<_> = parts.iter_mut().flat_map(|part| part.rewrite.sink().take()).collect();
        // By file number, independent of the order of the parts.
        outputs.sort_by_key(|output| output.file.number);
        let (mut pending, mut counts, mut collector_failures) = (Vec::new(), Vec::new(), Vec::new());
        for output in outputs {
            counters.bytes_written += output.file.size;
            counters.tables_written += 1;
            let number = output.file.number;
            counts.push((number, TableCounts { spent, ..output.counts }));
            collector_failures.extend(output.collector_failures.into_iter().map(|failure| (number, failure)));
            edit.add_file(plan.output_level, output.file);
            pending.push(output.pending);
        }
        for blobs in parts.iter_mut().map(|part| part.rewrite.sink().take_blobs()) {
            counters.bytes_written += blobs.counters.bytes_written;
            counters.blobs += blobs.counters;
            edit.blob_added.extend(blobs.added);
            // Several parts may have made garbage in one file: the records add up.
            edit.blob_garbage.extend(blobs.garbage);
            pending.extend(blobs.pending);
        }
        edit.blob_added.sort_by_key(|added| added.number);
        edit.blob_garbage.sort_by_key(|garbage| garbage.number);
        Ok(CompactionOutcome { edit, counts, collector_failures, partitioner_failed, pending, counters })
    }
}

/// The filter for one part of a compaction.
fn filter_of(
    source: &FilterSource,
    plan: &Compaction,
    version: &Version,
    identity: &TableIdentity,
) -> Result<Option<Filtering>> {
    let (family, name) = (identity.family_id, identity.family_name.as_str());
    let mut context = FilterContext::new(family, name, plan.output_level);
    context.is_full = plan.files().count() == version.files().count();
    context.is_manual = plan.reason.is_manual();
    context.is_bottommost = plan.is_bottommost();
    Filtering::new(source, &context, Arc::clone(version.blobs()))
}

/// Checks that as many entries were read as the inputs claim to have, so that a block that reads as an end loses none.
/// Releases differ in whether the claimed number includes the range tombstones.
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

/// The edit of a compaction that reads no input: it deletes every input from its level, and adds the inputs of a move
/// to the output level. `None` for a rewrite.
pub fn edit_without_io(family: FamilyId, plan: &Compaction) -> Option<VersionEdit> {
    let mut edit = deletions(family, plan);
    match plan.action {
        Action::Rewrite => return None,
        Action::Move => plan.files().for_each(|(_, f)| edit.add_file(plan.output_level, f.file.clone())),
        Action::Drop => {}
    }
    Some(edit)
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

//! Carrying a compaction out: tables in, tables and an edit out.
//!
//! 1. Every table of level 0 is a run of its own, newest first; the tables of a deeper level are one run, behind those
//!    of the levels above it.
//! 2. The edit deletes every input and adds every output, blob files and what became garbage in older ones included; it
//!    changes nothing else.
//! 3. Dropped before its end, or after an error, a run leaves no file behind.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc` (behaviour).

use super::level_run::LevelRun;
use super::plan::{Compaction, user_range};
use crate::files::PendingFile;
use crate::range_del::Bounds;
use crate::rewrite::{
    Numbers, OutputPlan, Progress, Rewrite, RewriteCounters, TableOutputs, shared_prefix, start,
};
use crate::version::Version;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Error, FamilyId, Level, Result, RunCursor, SeqNum};
use ashlar_format::version_edit::VersionEdit;
use std::sync::Arc;

/// Bytes a compaction reads from a table at a time, at least.
pub const READAHEAD_BYTES: usize = 2 << 20;

/// What a compaction works on.
pub struct CompactionInput {
    /// The family.
    pub family: FamilyId,
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
}

/// A compaction in progress.
pub struct CompactionRun {
    family: FamilyId,
    plan: Compaction,
    rewrite: Box<dyn Rewrite<TableOutputs>>,
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
}

/// What a compaction made.
#[derive(Debug)]
pub struct CompactionOutcome {
    /// Deletes the inputs and adds the outputs. Epoch numbers are not set: the commit gives the smallest of the inputs.
    pub edit: VersionEdit,
    /// To be dropped once the edit is durable.
    pub pending: Vec<PendingFile>,
    /// For statistics.
    pub counters: CompactionCounters,
}

impl CompactionRun {
    /// Opens every input table that is not open yet: any of them may have range tombstones.
    ///
    /// # Errors
    /// `Io` and `Corruption` of the tables; `NotSupported` where a table has what this engine does not rewrite.
    pub fn new(input: CompactionInput) -> Result<CompactionRun> {
        let CompactionInput { family, plan, version, snapshots, mut output, numbers } = input;
        let order = version.order.clone();
        let range = user_range(&order, plan.files().map(|(_, f)| f));
        let skip = range.map_or(0, |range| shared_prefix(range.smallest, range.largest));
        let mut runs = runs(&version, &plan);
        for run in &mut runs {
            run.seek(None)?;
        }
        if let Some(oldest) = oldest_ancestor_time(&plan) {
            output.identity.creation_time = oldest;
        }
        let retention = plan
            .retention(snapshots, tombstones(&version, &plan)?)
            .with_operator(output.merge_operator.clone())
            .with_blobs(Arc::clone(version.blobs()));
        output.blobs = output.blobs.with_inputs(Arc::clone(version.blobs()));
        let sink = TableOutputs::new(output, plan.cut_limits(), numbers)
            .with_tombstones(retention.surviving_tombstones(&order));
        let rewrite = start(&order, skip, runs, retention, sink)?;
        Ok(CompactionRun { family, plan, rewrite })
    }

    /// Rewrites about `budget_bytes` of entries. A step may fsync an output; the last one does.
    ///
    /// # Errors
    /// As [`CompactionRun::new`], and `Io` of the outputs, which are removed when the run is dropped.
    pub fn step(&mut self, budget_bytes: usize) -> Result<Progress> {
        self.rewrite.step(budget_bytes)
    }

    /// What is carried out.
    pub fn plan(&self) -> &Compaction {
        &self.plan
    }

    /// Entries and bytes so far.
    pub fn counters(&self) -> RewriteCounters {
        self.rewrite.counters()
    }

    /// The result, after [`CompactionRun::step`] answered `Done`.
    ///
    /// # Errors
    /// `InvalidArgument` before that; the outputs are removed.
    pub fn finish(mut self) -> Result<CompactionOutcome> {
        if self.rewrite.step(0)? != Progress::Done {
            return Err(Error::invalid("a compaction was finished before its end"));
        }
        let mut edit = deletions(self.family, &self.plan);
        let mut counters = CompactionCounters {
            bytes_read: self.plan.input_bytes(),
            tables_read: edit.deleted.len() as u64,
            entries: self.rewrite.counters(),
            ..CompactionCounters::default()
        };
        let mut pending = Vec::new();
        for output in self.rewrite.sink().take() {
            counters.bytes_written += output.file.size;
            counters.tables_written += 1;
            edit.add_file(self.plan.output_level, output.file);
            pending.push(output.pending);
        }
        let blobs = self.rewrite.sink().take_blobs();
        counters.bytes_written += blobs.bytes_written;
        (edit.blob_added, edit.blob_garbage) = (blobs.added, blobs.garbage);
        pending.extend(blobs.pending);
        Ok(CompactionOutcome { edit, pending, counters })
    }
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

fn runs(version: &Arc<Version>, plan: &Compaction) -> Vec<Box<dyn RunCursor>> {
    let run =
        |files| Box::new(LevelRun::new(Arc::clone(version), files, READAHEAD_BYTES)) as Box<dyn RunCursor>;
    let mut runs = Vec::new();
    for (level, files) in &plan.inputs {
        if *level == Level::ZERO {
            runs.extend(files.iter().map(|f| run(vec![Arc::clone(f)])));
        } else {
            runs.push(run(files.clone()));
        }
    }
    runs
}

/// The range tombstones of all inputs, as far as they are in force.
fn tombstones(version: &Version, plan: &Compaction) -> Result<FragmentedTombstones> {
    let mut all = Vec::new();
    for (_, file) in plan.files() {
        let table = version.table(file)?;
        if !table.range_tombstones().is_empty() {
            let bounds = Bounds::new(file.smallest(), file.largest());
            all.extend(bounds.cut(&version.order, table.range_tombstones()));
        }
    }
    Ok(FragmentedTombstones::new(&version.order, &all))
}

fn oldest_ancestor_time(plan: &Compaction) -> Option<u64> {
    plan.files().filter_map(|(_, f)| f.file.oldest_ancestor_time).filter(|t| *t > 0).min()
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;

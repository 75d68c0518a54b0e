//! Rewriting sorted runs into tables: the code that flush and compaction share.
//!
//! `merge` brings the runs into one order, `retention` decides which versions survive, `cut` where an output ends,
//! `tombstones` which range tombstones are kept, `fold` folds merge operands, `blobs` handles large values, `output`
//! writes tables. `drive` is the loop through all of them, resumable after any entry.
//!
//! Source: RocksDB `db/compaction/compaction_iterator.cc`, `db/compaction/compaction_outputs.cc` (behaviour).

mod blobs;
mod cut;
mod drive;
mod fold;
mod merge;
mod output;
mod retention;
mod tombstones;

pub use blobs::{BlobCounters, BlobOutcome, BlobPlan};
pub use cut::{Cut, CutLimits, Grandparent};
pub use drive::{EntrySink, Progress, Rewrite, RewriteCounters, RewriteLoop, shared_prefix, start};
pub use merge::Merge;
pub use output::{Output, OutputChecks, OutputPlan, TableOutputs};
pub use retention::{Beneath, Retention, Rule, Verdict};

#[cfg(test)]
pub(crate) mod fixture;

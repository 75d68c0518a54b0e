//! Rewriting sorted runs into tables: the code that flush and compaction share.
//!
//! `merge` brings the runs into one order, `retention` decides which versions survive, `cut` where an output ends,
//! `filter` asks a user's compaction filter about what survives, `partitions` a user's partitioner about where an output ends,
//! `tombstones` which range tombstones are kept, `fold` folds merge `operands`, `blobs` handles large values, `output`
//! writes tables. `key_state` holds the state of the current key. `drive` is the loop through all of them, resumable after any entry.
//!
//! Source: RocksDB `db/compaction/compaction_iterator.cc`, `db/compaction/compaction_outputs.cc` (behaviour).

mod blobs;
mod cut;
mod drive;
mod filter;
mod fold;
mod key_state;
mod merge;
mod operands;
mod output;
mod partitions;
mod retention;
mod sink;
mod tombstones;
mod uncut;

pub use blobs::{BlobCounters, BlobOutcome, BlobPlan};
pub use cut::{Cut, CutLimits, Grandparent};
pub use drive::{Progress, Rewrite, RewriteLoop, shared_prefix, start, start_filtered};
pub use filter::Filtering;
pub use merge::Merge;
pub use output::{Output, OutputChecks, OutputPlan, TableOutputs};
pub use partitions::Partitioning;
pub(crate) use partitions::may_move;
pub use retention::{Beneath, Retention, Rule, Verdict};
pub use sink::{EntrySink, RewriteCounters};
pub use tombstones::Survivors;

#[cfg(test)]
mod bytes_tests;
#[cfg(test)]
pub(crate) mod fixture;

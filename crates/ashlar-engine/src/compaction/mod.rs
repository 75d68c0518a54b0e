//! Compaction: keeping the tree in shape.
//!
//! `picker` decides (pure, under the state lock), `plan` is its decision, `split` cuts a large one into parts, `inputs`
//! opens what they read, `job` carries them out (no lock, all the I/O, resumable in steps) and answers with a version
//! edit for the caller to install.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `db/version_set.cc` (behaviour).

mod inputs;
mod job;
mod level_run;
pub mod picker;
mod plan;
mod split;

pub use job::{CompactionCounters, CompactionInput, CompactionOutcome, CompactionPart, move_edit};
pub use plan::{Compaction, Reason, Running};

#[cfg(test)]
mod tree_tests;

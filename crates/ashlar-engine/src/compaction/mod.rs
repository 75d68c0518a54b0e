//! Compaction: keeping the tree in shape.
//!
//! `picker` decides (pure, under the state lock), `plan` is its decision, `job` carries it out (no lock, all the I/O,
//! resumable in steps) and answers with a version edit for the caller to install.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `db/version_set.cc` (behaviour).

mod job;
mod level_run;
pub mod picker;
mod plan;

pub use job::{
    CompactionCounters, CompactionInput, CompactionOutcome, CompactionRun, READAHEAD_BYTES, move_edit,
};
pub use plan::{Compaction, Reason, Running};

#[cfg(test)]
mod tree_tests;

//! Keeping the tree in shape: flush and compaction, and the loop through entries that both share.
//!
//! [`flush`] makes a table of level 0 of memtables, [`rewrite`] says which entries survive and writes tables. Of a compaction,
//! `picker` decides (pure, under the state lock), `plan` is its decision, `split` cuts a large one into parts, `inputs`
//! opens what they read, `job` carries them out (no lock, all the I/O, resumable in steps) and answers with a version
//! edit for the caller to install.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `db/version_set.cc` (behaviour).

pub mod rewrite;
pub mod flush;
mod split;
mod plan;
pub mod picker;
mod level_run;
mod inputs;
mod job;

pub use job::{CompactionCounters, CompactionInput, CompactionOutcome, CompactionPart, move_edit};
pub use plan::{Compaction, Reason, Running};

#[cfg(test)]
mod tree_tests;

//! Cursors: over one level, over many merged runs, and the cursor that a user gets.
//!
//! ```text
//! DbIter -> MergingIter -> Run: memtable | FileRun (a level, or one file of level 0) -> TableCursor
//! (newest visible version of     (all versions of all runs, in order)
//!  each key, within bounds)
//! ```

mod bounds;
mod code;
mod db_iter;
mod file_run;
mod merging;
mod pins;
mod run;
mod tailing;
mod tally;

#[cfg(test)]
pub(crate) mod tests;

pub use bounds::KeyBounds;
pub use db_iter::DbIter;
use merging::MergingIter;
pub use pins::CursorPins;
pub use pins::{FileBytes, cursor_bytes, files_of, memtables_of};
pub use run::TableFilter;
use run::{ReadState, Run, RunContext, runs};
pub use tailing::{Follow, State, TailingIter};

//! Cursors: over one level, over many merged runs, and the cursor that a user gets.
//!
//! ```text
//! DbIter -> MergingIter -> Run: memtable | level-0 table | LevelIter -> TableIter
//! (newest visible version of     (all versions of all runs, in order)
//!  each key, within bounds)
//! ```

mod bounds;
mod db_iter;
mod level;
mod merging;
mod pins;
mod run;
mod tally;

#[cfg(test)]
pub(crate) mod tests;

pub use bounds::KeyBounds;
pub use db_iter::DbIter;
pub use level::LevelIter;
pub use merging::MergingIter;
pub use pins::CursorPins;
pub use pins::{FileBytes, files_of, memtables_of};
pub use run::{Run, runs};

//! Pickers: which files to compact next. Pure functions of the shape of the tree.
//!
//! `shape` describes the tree, `targets` computes the sizes of the levels, `scores` says which level is too large and
//! by how much. `overfull` picks for such a level, `level0` for level 0; `tombstones` picks when nothing is urgent.
//! `manual` handles a requested range, `chosen` requested files, `blob_gc` old blob files, `aged` old tables. `finish` turns
//! each choice into a plan.

mod aged;
mod blob_gc;
mod chosen;
mod finish;
mod level0;
mod manual;
mod overfull;
mod scores;
mod shape;
mod targets;
mod tombstones;

pub use aged::{next_age, pick_aged};
pub use blob_gc::pick_blob_garbage;
pub use chosen::{pick_chosen, pick_refit};
pub use level0::gathers;
pub use manual::{ManualPick, ManualRange};
pub use overfull::pick_overfull;
pub use scores::{Score, debt, scores};
pub use shape::Shape;
pub use targets::Targets;
pub use tombstones::{awaited_snapshot, pick_tombstones};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stream_tests;

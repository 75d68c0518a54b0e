//! Pickers: which files to compact next. Pure functions of the shape of the tree.
//!
//! `shape` asks the tree, `targets` sizes the levels, `scores` says which level is too large and by how much, `leveled`
//! picks, `manual` walks a range on request, `blob_gc` empties old blob files.

mod blob_gc;
mod leveled;
mod manual;
mod scores;
mod shape;
mod targets;

pub use blob_gc::pick_blob_garbage;
pub use leveled::pick;
pub use manual::{ManualPick, ManualRange};
pub use scores::{Score, debt, scores};
pub use shape::Shape;
pub use targets::Targets;

#[cfg(test)]
mod tests;

//! Pickers: which files to compact next. Pure functions of the shape of the tree.
//!
//! `style` answers what a tree needs. `leveled`, `universal` and `fifo` are the styles. A new style is one file beside them,
//! and one arm of each `match` in `style`. The leveled style is made of the pickers below. `incremental` picks a part of a merge of
//! a universal tree.
//!
//! `shape` describes the tree, `targets` computes the sizes of the levels, `scores` says which level is too large and
//! by how much. `overfull` picks for such a level, `level0` for level 0; `marked` and `tombstones` pick when nothing is urgent.
//! `manual` handles a requested range, `chosen` requested files, `blob_gc` old blob files, `aged` old tables. `finish` turns
//! each choice into a plan.

mod aged;
mod blob_gc;
mod chosen;
mod fifo;
mod finish;
mod incremental;
mod level0;
mod leveled;
mod manual;
mod marked;
mod overfull;
mod pick_input;
mod scores;
mod shape;
mod style;
mod targets;
mod tombstones;
mod universal;

pub use chosen::{pick_chosen, pick_refit};
pub use manual::{ManualPick, ManualRange};
pub use pick_input::PickInput;
pub use scores::{Score, scores};
pub use shape::Shape;
pub use style::Style;
pub use targets::Targets;

#[cfg(test)]
pub(crate) use {overfull::pick_overfull, scores::debt, tombstones::pick_tombstones};

#[cfg(test)]
mod incremental_tests;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stream_tests;

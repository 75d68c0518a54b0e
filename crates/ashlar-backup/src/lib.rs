//! Copies of an open database.
//!
//! [`checkpoint()`] makes a second database directory with the state of one moment. [`updates_since()`] reads the writes since
//! then.

mod checkpoint;
mod target;
mod updates;

pub use checkpoint::{Checkpoint, CheckpointOptions, Copied, checkpoint};
pub use updates::{Change, Update, Updates, updates_since};

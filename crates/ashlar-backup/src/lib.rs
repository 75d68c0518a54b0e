//! Copies of an open database.
//!
//! [`checkpoint()`] makes a second database directory with the state of one moment.

mod checkpoint;
mod target;

pub use checkpoint::{Checkpoint, CheckpointOptions, Copied, checkpoint};

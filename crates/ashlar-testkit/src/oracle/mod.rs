//! The oracle: what a store must hold, now, at a snapshot, and after a crash.

mod difference;
mod model;

pub use difference::{Difference, first_difference};
pub use model::{Model, State};

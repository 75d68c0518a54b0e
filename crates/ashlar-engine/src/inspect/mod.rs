//! Properties: what a database says about itself, under RocksDB's names. And the level check: which releases read it.

mod level_check;
mod levels;
mod shape;

pub use level_check::{Found, LevelReport, check_level};
pub use levels::{FamilyShape, levelstats};
pub use shape::Shape;

//! Properties: what a database says about itself, under RocksDB's names.

mod levels;

pub use levels::{FamilyShape, levelstats};

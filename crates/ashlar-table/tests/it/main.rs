//! Tables as files: written, read back, compared with RocksDB's and LevelDB's, damaged.
// Test data is small, and a fixture that fails should say where.
#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)]

mod fixture;
mod golden;
mod hostile;
mod model;
mod shape;
mod tombstones;

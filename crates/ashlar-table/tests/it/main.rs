//! Tables as files: written, read back, compared with RocksDB's and LevelDB's, damaged.
// Test data is small, and a fixture that fails should say where.
#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]

mod charges;
mod collectors;
mod fixture;
mod forms;
mod golden;
mod hostile;
mod judged;
mod leveldb_filter;
mod lies;
mod misses;
mod model;
mod shape;
mod stripped;
mod tombstones;
mod walks;

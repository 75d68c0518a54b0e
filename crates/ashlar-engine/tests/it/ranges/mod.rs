//! Range deletions and merges against a model, on RocksDB's directories, and judged by RocksDB's tools.

mod golden;
mod judge;
mod model;
mod store;

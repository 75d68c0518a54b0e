//! Range deletions and merges against a model, on RocksDB's directories, and judged by RocksDB's tools.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod golden;
mod judge;
mod model;
mod store;

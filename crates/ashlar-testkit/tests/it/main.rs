//! The harness held against real RocksDB: judges agree with each other, with the model and with the tools.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]

mod judge;
mod leveldb;
mod prepared;

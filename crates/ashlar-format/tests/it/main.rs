//! Formats held against real RocksDB.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::cast_possible_truncation, reason = "test data is small")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod filters;

//! Tests of the C interface: the header, and programs of C over RocksDB's library and ours.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and run programs"
)]

#[path = "../../build/describe.rs"]
mod describe;
#[path = "../../build/header.rs"]
mod header;

/// What the names of functions begin with.
const PREFIX: &str = "rocksdb_";
/// The file of our library.
const LIBRARY: &str = "librocksdb.so";
/// The judge with the same interface.
const THEIRS: &str = "rocksdb-11.8.1";

#[allow(dead_code, reason = "the tests of ashlar-leveldb use more of it")]
mod compiled;
mod copies;
mod coverage;
mod crates;
mod details;
mod families;
mod indexed;
mod installed;
mod listeners;
mod misuse;
mod options;
mod phases;
mod prefixes;
mod programs;
mod settings;
mod written;

//! Tests of LevelDB's interface: the header, and a program of C over LevelDB's library and ours.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and run programs"
)]

#[path = "../../../build/describe.rs"]
mod describe;
#[path = "../../../build/header.rs"]
mod header;

/// What the names of functions begin with.
const PREFIX: &str = "leveldb_";
/// The file of our library.
const LIBRARY: &str = "libleveldb.so";
/// The judge with the same interface.
const THEIRS: &str = "leveldb-1.23";

#[path = "../../../tests/it/compiled.rs"]
#[allow(dead_code, reason = "the other crate uses more of it")]
mod compiled;

mod both;
mod installed;
mod written;

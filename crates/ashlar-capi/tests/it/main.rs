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

mod compiled;
mod details;
mod indexed;
mod listeners;
mod options;
mod phases;
mod prefixes;
mod programs;
mod settings;
mod written;

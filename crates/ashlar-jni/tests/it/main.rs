//! Tests of the Java interface: the exported natives, and programs of Java over RocksDB's native half and ours.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and run programs"
)]
#![allow(dead_code, reason = "the description has more than the tests use")]

#[path = "../../build/describe.rs"]
mod describe;
#[path = "../../build/wrap.rs"]
mod wrap;

mod bench;
mod engine;
mod flink;
mod java;
mod kafka;
mod misuse;
mod mongo;
mod natives;
mod parts;
mod spark;
mod walks;

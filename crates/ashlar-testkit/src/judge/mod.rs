//! Judges: real RocksDB, in child processes, on the directories we write and for the ones we read.
//!
//! Two kinds: [`Judge`] drives the program `rocksdb-judge`, which loads a RocksDB library (7.8.3 from Debian, 11.8.1
//! from its Maven artifact) and obeys lines; [`Tools`] runs Debian's `ldb` and `sst_dump`. Where they are is written by
//! `cargo xtask setup`; what is missing is a [`Skip`] that names why, never a silent pass.

mod digest;
mod driver;
mod places;
mod tools;

pub use digest::{Digest, digest};
pub use driver::{Judge, JudgeError, JudgeVersion, MERGING, Opening};
pub use places::{Skip, place};
pub use tools::{InternalLine, Tools, copy_flat};

//! Judges: real RocksDB and LevelDB, in child processes, on the directories we write and for the ones we read.
//!
//! Two kinds: [`Judge`] drives the program `rocksdb-judge`, which loads a library (RocksDB 7.8.3 and LevelDB 1.23 from Debian,
//! RocksDB 11.8.1 from its Maven artifact) and obeys lines; [`Tools`] runs Debian's `ldb` and `sst_dump`. Where they are is written by
//! `cargo xtask setup`; what is missing is a [`Skip`] that names why, never a silent pass.

mod digest;
mod driver;
mod exports;
mod places;
mod tools;

pub use digest::{Digest, digest};
pub use driver::{Judge, JudgeError, JudgeVersion, MERGING, Opening, READ_FLAGS};
pub use exports::ExportedTable;
pub use places::{Skip, place};
pub use tools::{InternalLine, Tools, copy_flat};

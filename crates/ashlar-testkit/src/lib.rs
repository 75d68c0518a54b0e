//! The test harness: what other crates' tests need and no program ships.
//!
//! Nothing here knows the engine: operation lists, the model and the judges speak in bytes, so that they can be held
//! against any key-value store, ours and RocksDB's alike. Failures are values that name the first difference.
//! `unsafe` is in four places only: the program `rocksdb-judge`, which calls RocksDB's C functions, the counting heap, the
//! kernel's call that cuts a file system off its device, and `fork`.

pub mod block_log;
pub mod children;
pub mod deadline;
mod devices;
pub mod ext4;
pub mod fork;
pub mod golden;
pub mod harm;
pub mod heap;
pub mod judge;
pub mod mutate;
pub mod ops;
pub mod oracle;
pub mod report;
pub mod rng;
pub mod script;
pub mod suite;
pub mod text;
pub mod turns;

pub use deadline::within;
pub use judge::{Judge, JudgeVersion, Skip, Tools};
pub use ops::{Change, Op};
pub use oracle::Model;
pub use rng::Rng;

/// Key and value of one entry, as every dump and model in this crate lists them.
pub type KeyValue = (Vec<u8>, Vec<u8>);

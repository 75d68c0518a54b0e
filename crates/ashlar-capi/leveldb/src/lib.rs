//! LevelDB's C interface over AshlarDB: `libleveldb`, and the header `leveldb/c.h`.
//!
//! 1. `api/leveldb.api` describes each function. The build generates the exported function, as for RocksDB's interface, whose bodies
//!    most functions share.
//! 2. A directory of LevelDB opens, and is one of RocksDB's format afterwards: LevelDB does not open it again.
//! 3. What holds for pointers, memory, errors and panics is that of `ashlar-capi`.
//!
//! Source: LevelDB `include/leveldb/c.h` (names, types, ownership).

pub use rocksdb::{batch, callbacks, checked, db, door, iter, options};

pub mod forwarded;
pub mod settings;

/// The functions that the build generates.
pub mod exports {
    use crate::{checked, door};
    use std::ffi::c_char;
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

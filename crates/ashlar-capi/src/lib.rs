//! RocksDB's C interface over AshlarDB: `librocksdb`, and the header `rocksdb/c.h`.
//!
//! | module | idea |
//! |---|---|
//! | [`door`] | pointers of C to values of Rust and back, errors, panics |
//! | [`checked`] | pointers that are checked, on request |
//! | [`options`], [`objects`] | option objects |
//! | [`callbacks`] | functions of C as comparators, merge operators and compaction filters |
//! | [`batch`], [`indexed`] | write batches, and those that are read back |
//! | [`db`] | databases, families, reads, writes |
//! | [`gets`] | reads into memory of the caller, sizes of ranges |
//! | `kept` | the first error of an object, and bytes that it lends |
//! | [`memory`] | memory of `malloc` that a call returns |
//! | [`iter`] | iterators, snapshots |
//! | [`lists`], [`families`] | the calls over many keys or families |
//! | [`compactions`] | compactions of named tables |
//! | [`listeners`], [`jobs`] | listeners, and what flushes, compactions and ingestions did |
//! | [`table_properties`] | what a table says about itself |
//! | [`copies`] | checkpoints and backups |
//! | [`imports`] | families that are exported and imported |
//! | [`timestamps`] | calls on keys with timestamps, which are refused |
//! | [`txn`] | transaction databases and transactions |
//! | [`info`] | metadata, memory, statistics, and objects that carry a number |
//! | [`files`] | SST files of the caller, updates of the WAL |
//! | [`listed`], [`storage`] | lists of files: live tables, WAL files, all files of one moment |
//! | [`settings`] | settings without a number |
//! | [`space`] | managers of the space of tables |
//! | [`legacy`] | what RocksDB removed |
//! | [`remote`], [`traces`] | what the engine does not have: compactions in other processes, traces |
//!
//! 1. `api/*.api` describes each function: its name, the types of C, whether it can fail. The build generates the exported
//!    function, which converts and calls its body here; the tests generate the header. Few functions are written by hand.
//! 2. Memory that a call returns is from `malloc`: the caller frees it with `rocksdb_free` or `free`.
//! 3. A null pointer for an object is the error `Invalid argument`; a function without `errptr` then answers zero.
//! 4. No panic reaches C: it becomes an error, or zero. A database that panicked goes on.
//! 5. What a program must keep to: a pointer is one that this library returned for that kind of object, and is not used after the
//!    call that gives it up; lengths are those of the memory; iterators and batches belong to one thread at a time. On request
//!    [`checked`] ends a program that breaks the rule for pointers.
//!
//! Source: RocksDB `include/rocksdb/c.h` (names, types, ownership).

#[macro_use]
mod handles;

pub mod batch;
pub mod callbacks;
pub mod checked;
pub mod compactions;
pub mod copies;
pub mod db;
pub mod door;
pub mod families;
pub mod files;
pub mod gets;
pub mod imports;
pub mod indexed;
pub mod info;
pub mod iter;
mod kept;
pub mod jobs;
pub mod legacy;
pub mod listed;
pub mod listeners;
pub mod lists;
pub mod memory;
pub mod objects;
pub mod options;
pub mod remote;
pub mod settings;
pub mod space;
pub mod storage;
pub mod table_properties;
pub mod timestamps;
pub mod traces;
pub mod txn;

/// The functions that the build generates.
pub mod exports {
    use crate::{checked, door};
    use std::ffi::c_char;
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

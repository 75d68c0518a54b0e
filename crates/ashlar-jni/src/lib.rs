//! The native half of RocksDB's Java interface over AshlarDB: `librocksdbjni`.
//!
//! RocksDB's jars stay as they are. Their Java classes declare native methods, and the JVM finds these here instead of in RocksDB's
//! own library, if the directory of this file is in `LD_LIBRARY_PATH`.
//!
//! | module | idea |
//! |---|---|
//! | [`door`] | parameters of natives to values of Rust and back, errors, panics |
//! | [`mod@env`] | what the library calls of the JVM, with safe types |
//! | [`handles`] | the objects behind the numbers that Java keeps |
//! | [`classes`], [`exception`] | classes and methods of Java; errors as exceptions |
//! | [`settings`], [`options`], [`read_options`] | options by their names; those that take objects or several values |
//! | [`parts`], [`slices`] | caches, filters, environments, limits, statistics, operators; bytes of the program |
//! | [`db`], [`snapshots`] | databases, families, snapshots |
//! | [`reads`], [`writes`], [`iterators`], [`batch`] | operations |
//! | [`txn_settings`], [`txn_waits`] | settings of transactions after their begin; what transactions wait for |
//! | [`transactions`], [`indexed`] | transactions; batches that are read back |
//! | [`upkeep`], [`metadata`] | flushes, compactions, properties; what is said about files |
//! | [`copies`], [`files`] | checkpoints and backups; SST files, exports, OPTIONS files |
//! | [`perf`], [`process`] | the perf context; memory and threads of the process |
//! | [`callbacks`], [`listeners`] | objects of Java that the engine calls |
//! | [`flink`] | the compaction filter of Flink's jar |
//!
//! 1. `api/` describes the natives: the table has those of six jars, the other files say what each does. A build script makes the
//!    exported functions of them.
//! 2. Every native of the table is exported. One that AshlarDB does not have throws `RocksDBException` with the status
//!    `NotSupported`, and names itself.
//! 3. One library serves all generations of jars. Where a method has other parameters in another generation, its exported name has
//!    them too, so that each jar finds its own.
//! 4. The bodies are thin: what RocksDB's objects do is in `ashlar-compat`.

#[doc(hidden)]
pub mod exports {
    #![allow(non_snake_case, reason = "the JVM's names")]
    #![allow(unused_variables, unused_imports, unused_qualifications, clippy::all, reason = "generated")]
    use crate::batch::Kind;
    use crate::db::Mode;
    use crate::env::Env;
    use crate::options::*;
    use crate::settings::*;
    use crate::transactions::same;
    use crate::{door, settings};
    use jni_sys::{JNIEnv, jobject};
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

pub mod batch;
pub mod callbacks;
pub mod classes;
pub mod copies;
pub mod db;
pub mod door;
pub mod env;
pub mod exception;
pub mod files;
pub mod flink;
pub mod handles;
pub mod indexed;
pub mod iterators;
pub mod listeners;
pub mod load;
pub mod metadata;
pub mod options;
pub mod parts;
pub mod perf;
pub mod process;
pub mod read_options;
pub mod reads;
pub mod settings;
pub mod slices;
pub mod snapshots;
pub mod transactions;
pub mod txn_settings;
pub mod txn_waits;
pub mod upkeep;
pub mod writes;

//! Golden directories: real directories of RocksDB 7.8.3 and LevelDB 1.23, with their expected content.
//!
//! They lie in the repository under `golden/<writer>/<name>/`, each with an `expected.txt` that says how it was made and
//! what RocksDB's own tools list. Tests work on a copy: opening may change a directory. Equal files are stored once
//! (`golden/same-as.txt`), and empty LOCK files not at all: a copy gets one.

mod copy;
mod listing;

pub use copy::{DIRECTORIES, Golden, files, golden, path, tables};
pub use listing::{InternalEntry, Listing, entries};

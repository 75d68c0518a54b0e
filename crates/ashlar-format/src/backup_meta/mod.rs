//! Backups: the text file `meta/ID` that names the files of a backup, and the names of files that backups share.
//!
//! ```text
//! [schema_version 2[.MINOR]]                   absent in schema 1
//! UNIX TIME
//! SEQUENCE NUMBER
//! [metadata HEX]                               what the application added
//! [NAME VALUE]*                                schema 2 only
//! NUMBER OF FILES
//! PATH [crc32 DECIMAL] [NAME VALUE]*           for each file; the checksum is CRC-32C, unmasked
//! [// FOOTER                                   schema 2 only
//!  [NAME VALUE]*]
//! ```
//! 1. A name that begins with `ni::` must be understood; others may be passed over, and are kept.
//! 2. Paths are relative to the backup directory and stay in it: what leaves it is refused.
//! 3. The number of files is believed no further than there are lines.
//!
//! Source: RocksDB `utilities/backup/backup_engine.cc`.
#![deny(clippy::indexing_slicing)]

mod meta;
mod parse;
mod shared;

#[cfg(test)]
mod tests;

pub use meta::{BackupFile, BackupMeta, Field};
pub use shared::SharedName;

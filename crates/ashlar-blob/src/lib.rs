//! Blob files on storage: large values stand beside the tables, so that compactions do not copy them again and again.
//!
//! A flush or compaction asks [`BlobOptions`] which values to separate, hands them to a [`BlobWriter`], and stores the
//! index it gets back. A read that finds an index asks the [`BlobReader`] of its file. Compactions count with a
//! [`GarbageMeter`] what their inputs refer to and their outputs no longer do, and [`obsolete_files`] tells which files
//! no table refers to.
//!
//! 1. A blob file is written once, from front to back, and is readable when it has its footer.
//! 2. The table that holds an index names the oldest file it refers to in the MANIFEST; a blob file lives as long as a
//!    table names it or an older one.
//! 3. What an index says is compared with the file: its compression, its place between header and footer, and on verified
//!    reads key, lengths and checksum of the record.
//!
//! Source: RocksDB `db/blob/`.
#![deny(clippy::indexing_slicing)]

mod garbage;
mod options;
mod reader;
mod records;
mod writer;

pub use garbage::{BlobAmount, GarbageMeter, LiveBlobFile, OldestBlobFile, blob_places, obsolete_files};
pub use options::BlobOptions;
pub use reader::{BlobReader, BlobVerified};
pub use records::{BlobRecord, BlobRecords};
pub use writer::{BlobSummary, BlobWriter};

//! Blob files on storage. They hold large values beside the tables, so that compactions do not copy these values again
//! and again.
//!
//! A flush or compaction asks [`BlobOptions`] which values to separate, passes them to a [`BlobWriter`], and stores the
//! index that it gets back. A read that finds an index asks the [`BlobReader`] of its file. A [`GarbageMeter`] counts
//! the blobs that a compaction's inputs refer to and its outputs do not. [`obsolete_files`] finds the files that no
//! table refers to.
//!
//! 1. A blob file is written once, from front to back, and can be read once it has its footer.
//! 2. In the MANIFEST, a table with indexes names the oldest blob file that it refers to. A blob file lives as long as
//!    a table names it or an older one.
//! 3. A read compares an index with the file: its compression, and its place between header and footer. A verified read
//!    also compares key, lengths and checksum of the record.
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
pub use reader::BlobReader;
pub use records::{BlobRecord, BlobRecords, BlobVerified};
pub use writer::{BlobSummary, BlobWriter};

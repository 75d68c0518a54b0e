//! Blob files hold values too large for a table. The table holds an index to the value.
//!
//! ```text
//! file:    header: 30 bytes   record*   footer: 32 bytes
//! header:  | magic: u32 | version: u32 = 1 | family: u32 | flags: u8 | compression: u8 | expiration range: 2 * u64 |
//! record:  | key len: u64 | value len: u64 | expiration: u64 | header crc: u32 | blob crc: u32 | key | value |
//! footer:  | magic: u32 | blobs: u64 | expiration range: 2 * u64 | crc: u32 |
//! index:   | kind: u8 | kind 0: expiration, value; 1: file, offset, size, compression: u8; 2: expiration, then as 1 |
//! ```
//! 1. Integers are little endian in the file, varints in the index. CRCs are masked CRC-32C: of a record's first 24 bytes,
//!    of its key and value, of the footer's first 28 bytes. The header has none.
//! 2. An index points at the value instead of its record. `size` is the number of stored bytes, compressed or not.
//! 3. In a file with a compression, every value is compressed and framed like a block, even if the value grew.
//! 4. A file without a footer was not closed. Its records may be complete nevertheless.
//! 5. Only the old stacked BlobDB wrote indexes of kind 0 and 2, and files with expiration ranges.
//!
//! Source: RocksDB `db/blob/blob_log_format.h`, `db/blob/blob_index.h`.
#![deny(clippy::indexing_slicing)]

mod file;
mod index;
mod record;

#[cfg(test)]
mod tests;

pub use file::{BlobFooter, BlobHeader, Expiration};
pub use index::{BlobIndex, BlobPlace};
pub use record::BlobRecordHeader;

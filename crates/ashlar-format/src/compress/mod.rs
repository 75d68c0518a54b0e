//! Compression of blocks: the algorithms of the type byte, and how each frames its output.
//!
//! ```text
//! Snappy:             one raw Snappy block (begins with its own raw length)
//! zlib, LZ4, zstd:    | raw length: varint32 | raw deflate stream, LZ4 block, or zstd frame |
//! bzip2:              | raw length: varint32 | whole .bz2 stream |
//! LevelDB's type 2:   one bare zstd frame
//! ```
//! 1. A raw length is believed only up to the caller's limit and the largest ratio the algorithm can reach.
//! 2. A block decompresses to exactly its raw length, from exactly its bytes.
//! 3. A block that does not shrink enough is stored raw: type 0.
//!
//! Source: RocksDB `util/compression.h`, `util/compression.cc`; LevelDB `table/format.cc`.
#![deny(clippy::indexing_slicing)]

mod compressor;
mod decompress;
mod dictionary;
mod kind;
mod lz4_dictionary;

#[cfg(test)]
mod tests;

pub use compressor::Compressor;
pub use decompress::{decompress, decompress_into, decompress_with, raw_len};
pub use dictionary::{Dictionary, train_zstd_dictionary};
pub use kind::Compression;

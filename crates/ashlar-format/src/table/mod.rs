//! The parts of a block-based table file around its blocks.
//!
//! ```text
//! | data block, trailer | ... | meta blocks, each with trailer | metaindex, trailer | footer |
//! trailer: | compression: u8 | checksum: u32 LE over block and compression byte |
//! ```
//! 1. A handle's size excludes the trailer.
//! 2. Only handles say where blocks are; there may be padding between blocks. From format version 6 on, the metaindex
//!    ends where the footer starts.
//! 3. From version 6 on a checksum also depends on the block's offset, so that a misplaced block is found.
//!
//! Source: RocksDB `table/format.cc`, `table/meta_blocks.cc`, `table/table_properties.cc`. Golden: `golden/sst`.
#![deny(clippy::indexing_slicing)]

mod checksum;
mod compression_property;
mod footer;
mod handle;
mod meta_index;
mod properties;
mod properties_codec;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;

pub use checksum::{BLOCK_TRAILER_LEN, BlockChecksum, ChecksumKind};
pub use compression_property::CompressionProperty;
pub use footer::{Footer, TableKind};
pub use handle::BlockHandle;
pub use meta_index::{FilterPlace, FilterScope, MetaIndex};
pub use properties::{IndexKind, Properties};

pub use crate::block::IndexValue;

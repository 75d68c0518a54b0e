//! Blocks: sorted entries with shared key prefixes, and an array of restart points to search them by.
//!
//! ```text
//! | entry* | restart offset: u32 LE * R | hash index, if bit 31 | values offset: u32, if bit 28 | packed: u32 LE |
//! entry:  | shared: varint32 | non_shared: varint32 | value_len: varint32 | key tail: non_shared | value: value_len |
//! index entry with delta-coded handles: the same without value_len; the value contains its own length
//! packed: R in bits 0..28, bit 28 separated values, bit 29 a search hint, bit 30 zero, bit 31 hash index
//! hash index: | bucket: u8 * N | N: u16 LE |
//! ```
//! 1. A key is the first `shared` bytes of the key before it, and the tail. At a restart point `shared` is 0; the
//!    reverse does not hold: a writer without delta coding shares nothing anywhere.
//! 2. [`DataBlock::parse`] proves the restart array once: offsets strictly ascending from 0, all inside the entries.
//! 3. Cursors own no bytes of the block: each call takes the block, so that one struct can hold a pinned block and its
//!    cursor.
//! 4. Every decode moves forward by at least two bytes, so hostile bytes end every loop.
//!
//! Source: RocksDB `table/block_based/block.cc`, `block_builder.cc`, `data_block_footer.cc`, `index_builder.cc`.
#![deny(clippy::indexing_slicing)]

mod builder;
mod cursor;
mod data_block;
mod entry;
mod hash_index;
mod index;
mod lookup;
mod rewrite;
mod series;
mod sidecar;
mod target;

#[cfg(test)]
mod form_tests;
#[cfg(test)]
mod tests;

pub use builder::BlockBuilder;
pub use cursor::{BlockCursor, EntryCursor, IndexCursor, Passed, PlainCursor};
pub use data_block::DataBlock;
pub use entry::{EntryFormat, InternalEntries, PlainEntries, RawEntry, ValueRange};
pub use hash_index::{Bucket, HashIndex};
pub use index::{IndexBlockBuilder, IndexEntries, IndexValue};
pub use lookup::InBlock;
pub use rewrite::{is_separated, join_separated, rewrite_block};
pub use sidecar::{Sidecar, SidecarBuilder, Start};
pub use target::{InternalTarget, PlainTarget, SeekTarget, UserTarget};

//! Memtables: recent writes, sorted, in memory.
//!
//! The engine uses the trait [`MemtableRep`]. [`memtable()`] makes one, and [`protected()`] adds checksums to it. A tree
//! keeps the entries of the built-in orders, a skiplist those of custom ones. [`MemtableList`] has the memtables of one family. Only
//! `arena`, `stored`, `node` and `tree/node` contain `unsafe`; the rest of this crate is safe code over their types.

mod arena;
mod cursor;
mod entry;
mod gap;
mod index;
mod list;
mod make;
mod memtable;
#[cfg(all(test, loom))]
mod models;
mod node;
mod protected;
mod rep;
#[cfg(loom)]
mod shadow;
mod skiplist;
mod stored;
mod tombstones;
mod tree;

#[cfg(test)]
mod conformance;

pub use entry::{MemoryLimit, Op, TombstoneParts};
pub use gap::Gap;
pub use list::{Memtable, MemtableList};
pub use make::{memtable, memtable_within};
pub use protected::protected;
pub use rep::{Found, MemtableRep, Prepared, Show, WriterSlot};

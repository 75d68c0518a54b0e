//! Memtables: recent writes, sorted, in memory.
//!
//! The engine uses the trait [`MemtableRep`]. [`skiplist()`] makes the only kind, and [`protected()`] adds checksums to
//! it. Only `arena` and `node` contain `unsafe`; the rest of this crate is safe code over their types.

mod arena;
mod cursor;
mod difference;
mod entry;
mod gap;
mod make;
#[cfg(all(test, loom))]
mod models;
mod node;
mod protected;
mod rep;
#[cfg(loom)]
mod shadow;
mod skiplist;
mod tombstones;

#[cfg(test)]
mod conformance;

pub use entry::{MemoryLimit, Op, TombstoneParts};
pub use gap::Gap;
pub use make::{skiplist, skiplist_within};
pub use protected::protected;
pub use rep::{Found, MemtableRep, Prepared, Show, WriterSlot};

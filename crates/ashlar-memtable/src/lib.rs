//! Memtables: recent writes, sorted, in memory.
//!
//! [`MemtableRep`] is what the engine sees; [`skiplist()`] makes the one kind there is, and [`protected()`] puts checksums
//! around it. `unsafe` lives in `arena` and `node` only; everything else of this crate is safe code over their types.

mod arena;
mod cursor;
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

pub use protected::protected;
pub use rep::{
    Found, MemoryLimit, MemtableRep, Op, Prepared, TombstoneParts, WriterSlot, skiplist, skiplist_within,
};

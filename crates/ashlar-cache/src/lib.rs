//! Block frames: uncompressed blocks in memory, found by table and block number, capped by one pool.
//!
//! A [`FramePool`] may be shared by many tables and databases. Each open table has a [`SlotArray`]: one slot per
//! block, so that a hit is an array access, no hash and no key. Who reads a block holds a [`FramePin`].
//!
//! ```text
//! TableReader -> SlotArray -> slot[ordinal] -> Frame <- FramePin (readers)
//!                    ^                           |
//!     FramePool: clock ring of (slots, ordinal)  +-> charge, given back when the last holder lets go
//! ```
//! 1. A hit takes no lock that another block's hit takes.
//! 2. `used <= capacity` at every instant (until the capacity is lowered): what does not fit is handed out uncharged
//!    and is not kept.
//! 3. A frame is charged from before it is built until its bytes are let go, in a slot or not.
//! 4. Frames of 2 to 64 KiB stand in slabs, which go back to the system: what is free in the pool is free in memory, but for a
//!    sixteenth, a few slabs, and those in which somebody holds a frame.

mod clock;
mod frame;
#[cfg(all(test, loom))]
mod models;
mod pages;
mod pool;
mod slab;
mod slots;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers throughout
mod tests;

pub use frame::FramePin;
pub use pages::Pages;
pub use pool::{FramePool, PoolUsage};
pub use slots::SlotArray;

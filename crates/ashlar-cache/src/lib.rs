//! Block frames: uncompressed blocks in memory, found by table and block number, capped by one pool.
//!
//! A [`FramePool`] may be shared by many tables and databases. Each open table has a [`SlotArray`]: one slot per
//! block, so that a hit is an array access, no hash and no key. A reader of a block holds a [`FramePin`].
//!
//! ```text
//! TableReader -> SlotArray -> slot[ordinal] -> Frame <- FramePin (readers)
//!                    ^                           |
//!     FramePool: clock ring of (slots, ordinal)  +-> charge, given back when the last holder lets go
//! ```
//! 1. A hit takes no lock that another block's hit takes.
//! 2. `used <= capacity` at every instant (until the capacity is lowered): what does not fit is handed out uncharged
//!    and is not kept.
//! 3. A frame is charged from before it is built until its bytes are freed, whether it is in a slot or not.
//! 4. Frames of 2 to 64 KiB live in slabs. Freed frames return memory to the operating system a slab at a time. Kept back: one
//!    sixteenth of the capacity, a few slabs, and slabs that still hold a pinned frame.

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

//! The block cache: frames with uncompressed blocks, found by table and block number. One pool caps their memory.
//!
//! Many tables and databases may share a [`FramePool`]. Each open table has a [`SlotArray`] with one slot per block, so
//! a hit is an array access without a hash or key. A reader of a block holds a [`FramePin`].
//!
//! ```text
//! TableReader -> SlotArray -> slot[ordinal] -> Frame <- FramePin (readers)
//!                    ^                           |
//!     FramePool: clock ring of (slots, ordinal)  +-> charge, returned when the last holder drops the frame
//! ```
//! 1. Hits of two different blocks share no lock.
//! 2. `used <= capacity` at every instant (until the capacity is lowered). A block that does not fit is returned to the
//!    reader and is not cached. It is charged beside `used` while a reader holds it, and the cache shrinks by as much.
//!    Pools of several databases may share one capacity ([`BlockCache`]), which holds for all of them together.
//! 3. A frame is charged from before it is built until its bytes are freed, whether it is in a slot or not.
//! 4. Frames of 2 to 64 KiB live in slabs, longer ones in pages of their own. Freed frames return memory to the operating system a slab at a time. Kept
//!    back: one sixteenth of the capacity, a few slabs, and slabs that still hold a pinned frame.
//! 5. [`SlotArray::admits`] advises a point read that missed: a block enters while the pool has room, and afterwards on
//!    its second read within about one turnover of the pool (`ghosts`). One point read evicts at a time.
//!    The others do not cache their block meanwhile, so they do not wait for locks.

mod clock;
mod block_cache;
mod frame;
mod ghosts;
#[cfg(all(test, loom))]
mod models;
mod pages;
mod pool;
mod slab;
mod slots;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // small numbers throughout
mod tests;
#[cfg(all(test, not(any(loom, miri))))]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // small numbers throughout
mod traces;

pub use block_cache::BlockCache;
pub use frame::FramePin;
pub use pages::Pages;
pub use pool::{FramePool, PoolUsage};
pub use slots::{Admission, SlotArray};

//! A block in memory and the pin that keeps it there.

use crate::pages::Pages;
use crate::pool::FramePool;
use crate::slab::{Piece, class_of};
use ashlar_kernels::{LINE, prefetch};
use ashlar_sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The memory of a frame beside its bytes: its header, its slot and its entry in the clock ring.
pub(crate) const OVERHEAD: usize = 168;

/// The memory of a block.
pub(crate) enum Place {
    /// A piece of the pool's slabs.
    Slab(Piece),
    /// In separate pages if it is long, and else on the heap: blocks outside the cache, very short and very long ones, and
    /// blocks that found no place in a slab.
    Apart(Box<Pages<u8>>),
}

impl Deref for Place {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Place::Slab(piece) => piece,
            Place::Apart(bytes) => bytes,
        }
    }
}

/// One uncompressed block, and its sidecar behind it. Their bytes never change.
pub(crate) struct Frame {
    /// Dropped before the charge, so that uncharged memory is free.
    place: Place,
    /// The length of the block.
    len: usize,
    charge: Charge,
    /// The frame was read since the clock hand passed. Relaxed, because it is only a hint.
    touched: AtomicBool,
    /// Set once, by the thread that took the frame out of its slot.
    detached: AtomicBool,
}

/// Where a block with a sidecar is, to prefetch the first key and the sidecar: `| address: 48 bits | length: 16 bits |`. The length
/// is 0 without a sidecar, and for a block of 64 KiB or more. Only a hint: the memory there may be another block's by then.
#[derive(Clone, Copy)]
pub(crate) struct First(u64);

impl First {
    fn new(block: &[u8], sidecar: &[u8]) -> First {
        let len = u16::try_from(block.len()).unwrap_or(0);
        let len = if sidecar.is_empty() { 0 } else { len };
        First((block.as_ptr().addr() as u64) << 16 | u64::from(len))
    }

    #[inline]
    pub(crate) fn prefetch(self) {
        let (address, len) = ((self.0 >> 16) as usize, (self.0 & 0xffff) as usize);
        if len > 0 {
            let block = std::ptr::without_provenance::<u8>(address);
            prefetch(block, 1);
            // A sidecar is a tenth of its block at most. With the last word of the block.
            prefetch(block.wrapping_add(len).wrapping_sub(4), len / 10 / LINE + 1);
        }
    }

    /// Prefetches the block without the sidecar.
    #[inline]
    pub(crate) fn prefetch_all(self) {
        let (address, len) = ((self.0 >> 16) as usize, (self.0 & 0xffff) as usize);
        prefetch(std::ptr::without_provenance(address), len.div_ceil(LINE));
    }
}

/// A charge reserved in a pool; dropping it releases the charge.
pub(crate) struct Charge {
    pool: Arc<FramePool>,
    size: usize,
    /// The block is not cached: only readers keep it.
    beyond: bool,
}

impl Charge {
    /// The charge of a frame of `len` bytes, for which the heap would take `in_heap` bytes.
    pub(crate) fn size_of(len: usize, in_heap: usize) -> usize {
        class_of(len).unwrap_or(in_heap).saturating_add(OVERHEAD)
    }

    /// Wraps a charge that is reserved already.
    pub(crate) fn reserved(pool: Arc<FramePool>, size: usize) -> Charge {
        Charge { pool, size, beyond: false }
    }

    /// Charges a block that the pool does not cache.
    pub(crate) fn beyond(pool: &Arc<FramePool>, size: usize) -> Charge {
        pool.hold_beyond(size);
        Charge { pool: Arc::clone(pool), size, beyond: true }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.beyond { self.pool.release_beyond(self.size) } else { self.pool.release(self.size) }
    }
}

impl Frame {
    pub(crate) fn new(place: Place, len: usize, charge: Charge) -> Arc<Frame> {
        let (touched, detached) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Frame { place, len, charge, touched, detached })
    }

    /// The block and the sidecar.
    #[inline]
    pub(crate) fn all_bytes(&self) -> &[u8] {
        &self.place
    }

    /// What a search in the block reads first.
    pub(crate) fn first(&self) -> First {
        let (block, sidecar) = self.parts();
        First::new(block, sidecar)
    }

    #[inline]
    fn parts(&self) -> (&[u8], &[u8]) {
        self.place.split_at_checked(self.len).unwrap_or_default()
    }

    /// The bytes that are charged for it.
    pub(crate) fn charged_bytes(&self) -> usize {
        self.charge.size
    }

    /// Whether the block is in that slab of its pool.
    pub(crate) fn stands_in(&self, slab: usize) -> bool {
        matches!(&self.place, Place::Slab(piece) if piece.slab() == slab)
    }

    /// Moves the block to `place`, which holds the same bytes. `place` becomes the block's former memory.
    pub(crate) fn swap_place(&mut self, place: &mut Place) {
        std::mem::swap(&mut self.place, place);
    }

    /// Notes a read. Stores only when the value changes, so that hot cache lines stay shared between cores.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the frame was read since the last call.
    pub(crate) fn take_touch(&self) -> bool {
        let touched = self.touched.load(Ordering::Relaxed);
        if touched {
            self.touched.store(false, Ordering::Relaxed);
        }
        touched
    }

    /// Notes that no slot points here any more: if a pin holds it, its charge counts as pinned from now on.
    pub(crate) fn detach(&self) {
        if !self.detached.swap(true, Ordering::Relaxed) {
            self.charge.pool.pin(self.charge.size);
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // No other reference exists. An exchange sees the last value even if the count of the `Arc` orders nothing, as
        // under loom.
        if self.detached.swap(false, Ordering::Relaxed) {
            self.charge.pool.unpin(self.charge.size);
        }
    }
}

/// The number of bytes to prefetch before a block is searched.
const PREFETCHED: usize = 4096 + 512;

/// Prefetches the cache lines of `bytes`, except for less than a line at the end.
#[inline]
pub(crate) fn prefetch_lines(bytes: &[u8]) {
    prefetch(bytes.as_ptr(), bytes.len() / LINE);
}

/// Keeps one uncompressed block in memory. Clones are cheap and share; it may outlive its table and its pool.
#[derive(Clone)]
pub struct FramePin(Arc<Frame>);

impl FramePin {
    pub(crate) fn new(frame: Arc<Frame>) -> FramePin {
        FramePin(frame)
    }

    /// A block that is not cached. It is charged to `pool` as long as a reader holds it, and takes that memory from the cache.
    pub(crate) fn beyond(pool: &Arc<FramePool>, bytes: Vec<u8>) -> FramePin {
        let len = bytes.len();
        let charge = Charge::beyond(pool, len.saturating_add(OVERHEAD));
        FramePin(Frame::new(Place::Apart(Box::new(bytes.into())), len, charge))
    }

    /// The bytes of the block at these offsets. Faster than a slice of the block in a step of a cursor; offsets behind the
    /// block may give bytes of the sidecar.
    #[inline]
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        self.0.all_bytes().get(range).unwrap_or_default()
    }

    /// The sidecar; empty if the block has none.
    #[inline]
    pub fn sidecar(&self) -> &[u8] {
        self.0.parts().1
    }

    /// Prefetches a block without a sidecar, so that a search waits for its cache lines once and not one by one. Of a large
    /// block, only the beginning and the end, where the restart points are. With a sidecar, the cache has prefetched what
    /// the search reads first.
    // bench: readrandom, seekrandom
    #[inline]
    pub fn prefetch(&self) {
        let (block, sidecar) = self.0.parts();
        if !sidecar.is_empty() {
            return;
        }
        prefetch_lines(block.get(..PREFETCHED).unwrap_or(block));
        prefetch_lines(block.last_chunk::<64>().map_or(block, |end| end));
    }

    /// True when the block entered the cache of its pool.
    pub fn is_pooled(&self) -> bool {
        !self.0.charge.beyond
    }
}

impl Deref for FramePin {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.parts().0
    }
}

impl fmt::Debug for FramePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FramePin({} bytes)", self.len())
    }
}

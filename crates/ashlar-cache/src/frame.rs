//! A block in memory and the pin that keeps it there.

use crate::pool::FramePool;
use crate::slab::{Piece, class_of};
use ashlar_sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What a frame costs beside its bytes: its own header, its slot and its place in the clock ring.
const OVERHEAD: usize = 160;

/// What a block stands in.
pub(crate) enum Place {
    /// In the pool's memory.
    Slab(Piece),
    /// In the allocator's: blocks of no pool, very short and very long ones, and what found no place in a slab.
    Heap(Vec<u8>),
}

impl Deref for Place {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Place::Slab(piece) => piece,
            Place::Heap(bytes) => bytes,
        }
    }
}

/// One uncompressed block. Its bytes never change.
pub(crate) struct Frame {
    /// Dropped before the charge is: what is free in the pool is free in memory.
    place: Place,
    /// `None` for a frame that was never charged.
    charge: Option<Charge>,
    /// Read since the hand passed. A hint: relaxed.
    touched: AtomicBool,
    /// Set once, by the thread that took the frame out of its slot.
    detached: AtomicBool,
}

/// Room reserved in a pool; dropping it gives the room back.
pub(crate) struct Charge {
    pool: Arc<FramePool>,
    size: usize,
}

impl Charge {
    /// What a frame of these bytes is charged.
    pub(crate) fn size_of(bytes: &Vec<u8>) -> usize {
        class_of(bytes.len()).unwrap_or(bytes.capacity()).saturating_add(OVERHEAD)
    }

    /// Wraps room that has been reserved already.
    pub(crate) fn reserved(pool: Arc<FramePool>, size: usize) -> Charge {
        Charge { pool, size }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pool.release(self.size);
    }
}

impl Frame {
    pub(crate) fn new(place: Place, charge: Option<Charge>) -> Arc<Frame> {
        Arc::new(Frame { place, charge, touched: AtomicBool::new(false), detached: AtomicBool::new(false) })
    }

    /// The block.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.place
    }

    /// Whether it stands in that slab of its pool.
    pub(crate) fn stands_in(&self, slab: usize) -> bool {
        matches!(&self.place, Place::Slab(piece) if piece.slab() == slab)
    }

    /// The same bytes stand in `place` from now on, which becomes where they stood.
    pub(crate) fn swap_place(&mut self, place: &mut Place) {
        std::mem::swap(&mut self.place, place);
    }

    /// Notes a read. Stores only when that changes something, so that hot frames stay shared in the cores' caches.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was read since the last call.
    pub(crate) fn take_touch(&self) -> bool {
        self.touched.swap(false, Ordering::Relaxed)
    }

    /// Notes that no slot points here any more: if a pin holds it, its charge counts as pinned from now on.
    pub(crate) fn detach(&self) {
        if let Some(charge) = &self.charge
            && !self.detached.swap(true, Ordering::Relaxed)
        {
            charge.pool.pin(charge.size);
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Nothing else refers to it any more. An exchange sees the last value also where the count of the `Arc` orders nothing,
        // as under loom.
        if self.detached.swap(false, Ordering::Relaxed)
            && let Some(charge) = &self.charge
        {
            charge.pool.unpin(charge.size);
        }
    }
}

/// Bytes of a block that are worth asking for before it is searched.
const PREFETCHED: usize = 4096 + 512;

#[inline]
fn prefetch_lines(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see and cannot fault; the address is inside the slice.
        // Checked by: `prefetched_bytes_are_the_same`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    // Elsewhere there is no stable way to ask.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Keeps one uncompressed block in memory. Clones are cheap and share; it may outlive its table and its pool.
#[derive(Clone)]
pub struct FramePin(Arc<Frame>);

impl FramePin {
    pub(crate) fn new(frame: Arc<Frame>) -> FramePin {
        FramePin(frame)
    }

    /// A block that belongs to no pool and is charged to none: for reads that must not fill the cache.
    pub fn unpooled(bytes: Vec<u8>) -> FramePin {
        FramePin(Frame::new(Place::Heap(bytes), None))
    }

    /// Asks the processor for the block: a search that follows waits for one cache line, not for one after the other.
    /// A hint; of large blocks only the beginning and the end, where restart points are.
    // bench: readrandom, seekrandom
    #[inline]
    pub fn prefetch(&self) {
        let bytes = self.0.bytes();
        prefetch_lines(bytes.get(..PREFETCHED).unwrap_or(bytes));
        prefetch_lines(bytes.get(bytes.len().saturating_sub(1)..).unwrap_or_default());
    }

    /// True when the block is charged to a pool.
    pub fn is_charged(&self) -> bool {
        self.0.charge.is_some()
    }
}

impl Deref for FramePin {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for FramePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FramePin({} bytes)", self.len())
    }
}

//! The slots of one table: the place of each block's frame.

use crate::clock::{Entry, Slot, Slots, Taken};
use crate::frame::{Charge, Frame, FramePin};
use crate::ghosts::Ghosts;
use crate::pages::Pages;
use crate::pool::{FramePool, HITS, MISSES, Turn};
use ashlar_kernels::prefetch;
use ashlar_sync::{Rank, RwLock};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of the next array.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What [`SlotArray::admits`] answers to a point read whose block may enter the pool.
pub struct Admission<'p> {
    _turn: Option<Turn<'p>>,
}

/// One slot per block of an open table. Dropping it removes all its frames from the pool; pinned frames stay charged
/// until their pins are dropped.
pub struct SlotArray {
    slots: Arc<Pages<Slot>>,
    /// The same, for ring entries.
    counted: Slots,
    ghosts: Ghosts,
    id: u64,
    pool: Arc<FramePool>,
}

impl SlotArray {
    /// Empty slots for `blocks` blocks, whose frames are charged to `pool`.
    pub fn new(pool: Arc<FramePool>, blocks: u32) -> SlotArray {
        let slots: Arc<Pages<Slot>> = Arc::new((0..blocks).map(|_| RwLock::new(Rank::Inner, None)).collect());
        let counted = Arc::new(Arc::clone(&slots));
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        SlotArray { slots, counted, ghosts: Ghosts::new(blocks), id, pool }
    }

    /// The memory of the slots themselves, in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&**self.slots) + self.ghosts.memory()
    }

    /// A number that no other array of this process has, or had before.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// The block, if it is in memory. Counts a hit or a miss.
    ///
    /// # Cost
    /// The slot's own read lock (two atomic operations on its word) and one count on the frame.
    #[inline]
    pub fn hit(&self, ordinal: u32) -> Option<FramePin> {
        let found = self.peek(ordinal);
        self.pool.counts.add(if found.is_some() { HITS } else { MISSES }, 1);
        found
    }

    /// Prefetches the slot of a block that will be asked for.
    #[inline]
    pub fn prefetch(&self, ordinal: u32) {
        if let Some(slot) = self.slots.get(ordinal as usize) {
            prefetch(std::ptr::from_ref(slot).cast(), 1);
        }
    }

    /// Prefetches the head of the block's frame and what a search reads first, if the block is in memory.
    ///
    /// # Cost
    /// The slot's read lock.
    #[inline]
    pub fn prefetch_frame(&self, ordinal: u32) {
        if let Some(slot) = self.slots.get(ordinal as usize)
            && let Some(Taken { frame, first }) = slot.read().as_ref()
        {
            prefetch(Arc::as_ptr(frame).cast(), 1);
            first.prefetch();
        }
    }

    /// Prefetches a whole block with the head of its frame, if the block is in memory and has a sidecar.
    ///
    /// # Cost
    /// The slot's read lock, and an instruction per cache line of the block.
    pub fn prefetch_all(&self, ordinal: u32) {
        if let Some(slot) = self.slots.get(ordinal as usize)
            && let Some(Taken { frame, first }) = slot.read().as_ref()
        {
            prefetch(Arc::as_ptr(frame).cast(), 1);
            first.prefetch_all();
        }
    }

    /// [`SlotArray::hit`] without counting.
    #[inline]
    pub fn peek(&self, ordinal: u32) -> Option<FramePin> {
        let slot = self.slots.get(ordinal as usize)?.read();
        let Taken { frame, first } = slot.as_ref()?;
        first.prefetch();
        let frame = Arc::clone(frame);
        drop(slot);
        frame.touch();
        Some(FramePin::new(frame))
    }

    /// Whether a point read that missed should [insert](SlotArray::insert) its block of `len` bytes: while the pool has
    /// room, and afterwards when the block was read before, about one turnover of the pool ago at most. Not
    /// while another point read evicts. Call it once for each such read, because it notes the read. The caller keeps the
    /// answer until the block is inserted.
    ///
    /// # Cost
    /// One or two atomic operations.
    pub fn admits(&self, ordinal: u32, len: usize) -> Option<Admission<'_>> {
        let (size, limit) = (Charge::size_of(len, len), self.pool.limit());
        if size <= self.pool.room() {
            return Some(Admission { _turn: None });
        }
        let read = self.ghosts.read(ordinal, size, (self.pool.turnovers(), limit));
        let turn = if read && size <= limit { self.pool.take_turn()? } else { return None };
        Some(Admission { _turn: Some(turn) })
    }

    /// A block of the table that is not cached, without a sidecar. The pool is charged as long as a reader holds it.
    pub fn hold(&self, bytes: Vec<u8>) -> FramePin {
        FramePin::beyond(&self.pool, bytes)
    }

    /// Caches `bytes` as block `ordinal`, with the sidecar of the block, and pins it. If another thread was faster, returns
    /// that thread's frame. If the pool has no space even after evictions, returns what [`SlotArray::hold`] does.
    pub fn insert(&self, ordinal: u32, bytes: Cow<'_, [u8]>, sidecar: &[u8]) -> FramePin {
        let Some(slot) = self.slots.get(ordinal as usize) else {
            return self.hold(bytes.into_owned());
        };
        let in_heap = match &bytes {
            Cow::Owned(bytes) => bytes.capacity(),
            Cow::Borrowed(bytes) => bytes.len(),
        };
        let size = Charge::size_of(bytes.len() + sidecar.len(), in_heap + sidecar.len());
        if !FramePool::reserve(&self.pool, size) {
            return self.hold(bytes.into_owned());
        }
        let charge = Charge::reserved(self.pool.clone(), size);
        let entry = Entry::new(&self.counted, ordinal);
        let len = bytes.len();
        let frame = Frame::new(self.pool.place(bytes, sidecar, &entry), len, charge);
        let mut guard = slot.write();
        if let Some(there) = guard.as_ref() {
            return FramePin::new(Arc::clone(&there.frame));
        }
        *guard = Some(Taken::new(Arc::clone(&frame)));
        drop(guard);
        self.pool.enter(entry);
        FramePin::new(frame)
    }
}

impl Drop for SlotArray {
    fn drop(&mut self) {
        let mut frames = 0;
        for slot in self.slots.iter() {
            let gone = slot.write().take();
            if let Some(Taken { frame, .. }) = gone {
                frame.detach();
                frames += 1;
            }
        }
        // An evictor may still hold the slots for a moment. They are empty and stay empty.
        self.counted = Arc::default();
        self.pool.left(frames);
    }
}

impl fmt::Debug for SlotArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotArray({} blocks)", self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a closed table's slots is free at once, even if its entries stay in the ring for long.
    #[test]
    fn ring_entries_keep_no_slots_in_memory() {
        let pool = FramePool::new(1 << 20);
        let slots = SlotArray::new(Arc::clone(&pool), 1000);
        drop(slots.insert(3, vec![7; 100].into(), &[]));
        assert_eq!(
            Arc::weak_count(&slots.slots),
            0,
            "a weak reference keeps what it refers to from being freed"
        );
        assert_eq!(Arc::weak_count(&slots.counted), 1, "of the one entry");
        drop(slots);
        assert_eq!((pool.frames(), pool.entries()), (0, 1));
    }
}

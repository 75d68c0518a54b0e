//! The cap on the memory of all frames, and the eviction when it is reached.

use crate::clock::{Clock, Entry, Verdict};
use crate::frame::Place;
use crate::slab::{NoPiece, SLACK, Slabs};
use ashlar_base::memory::MemoryBudget;
use ashlar_base::stats::Counters;
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::fmt;
use std::sync::Arc;

/// Entries the hand looks at for one insert before it gives up and the block is not kept.
const SWEEP: usize = 512;

/// Slabs that are emptied for one block that has no place, and at most when blocks went because something else grew.
const FOR_ONE: usize = 2;
const FOR_OTHERS: usize = 64;

/// Which of a pool's counters is which.
pub(crate) const HITS: usize = 0;
pub(crate) const MISSES: usize = 1;

/// What a pool holds at one moment. Bytes, except the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Charged in all.
    pub used: usize,
    /// The cap, or what the budget leaves if that is less.
    pub capacity: usize,
    /// The part of `used` that is in no slot any more but still pinned.
    pub pinned: usize,
    /// Blocks found.
    pub hits: u64,
    /// Blocks not found.
    pub misses: u64,
}

/// The memory of all block frames of the tables that share it. The cap is hard: see the crate's rule 2.
pub struct FramePool {
    capacity: AtomicUsize,
    /// What else the pool has to leave room for.
    budget: Option<Arc<MemoryBudget>>,
    /// Changed by compare-and-swap only, so that the cap cannot be passed. Relaxed: it orders nothing.
    used: AtomicUsize,
    pinned: AtomicUsize,
    clock: Mutex<Clock>,
    slabs: Arc<Slabs>,
    pub(crate) counts: Counters<2>,
}

impl FramePool {
    /// An empty pool that never charges more than `capacity` bytes. With 0 nothing is kept.
    pub fn new(capacity: usize) -> Arc<FramePool> {
        Arc::new(FramePool::make(capacity, None))
    }

    /// A pool that also keeps to what `budget` leaves, and makes room when anything else grows.
    pub fn within(capacity: usize, budget: &Arc<MemoryBudget>) -> Arc<FramePool> {
        let pool = Arc::new(FramePool::make(capacity, Some(Arc::clone(budget))));
        let weak = Arc::downgrade(&pool);
        budget.on_growth(move || {
            if let Some(pool) = weak.upgrade() {
                pool.make_room();
            }
        });
        pool
    }

    /// A pool with so much slack in its slabs.
    #[cfg(test)]
    pub(crate) fn with_slack(capacity: usize, slack: usize) -> Arc<FramePool> {
        Arc::new(FramePool { slabs: Slabs::new(slack), ..FramePool::make(capacity, None) })
    }

    fn make(capacity: usize, budget: Option<Arc<MemoryBudget>>) -> FramePool {
        FramePool {
            capacity: AtomicUsize::new(capacity),
            budget,
            used: AtomicUsize::new(0),
            pinned: AtomicUsize::new(0),
            clock: Mutex::new(Rank::Cache, Clock::default()),
            slabs: Slabs::new(SLACK),
            counts: Counters::new(),
        }
    }

    /// What it may hold now.
    fn limit(&self) -> usize {
        let capacity = self.capacity.load(Ordering::Relaxed);
        self.budget.as_ref().map_or(capacity, |budget| capacity.min(budget.left()))
    }

    /// The budget it keeps to, for what else is charged.
    pub fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.budget.as_ref()
    }

    /// What it holds. The figures are read one after the other.
    pub fn usage(&self) -> PoolUsage {
        PoolUsage {
            used: self.used.load(Ordering::Relaxed),
            capacity: self.limit(),
            pinned: self.pinned.load(Ordering::Relaxed),
            hits: self.counts.sum(HITS),
            misses: self.counts.sum(MISSES),
        }
    }

    /// Blocks that stand in slots.
    pub fn frames(&self) -> usize {
        self.clock.lock().living()
    }

    /// Changes the cap. A lower one evicts at once what is not held; held frames leave as they are let go.
    pub fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.make_room();
        self.bring_together(self.slabs.in_use());
    }

    /// Evicts what is above the limit and not held.
    fn make_room(&self) {
        if self.used.load(Ordering::Relaxed) <= self.limit() {
            return;
        }
        let mut looks = self.clock.lock().len().saturating_mul(2);
        while self.used.load(Ordering::Relaxed) > self.limit() && self.evict_one(&mut looks) {}
        self.bring_together(FOR_OTHERS);
    }

    /// What the block of `entry` is to stand in: its bytes, now or from before.
    pub(crate) fn place(&self, mut bytes: Vec<u8>, entry: &Entry) -> Place {
        let mut put = self.slabs.put(&bytes, entry, None);
        if put.as_ref().err() == Some(&NoPiece::Crowded) {
            self.bring_together(FOR_ONE);
            put = self.slabs.put(&bytes, entry, None);
        }
        match put {
            Ok(piece) => Place::Slab(piece),
            Err(_) => {
                bytes.shrink_to_fit();
                Place::Heap(bytes)
            }
        }
    }

    /// Empties up to `most` slabs while too many are in use for what is in them.
    fn bring_together(&self, most: usize) {
        for _ in 0..most {
            let Some((slab, blocks)) = self.slabs.to_empty() else { return };
            blocks.iter().for_each(|block| block.bring_out_of(slab, &self.slabs));
        }
    }

    /// Charges `size` bytes if they fit, evicting for them. False when they do not.
    pub(crate) fn reserve(&self, size: usize) -> bool {
        if size > self.limit() {
            return false;
        }
        let mut looks = SWEEP;
        loop {
            let capacity = self.limit();
            let fits = |used: usize| used.checked_add(size).filter(|sum| *sum <= capacity);
            if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
                return true;
            }
            if !self.evict_one(&mut looks) {
                return false;
            }
        }
    }

    /// Moves the hand until one frame went. False when `looks` entries were looked at in vain.
    fn evict_one(&self, looks: &mut usize) -> bool {
        while *looks > 0 {
            *looks -= 1;
            let popped = self.clock.lock().pop();
            let Some(entry) = popped else { return false };
            match entry.judge() {
                Verdict::Evicted => return true,
                Verdict::Stays(entry) => self.clock.lock().push(entry),
                Verdict::Dead => self.clock.lock().buried(),
            }
        }
        false
    }

    /// A frame came to stand in a slot.
    pub(crate) fn enter(&self, entry: Entry) {
        self.clock.lock().push(entry);
    }

    /// A table closed, which had this many frames.
    pub(crate) fn left(&self, frames: usize) {
        if frames > 0 {
            self.clock.lock().died(frames);
            self.bring_together(FOR_OTHERS);
        }
    }

    /// Entries in the ring, dead ones included.
    #[cfg(test)]
    pub(crate) fn ring_len(&self) -> usize {
        self.clock.lock().len()
    }

    /// Bytes of the slabs in use.
    #[cfg(test)]
    pub(crate) fn slab_bytes(&self) -> usize {
        self.slabs.in_use() << 18
    }

    pub(crate) fn release(&self, size: usize) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }

    pub(crate) fn pin(&self, size: usize) {
        self.pinned.fetch_add(size, Ordering::Relaxed);
    }

    pub(crate) fn unpin(&self, size: usize) {
        self.pinned.fetch_sub(size, Ordering::Relaxed);
    }
}

impl fmt::Debug for FramePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.usage().fmt(f)
    }
}

//! The cap on the memory of all frames, and the eviction when it is reached.

use crate::block_cache::BlockCache;
use crate::clock::{Clock, Entry, Verdict};
use crate::frame::Place;
use crate::ghosts::Turnovers;
use crate::slab::{NoPiece, SLACK, Slabs};
use ashlar_base::memory::MemoryBudget;
use ashlar_base::stats::Counters;
use ashlar_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The number of ring entries that one insert checks before it gives up and does not cache the block.
pub(crate) const SWEEP: usize = 512;

/// The number of slabs to empty for one block that has no place, and the most when another use of memory evicted
/// blocks.
const FOR_ONE: usize = 2;
const FOR_OTHERS: usize = 64;

/// The number of ring entries that a walk over the ring copies under the lock, which every miss needs.
const PIECE: usize = 1024;

/// Which of a pool's counters is which.
pub(crate) const HITS: usize = 0;
pub(crate) const MISSES: usize = 1;

/// The contents of a pool at one moment, in bytes except the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// All bytes charged for cached blocks, also for those that left the cache and are still held.
    pub used: usize,
    /// The cap, or the memory that the budget leaves if that is less.
    pub capacity: usize,
    /// The part of `used` that is pinned and in no slot.
    pub pinned: usize,
    /// Bytes of blocks that readers hold and that the pool never cached, because the cache had no room, or the read had
    /// `fill_cache` off. They are not in `used`.
    pub beyond: usize,
    /// The number of hits.
    pub hits: u64,
    /// The number of misses.
    pub misses: u64,
}

/// The memory of all block frames of the tables that share it. The cap is hard: see the crate's rule 2.
pub struct FramePool {
    capacity: AtomicUsize,
    /// The budget of other memory that shares the cap.
    budget: Option<Arc<MemoryBudget>>,
    /// The capacity that other pools share.
    common: Option<Arc<BlockCache>>,
    /// Changed by compare-and-swap only, so that the cap is never exceeded. Relaxed: it orders no other memory access.
    used: AtomicUsize,
    pinned: AtomicUsize,
    /// Reduces the limit of the cache. Has no limit itself, because readers already hold these blocks.
    beyond: AtomicUsize,
    clock: Mutex<Clock>,
    /// A point read evicts for its block.
    evicting: AtomicBool,
    slabs: Arc<Slabs>,
    turnovers: Turnovers,
    pub(crate) counts: Counters<2>,
}

/// The turn to evict for the block of a point read; the drop gives it back.
pub(crate) struct Turn<'p>(&'p AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl FramePool {
    /// An empty pool that never charges more than `capacity` bytes. With 0 it caches nothing.
    pub fn new(capacity: usize) -> Arc<FramePool> {
        Arc::new(FramePool::make(capacity, None))
    }

    /// A pool that also stays within the memory that `budget` leaves, and evicts blocks when other memory grows.
    pub fn within(capacity: usize, budget: &Arc<MemoryBudget>) -> Arc<FramePool> {
        FramePool::heeding(FramePool::make(capacity, Some(Arc::clone(budget))), budget)
    }

    /// A pool within the memory that `budget` leaves, whose capacity is that of `cache`.
    pub fn of_cache(cache: Arc<BlockCache>, budget: &Arc<MemoryBudget>) -> Arc<FramePool> {
        let pool = FramePool::make(usize::MAX, Some(Arc::clone(budget)));
        let pool = FramePool::heeding(FramePool { common: Some(Arc::clone(&cache)), ..pool }, budget);
        cache.join(&pool);
        pool
    }

    fn heeding(pool: FramePool, budget: &Arc<MemoryBudget>) -> Arc<FramePool> {
        let pool = Arc::new(pool);
        let weak = Arc::downgrade(&pool);
        budget.on_growth(move || {
            if let Some(pool) = weak.upgrade() {
                pool.make_room();
            }
        });
        pool
    }

    /// A pool with this slack in its slabs.
    #[cfg(test)]
    pub(crate) fn with_slack(capacity: usize, slack: usize) -> Arc<FramePool> {
        Arc::new(FramePool { slabs: Slabs::new(slack), ..FramePool::make(capacity, None) })
    }

    fn make(capacity: usize, budget: Option<Arc<MemoryBudget>>) -> FramePool {
        FramePool {
            capacity: AtomicUsize::new(capacity),
            budget,
            common: None,
            used: AtomicUsize::new(0),
            pinned: AtomicUsize::new(0),
            beyond: AtomicUsize::new(0),
            clock: Mutex::new(Rank::Inner, Clock::default()),
            evicting: AtomicBool::new(false),
            slabs: Slabs::new(SLACK),
            turnovers: Turnovers::new(),
            counts: Counters::new(),
        }
    }

    /// The present limit of cached blocks in bytes.
    pub(crate) fn limit(&self) -> usize {
        let capacity = self.capacity.load(Ordering::Relaxed);
        let capacity = self.common.as_ref().map_or(capacity, |cache| cache.capacity());
        let limit = self.budget.as_ref().map_or(capacity, |budget| capacity.min(budget.left()));
        limit.saturating_sub(self.beyond())
    }

    /// The bytes that are free.
    pub(crate) fn room(&self) -> usize {
        let own = self.limit().saturating_sub(self.used());
        self.common.as_ref().map_or(own, |cache| own.min(cache.left()))
    }

    /// The cache whose capacity the pool shares with others.
    pub fn common(&self) -> Option<&Arc<BlockCache>> {
        self.common.as_ref()
    }

    /// Bytes of blocks that readers hold outside the cache.
    pub fn beyond(&self) -> usize {
        self.beyond.load(Ordering::Relaxed)
    }

    /// Bytes of the cached blocks that readers hold, also of those that have left the cache: a part of [`PoolUsage::used`]. While
    /// other threads evict blocks or close tables, a few may be missing or count twice.
    ///
    /// # Cost
    /// A look at every block in the cache, in pieces: other threads wait for one piece at most.
    pub fn held_in_cache(&self) -> usize {
        let (mut at, end) = self.clock.lock().span();
        let (mut piece, mut held) = (Vec::with_capacity(PIECE), 0);
        while at < end {
            at = self.clock.lock().copy(at..end, PIECE, &mut piece);
            held += piece.drain(..).map(|entry| entry.held_bytes()).sum::<usize>();
        }
        (held + self.pinned.load(Ordering::Relaxed)).min(self.used())
    }

    /// Bytes of all blocks that readers hold: in the cache, after they left it, and outside it.
    ///
    /// # Cost
    /// That of [`FramePool::held_in_cache`].
    pub fn held_by_readers(&self) -> usize {
        self.held_in_cache() + self.beyond()
    }

    /// The budget, for other memory that shares the cap.
    pub fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.budget.as_ref()
    }

    /// The contents of the pool. The figures are read one after the other.
    pub fn usage(&self) -> PoolUsage {
        PoolUsage {
            used: self.used.load(Ordering::Relaxed),
            capacity: self.limit(),
            pinned: self.pinned.load(Ordering::Relaxed),
            beyond: self.beyond(),
            hits: self.counts.sum(HITS),
            misses: self.counts.sum(MISSES),
        }
    }

    /// The number of blocks in slots.
    pub fn frames(&self) -> usize {
        self.clock.lock().living()
    }

    /// Changes the cap. A lower cap evicts at once all frames without a pin; pinned frames leave when their pins are
    /// dropped.
    pub fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.make_room();
        self.bring_together(self.slabs.in_use());
    }

    /// Evicts frames without a pin until the pool is within its limit.
    fn make_room(&self) {
        if self.used.load(Ordering::Relaxed) <= self.limit() {
            return;
        }
        let mut looks = self.clock.lock().len().saturating_mul(2);
        while self.used.load(Ordering::Relaxed) > self.limit() && self.evict_one(&mut looks) {}
        self.bring_together(FOR_OTHERS);
    }

    /// The memory for the block of `entry` and its sidecar: a piece of a slab, or the heap if there is no piece.
    pub(crate) fn place(&self, bytes: Cow<'_, [u8]>, sidecar: &[u8], entry: &Entry) -> Place {
        let mut put = self.slabs.put((&bytes, sidecar), entry, None);
        if put.as_ref().err() == Some(&NoPiece::Crowded) {
            self.bring_together(FOR_ONE);
            put = self.slabs.put((&bytes, sidecar), entry, None);
        }
        match put {
            Ok(piece) => Place::Slab(piece),
            Err(_) => {
                let mut bytes = bytes.into_owned();
                bytes.extend_from_slice(sidecar);
                Place::Apart(Box::new(bytes.into()))
            }
        }
    }

    /// Empties up to `most` slabs while the slabs in use exceed rule 3 of `slab`.
    fn bring_together(&self, most: usize) {
        for _ in 0..most {
            let Some((slab, blocks)) = self.slabs.to_empty() else { return };
            blocks.iter().for_each(|block| block.bring_out_of(slab, &self.slabs));
        }
    }

    /// All charged bytes.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The time of ghosts.
    pub(crate) fn turnovers(&self) -> &Turnovers {
        &self.turnovers
    }

    /// Charges `size` bytes if they fit, after evictions if necessary. False when they do not fit.
    pub(crate) fn reserve(&self, size: usize) -> bool {
        if let Some(cache) = &self.common {
            cache.shrink();
        }
        if size > self.limit() || self.common.as_ref().is_some_and(|cache| !cache.reserve(size)) {
            return false;
        }
        let fits = self.reserve_own(size);
        if !fits && let Some(cache) = &self.common {
            cache.release(size);
        }
        fits
    }

    fn reserve_own(&self, size: usize) -> bool {
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

    /// Moves the clock hand until one frame was evicted. False when `looks` entries were checked without success.
    pub(crate) fn evict_one(&self, looks: &mut usize) -> bool {
        let mut verdict = None;
        while *looks > 0 {
            *looks -= 1;
            let popped = self.clock.lock().turn(verdict.take());
            let Some(entry) = popped else { return false };
            match entry.judge() {
                Verdict::Evicted => return true,
                other => verdict = Some(other),
            }
        }
        self.clock.lock().settle(verdict);
        false
    }

    /// The turn of a point read to evict for its block, if no other one has it.
    pub(crate) fn take_turn(&self) -> Option<Turn<'_>> {
        let free = !self.evicting.load(Ordering::Relaxed) && !self.evicting.swap(true, Ordering::Acquire);
        free.then(|| Turn(&self.evicting))
    }

    /// Adds a frame in a slot to the ring.
    pub(crate) fn enter(&self, entry: Entry) {
        self.clock.lock().push(entry);
    }

    /// Notes that a table with this many frames was closed.
    pub(crate) fn left(&self, frames: usize) {
        if frames > 0 {
            self.clock.lock().died(frames);
            self.bring_together(FOR_OTHERS);
        }
    }

    /// Entries in the ring, dead ones included.
    pub(crate) fn entries(&self) -> usize {
        self.clock.lock().len()
    }

    /// Bytes of the slabs in use.
    #[cfg(test)]
    pub(crate) fn slab_bytes(&self) -> usize {
        self.slabs.in_use() << 18
    }

    pub(crate) fn release(&self, size: usize) {
        self.used.fetch_sub(size, Ordering::Relaxed);
        if let Some(cache) = &self.common {
            cache.release(size);
        }
    }

    /// Charges a block that is not cached, and evicts for it.
    pub(crate) fn hold_beyond(&self, size: usize) {
        self.beyond.fetch_add(size, Ordering::Relaxed);
        let mut looks = SWEEP;
        while self.used.load(Ordering::Relaxed) > self.limit() && self.evict_one(&mut looks) {}
    }

    pub(crate) fn release_beyond(&self, size: usize) {
        self.beyond.fetch_sub(size, Ordering::Relaxed);
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

//! One capacity for the blocks of several databases.
//!
//! Each database has a [`FramePool`] of its own, which also stays within the database's memory cap. Pools with one
//! [`BlockCache`] charge each block to it first.
//! 1. The pools' `used` together never exceed the capacity (until the capacity is lowered).
//! 2. When the capacity is used up, the pool to evict from is chosen in proportion to its bytes. So blocks that no reader
//!    asks for leave first, also those of an idle database.
//! 3. Memtables may take room of the capacity: [`WriteBuffers::within`](ashlar_base::memory::WriteBuffers::within). Their growth
//!    evicts blocks.
//! 4. No lock is held while a pool evicts.

use crate::pool::{FramePool, SWEEP};
use ashlar_base::memory::Room;
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::fmt;
use std::sync::{Arc, Weak};

/// The golden ratio of 2^64: multiples are spread evenly.
const STEP: usize = 0x9e37_79b9_7f4a_7c15;

/// A capacity for blocks that databases of one process share. Each open database counts its cached blocks against it.
pub struct BlockCache {
    capacity: AtomicUsize,
    /// Changed by compare-and-swap only. Relaxed: it orders no other memory access.
    used: AtomicUsize,
    pools: Mutex<Vec<Weak<FramePool>>>,
    turn: AtomicUsize,
    /// Bytes of the capacity that memtables take.
    memtables: AtomicUsize,
}

impl BlockCache {
    /// A cache that never has more than `capacity` bytes of blocks. With 0 it caches nothing.
    pub fn new(capacity: usize) -> Arc<BlockCache> {
        Arc::new(BlockCache {
            capacity: AtomicUsize::new(capacity),
            used: AtomicUsize::new(0),
            pools: Mutex::new(Rank::Inner, Vec::new()),
            turn: AtomicUsize::new(0),
            memtables: AtomicUsize::new(0),
        })
    }

    /// The capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the capacity. A lower one evicts blocks that no reader holds at once. The others leave at a later miss, when their
    /// readers have let them go.
    pub fn set_capacity(&self, bytes: usize) {
        self.capacity.store(bytes, Ordering::Relaxed);
        let (pools, used) = (self.pools(), self.used());
        let part_of = |pool: &FramePool| pool.used() as u128 * self.room() as u128 / used.max(1) as u128;
        // First each pool down to its part of the new capacity, then further where readers hold more than such a part.
        for pool in &pools {
            let part = part_of(pool);
            evict_while(pool, || self.used() > self.room() && pool.used() as u128 > part);
        }
        for pool in &pools {
            evict_while(pool, || self.used() > self.room());
        }
    }

    /// The bytes of cached blocks of all databases.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes of the cached blocks that readers hold: a part of what is used.
    ///
    /// # Cost
    /// A look at every block in the cache.
    pub fn held_in_cache(&self) -> usize {
        self.pools().iter().map(|pool| pool.held_in_cache()).sum()
    }

    /// The number of cached blocks.
    pub fn blocks(&self) -> usize {
        self.pools().iter().map(|pool| pool.frames()).sum()
    }

    /// The bytes that are free.
    pub(crate) fn left(&self) -> usize {
        self.room().saturating_sub(self.used())
    }

    /// What memtables leave of the capacity.
    fn room(&self) -> usize {
        self.capacity().saturating_sub(self.memtables.load(Ordering::Relaxed))
    }

    /// A pool charges to the cache from now on.
    pub(crate) fn join(&self, pool: &Arc<FramePool>) {
        let mut pools = self.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// Charges `size` bytes if they fit, after evictions if necessary. False when they do not fit.
    pub(crate) fn reserve(&self, size: usize) -> bool {
        let mut looks = SWEEP;
        loop {
            let room = self.room();
            let fits = |used: usize| used.checked_add(size).filter(|sum| *sum <= room);
            if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
                return true;
            }
            if size > room || !self.evict_one(&mut looks) {
                return false;
            }
        }
    }

    /// Evicts blocks beyond a capacity that was lowered. Called at each miss, and when memtables grow.
    #[inline]
    pub(crate) fn shrink(&self) {
        if self.used() > self.room() {
            let mut looks = SWEEP;
            while self.used() > self.room() && self.evict_one(&mut looks) {}
        }
    }

    pub(crate) fn release(&self, size: usize) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }

    fn pools(&self) -> Vec<Arc<FramePool>> {
        self.pools.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Evicts one frame of the pool whose turn it is, or else of another one.
    fn evict_one(&self, looks: &mut usize) -> bool {
        self.in_turn().is_some_and(|pool| evict_from(&pool, looks))
            || self.pools().iter().any(|pool| evict_from(pool, looks))
    }

    /// A pool, each as often as its part of the bytes.
    fn in_turn(&self) -> Option<Arc<FramePool>> {
        let turn = self.turn.fetch_add(STEP, Ordering::Relaxed);
        // Below `used`: both factors are below 2^64.
        let mut ticket = (turn as u128 * self.used() as u128) >> usize::BITS;
        // A pool that ends here frees memory, and takes no lock.
        self.pools.lock().iter().filter_map(Weak::upgrade).find(|pool| {
            let part = pool.used() as u128;
            let is_it = ticket < part;
            ticket = ticket.saturating_sub(part);
            is_it
        })
    }
}

/// Evicts frames of a pool, in at most two rounds of its ring.
fn evict_while(pool: &FramePool, is_wanted: impl Fn() -> bool) {
    let mut looks = 2 * pool.entries();
    while is_wanted() && pool.evict_one(&mut looks) {}
}

/// Evicts one frame of a pool, after at most two rounds of its ring. Leaves half of the looks to other pools, because readers may
/// hold all blocks of this one.
fn evict_from(pool: &FramePool, looks: &mut usize) -> bool {
    let own = looks.div_ceil(2).min(2 * pool.entries());
    let mut left = own;
    let is_evicted = pool.evict_one(&mut left);
    *looks -= own - left;
    is_evicted
}

/// Blocks give way, so that both together stay within the capacity as long as the memtables alone do.
impl Room for BlockCache {
    fn take(&self, bytes: usize) {
        self.memtables.fetch_add(bytes, Ordering::Relaxed);
        self.shrink();
    }

    fn give_back(&self, bytes: usize) {
        self.memtables.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCache({} of {} bytes)", self.used(), self.capacity())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::SlotArray;
    use ashlar_base::memory::{MemoryBudget, MemoryUse, WriteBuffers};

    fn pool(cache: &Arc<BlockCache>) -> (Arc<FramePool>, SlotArray) {
        let pool = FramePool::of_cache(Arc::clone(cache), &MemoryBudget::new(1 << 30));
        let slots = SlotArray::new(Arc::clone(&pool), 1000);
        (pool, slots)
    }

    fn fill(slots: &SlotArray, blocks: std::ops::Range<u32>, bytes: usize) {
        for ordinal in blocks {
            drop(slots.insert(ordinal, vec![1; bytes].into(), &[]));
        }
    }

    #[test]
    fn the_pools_together_stay_within_the_capacity() {
        let cache = BlockCache::new(1 << 20);
        let all = [pool(&cache), pool(&cache), pool(&cache)];
        for (_, slots) in &all {
            fill(slots, 0..500, 4000);
            assert!(cache.used() <= 1 << 20 && cache.used() > 900 << 10, "{cache:?}");
        }
        assert_eq!(cache.used(), all.iter().map(|(pool, _)| pool.used()).sum::<usize>());
        cache.set_capacity(100 << 10);
        assert!(cache.used() <= 100 << 10, "{cache:?}");
        drop(all);
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn blocks_give_way_to_memtables() {
        let cache = BlockCache::new(1 << 20);
        let (_pool, slots) = pool(&cache);
        fill(&slots, 0..500, 4000);
        assert!(cache.used() > 900 << 10, "{cache:?}");
        // Two limits, which programs may make one after the other for one cache.
        let charge = [300 << 10, 400 << 10].map(|bytes| {
            let memtables = WriteBuffers::within(1 << 20, Arc::<BlockCache>::clone(&cache));
            MemoryBudget::new(1 << 30).account(Some(memtables)).charge(MemoryUse::Memtables, bytes)
        });
        assert!(cache.used() <= 324 << 10, "{cache:?}");
        fill(&slots, 500..600, 4000);
        assert!(cache.used() <= 324 << 10 && cache.used() > 200 << 10, "{cache:?}");
        drop(charge);
        fill(&slots, 0..500, 4000);
        assert!(cache.used() > 900 << 10, "{cache:?}");
    }

    /// Regression: the looks at a pool whose blocks are all held were those of the other pools too.
    #[test]
    fn held_blocks_of_one_pool_keep_no_room_of_others() {
        let cache = BlockCache::new(1 << 20);
        let (held, free) = (pool(&cache), pool(&cache));
        let pins: Vec<_> = (0..100).map(|n| held.1.insert(n, vec![1; 4000].into(), &[])).collect();
        fill(&free.1, 0..500, 1000);
        cache.set_capacity(500 << 10);
        assert!(cache.used() <= 500 << 10, "{cache:?}");
        // A miss of the second pool finds room among its own blocks.
        let before = free.0.frames();
        fill(&free.1, 500..520, 1000);
        assert!(free.0.frames() + 2 >= before, "{} of {before}", free.0.frames());
        // What was held leaves at a miss, also if its block does not fit.
        cache.set_capacity(1000);
        assert!(cache.used() >= 400_000, "{cache:?}");
        drop(pins);
        fill(&free.1, 600..604, 4000);
        assert!(cache.used() <= 1000, "{cache:?}");
    }

    /// The blocks of an idle database make room for those of a busy one.
    #[test]
    fn a_busy_pool_gets_the_capacity() {
        let cache = BlockCache::new(1 << 20);
        let (idle, busy) = (pool(&cache), pool(&cache));
        fill(&idle.1, 0..500, 4000);
        let before = idle.0.used();
        for _ in 0..10 {
            fill(&busy.1, 0..100, 4000);
        }
        assert!(busy.0.used() >= 400_000, "{} of {before}", busy.0.used());
        assert!(cache.used() <= 1 << 20);
    }

    #[test]
    fn a_tiny_cache_caches_nothing_and_reads_go_on() {
        for capacity in [0, 1, 100] {
            let cache = BlockCache::new(capacity);
            let (pool, slots) = pool(&cache);
            let pin = slots.insert(0, vec![1; 4000].into(), &[]);
            assert_eq!((cache.used(), pin.len()), (0, 4000));
            assert!(cache.held_in_cache() == 0 && pool.held_by_readers() >= 4000);
            drop(pin);
            assert_eq!((pool.held_by_readers(), pool.frames()), (0, 0));
        }
    }
}

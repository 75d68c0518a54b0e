use crate::{FramePin, FramePool, SlotArray};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A block whose bytes tell which it is.
fn block(table: u8, ordinal: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![table; len];
    bytes[..4].copy_from_slice(&ordinal.to_le_bytes());
    bytes
}

fn is_block(bytes: &[u8], table: u8, ordinal: u32) -> bool {
    bytes[..4] == ordinal.to_le_bytes() && bytes[4..].iter().all(|b| *b == table)
}

#[test]
fn keeps_and_finds() {
    let pool = FramePool::new(1 << 20);
    let slots = SlotArray::new(pool.clone(), 10);
    assert!(slots.hit(3).is_none());
    let pin = slots.insert(3, block(1, 3, 100).into(), &[]);
    assert!(is_block(&pin, 1, 3) && pin.is_pooled());
    assert!(is_block(&slots.hit(3).unwrap(), 1, 3));
    assert!(is_block(&slots.insert(3, block(2, 3, 100).into(), &[]), 1, 3), "the first one stays");
    assert!(!slots.insert(10, block(1, 10, 100).into(), &[]).is_pooled(), "no such slot");
    let usage = pool.usage();
    assert_eq!((usage.hits, usage.misses, usage.pinned), (1, 1, 0));
    assert!(usage.used > 100 && usage.used < 400, "{usage:?}");
    assert_eq!(pool.frames(), 1);
    drop(slots);
    assert_eq!(pool.usage().pinned, pool.usage().used, "held, in no slot");
    assert_eq!(pool.frames(), 0);
    assert!(is_block(&pin, 1, 3));
    drop(pin);
    assert_eq!((pool.usage().used, pool.usage().pinned), (0, 0));
}

#[test]
fn second_chance_for_what_is_read() {
    let pool = FramePool::new(4 * 1200);
    let slots = SlotArray::new(pool.clone(), 100);
    for i in 0..4 {
        slots.insert(i, block(0, i, 1000).into(), &[]);
    }
    for i in 4..40 {
        assert!(slots.hit(0).is_some(), "read between any two inserts, so it stays");
        slots.insert(i, block(0, i, 1000).into(), &[]);
    }
    assert!(slots.hit(1).is_none() && slots.hit(39).is_some());
    pool.set_capacity(0);
    assert_eq!(pool.usage().used, 0);
    assert!(!slots.insert(1, block(0, 1, 10).into(), &[]).is_pooled());
}

#[test]
fn one_point_read_evicts_at_a_time() {
    let pool = FramePool::new(4 * 1200);
    let slots = SlotArray::new(pool.clone(), 100);
    assert!(slots.admits(0, 1000).is_some(), "there is room");
    (0..4).for_each(|at| drop(slots.insert(at, block(0, at, 1000).into(), &[])));
    assert!(slots.admits(9, 1000).is_none(), "first read");
    let first = slots.admits(9, 1000);
    assert!(first.is_some(), "second read");
    assert!(slots.admits(9, 1000).is_none(), "another one evicts");
    drop(first);
    assert!(slots.admits(9, 1000).is_some());
}

#[test]
fn held_frames_are_not_evicted_and_the_cap_holds() {
    let pool = FramePool::new(10 * 1200);
    let slots = SlotArray::new(pool.clone(), 100);
    let held: Vec<FramePin> = (0..50).map(|i| slots.insert(i, block(7, i, 1000).into(), &[])).collect();
    assert_eq!(held.iter().filter(|p| p.is_pooled()).count(), 10);
    let usage = pool.usage();
    assert!(usage.used <= 10 * 1200 && usage.beyond >= 40 * 1000, "{usage:?}");
    for (i, pin) in held.iter().enumerate() {
        assert!(is_block(pin, 7, i as u32));
    }
    drop(held);
    assert!(slots.insert(60, block(7, 60, 1000).into(), &[]).is_pooled());
}

#[test]
fn entries_of_closed_tables_leave_the_ring() {
    let pool = FramePool::new(1 << 30);
    for _ in 0..if cfg!(miri) { 10 } else { 50 } {
        let slots = SlotArray::new(pool.clone(), 20);
        (0..20).for_each(|i| drop(slots.insert(i, block(0, i, 10).into(), &[])));
    }
    assert!(pool.entries() <= 100, "{}", pool.entries());
    assert_eq!(pool.usage().used, 0);
}

/// Blocks of many lengths go at random; those without a pin are brought together, and the slabs they leave are given back.
#[test]
fn what_is_evicted_leaves_whole_slabs() {
    let pool = FramePool::new(if cfg!(miri) { 4 << 20 } else { 32 << 20 });
    let slots = SlotArray::new(pool.clone(), 10_000);
    let len = |i: u32| 4000 + (i as usize * 7919) % 900;
    let mut held = Vec::new();
    for i in 0..10_000 {
        let pin = slots.insert(i, block(1, i, len(i)).into(), &[]);
        if i % 2500 == 0 {
            held.push((i, pin));
        }
    }
    for capacity in [24 << 20, 7 << 20, 3 << 20, 1 << 20] {
        pool.set_capacity(capacity);
        let standing = (0..10_000)
            .filter_map(|i| Some((i, slots.peek(i)?)))
            .inspect(|(i, pin)| assert!(is_block(pin, 1, *i)));
        let bytes: usize = standing.map(|(i, _)| len(i)).sum();
        assert!(bytes > capacity / 2 && pool.usage().used <= capacity, "{bytes} of {capacity}");
        let slabs = pool.slab_bytes();
        assert!(slabs < pool.usage().used + capacity / 16 + (2 << 20), "{slabs} of {capacity}");
    }
    assert!(held.iter().all(|(i, pin)| is_block(pin, 1, *i)));
    drop(held);
    drop(slots);
    assert_eq!((pool.usage().used, pool.slab_bytes()), (0, 0));
}

#[test]
fn concurrent_hits_inserts_and_closes() {
    // Blocks for the allocator, and such as stand in slabs, which are brought together all the time.
    concurrent(64 << 10, 200, 2000);
    concurrent(900 << 10, 4000, 1000);
}

fn concurrent(capacity: usize, shortest: usize, longer: usize) {
    let rounds: u64 = if cfg!(miri) { 40 } else { 20_000 };
    let pool = FramePool::with_slack(capacity, 1);
    let over = Arc::new(AtomicBool::new(false));
    let tables: Vec<Arc<SlotArray>> = (0..3).map(|_| Arc::new(SlotArray::new(pool.clone(), 64))).collect();
    std::thread::scope(|scope| {
        for worker in 0..4u64 {
            let (pool, over, tables) = (pool.clone(), over.clone(), tables.clone());
            scope.spawn(move || {
                let mut x = worker.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                let mut held = Vec::new();
                let own = SlotArray::new(pool.clone(), 64);
                for _ in 0..rounds {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    let which = (x >> 8) as usize % 4;
                    let ordinal = (x >> 20) as u32 % 64;
                    let table = tables.get(which).map_or(&own, |t| t);
                    let tag = if which == 3 { 100 + worker as u8 } else { which as u8 };
                    let pin = table.hit(ordinal).unwrap_or_else(|| {
                        table.insert(
                            ordinal,
                            block(tag, ordinal, shortest + (x >> 40) as usize % longer).into(),
                            &[],
                        )
                    });
                    assert!(is_block(&pin, tag, ordinal));
                    if x % 16 == 0 {
                        held.push((pin, tag, ordinal));
                    }
                    if held.len() > 12 {
                        for (pin, tag, ordinal) in held.drain(..) {
                            assert!(is_block(&pin, tag, ordinal));
                        }
                    }
                    if pool.usage().used > capacity {
                        over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(!over.load(Ordering::Relaxed), "the cap was passed");
    let usage = pool.usage();
    assert_eq!(usage.hits + usage.misses, 4 * rounds, "{usage:?}");
    assert!(usage.hits > rounds / 20 && usage.misses > rounds / 20, "{usage:?}");
    drop(tables);
    assert_eq!((pool.usage().used, pool.usage().pinned), (0, 0));
}

#[test]
fn prefetched_bytes_are_the_same() {
    let slots = SlotArray::new(FramePool::new(0), 1);
    for len in [0, 1, 63, 64, 65, 5000, 100_000] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let pin = slots.hold(bytes.clone());
        pin.prefetch();
        assert_eq!(&pin[..], &bytes[..]);
    }
}

#[test]
fn a_sidecar_stays_behind_its_block() {
    let pool = FramePool::new(1 << 20);
    let slots = SlotArray::new(pool.clone(), 10);
    // On the heap, in a slab, and on the heap again.
    for (at, len) in [(1, 1000), (2, 5000), (3, 100_000)] {
        let (bytes, sidecar) = (block(1, at, len), [u8::try_from(at).unwrap(); 77]);
        let before = pool.usage().used;
        let pin = slots.insert(at, bytes.as_slice().into(), &sidecar);
        assert!(pool.usage().used >= before + len + 77, "both are charged");
        slots.prefetch(at);
        slots.prefetch_frame(at);
        pin.prefetch();
        assert_eq!((&pin[..], pin.sidecar()), (&bytes[..], &sidecar[..]));
        assert_eq!((pin.at(3..9), pin.at(len..len + 78)), (&bytes[3..9], &[][..]));
    }
    slots.prefetch(10);
    slots.prefetch_frame(9);
    let pin = slots.insert(10, vec![1; 10].into(), &[2; 3]);
    assert_eq!((pin.len(), pin.sidecar().len()), (10, 0), "what is not cached has none");
}

#[test]
fn the_memory_beside_a_block_is_charged() {
    let (slot, entry) = (size_of::<crate::clock::Slot>(), size_of::<crate::clock::Entry>());
    let frame = size_of::<crate::frame::Frame>() + 2 * size_of::<usize>();
    // The ring and the slab have an entry each.
    assert!(frame + slot + 2 * entry <= crate::frame::OVERHEAD, "{frame} {slot} {entry}");
}

#[test]
fn blocks_outside_the_cache_are_charged_while_readers_hold_them() {
    let pool = FramePool::new(64 << 10);
    let slots = SlotArray::new(pool.clone(), 10);
    let small: Vec<_> = (0..4).map(|at| slots.insert(at, block(1, at, 10_000).into(), &[])).collect();
    assert!(small.iter().all(FramePin::is_pooled) && pool.usage().beyond == 0);
    assert!(pool.held_by_readers() >= 40_000, "in slots, and held: {}", pool.held_by_readers());
    drop(small);
    assert_eq!(pool.held_by_readers(), 0);
    let large = slots.insert(5, block(1, 5, 100_000).into(), &[]);
    assert!(!large.is_pooled() && is_block(&large, 1, 5));
    let usage = pool.usage();
    assert!(usage.beyond >= 100_000 && usage.used == 0, "the cache gave way: {usage:?}");
    assert_eq!(pool.held_by_readers(), usage.beyond);
    let apart = slots.hold(block(1, 6, 5000));
    assert!(pool.usage().beyond >= 105_000 && slots.peek(6).is_none());
    drop((large, apart));
    assert_eq!((pool.usage().beyond, pool.held_by_readers()), (0, 0));
    assert!(slots.insert(7, block(1, 7, 10_000).into(), &[]).is_pooled(), "there is room again");
}

/// Regression: a look at the held blocks copied the whole ring under the lock. The pieces have each block once, also when the hand
/// has moved.
#[test]
fn held_blocks_are_counted_once_over_many_pieces() {
    let pool = FramePool::new(8 << 20);
    let slots = SlotArray::new(pool.clone(), 5000);
    let held: Vec<_> = (0..3000).map(|at| slots.insert(at, block(1, at, 100).into(), &[])).collect();
    let all = pool.usage().used;
    assert_eq!((pool.held_in_cache(), pool.held_by_readers()), (all, all));
    // Every block is held, so the hand meets them all and evicts none.
    pool.set_capacity(1 << 10);
    assert_eq!(pool.held_in_cache(), all);
    drop(held);
    assert_eq!(pool.held_in_cache(), 0);
    let beyond = slots.hold(block(1, 6, 5000));
    assert!(pool.held_in_cache() == 0 && pool.held_by_readers() > 5000, "not a part of the cache");
    drop(beyond);
}

//! Every order in which a reader and an evictor can meet at a frame, tried by loom (`cargo xtask loom`).

use crate::{FramePool, SlotArray};
use ashlar_sync::loom::{self, thread};
use std::sync::Arc;

/// Room for one of the blocks below.
const ONE: usize = 400;

fn block(ordinal: u8) -> Vec<u8> {
    vec![ordinal; 200]
}

/// A frame is pinned by a reader while another insert wants its room: the reader's bytes stay what they are, the cap holds
/// throughout, and in the end the pool accounts for what stands in slots and nothing else.
#[test]
fn a_pin_against_an_evictor() {
    loom::model(|| {
        let pool = FramePool::new(ONE);
        let slots = Arc::new(SlotArray::new(Arc::clone(&pool), 2));
        drop(slots.insert(0, block(0).into(), &[]));
        let reader = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || {
                if let Some(pin) = slots.peek(0) {
                    thread::yield_now();
                    assert!(*pin == block(0));
                }
            })
        };
        let pin = slots.insert(1, block(1).into(), &[]);
        assert!(*pin == block(1));
        assert!(pool.usage().used <= ONE);
        drop(pin);
        reader.join().expect("reads");
        let standing = [0, 1].map(|at| slots.peek(at).is_some());
        assert!(standing != [true, true], "two frames in the room of one");
        let usage = pool.usage();
        assert_eq!((usage.used > 0, usage.pinned), (standing != [false, false], 0));
        drop(slots);
        assert_eq!(pool.usage().used, 0);
    });
}

/// A table closes under a reader: the reader's bytes stay, and the room comes back when it lets go.
#[test]
fn a_pin_against_the_close_of_its_table() {
    loom::model(|| {
        let pool = FramePool::new(ONE);
        let slots = SlotArray::new(Arc::clone(&pool), 1);
        let pin = slots.insert(0, block(0).into(), &[]);
        let reader = thread::spawn(move || {
            assert!(*pin == block(0));
            drop(pin);
        });
        drop(slots);
        reader.join().expect("reads");
        let usage = pool.usage();
        assert_eq!((usage.used, usage.pinned), (0, 0));
    });
}

/// Two bring the same block: one frame stands, both read the same.
#[test]
fn two_inserts_of_one_block() {
    loom::model(|| {
        let pool = FramePool::new(2 * ONE);
        let slots = Arc::new(SlotArray::new(Arc::clone(&pool), 1));
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || assert!(*slots.insert(0, block(0).into(), &[]) == block(0)))
        };
        assert!(*slots.insert(0, block(0).into(), &[]) == block(0));
        other.join().expect("inserts");
        assert!(pool.usage().used <= ONE, "charged twice");
        drop(slots);
        assert_eq!((pool.usage().used, pool.usage().pinned), (0, 0));
    });
}

/// A slab is compacted while a reader pins a frame in it. A reader that pinned first keeps the frame in place; a later reader finds
/// the moved frame.
#[test]
fn a_pin_against_the_compaction_of_a_slab() {
    let long = |byte: u8| vec![byte; 64 << 10];
    loom::model(move || {
        let pool = FramePool::with_slack(1 << 20, 1);
        // Four fill a slab, the fifth begins another.
        let closing = SlotArray::new(Arc::clone(&pool), 2);
        let slots = Arc::new(SlotArray::new(Arc::clone(&pool), 3));
        (0..2).for_each(|at| drop(closing.insert(at, long(9).into(), &[])));
        (0..3).for_each(|at| drop(slots.insert(u32::from(at), long(at).into(), &[])));
        assert_eq!(pool.slab_bytes(), 2 * (256 << 10));
        let reader = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || {
                let pin = slots.peek(2).expect("nothing evicts it");
                thread::yield_now();
                assert!(*pin == long(2));
            })
        };
        drop(closing);
        assert!(slots.peek(2).is_some_and(|pin| *pin == long(2)));
        reader.join().expect("reads");
        assert!(pool.slab_bytes() <= 2 * (256 << 10));
        drop(slots);
        assert_eq!((pool.usage().used, pool.slab_bytes()), (0, 0));
    });
}

//! Inserts and reads of a skiplist by a few threads, in every order of their steps, under loom (`cargo xtask loom`).
//!
//! Loom sees links and bodies of nodes through `shadow`. It reports a read of a body that was not published.

use crate::entry::Op;
use crate::gap::Gap;
use crate::rep::{MemtableRep, WriterSlot};
use crate::skiplist::SkipList;
use ashlar_base::ext::comparator::BytewiseOrder;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::{Order, SeqNum, Trailer, ValueType};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::loom::{self, thread};
use std::sync::Arc;

type List = SkipList<BytewiseOrder>;

fn list() -> Arc<List> {
    Arc::new(SkipList::new(BytewiseOrder, Order::Bytewise, MemoryCharge::none()))
}

/// Puts the key under the sequence; `tall` draws the heights.
fn insert(list: &List, key: &[u8], seq: u64, tall: u64) {
    let mut writer = WriterSlot { random: tall, ..WriterSlot::default() };
    let op = Op { key, value: key, value_type: ValueType::Put, seq_delta: 0 };
    let prepared = list.prepare(&mut writer, &mut [op].into_iter()).expect("room for one");
    list.insert(&mut writer, prepared, SeqNum::new(seq).expect("small"));
}

/// All keys in order, each with its value.
fn keys(list: &List) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut at = list.first();
    while let Some(spot) = at {
        assert_eq!(spot.user_key(), spot.value());
        keys.push(spot.user_key().to_vec());
        at = spot.next();
    }
    keys
}

fn has(list: &List, key: &[u8]) -> bool {
    list.lower_bound(key, Trailer::FIRST).is_some_and(|spot| spot.user_key() == key && spot.value() == key)
}

/// Neighbours inserted at once: both are there, in order, on every level.
#[test]
fn two_inserts_side_by_side() {
    loom::model(|| {
        let list = list();
        let other = {
            let list = Arc::clone(&list);
            thread::spawn(move || insert(&list, b"kb", 2, 3))
        };
        insert(&list, b"ka", 1, 1);
        other.join().expect("inserts");
        assert_eq!(keys(&list), [b"ka", b"kb"]);
        assert!(has(&list, b"ka") && has(&list, b"kb"));
    });
}

/// Reads during an insert: the old entries are always there, the new one whole or not at all; published, it is there.
#[test]
fn an_insert_under_readers() {
    loom::model(|| {
        let list = list();
        insert(&list, b"k1", 1, 1);
        let visible = Arc::new(AtomicBool::new(false));
        let writer = {
            let (list, visible) = (Arc::clone(&list), Arc::clone(&visible));
            thread::spawn(move || {
                insert(&list, b"k2", 2, 3);
                visible.store(true, Ordering::Release);
            })
        };
        let published = visible.load(Ordering::Acquire);
        assert!(has(&list, b"k1"));
        assert!(has(&list, b"k2") || !published, "published and not found");
        let found = keys(&list);
        assert!(found == [b"k1"] || found == [b"k1", b"k2"]);
        writer.join().expect("inserts");
        assert_eq!(keys(&list), [b"k1", b"k2"]);
    });
}

/// A gap is noted while a value is written into it: a read that sees the value does not go past it.
#[test]
fn a_gap_beside_a_write() {
    for noted_before in [false, true] {
        loom::model(move || {
            let seq = |n| SeqNum::new(n).expect("small");
            let gap = Arc::new(Gap::new(Order::Bytewise));
            if noted_before {
                gap.note(None, b"k", (1, seq(1)));
            }
            let visible = Arc::new(AtomicU64::new(1));
            let writer = {
                let (gap, visible) = (Arc::clone(&gap), Arc::clone(&visible));
                thread::spawn(move || {
                    let keys = gap.is_noted().then_some((&b"d"[..], &b"x"[..]));
                    gap.written(seq(2), keys);
                    visible.store(2, Ordering::Release);
                })
            };
            gap.note(None, b"m", (1, seq(1)));
            let (read, mut end) = (visible.load(Ordering::Acquire), Vec::new());
            if gap.end_of(None, (1, seq(read)), &mut end) {
                assert!(read < 2 || end[..] <= b"d"[..], "past the value");
            }
            writer.join().expect("writes");
            assert!(!gap.end_of(None, (1, seq(2)), &mut end) || end[..] <= b"d"[..]);
        });
    }
}

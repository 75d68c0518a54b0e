//! An insert under reads, in every order of their steps, under loom (`cargo xtask loom`).
//!
//! Loom sees links and bodies of entries through `shadow`; the tree's nodes have loom's atomics. Loom reports a read of
//! a body that was not published, and lets a load of a slot answer all that the memory model allows.

use crate::entry::Op;
use crate::gap::Gap;
use crate::index::{Index, Target};
use crate::memtable::Memtable;
use crate::rep::{MemtableRep, WriterSlot};
use crate::skiplist::SkipList;
use crate::tree::Tree;
use ashlar_base::ext::comparator::BytewiseOrder;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::{LookupKey, Order, SeqNum, Trailer, ValueType};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::loom::{self, thread};
use std::sync::Arc;

/// Nodes of four: the fifth entry splits a leaf, and the root after a few more.
type Small = Memtable<Tree<BytewiseOrder, 4>>;
type List = Memtable<SkipList<BytewiseOrder>>;

fn tree() -> Arc<Small> {
    Arc::new(Memtable::new(Tree::new(BytewiseOrder, MemoryCharge::none()), Order::Bytewise))
}

fn list() -> Arc<List> {
    Arc::new(Memtable::new(SkipList::new(BytewiseOrder, MemoryCharge::none()), Order::Bytewise))
}

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).expect("small")
}

/// Puts the key under the sequence; `tall` draws the heights of a list.
fn insert<I: Index>(memtable: &Memtable<I>, key: &[u8], at: u64, tall: u64) {
    let mut writer = WriterSlot { random: tall, ..WriterSlot::default() };
    let op = Op { key, value: key, value_type: ValueType::Put, seq_delta: 0 };
    let prepared = memtable.prepare(&mut writer, &mut [op].into_iter()).expect("room for one");
    memtable.insert(&mut writer, prepared, seq(at));
}

/// All keys in order, each with its value.
fn keys<I: Index>(memtable: &Memtable<I>) -> Vec<Vec<u8>> {
    let (mut keys, index) = (Vec::new(), memtable.index());
    let mut at = index.first();
    while let Some(here) = at {
        let entry = index.entry(here);
        assert_eq!(entry.user_key(), entry.value());
        keys.push(entry.user_key().to_vec());
        at = index.next(here);
    }
    keys
}

/// All keys from the last one back, in order.
fn keys_back<I: Index>(memtable: &Memtable<I>) -> Vec<Vec<u8>> {
    let (mut keys, index) = (Vec::new(), memtable.index());
    let mut at = index.last();
    while let Some(here) = at {
        keys.push(index.entry(here).user_key().to_vec());
        at = index.prev(here);
    }
    keys.reverse();
    keys
}

fn has<I: Index>(memtable: &Memtable<I>, key: &[u8]) -> bool {
    let found = memtable.get(&LookupKey::new(key, SeqNum::MAX)).expect("sound");
    found.is_some_and(|found| found.value == key)
}

/// What a reader does while the writer inserts.
#[derive(Clone, Copy)]
enum Read {
    /// Gets the new key, and this old one.
    Get(&'static [u8]),
    /// Goes over all keys.
    Scan,
    /// Goes over all keys, from the last one back.
    ScanBack,
    /// Looks for the last key up to the new one.
    Before,
    /// Seeks the first key, which is not there and after the new one. The second follows.
    From(&'static [u8], &'static [u8]),
}

/// Reads during an insert: the old entries are always there, the new one whole or not at all; published, it is there.
fn under<I: Index>(
    read: Read,
    make: fn() -> Arc<Memtable<I>>,
    old: &'static [&'static [u8]],
    new: &'static [u8],
) {
    loom::model(move || {
        let memtable = make();
        for (at, key) in (1..).zip(old) {
            insert(&memtable, key, at, 1);
        }
        let visible = Arc::new(AtomicBool::new(false));
        let writer = {
            let (memtable, visible) = (Arc::clone(&memtable), Arc::clone(&visible));
            thread::spawn(move || {
                insert(&memtable, new, 100, 3);
                visible.store(true, Ordering::Release);
            })
        };
        let published = visible.load(Ordering::Acquire);
        let mut without: Vec<Vec<u8>> = old.iter().map(|key| key.to_vec()).collect();
        without.sort();
        let with = {
            let mut with = without.clone();
            with.push(new.to_vec());
            with.sort();
            with
        };
        match read {
            Read::Get(key) => {
                assert!(has(&memtable, key), "an old key");
                assert!(has(&memtable, new) || !published, "published and not found");
            }
            Read::Scan => {
                let found = keys(&memtable);
                assert!(found == without && !published || found == with, "{found:?}");
            }
            Read::ScanBack => {
                let found = keys_back(&memtable);
                assert!(found == without && !published || found == with, "{found:?}");
            }
            Read::Before => {
                let behind = Target { user_key: new, trailer: Trailer::from_raw(0) };
                let found = memtable.index().at_or_before(&behind);
                let found = found.map(|at| memtable.index().entry(at).user_key());
                let old = without.iter().rev().map(Vec::as_slice).find(|key| *key < new);
                assert!(found == old && !published || found == Some(new), "{found:?}");
            }
            Read::From(key, next) => {
                let found = memtable.index().at_or_after(&Target { user_key: key, trailer: Trailer::FIRST });
                assert_eq!(found.map(|at| memtable.index().entry(at).user_key()), Some(next));
            }
        }
        writer.join().expect("inserts");
        assert_eq!(keys(&memtable), with);
    });
}

fn all<I: Index>(make: fn() -> Arc<Memtable<I>>, old: &'static [&'static [u8]], new: &'static [u8]) {
    let gets = [Read::Get(old[0]), Read::Get(old[old.len() - 1])];
    for read in gets.into_iter().chain([Read::Scan, Read::ScanBack, Read::Before]) {
        under(read, make, old, new);
    }
}

#[test]
fn list_an_insert_under_readers() {
    all(list, &[b"k1"], b"k2");
}

#[test]
fn tree_the_first_insert_under_readers() {
    under(Read::Scan, tree, &[], b"k2");
    under(Read::Before, tree, &[], b"k2");
}

#[test]
fn tree_an_insert_into_a_leaf_under_readers() {
    all(tree, &[b"k1", b"k3"], b"k2");
}

#[test]
fn tree_a_key_that_begins_otherwise_under_readers() {
    all(tree, &[b"kk1", b"kk2", b"kk3", b"kk4", b"kk5"], b"j");
}

/// The root is a leaf.
#[test]
fn tree_a_split_of_the_root_under_readers() {
    all(tree, &[b"k1", b"k2", b"k3", b"k5"], b"k4");
}

/// The leaf has a leaf before it and one after it, and its parent has room.
#[test]
fn tree_a_split_of_a_leaf_under_readers() {
    all(tree, &[b"k1", b"k2", b"k3", b"k4", b"k5", b"k6", b"k7", b"k8", b"k9"], b"k51");
}

/// A leaf after the last one.
#[test]
fn tree_ascending_inserts_under_readers() {
    all(tree, &[b"k1", b"k2", b"k3", b"k4"], b"k5");
}

/// The new node is linked behind the node at which the search stopped.
#[test]
fn list_a_seek_beside_an_insert() {
    under(Read::From(b"k5", b"k9"), list, &[b"k1", b"k9"], b"k3");
}

/// The new leaf begins behind the leaf in which the search ended.
#[test]
fn tree_a_seek_beside_a_new_leaf() {
    let old: &[&[u8]] = &[b"k1", b"k2", b"k6", b"k7", b"k8", b"k65", b"k3", b"k4"];
    under(Read::From(b"k5", b"k6"), tree, old, b"k45");
}

/// A gap is noted while a value is written into it: a read that sees the value does not go past it.
#[test]
fn a_gap_beside_a_write() {
    for noted_before in [false, true] {
        loom::model(move || {
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

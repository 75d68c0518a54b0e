//! Tests for every kind of memtable, against a `BTreeMap`. A new kind is added to `kinds`.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use crate::memtable::Memtable;
use crate::skiplist::SkipList;
use crate::tree::Tree;
use crate::{MemtableRep, Op, WriterSlot, memtable, protected};
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, ReverseBytewiseOrder};
use ashlar_base::memory::MemoryCharge;
use ashlar_base::{
    Comparator, InternalIterator, InternalKeyBuf, LookupKey, Order, SeqNum, Trailer, ValueType, Window,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex};

mod prefixes;

/// The memtables for an order, empty.
fn kinds(order: &Order) -> Vec<Arc<dyn MemtableRep>> {
    let of = |make: fn(Order) -> Arc<dyn MemtableRep>| make(order.clone());
    let mut kinds = vec![of(memtable), protected(of(memtable), 8)];
    if !matches!(order, Order::Custom(_)) {
        kinds.extend([of(skiplist), of(tree_of_four)]);
    }
    kinds
}

/// A skiplist, also for the orders whose memtables have a tree.
fn skiplist(order: Order) -> Arc<dyn MemtableRep> {
    let none = MemoryCharge::none();
    match &order {
        Order::Bytewise => Arc::new(Memtable::new(SkipList::new(BytewiseOrder, none), order)),
        Order::ReverseBytewise => Arc::new(Memtable::new(SkipList::new(ReverseBytewiseOrder, none), order)),
        Order::Custom(c) => Arc::new(Memtable::new(SkipList::new(CustomOrder(c.clone()), none), order)),
    }
}

/// A tree of small nodes, which soon has many levels.
fn tree_of_four(order: Order) -> Arc<dyn MemtableRep> {
    let none = MemoryCharge::none();
    match &order {
        Order::Bytewise => Arc::new(Memtable::new(Tree::<_, 4>::new(BytewiseOrder, none), order)),
        Order::ReverseBytewise => {
            Arc::new(Memtable::new(Tree::<_, 4>::new(ReverseBytewiseOrder, none), order))
        }
        Order::Custom(_) => memtable(order),
    }
}

/// Shorter first, then bytewise from the end: agrees with no built-in order.
#[derive(Debug)]
struct Odd;

impl Comparator for Odd {
    fn name(&self) -> &str {
        "test.Odd"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }
}

fn orders() -> [Order; 3] {
    [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(Odd))]
}

fn each(test: impl Fn(Order, Arc<dyn MemtableRep>)) {
    for order in orders() {
        kinds(&order).into_iter().for_each(|memtable| test(order.clone(), memtable));
    }
}

const ROUNDS: u64 = if cfg!(miri) { 45 } else { 6000 };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// Keys made to hurt: empty, zero bytes, prefixes of each other, long common beginnings (also past 255 bytes).
    fn key(&mut self) -> Vec<u8> {
        let shape = self.below(8);
        let mut key = match shape {
            0 => vec![],
            1 => vec![b'a'; [3, 250, 254, 255, 256, 300][self.below(6) as usize]],
            2 => b"user/00000000".to_vec(),
            _ => vec![],
        };
        let alphabet: &[u8] = if shape < 5 { b"\x00\x01ab\xff" } else { b"0123456789" };
        for _ in 0..self.below(if shape < 5 { 6 } else { 9 }) {
            key.push(alphabet[self.below(alphabet.len() as u64) as usize]);
        }
        key
    }
}

#[derive(Clone)]
struct Sorted(Order, Vec<u8>, Trailer);

impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Sorted {}
impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare_parts(&self.1, self.2, &other.1, other.2)
    }
}

type Model = BTreeMap<Sorted, Vec<u8>>;

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

fn put(mem: &dyn MemtableRep, w: &mut WriterSlot, key: &[u8], value: &[u8], at: u64) {
    let op = Op { key, value, value_type: ValueType::Put, seq_delta: 0 };
    let prepared = mem.prepare(w, &mut std::iter::once(op)).unwrap();
    mem.insert(w, prepared, seq(at));
}

/// Batches of random entries, into the memtable and the model. Returns the last sequence used.
fn fill(order: &Order, mem: &dyn MemtableRep, model: &mut Model, random: &mut Random, ops: u64) -> u64 {
    let mut writers: [WriterSlot; 3] = Default::default();
    let mut next = 1;
    while next <= ops {
        let batch: Vec<_> = (0..1 + random.below(5))
            .map(|_| {
                let value = vec![next as u8; random.below(20) as usize];
                let kind = if random.below(4) == 0 { ValueType::Delete } else { ValueType::Put };
                (random.key(), value, kind)
            })
            .collect();
        let w = &mut writers[random.below(3) as usize];
        let mut ops = batch.iter().enumerate().map(|(i, (key, value, value_type))| Op {
            key,
            value,
            value_type: *value_type,
            seq_delta: i as u32,
        });
        let prepared = mem.prepare(w, &mut ops).unwrap();
        assert_eq!(prepared.len(), batch.len());
        mem.insert(w, prepared, seq(next));
        for (key, value, kind) in batch {
            model.insert(Sorted(order.clone(), key, Trailer::new(seq(next), kind)), value);
            next += 1;
        }
    }
    next - 1
}

fn assert_at(it: &dyn InternalIterator, want: Option<(&Sorted, &Vec<u8>)>) {
    let got = it.entry().map(|e| (e.key.user_key().to_vec(), e.key.trailer(), e.value.to_vec()));
    assert_eq!(got, want.map(|(k, v)| (k.1.clone(), k.2, v.clone())));
}

/// All versions that a read sees, newest first.
fn versions(mem: &dyn MemtableRep, lookup: &LookupKey<'_>) -> Vec<(Trailer, Vec<u8>)> {
    let mut all = Vec::new();
    if let Some(found) = mem.get(lookup).unwrap() {
        let mut show = |trailer, value: &[u8]| {
            all.push((trailer, value.to_vec()));
            Ok(true)
        };
        show(found.trailer, found.value).unwrap();
        mem.older(&found, &mut show).unwrap();
        let mut seen = 0;
        let mut once = |_, _: &[u8]| {
            seen += 1;
            Ok(false)
        };
        mem.older(&found, &mut once).unwrap();
        assert_eq!(seen, (all.len() - 1).min(1), "no more than was asked for");
    }
    all
}

fn model_versions(model: &Model, order: &Order, key: &LookupKey<'_>) -> Vec<(Trailer, Vec<u8>)> {
    let from = Sorted(order.clone(), key.user_key.to_vec(), key.trailer());
    let all = model.range(from..).take_while(|(k, _)| k.1 == key.user_key);
    all.map(|(k, v)| (k.2, v.clone())).collect()
}

#[test]
fn counts_of_ranges_are_about_right() {
    each(|order, mem| {
        let mut w = WriterSlot::default();
        let most = if cfg!(miri) { 200 } else { 20_000_u64 };
        let mut keys: Vec<Vec<u8>> =
            (0..most).map(|i| format!("{:07}", i * 7919 % most).into_bytes()).collect();
        for (at, key) in (1..).zip(&keys) {
            put(&*mem, &mut w, key, b"v", at);
            if at == 150 {
                let mut sorted = keys[..150].to_vec();
                sorted.sort_by(|a, b| order.compare(a, b));
                for (from, to) in [(0, 149), (10, 11), (50, 120), (7, 7)] {
                    let found = mem.approximate_count(Some(&sorted[from]), Some(&sorted[to]));
                    assert_eq!(found, (to - from) as u64, "exact while there are few");
                }
            }
        }
        keys.sort_by(|a, b| order.compare(a, b));
        assert_eq!(mem.approximate_count(None, None), most);
        for (from, to) in [(0, 1), (1, 3), (2, 7), (0, 9)] {
            let at = |tenth: u64| keys[(tenth * most / 10) as usize].as_slice();
            let found = mem.approximate_count(Some(at(from)), Some(at(to)));
            let off = found.abs_diff((to - from) * most / 10);
            assert!(off < most / 10, "{from}..{to} tenths: {found}");
        }
        assert_eq!(mem.approximate_count(Some(keys[9].as_slice()), Some(keys[2].as_slice())), 0);
    });
}

#[test]
fn finds_the_newest_visible_version_and_the_older_ones() {
    each(|order, mem| {
        let (mut model, mut random) = (Model::new(), Random(7));
        let last = fill(&order, &*mem, &mut model, &mut random, ROUNDS);
        for _ in 0..ROUNDS {
            let (key, at) = (random.key(), seq(random.below(last + 2)));
            let lookup = LookupKey::new(&key, at);
            assert_eq!(versions(&*mem, &lookup), model_versions(&model, &order, &lookup));
        }
    });
}

#[test]
fn iterates_in_order_both_ways() {
    each(|order, mem| {
        let (mut model, mut random) = (Model::new(), Random(99));
        let last = fill(&order, &*mem, &mut model, &mut random, ROUNDS);
        assert_eq!((mem.len(), mem.is_empty()), (last, false));
        let mut it = Arc::clone(&mem).iter();
        assert!(it.entry().is_none());
        it.first().unwrap();
        for entry in &model {
            assert_at(&*it, Some(entry));
            it.next().unwrap();
        }
        assert!(it.entry().is_none());
        it.last().unwrap();
        for entry in model.iter().rev() {
            assert_at(&*it, Some(entry));
            it.prev().unwrap();
        }
        assert!(it.entry().is_none());
        for _ in 0..ROUNDS / 4 {
            let probe = Sorted(order.clone(), random.key(), Trailer::seek(seq(random.below(last + 2))));
            let target = InternalKeyBuf::new(&probe.1, probe.2);
            it.seek(target.as_key()).unwrap();
            assert_at(&*it, model.range(probe.clone()..).next());
            it.next().unwrap();
            assert_at(&*it, model.range(probe.clone()..).nth(1));
            it.seek_for_prev(target.as_key()).unwrap();
            assert_at(&*it, model.range(..=probe.clone()).next_back());
            it.prev().unwrap();
            assert_at(&*it, model.range(..=probe).nth_back(1));
        }
        let (first, last) = mem.smallest_and_largest().unwrap();
        let ends = [model.keys().next().unwrap(), model.keys().next_back().unwrap()];
        assert_eq!([first, last], ends.map(|k| InternalKeyBuf::new(&k.1, k.2)));
    });
}

/// A step from an entry goes to its neighbour of that moment, however many entries came between the steps. Few keys with many
/// versions fill several leaves each.
#[test]
fn a_step_goes_to_the_present_neighbour() {
    each(|order, mem| {
        for keys in [3, 40, 100_000] {
            step_among_inserts(&order, &mem, keys);
        }
    });
}

fn step_among_inserts(order: &Order, mem: &Arc<dyn MemtableRep>, keys: u64) {
    let (mut model, mut random) = (Model::new(), Random(keys));
    let (mut w, mut next) = (WriterSlot::default(), mem.len() + 1);
    let mut it = Arc::clone(mem).iter();
    it.first().unwrap();
    while let Some(entry) = it.entry() {
        model.insert(
            Sorted(order.clone(), entry.key.user_key().to_vec(), entry.key.trailer()),
            entry.value.to_vec(),
        );
        it.next().unwrap();
    }
    for _ in 0..ROUNDS / 4 {
        for _ in 0..random.below(if keys < 100 { 4 } else { 9 }) {
            let key = format!("w{:05}", random.below(keys)).into_bytes();
            put(&**mem, &mut w, &key, b"", next);
            model.insert(Sorted(order.clone(), key, Trailer::new(seq(next), ValueType::Put)), vec![]);
            next += 1;
        }
        let here = it.entry().map(|e| Sorted(order.clone(), e.key.user_key().to_vec(), e.key.trailer()));
        match (here, random.below(20)) {
            (Some(here), 0..10) => {
                it.prev().unwrap();
                assert_at(&*it, model.range(..here).next_back());
            }
            (Some(here), 10..18) => {
                it.next().unwrap();
                assert_at(&*it, model.range(here..).nth(1));
            }
            (_, 18) => {
                let key = format!("w{:05}", random.below(keys)).into_bytes();
                let trailer = match random.below(3) {
                    0 => Trailer::FIRST,
                    1 => Trailer::LAST,
                    _ => Trailer::seek(seq(random.below(next))),
                };
                let target = InternalKeyBuf::new(&key, trailer);
                let probe = Sorted(order.clone(), key, trailer);
                if random.below(2) == 0 {
                    it.seek(target.as_key()).unwrap();
                    assert_at(&*it, model.range(probe..).next());
                } else {
                    it.seek_for_prev(target.as_key()).unwrap();
                    assert_at(&*it, model.range(..=probe).next_back());
                }
            }
            (_, n) if n % 2 == 0 => it.first().unwrap(),
            _ => it.last().unwrap(),
        }
    }
}

#[test]
fn windows_give_every_entry_once() {
    each(|order, mem| {
        let (mut model, mut random) = (Model::new(), Random(3));
        fill(&order, &*mem, &mut model, &mut random, ROUNDS);
        let (mut cursor, mut window) = (Arc::clone(&mem).cursor(), Window::new());
        let mut want = model.iter();
        while cursor.window(&mut window).unwrap() {
            for i in 0..window.len() {
                let entry = window.entry(i).unwrap();
                let (k, v) = want.next().unwrap();
                assert_eq!((entry.key.split(), entry.value), ((&k.1[..], k.2), &v[..]));
            }
        }
        assert!(want.next().is_none() && window.is_empty());
        let key = random.key();
        let lookup = LookupKey::new(&key, SeqNum::MAX);
        cursor.seek(Some(&lookup)).unwrap();
        let some = cursor.window(&mut window).unwrap();
        let first = model.range(Sorted(order, key.clone(), lookup.trailer())..).next();
        assert_eq!(window.entry(0).map(|e| e.key.split()), first.map(|(k, _)| (&k.1[..], k.2)));
        assert_eq!(some, first.is_some());
    });
}

#[test]
fn empty_huge_and_sealed() {
    each(|_, mem| {
        assert!(mem.is_empty() && mem.smallest_and_largest().is_none());
        let mut cursor = Arc::clone(&mem).cursor();
        assert!(!cursor.window(&mut Window::new()).unwrap());
        let mut w = WriterSlot::default();
        assert!(mem.get(&LookupKey::new(b"", SeqNum::MAX)).unwrap().is_none());
        assert_eq!(mem.sealed_at(), None);
        let before = mem.memory();
        let none = mem.prepare(&mut w, &mut std::iter::empty()).unwrap();
        assert!(none.is_empty());
        mem.insert(&mut w, none, seq(1));
        assert!(mem.is_empty());
        let huge = vec![0x5a; if cfg!(miri) { 1 << 10 } else { 1 << 20 }];
        for at in 1..4 {
            put(&*mem, &mut w, b"", &huge, at);
            put(&*mem, &mut w, &huge, b"", at);
        }
        assert!(mem.memory() - before >= 6 * huge.len());
        assert!(mem.memory() - before < 6 * huge.len() + (64 << 10) + huge.len());
        let get = |key: &[u8]| {
            mem.get(&LookupKey::new(key, seq(2))).unwrap().map(|f| (f.trailer.seq(), f.value.len()))
        };
        assert_eq!(get(b""), Some((seq(2), huge.len())));
        assert_eq!(get(&huge), Some((seq(2), 0)));
        assert_eq!(get(&huge[1..]), None);
        mem.seal(seq(3));
        assert_eq!(mem.sealed_at(), Some(seq(3)));
    });
}

#[test]
#[should_panic(expected = "another memtable")]
fn entries_prepared_elsewhere_are_refused() {
    let (a, b) = (memtable(Order::Bytewise), memtable(Order::Bytewise));
    let mut w = WriterSlot::default();
    let op = Op { key: b"k", value: b"v", value_type: ValueType::Put, seq_delta: 0 };
    let prepared = a.prepare(&mut w, &mut std::iter::once(op)).unwrap();
    b.insert(&mut w, prepared, seq(1));
}

/// One slot may go from memtable to memtable and back, in order and out of order.
#[test]
fn a_writer_slot_serves_several_memtables() {
    each(|order, first| {
        let second = memtable(order);
        let mut w = WriterSlot::default();
        let mut random = Random(17);
        for at in 1..=ROUNDS / 4 {
            let mem = if random.below(10) < 8 { &first } else { &second };
            put(&**mem, &mut w, format!("{:08}", at ^ random.below(2)).as_bytes(), b"", at);
        }
        assert_eq!(first.len() + second.len(), ROUNDS / 4);
        for mem in [first, second] {
            let mut it = Arc::clone(&mem).iter();
            it.first().unwrap();
            let mut seen = 0;
            while it.entry().is_some() {
                seen += 1;
                it.next().unwrap();
            }
            assert_eq!(seen, mem.len());
        }
    });
}

const WRITERS: u64 = 3;

/// The key of the `i`-th write of a writer: sequential for one, scattered over a shared range for the others.
fn shared_key(writer: u64, i: u64) -> Vec<u8> {
    let n = if writer == 0 { i } else { (i + 1).wrapping_mul(0x9e37_79b9) >> 7 & 0x3ff };
    format!("key{n:07}").into_bytes()
}

#[test]
fn writers_in_turn_lose_nothing_and_readers_see_what_is_published() {
    each(|order, mem| {
        let rounds = ROUNDS / 3;
        let published: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
        let turn = Mutex::new(());
        std::thread::scope(|s| {
            for writer in 0..WRITERS {
                let (mem, published, turn) = (&mem, &published, &turn);
                s.spawn(move || {
                    let mut w = WriterSlot::default();
                    for i in 0..rounds {
                        let at = 1 + i * WRITERS + writer;
                        let turn = turn.lock().unwrap();
                        put(&**mem, &mut w, &shared_key(writer, i), &at.to_le_bytes(), at);
                        drop(turn);
                        published[writer as usize].store(i + 1, Atomic::Release);
                    }
                });
            }
            let (mem, published, order) = (&mem, &published, &order);
            s.spawn(move || read_along(&**mem, published, rounds));
            s.spawn(move || scan_along(mem, published, order, rounds));
        });
        assert_eq!(mem.len(), WRITERS * rounds);
        assert_eq!(scan(&mem, &order), WRITERS * rounds);
    });
}

fn read_along(mem: &dyn MemtableRep, published: &[AtomicU64], rounds: u64) {
    let mut random = Random(5);
    while published.iter().any(|p| p.load(Atomic::Acquire) < rounds) {
        let writer = random.below(WRITERS);
        let done = published[writer as usize].load(Atomic::Acquire);
        if done == 0 {
            continue;
        }
        let i = random.below(done);
        let (key, at) = (shared_key(writer, i), 1 + i * WRITERS + writer);
        let found = mem.get(&LookupKey::new(&key, seq(at))).unwrap().expect("published");
        assert_eq!((found.trailer.seq(), found.value), (seq(at), &at.to_le_bytes()[..]));
    }
}

fn scan_along(mem: &Arc<dyn MemtableRep>, published: &[AtomicU64], order: &Order, rounds: u64) {
    loop {
        let done: u64 = published.iter().map(|p| p.load(Atomic::Acquire)).sum();
        assert!(scan(mem, order) >= done);
        if done == WRITERS * rounds {
            return;
        }
    }
}

/// Counts all entries, and checks that each stands strictly behind the one before.
fn scan(mem: &Arc<dyn MemtableRep>, order: &Order) -> u64 {
    let mut it = Arc::clone(mem).iter();
    it.first().unwrap();
    let (mut last, mut count): (Option<InternalKeyBuf>, u64) = (None, 0);
    while let Some(entry) = it.entry() {
        if let Some(last) = &last {
            assert_eq!(order.compare_internal(last.as_key(), entry.key), Ordering::Less);
        }
        last = Some(entry.key.to_buf());
        count += 1;
        it.next().unwrap();
    }
    count
}

//! Random histories of puts, deletes, merges and range deletions, with snapshots, flushes, compactions and reopening.

use super::store::{Change, Store, all_backward, all_forward, key, settings};
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::{ErrorKind, FamilyId, Order};
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, SimEnv};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::Rng;
use ashlar_testkit::report::{figure, scale};
use std::path::Path;

const DIR: &str = "/data/db";

fn change(rng: &mut Rng, order: &Order) -> Change {
    let value = |rng: &mut Rng| {
        let len = rng.below(80);
        rng.bytes(len)
    };
    match rng.below(20) {
        0..10 => Change::Put(key(rng), value(rng)),
        10..13 => Change::Delete(key(rng)),
        13..17 => Change::Merge(key(rng), value(rng)),
        _ => {
            let (a, b) = (key(rng), key(rng));
            if order.compare(&a, &b).is_le() { Change::DeleteRange(a, b) } else { Change::DeleteRange(b, a) }
        }
    }
}

fn step(store: &mut Store, order: &Order, rng: &mut Rng) {
    match rng.below(30) {
        0 if store.snapshots() < 4 => store.hold_snapshot(),
        1 => store.drop_snapshot(rng.below(4)),
        2 => store.db.flush(&[store.family()]).unwrap(),
        3 if rng.percent(30) => {
            let (a, b) = (rng.percent(60).then(|| key(rng)), rng.percent(60).then(|| key(rng)));
            store.db.compact_range(&store.family(), a.as_deref(), b.as_deref()).unwrap();
        }
        4 if rng.percent(20) => store.reopen(),
        5 => store.db.wait_for_background().unwrap(),
        _ => {
            let count = rng.between(1, 12);
            let changes: Vec<Change> = (0..count).map(|_| change(rng, order)).collect();
            store.write(&changes);
        }
    }
}

#[test]
fn random_histories_read_as_the_model() {
    let _readers = crate::beside_others();
    let (seeds, steps) = (scale(6, 60), 240);
    for seed in 0..seeds as u64 {
        for order in [Order::Bytewise, Order::ReverseBytewise] {
            let mut rng = Rng::new(seed);
            let sim = SimEnv::new(seed);
            let mut store = Store::open(sim.env(), Path::new(DIR), settings(&order));
            for at in 0..steps {
                step(&mut store, &order, &mut rng);
                if at % 6 == 5 {
                    store.check(&mut rng, &format!("seed {seed}, {}, step {at}", order.name()));
                }
            }
            store.db.compact_range(&store.family(), None, None).unwrap();
            store.check(&mut rng, &format!("seed {seed}, compacted"));
            while store.snapshots() > 0 {
                store.drop_snapshot(0);
            }
            store.db.compact_range(&store.family(), None, None).unwrap();
            store.check(&mut rng, &format!("seed {seed}, compacted without snapshots"));
        }
    }
    figure(&format!("ranges: {seeds} seeds in two orders, {steps} steps each, 0 differences"));
}

fn numbered(i: u32) -> Vec<u8> {
    format!("k{i:04}").into_bytes()
}

fn filled(count: u32) -> Store {
    let mut store = Store::open(Env::mem(), Path::new(DIR), settings(&Order::Bytewise));
    let mut rng = Rng::new(u64::from(count));
    for i in 0..count {
        store.write(&[Change::Put(numbered(i), rng.bytes(100))]);
    }
    store
}

fn tables(store: &Store) -> usize {
    store.db.shape(&store.family()).tables()
}

#[test]
fn deleting_everything_leaves_nothing_behind() {
    let _readers = crate::beside_others();
    let mut store = filled(400);
    let family = store.family();
    store.db.compact_range(&family, None, None).unwrap();
    assert!(tables(&store) > 3);
    store.write(&[Change::DeleteRange(b"k".to_vec(), b"l".to_vec())]);
    store.db.flush(&[store.family()]).unwrap();
    store.check(&mut Rng::new(1), "a table of tombstones only");
    store.reopen();
    store.check(&mut Rng::new(2), "reopened");
    store.db.compact_range(&store.family(), None, None).unwrap();
    assert_eq!(tables(&store), 0);
}

#[test]
fn a_snapshot_keeps_what_a_range_deletion_takes() {
    let _readers = crate::beside_others();
    let mut store = filled(300);
    store.hold_snapshot();
    store.write(&[Change::DeleteRange(numbered(50), numbered(250))]);
    store.hold_snapshot();
    store
        .write(&[Change::Put(numbered(100), b"again".to_vec()), Change::Merge(numbered(101), b"m".to_vec())]);
    store.db.compact_range(&store.family(), None, None).unwrap();
    assert!(tables(&store) > 4);
    store.check(&mut Rng::new(3), "with both");
    store.drop_snapshot(0);
    store.db.compact_range(&store.family(), None, None).unwrap();
    store.check(&mut Rng::new(4), "with the later one");
    store.drop_snapshot(0);
    store.db.compact_range(&store.family(), None, None).unwrap();
    store.check(&mut Rng::new(5), "with none");
    assert_eq!(store.state.len(), 102);
}

/// A scan over a large deleted range does not read the entries in it.
#[test]
fn what_is_deleted_is_passed_unread() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(1);
    let mut store = Store::open(sim.env(), Path::new(DIR), settings(&Order::Bytewise));
    let mut rng = Rng::new(9);
    for chunk in 0..30 {
        let changes: Vec<Change> =
            (0..100).map(|i| Change::Put(numbered(100 * chunk + i), rng.bytes(100))).collect();
        store.write(&changes);
    }
    store.db.compact_range(&store.family(), None, None).unwrap();
    store.write(&[
        Change::DeleteRange(numbered(5), numbered(2990)),
        Change::Put(numbered(1000), b"new".to_vec()),
        Change::Delete(numbered(1001)),
    ]);
    for flushed in [false, true] {
        store.reopen();
        if !flushed {
            // Replay has written the tombstone to a table; another tombstone stays in memory.
            store.write(&[Change::DeleteRange(numbered(5), numbered(900))]);
        }
        let mut reads = vec![];
        for backward in [false, true] {
            let before = sim.calls_of(CallClass::Read);
            let mut it =
                store.db.iter(&store.family(), KeyBounds::default(), ReadOptions::default()).unwrap();
            let shown = if backward { all_backward(&mut it) } else { all_forward(&mut it) };
            assert_eq!(shown.len(), 16);
            reads.push(sim.calls_of(CallClass::Read) - before);
        }
        let tables = u64::try_from(tables(&store)).unwrap();
        assert!(tables > 60 && reads.iter().sum::<u64>() < 12 * 16, "{reads:?} reads, {tables} tables");
    }
    store.check(&mut rng, "with a large hole");
}

#[test]
fn a_counter_does_not_grow() {
    let _readers = crate::beside_others();
    let (db, mut family) = settings(&Order::Bytewise);
    family.merge_operator = standard_operator("uint64add");
    let mut store = Store::open(Env::mem(), Path::new(DIR), (db, family));
    let one = 1u64.to_le_bytes().to_vec();
    for _ in 0..20 {
        let changes: Vec<Change> = (0..500).map(|_| Change::Merge(b"n".to_vec(), one.clone())).collect();
        store.write(&changes);
        store.db.flush(&[store.family()]).unwrap();
    }
    store.db.compact_range(&store.family(), None, None).unwrap();
    let got = store.db.get(&store.family(), b"n", ReadOptions::default()).unwrap();
    assert_eq!(got.as_deref(), Some(&10_000u64.to_le_bytes()[..]));
    assert!(store.db.shape(&store.family()).bytes() < 2000, "{:?}", store.db.shape(&store.family()));
}

#[test]
fn wrong_batches_are_refused_whole() {
    let _readers = crate::beside_others();
    let (db, mut family) = settings(&Order::Bytewise);
    let mut store = Store::open(Env::mem(), Path::new(DIR), (db.clone(), family.clone()));
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"a", b"1").unwrap();
    batch.delete_range(FamilyId::DEFAULT, b"z", b"b").unwrap();
    let refused = store.db.write(&mut batch, WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("from 'z' to 'b'"), "{refused}");
    batch.clear();
    batch.delete_range(FamilyId::DEFAULT, b"b", b"b").unwrap();
    assert!(batch.is_empty());
    assert!(store.db.get(&store.family(), b"a", ReadOptions::default()).unwrap().is_none());
    store.write(&[Change::Merge(b"m".to_vec(), b"1".to_vec())]);
    store.db.close().unwrap();
    // Without the operator a merge is refused, and so is reading a key with operands; other keys are readable.
    family.merge_operator = None;
    let env = Env::mem();
    let mut plain = Store::open(env.clone(), Path::new(DIR), (db.clone(), family.clone()));
    let mut batch = WriteBatch::new();
    batch.merge(FamilyId::DEFAULT, b"m", b"1").unwrap();
    let refused = plain.db.write(&mut batch, WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("\"default\"") && refused.to_string().contains("'m'"), "{refused}");
    plain.write(&[Change::Put(b"a".to_vec(), b"1".to_vec())]);
    let mut it = plain.db.iter(&plain.family(), KeyBounds::default(), ReadOptions::default()).unwrap();
    assert_eq!(all_forward(&mut it).len(), 1);
}

#[test]
fn sequences_are_those_of_rocksdb() {
    let _readers = crate::beside_others();
    let mut store = Store::open(Env::mem(), Path::new(DIR), settings(&Order::Bytewise));
    let before = store.db.visible().get();
    store.write(&[
        Change::Put(b"b".to_vec(), b"1".to_vec()),
        Change::DeleteRange(b"a".to_vec(), b"a".to_vec()),
        Change::DeleteRange(b"a".to_vec(), b"c".to_vec()),
        Change::Put(b"b".to_vec(), b"2".to_vec()),
    ]);
    assert_eq!(store.db.visible().get(), before + 3, "the empty range takes none");
    store.check(&mut Rng::new(1), "within one batch");
    store.reopen();
    store.check(&mut Rng::new(1), "replayed");
}

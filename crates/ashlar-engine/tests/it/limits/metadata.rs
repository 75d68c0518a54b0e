//! Indexes and filters larger than the memory cap: they are evicted and read again, the cap holds, reads stay correct.

use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::Env;
use ashlar_format::table::IndexKind;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::{Rng, report};
use std::path::Path;
use std::sync::Arc;

const CAP: u64 = 16 << 20;
const KEYS: usize = 320_000;

fn name(key: usize) -> [u8; 16] {
    let mut name = *b"a key of ours 00";
    name[8..].copy_from_slice(&(key as u64).to_be_bytes());
    name
}

/// Blocks of one entry: the index is larger than the data.
fn open(env: &Env, memory_bytes: u64) -> (Db, Arc<Family>) {
    let mut family = FamilyOptions::default();
    family.table.block_size = 24;
    family.compaction.target_file_bytes = 256 << 10;
    let db = DbOptions { memory_bytes, ..DbOptions::default() };
    let db = Db::open(env.clone(), Path::new("/data/db"), db, Vec::new(), family).expect("opens");
    let family = db.family("default").expect("always there");
    (db, family)
}

/// Bytes of open tables, of memtables, and of blocks.
fn held(db: &Db, family: &Arc<Family>) -> [u64; 3] {
    ["rocksdb.estimate-table-readers-mem", "rocksdb.cur-size-all-mem-tables", "rocksdb.block-cache-usage"]
        .map(|name| db.property_int(family, name).expect("a number"))
}

fn check(db: &Db, family: &Arc<Family>, key: usize) {
    let found = db.get(family, &name(key), ReadOptions::default()).expect("reads");
    assert_eq!(found.as_deref(), Some(&(key as u64).to_le_bytes()[..]), "key {key}");
}

/// Writes keys out of order, and compacts them.
fn fill(db: &Db, family: &Arc<Family>, keys: usize) {
    for from in 0..keys / 1000 {
        let mut batch = WriteBatch::new();
        for key in (from..keys).step_by(keys / 1000) {
            batch.put(family.id(), &name(key), &(key as u64).to_le_bytes()).expect("small");
        }
        db.write(&mut batch, WriteOptions::default()).expect("a write");
    }
    db.flush(std::slice::from_ref(family)).expect("flushes");
    db.compact_range(family, None, None).expect("compacts");
}

/// The kind of index that all tables of the family have.
fn kind_of_index(db: &Db, family: &Arc<Family>) -> IndexKind {
    let tables = db.table_properties(family, &KeyBounds::default()).expect("reads");
    let mut kinds: Vec<_> = tables.iter().map(|table| table.stored.index_kind().expect("known")).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    kinds[0]
}

#[test]
fn large_indexes_are_written_in_partitions_under_a_small_cap() {
    let _readers = crate::beside_others();
    for (cap, kind) in [(CAP, IndexKind::TwoLevel), (CAP * 16, IndexKind::BinarySearch)] {
        let env = Env::mem();
        let (db, family) = open(&env, cap);
        fill(&db, &family, KEYS);
        assert_eq!(kind_of_index(&db, &family), kind, "under a cap of {cap} bytes");
        (0..KEYS).step_by(97).for_each(|key| check(&db, &family, key));
        let absent = db.get(&family, &name(KEYS), ReadOptions::default()).expect("reads");
        assert_eq!(absent, None);
        let mut iter = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
        iter.last().expect("reads");
        assert_eq!(iter.entry().map(|e| e.0.to_vec()), Some(name(KEYS - 1).to_vec()));
    }
}

#[test]
fn indexes_and_filters_beyond_the_cap_come_and_go() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let (db, family) = open(&env, 0);
    fill(&db, &family, KEYS);
    let tables = db.shape(&family).tables();
    (0..KEYS).step_by(KEYS / tables / 2).for_each(|key| check(&db, &family, key));
    let all = held(&db, &family)[0];
    assert!(all > CAP, "{all} bytes of index and filter");
    db.close().expect("closes");

    let (db, family) = open(&env, CAP);
    let (mut most, mut sums) = ([0; 3], 0);
    let mut look = || {
        let now = held(&db, &family);
        most = [0, 1, 2].map(|at| most[at].max(now[at]));
        sums = sums.max(now.iter().sum::<u64>());
    };
    let mut rng = Rng::new(3);
    for _ in 0..2000 {
        check(&db, &family, rng.below(KEYS));
        look();
    }
    // Iterators keep their own tables; tables that do not fit beside these are read again for every access.
    let mut cursors: Vec<_> = (0..8)
        .map(|n| {
            let mut iter = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
            iter.seek(&name(n * KEYS / 8)).expect("reads");
            iter
        })
        .collect();
    (0..200).for_each(|_| check(&db, &family, rng.below(KEYS)));
    for (n, iter) in cursors.iter_mut().enumerate() {
        let first = n * KEYS / 8;
        for key in first..first + 3 {
            assert_eq!(iter.entry().map(|e| e.0.to_vec()), Some(name(key).to_vec()));
            iter.next().expect("reads");
        }
    }
    look();
    drop(cursors);
    let mut iter = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
    iter.first().expect("reads");
    for key in 0..KEYS {
        assert_eq!(iter.entry().map(|e| e.0.to_vec()), Some(name(key).to_vec()));
        iter.next().expect("reads");
        if key % 5000 == 0 {
            look();
        }
    }
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / 1_048_576.0);
    report::figure(&format!(
        "metadata: {tables} tables with {} MiB of index and filter under a cap of {} MiB: tables {} MiB at most, memtables {}, blocks {}, together {}",
        mib(all),
        mib(CAP),
        mib(most[0]),
        mib(most[1]),
        mib(most[2]),
        mib(sums)
    ));
    assert!(most[0] > CAP / 8, "tables stay open while there is room");
    assert!(sums <= CAP, "{sums} of {CAP}");
}

//! The perf context, and reads explained.

use super::Store;
use ashlar_base::FamilyId;
use ashlar_base::stats::perf::{Context, Level, Metric, Watch};
use ashlar_engine::{Db, batch::WriteBatch};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_read::point::ProbedRun;
use std::path::Path;

fn count<T>(env: &Env, work: impl FnOnce() -> T) -> Context {
    let watch = Watch::begin(Level::EnableTime, env.ticks());
    work();
    watch.seen()
}

#[test]
fn operations_count_on_their_thread_by_layer() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let store = Store::open(env.clone(), DbOptions::default());
    let wrote = count(&env, || store.put(b"a", &[1; 500]));
    assert!(wrote.get(Metric::WriteWalTime) > 0 && wrote.get(Metric::WriteMemtableTime) > 0, "{wrote}");
    (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), &[1; 100]));
    store.flush();
    let first = count(&env, || store.get(&7u32.to_be_bytes()));
    let metrics = [
        Metric::BlockCacheMissCount,
        Metric::BlockCacheHitCount,
        Metric::BloomSstHitCount,
        Metric::GetReadBytes,
    ];
    assert_eq!(metrics.map(|m| first.get(m)), [1, 0, 1, 100], "{first}");
    assert!(
        first.get(Metric::BlockReadCount) > 1 && first.get(Metric::FindTableNanos) > 0,
        "the table was opened"
    );
    let again = count(&env, || store.get(&7u32.to_be_bytes()));
    assert_eq!(metrics.map(|m| again.get(m)), [0, 1, 1, 100], "{again}");
    assert_eq!(again.get(Metric::BlockReadCount), 0);
    let missed = count(&env, || store.get(b"\0\0\0\x07x"));
    assert_eq!(missed.get(Metric::BloomSstMissCount) + missed.get(Metric::BloomSstHitCount), 1);
    let before = Context::now();
    store.get(&7u32.to_be_bytes());
    assert_eq!(Context::now().since(&before).to_string(), "", "counting is off");
}

/// The values of a table that are older than a range tombstone of the table are not looked for.
#[test]
fn a_range_tombstone_newer_than_all_values_of_its_table_answers_alone() {
    let _readers = crate::beside_others();
    for newer in [None, Some(7u32), Some(70)] {
        let env = Env::mem();
        let store = Store::open(env.clone(), DbOptions::default());
        (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), b"old"));
        let (begin, end) = (0u32.to_be_bytes(), 50u32.to_be_bytes());
        store.write(|batch| batch.delete_range(FamilyId::DEFAULT, &begin, &end).unwrap());
        store.write(|batch| batch.delete(FamilyId::DEFAULT, &60u32.to_be_bytes()).unwrap());
        newer.into_iter().for_each(|n| store.put(&n.to_be_bytes(), b"new"));
        store.flush();
        let value = |n: u32| {
            let key = n.to_be_bytes();
            store.db.get(&store.family, &key, ReadOptions::default()).unwrap().map(|value| value.to_vec())
        };
        let seen = count(&env, || assert_eq!(value(8), None));
        let looked = seen.get(Metric::BloomSstHitCount) + seen.get(Metric::BloomSstMissCount);
        assert_eq!(looked > 0, newer.is_some(), "{seen}");
        assert_eq!(value(7).is_some(), newer == Some(7));
        assert_eq!([60, 61].map(value), [None, Some(b"old".to_vec())]);
        assert_eq!(value(70).as_deref(), Some(if newer == Some(70) { &b"new"[..] } else { b"old" }));
    }
}

#[test]
fn cursors_count_what_they_pass() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let store = Store::open(env.clone(), DbOptions::default());
    for n in 0..20u32 {
        store.put(&n.to_be_bytes(), b"old");
        store.put(&n.to_be_bytes(), b"new");
    }
    for n in 0..10u32 {
        store.write(|batch| batch.delete(FamilyId::DEFAULT, &n.to_be_bytes()).unwrap());
    }
    let seen = count(&env, || {
        let mut it = store.db.iter(&store.family, KeyBounds::default(), ReadOptions::default()).unwrap();
        it.first().unwrap();
        while it.is_valid() {
            it.next().unwrap();
        }
    });
    assert_eq!((seen.get(Metric::IterSeekCount), seen.get(Metric::IterNextCount)), (1, 10));
    assert_eq!(seen.get(Metric::IterReadBytes), 10 * (4 + 3));
    // Ten tombstones with two puts under each, and one older put under each of the other keys.
    assert_eq!(seen.get(Metric::InternalDeleteSkippedCount), 30);
    assert_eq!(seen.get(Metric::InternalKeySkippedCount), 10);
}

#[test]
fn a_get_tells_each_run_it_asked() {
    let _readers = crate::beside_others();
    let mut family = FamilyOptions::default();
    family.compaction.automatic = false;
    let db = Db::open(Env::mem(), Path::new("/db"), DbOptions::default(), vec![], family).unwrap();
    let store = Store { family: db.family("default").unwrap(), db };
    (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), b"deep"));
    store.compact();
    (50..150u32).for_each(|n| store.put(&(n * 2).to_be_bytes(), b"upper"));
    store.flush();
    let explain =
        |key: u32| store.db.explain_get(&store.family, &key.to_be_bytes(), ReadOptions::default()).unwrap();
    let places = |key: u32| {
        let told = explain(key);
        let places = told.steps().iter().map(|step| match step.run {
            ProbedRun::Memtable => "mem".to_owned(),
            ProbedRun::Immutable(at) => format!("imm{at}"),
            ProbedRun::Table(level, _) => format!("L{}", level.0),
        });
        let places: Vec<_> = places.collect();
        (places.join(" "), told.value_bytes())
    };
    assert_eq!(places(3), ("mem L6".to_owned(), Some(4)));
    assert_eq!(places(120), ("mem L0".to_owned(), Some(5)));
    assert_eq!(places(5000), ("mem".to_owned(), None));
    let text = explain(5000).to_string();
    assert!(
        text.contains("level 0            1 table not asked")
            && text.contains("level 6            1 table not asked"),
        "{text}"
    );
    let mut batch = WriteBatch::new();
    batch.delete_range(FamilyId::DEFAULT, &0u32.to_be_bytes(), &10u32.to_be_bytes()).unwrap();
    store.db.write(&mut batch, Default::default()).unwrap();
    let gone = explain(3);
    assert_eq!((gone.steps().len(), gone.value_bytes()), (1, None));
    assert!(gone.to_string().contains("under a range tombstone at sequence 201"), "{gone}");
    let scan =
        store.db.explain_scan(&store.family, KeyBounds::default(), ReadOptions::default(), u64::MAX).unwrap();
    assert_eq!(scan.keys(), 90 + 100);
}

//! Queues: keys that are deleted at the head. Reads from the head go past the deleted keys, and miss no key written
//! among them.

use ashlar_base::ext::comparator::Comparator;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::stats::perf::{Level, Metric, Watch};
use ashlar_base::{FamilyId, Order};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::Rng;
use ashlar_testkit::report::scale;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[derive(Debug)]
struct ByLastByte;

impl Comparator for ByLastByte {
    fn name(&self) -> &str {
        "test.ByLastByte"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
}

fn open(order: Order) -> (Db, Arc<Family>, Arc<Family>) {
    let family = FamilyOptions {
        order,
        merge_operator: standard_operator("stringappend"),
        ..FamilyOptions::default()
    };
    let families = ["default", "other"]
        .map(|name| OpenFamily { name: name.to_owned(), options: family.clone() })
        .to_vec();
    let db = Db::open(Env::mem(), Path::new("/db"), DbOptions::default(), families, family).unwrap();
    let [a, b] = ["default", "other"].map(|name| db.family(name).unwrap());
    (db, a, b)
}

fn write(db: &Db, fill: impl FnOnce(&mut WriteBatch)) {
    let mut batch = WriteBatch::new();
    fill(&mut batch);
    db.write(&mut batch, WriteOptions::default()).unwrap();
}

fn key(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// The first key at or after `from`, or of all.
fn first(db: &Db, family: &Arc<Family>, from: Option<&[u8]>, options: ReadOptions) -> Option<Vec<u8>> {
    first_within(db, family, KeyBounds::default(), from, options)
}

/// The first key of `range` at or after `from`, or of the whole range.
fn first_within(
    db: &Db,
    family: &Arc<Family>,
    range: KeyBounds,
    from: Option<&[u8]>,
    options: ReadOptions,
) -> Option<Vec<u8>> {
    let mut it = db.iter(family, range, options).unwrap();
    match from {
        Some(key) => it.seek(key).unwrap(),
        None => it.first().unwrap(),
    }
    it.key().map(<[u8]>::to_vec)
}

/// The keys that a read of the first key passes.
fn passed(db: &Db, env: &Env, family: &Arc<Family>, options: ReadOptions) -> u64 {
    let watch = Watch::begin(Level::EnableCount, env.ticks());
    assert!(first(db, family, None, options).is_some());
    watch.seen().get(Metric::InternalDeleteSkippedCount)
}

#[test]
fn a_read_of_the_head_does_not_pass_what_the_last_one_passed() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let family = FamilyOptions::default();
    let db = Db::open(env.clone(), Path::new("/db"), DbOptions::default(), vec![], family).unwrap();
    let family = db.family("default").unwrap();
    let all = ReadOptions::default;
    let put = |n| write(&db, |batch| batch.put(FamilyId::DEFAULT, &key(n), b"v").unwrap());
    (0..2000).for_each(put);
    let before = db.snapshot().unwrap();
    for flushed in [false, true] {
        for n in 0..1000 {
            let n = if flushed { n + 1000 } else { n };
            write(&db, |batch| batch.delete(FamilyId::DEFAULT, &key(n)).unwrap());
        }
        put(3000);
        assert!(passed(&db, &env, &family, all()) >= 1000);
        assert!(passed(&db, &env, &family, all()) < 20);
        db.flush(&[Arc::clone(&family)]).unwrap();
        assert!(passed(&db, &env, &family, all()) < 20, "a flush keeps what reads see");
        if !flushed {
            put(1500);
        }
    }
    // So does a compaction. The snapshot keeps the entries.
    db.compact_range(&family, None, None).unwrap();
    assert!(passed(&db, &env, &family, all()) < 20);
    assert_eq!(first(&db, &family, None, all()), Some(key(3000)));
    let at = || ReadOptions { at: Some(before.seq()), ..all() };
    assert_eq!(first(&db, &family, None, at()), Some(key(0)), "an older read sees them");
    let bounded = || {
        let range = KeyBounds { upper: Some(key(900)), ..KeyBounds::default() };
        first_within(&db, &family, range, None, all())
    };
    assert_eq!(bounded(), None);
    put(800);
    assert_eq!(bounded(), Some(key(800)));
    assert_eq!(first(&db, &family, Some(&key(801)), all()), Some(key(3000)));
    assert_eq!(first(&db, &family, Some(&key(3)), all()), Some(key(800)));
}

/// One change of a queue, to the database and to the model.
fn change(db: &Db, families: [&Arc<Family>; 2], models: &mut [BTreeMap<u64, ()>; 2], rng: &mut Rng) {
    let which = rng.below(2);
    let (id, model) = (families[which].id(), &mut models[which]);
    let low = rng.below(60) as u64;
    match rng.below(12) {
        0 => write(db, |batch| {
            model.insert(low, ());
            batch.put(id, &key(low), b"v").unwrap();
        }),
        1 => write(db, |batch| {
            model.insert(low, ());
            batch.merge(id, &key(low), b"v").unwrap();
        }),
        2 => write(db, |batch| {
            for n in low..low + 40 {
                model.insert(n, ());
                batch.put(id, &key(n), b"v").unwrap();
            }
        }),
        3..6 => write(db, |batch| {
            for n in 0..low {
                model.remove(&n);
                batch.delete(id, &key(n)).unwrap();
            }
        }),
        6 => write(db, |batch| {
            // A comparator of the user's orders these keys otherwise.
            let end = key(low + 30);
            let order = &families[which].options().order;
            model.retain(|n, ()| {
                let n = key(*n);
                order.compare(&n, &key(low)).is_lt() || order.compare(&n, &end).is_ge()
            });
            if order.compare(&key(low), &end).is_lt() {
                batch.delete_range(id, &key(low), &end).unwrap();
            }
        }),
        7 => db.flush(&[Arc::clone(families[which])]).unwrap(),
        8 if rng.percent(30) => db.compact_range(families[which], None, None).unwrap(),
        _ => {}
    }
}

#[test]
fn heads_are_those_of_the_model() {
    let _readers = crate::beside_others();
    for seed in 0..scale(4, 60) as u64 {
        for order in [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(ByLastByte))] {
            let mut rng = Rng::new(seed);
            let (db, a, b) = open(order.clone());
            let mut models = [BTreeMap::new(), BTreeMap::new()];
            let mut held: Vec<(_, [BTreeMap<u64, ()>; 2])> = Vec::new();
            for step in 0..400 {
                change(&db, [&a, &b], &mut models, &mut rng);
                match rng.below(20) {
                    0 if held.len() < 3 => held.push((db.snapshot().unwrap(), models.clone())),
                    1 if !held.is_empty() => drop(held.swap_remove(0)),
                    _ => {}
                }
                let states = held.iter().map(|(snapshot, models)| (Some(snapshot.seq()), models));
                for (at, models) in states.chain([(None, &models)]) {
                    for (family, model) in [&a, &b].into_iter().zip(models) {
                        let mut keys: Vec<_> = model.keys().map(|n| key(*n)).collect();
                        keys.sort_by(|a, b| order.compare(a, b));
                        let from = key(rng.below(100) as u64);
                        let open_at = rng.percent(20);
                        let options = || ReadOptions { at, ..ReadOptions::default() };
                        let what = format!("seed {seed}, {}, step {step}, at {at:?}", order.name());
                        assert_eq!(first(&db, family, None, options()), keys.first().cloned(), "{what}");
                        let behind = |key: &&Vec<u8>| match order.compare(key, &from) {
                            std::cmp::Ordering::Less => false,
                            std::cmp::Ordering::Equal => !open_at,
                            std::cmp::Ordering::Greater => true,
                        };
                        let want = keys.iter().find(behind).cloned();
                        if open_at {
                            let lower = Some(from.clone());
                            let range = KeyBounds { lower, lower_open: true, ..KeyBounds::default() };
                            let got = first_within(&db, family, range, None, options());
                            assert_eq!(got, want, "{what} behind {from:?}");
                        } else {
                            let got = first(&db, family, Some(&from), options());
                            assert_eq!(got, want, "{what} from {from:?}");
                        }
                    }
                }
            }
        }
    }
}

/// One of the threads that are counted. It ends when this is dropped, also by a panic.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads write among the deleted keys and look for what they wrote, while others note that the keys are deleted.
#[test]
fn a_write_among_deleted_keys_is_seen_by_the_next_read() {
    let _readers = crate::beside_others();
    let (db, family, _) = open(Order::Bytewise);
    let id = family.id();
    for n in 0..200 {
        write(&db, |batch| batch.delete(id, &key(n)).unwrap());
    }
    let writers = AtomicUsize::new(4);
    thread::scope(|scope| {
        // Each memtable takes over the gap of the one before.
        scope.spawn(|| {
            while writers.load(Ordering::Relaxed) > 0 {
                db.flush(std::slice::from_ref(&family)).unwrap();
                db.compact_range(&family, None, None).unwrap();
            }
        });
        for thread in 0..4u64 {
            let (db, family, writers) = (&db, &family, &writers);
            scope.spawn(move || {
                let _ends = Ends(writers);
                let mut rng = Rng::new(thread);
                for _ in 0..scale(500, 20_000) {
                    let own = 4 * (rng.below(50) as u64) + thread;
                    write(db, |batch| batch.put(id, &key(own), b"v").unwrap());
                    let head = first(db, family, None, ReadOptions::default());
                    assert!(head.is_some_and(|head| head <= key(own)), "{own} was written");
                    let exact = first(db, family, Some(&key(own)), ReadOptions::default());
                    assert_eq!(exact, Some(key(own)));
                    write(db, |batch| batch.delete(id, &key(own)).unwrap());
                    let behind = first(db, family, Some(&key(own)), ReadOptions::default());
                    assert!(behind.is_none_or(|head| head > key(own)), "{own} was deleted");
                }
            });
        }
    });
}

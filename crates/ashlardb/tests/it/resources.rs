//! Several databases under one value of `Resources`.

use ashlardb::prelude::*;
use ashlardb::{BlockCache, BusyKind, ErrorKind, Resources, WriteBuffers};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn open(dir: &Path, name: &str, resources: &Resources) -> Db {
    Db::builder(dir.join(name)).resources(resources).open().unwrap()
}

fn key(n: usize) -> String {
    format!("key{n:06}")
}

#[test]
fn two_databases_stay_under_one_cap_and_share_one_cache() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(32 << 20).threads(2);
    let both = ["a", "b"].map(|name| open(dir.path(), name, &resources));
    let mut most = 0;
    for n in 0..15_000 {
        for db in &both {
            db.put(key(n * 7919 % 15_000), [n as u8; 1000]).unwrap();
        }
        most = most.max(resources.memory_used());
    }
    for db in &both {
        db.flush().unwrap();
        assert_eq!(db.scan(..).count(), 15_000);
        most = most.max(resources.memory_used());
    }
    // Readers of other tests in this process keep replaced memtables a moment longer.
    assert!(most <= 33 << 20 && most > 16 << 20, "{most} bytes at most");
    let property = |name: &str| both.each_ref().map(|db| db.int_property(name).unwrap());
    for name in ["rocksdb.block-cache-usage", "rocksdb.block-cache-capacity"] {
        let [a, b] = property(name);
        assert!(a == b && a > 0, "{name}: {a} {b}");
    }
}

/// Regression: RocksDB's manager of write buffers limited the memtables of each database by itself, so ten databases had ten times
/// the limit.
#[test]
fn memtables_of_ten_databases_stay_under_one_limit() {
    const LIMIT: usize = 8 << 20;
    let dir = tempfile::tempdir().unwrap();
    let limit = WriteBuffers::new(LIMIT);
    let open = |n: usize| Db::builder(dir.path().join(n.to_string())).write_buffers(&limit).open().unwrap();
    let all: Vec<Db> = (0..10).map(open).collect();
    // Flushed memtables that a thread of this process still holds are not limited.
    let unflushed =
        || all.iter().map(|db| db.int_property("rocksdb.cur-size-all-mem-tables").unwrap()).sum::<u64>();
    let (most, puts) = (Cell::new(0), Cell::new(0));
    let put = |db: &Db, n: usize| {
        db.put(key(n * 7919 % 3000), [n as u8; 1000]).unwrap();
        puts.set(puts.get() + 1);
        if puts.get() % 50 == 0 {
            most.set(unflushed().max(most.get()));
        }
    };
    // The first two keep what they have written while the others write.
    let (idle, busy) = all.split_at(2);
    idle.iter().for_each(|db| (0..1500).for_each(|n| put(db, n)));
    (0..3000).for_each(|n| busy.iter().for_each(|db| put(db, n)));
    let (peak, bound) = (most.get(), LIMIT as u64 + 10 * (512 << 10));
    assert!(peak > LIMIT as u64 / 2 && peak <= bound, "{peak} bytes at most");
    for db in busy {
        assert_eq!(db.scan(..).count(), 3000);
        let files = db.default_family().live_files().unwrap().len();
        assert!((1..60).contains(&files), "{files} tables: memtables of {} bytes", 3_000_000 / files.max(1));
    }
    // A lower limit counts from the next write on.
    limit.set_limit(1 << 20);
    busy.iter().for_each(|db| (0..600).for_each(|n| put(db, n)));
    busy.iter().for_each(|db| db.wait_for_background().unwrap());
    assert!(unflushed() <= LIMIT as u64, "{} bytes", unflushed());
    drop(all);
    let is_free = || limit.held() == 0;
    assert!(
        (0..1000).any(|_| is_free() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }),
        "{limit:?}"
    );
}

#[test]
fn blocks_of_equal_files_are_not_mixed_up() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(64 << 20);
    let both = ["a", "b"].map(|name| (name, open(dir.path(), name, &resources)));
    for (name, db) in &both {
        for n in 0..500 {
            db.put(key(n), name.repeat(100)).unwrap();
        }
        db.flush().unwrap();
    }
    for _ in 0..2 {
        for (name, db) in &both {
            assert!((0..500).all(|n| *db.get(key(n)).unwrap().unwrap() == *name.repeat(100).as_bytes()));
        }
    }
}

/// Writers keep one database busy until flushes and a compaction of the other one are done.
#[test]
fn the_work_of_one_database_does_not_stop_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(32 << 20).threads(2);
    let (busy, other) = (open(dir.path(), "busy", &resources), open(dir.path(), "other", &resources));
    let (done, written) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                busy.put(key(n * 7919 % 30_000), [n as u8; 1000]).unwrap();
                written.fetch_or(n > 8000, Ordering::Relaxed);
            }
        });
        while !written.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let start = Instant::now();
        for round in 0..5 {
            other.put(key(round), "value").unwrap();
            other.flush().unwrap();
        }
        other.compact().unwrap();
        done.store(true, Ordering::Relaxed);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    });
    assert_eq!(other.scan(..).count(), 5);
}

#[test]
fn a_database_closes_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(64 << 20).threads(2);
    let (a, b) = (open(dir.path(), "a", &resources), open(dir.path(), "b", &resources));
    for db in [&a, &b] {
        db.put("k", [1; 1000]).unwrap();
        db.flush().unwrap();
    }
    let cursor = a.scan(..).cursor().unwrap();
    // The threads are those of the first environment, which belongs to `a`.
    a.close().unwrap();
    assert_eq!(resources.databases(), 1);
    let used = resources.memory_used();
    drop((a, cursor));
    assert!(resources.memory_used() <= used);
    b.put("l", "2").unwrap();
    b.flush().unwrap();
    b.compact().unwrap();
    let a = open(dir.path(), "a", &resources);
    assert_eq!((a.scan(..).count(), resources.databases()), (1, 2));
    drop(resources);
    for db in [&a, &b] {
        db.put("m", "3").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        assert!(db.get("m").unwrap().is_some());
    }
    drop(b);
    assert_eq!(a.scan(..).count(), 2);
}

#[test]
fn a_new_rate_ends_the_pauses_under_the_former_one() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(64 << 20).threads(2).rate_limit(1);
    let db = open(dir.path(), "a", &resources);
    for n in 0..4000 {
        db.put(key(n), [n as u8; 1000]).unwrap();
    }
    let (flushed, other) = (std::sync::mpsc::channel(), db.clone());
    let flusher = std::thread::spawn(move || flushed.0.send(other.flush()));
    // A step of the flush writes more than a byte, and the next one waits for hours.
    assert!(flushed.1.recv_timeout(Duration::from_secs(2)).is_err(), "no pause");
    let resources = resources.rate_limit(0);
    flushed.1.recv_timeout(Duration::from_secs(60)).expect("the flush pauses still").unwrap();
    flusher.join().unwrap().unwrap();
    assert_eq!(resources.databases(), 1);
}

#[test]
fn what_the_resources_decide_is_refused_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    let resources = Resources::new(32 << 20);
    let beside = || Db::builder(dir.path().join("a")).resources(&resources);
    let kind = |builder: ashlardb::Builder| builder.open().map(drop).unwrap_err().kind();
    assert_eq!(kind(beside().memory(64 << 20)), ErrorKind::InvalidArgument);
    assert_eq!(kind(beside().options("max_background_jobs=7")), ErrorKind::InvalidArgument);
    assert_eq!(kind(beside().tune(|db, _| db.block_cache_bytes = 1 << 20)), ErrorKind::InvalidArgument);
    assert_eq!(kind(beside().block_cache(&BlockCache::new(1 << 20))), ErrorKind::InvalidArgument);
    assert_eq!(kind(beside().write_buffers(&WriteBuffers::new(1 << 20))), ErrorKind::InvalidArgument);
    let small = Resources::new((16 << 20) - 1);
    assert_eq!(kind(Db::builder(dir.path().join("a")).resources(&small)), ErrorKind::InvalidArgument);
    assert!(!dir.path().join("a").exists(), "nothing was made");

    let (a, b) = (beside().open().unwrap(), open(dir.path(), "b", &resources));
    let full = || kind(Db::builder(dir.path().join("c")).resources(&resources));
    assert_eq!(full(), ErrorKind::Busy(BusyKind::Memory));
    assert_eq!(
        kind(Db::builder(dir.path().join("b")).resources(&resources).read_only(true)),
        ErrorKind::Busy(BusyKind::Memory)
    );
    let refused = b.set_db_options(&[("max_background_jobs", "7")]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(b.set_db_options(&[("max_total_wal_size", "8388608")]).is_ok());
    drop(a);
    // A failed open uses nothing.
    assert!(Db::builder(dir.path().join("b")).resources(&resources).open().is_err());
    let reader = Db::builder(dir.path().join("b")).resources(&resources).read_only(true).open().unwrap();
    assert_eq!((reader.scan(..).count(), resources.databases()), (0, 2));
    drop((b, reader));
    // What an earlier open stored is no setting of this one.
    drop(Db::builder(dir.path().join("d")).memory(20 << 20).options("max_background_jobs=3").open().unwrap());
    drop(open(dir.path(), "d", &resources));
    assert_eq!(resources.databases(), 0);
}

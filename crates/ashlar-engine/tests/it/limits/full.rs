//! A disk without room for a flush: what makes room goes on.

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_engine::options::{CompactionOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_env::JobExecutor;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_testkit::Rng;
use std::path::Path;
use std::sync::Arc;

const NO_SPACE: ErrorKind = ErrorKind::Io(IoKind::NoSpace);

fn open(sim: &SimEnv) -> Db {
    let compaction =
        CompactionOptions { l0_trigger: 100, l0_slowdown: 200, l0_stop: 300, ..CompactionOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 256 << 10, compaction, ..FamilyOptions::default() };
    Db::open(sim.env(), Path::new("/data/db"), DbOptions::default(), Vec::new(), family).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

fn batch(db: &Db, fill: impl FnOnce(&mut WriteBatch, ashlar_base::FamilyId)) -> Result<(), Error> {
    let mut batch = WriteBatch::new();
    fill(&mut batch, db.family("default").unwrap().id());
    db.write(&mut batch, WriteOptions::default()).map(drop)
}

fn put(db: &Db, number: u32, rng: &mut Rng) -> Result<(), Error> {
    let value = rng.bytes(1000);
    batch(db, |b, family| b.put(family, &key(number), &value).unwrap())
}

fn there(db: &Db, number: u32) -> bool {
    db.get(&db.family("default").unwrap(), &key(number), &ReadOptions::default()).unwrap().is_some()
}

fn flush(db: &Db) -> Result<(), Error> {
    db.flush(&db.families())
}

/// Three tables of the same 100 keys, and those up to `end` in memory on a disk that has no room for them.
fn full(sim: &SimEnv, end: u32) -> (Db, Rng) {
    let (db, mut rng) = (open(sim), Rng::new(1));
    for _ in 0..3 {
        (0..100).for_each(|n| put(&db, n, &mut rng).unwrap());
        flush(&db).unwrap();
    }
    db.wait_for_background().unwrap();
    (100..end).for_each(|n| put(&db, n, &mut rng).unwrap());
    sim.set_capacity(sim.used_bytes() + (20 << 10));
    let failed = flush(&db).unwrap_err();
    assert_eq!((failed.kind(), db.health().0), (NO_SPACE, Severity::Full), "{failed}");
    (db, rng)
}

#[test]
fn deletions_are_taken_and_nothing_else() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(1);
    let (db, mut rng) = full(&sim, 200);
    let refused = put(&db, 300, &mut rng).unwrap_err();
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("Only deletions"), "{refused}");
    let mixed = batch(&db, |b, family| {
        b.delete(family, &key(5)).unwrap();
        b.put(family, &key(6), b"more").unwrap();
    });
    assert_eq!(mixed.unwrap_err().kind(), NO_SPACE);
    assert_eq!(flush(&db).unwrap_err().kind(), NO_SPACE);
    assert!(db.create_family("new", FamilyOptions::default()).is_err());
    batch(&db, |b, family| b.delete(family, &key(7)).unwrap()).unwrap();
    batch(&db, |b, family| b.delete_range(family, &key(10), &key(20)).unwrap()).unwrap();
    db.sync_wal().unwrap();
    let check = |db: &Db| {
        let found: Vec<u32> = (0..301).filter(|n| there(db, *n)).collect();
        let expected: Vec<u32> = (0..200).filter(|n| *n != 7 && !(10..20).contains(n)).collect();
        assert_eq!(found, expected);
    };
    check(&db);
    let crashed = sim.crash(CrashMode::DROP_ALL);
    crashed.set_capacity(u64::MAX);
    check(&open(&crashed));
    sim.set_capacity(u64::MAX);
    // By itself, with nobody asking.
    while db.health().0 != Severity::Well && sim.jobs().drive(1) > 0 {}
    put(&db, 300, &mut rng).unwrap();
    batch(&db, |b, family| b.delete(family, &key(300)).unwrap()).unwrap();
    check(&db);
}

/// Writers that wait for a flush leave a full memtable behind. There is a little room above its limit.
#[test]
fn a_full_memtable_takes_deletions_too() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(4);
    let (db, mut rng) = (open(&sim), Rng::new(4));
    db.pause_background_work().unwrap();
    let family = db.family("default").unwrap();
    let active = || db.property_int(&family, "rocksdb.cur-size-active-mem-table").unwrap();
    let mut last = 0;
    while last < 300 || active() < 250 << 10 {
        last += 1;
        put(&db, last, &mut rng).unwrap();
    }
    sim.set_capacity(sim.used_bytes() + (20 << 10));
    db.continue_background_work().unwrap();
    while db.health().0 != Severity::Full && sim.jobs().drive(1) > 0 {}
    assert_eq!(put(&db, 1000, &mut rng).unwrap_err().kind(), NO_SPACE);
    let mut deleted = 0;
    let mut over = 0;
    while over < 50 {
        deleted += 1;
        batch(&db, |b, family| b.delete(family, &key(deleted)).unwrap()).unwrap();
        over += u32::from(active() > 256 << 10);
        assert!(deleted < last, "{} bytes", active());
    }
    assert!(!there(&db, deleted) && there(&db, deleted + 1));
    sim.set_capacity(u64::MAX);
    db.resume().unwrap();
    put(&db, 1, &mut rng).unwrap();
    assert!((2..=deleted).all(|n| !there(&db, n)) && (deleted + 1..=last).all(|n| there(&db, n)));
}

/// Keys 0 to 199, in one table.
fn with_one_table(sim: &SimEnv, seed: u64) -> (Db, Rng, Arc<Family>) {
    let (db, mut rng) = (open(sim), Rng::new(seed));
    (0..200).for_each(|n| put(&db, n, &mut rng).unwrap());
    let family = db.family("default").unwrap();
    db.compact_range(&family, None, None).unwrap();
    db.wait_for_background().unwrap();
    (db, rng, family)
}

/// Whole files go, and with the room they leave the flush succeeds: nobody enlarged the disk.
#[test]
fn files_that_are_dropped_make_room() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(2);
    let (db, mut rng, family) = with_one_table(&sim, 2);
    (200..300).for_each(|n| put(&db, n, &mut rng).unwrap());
    sim.set_capacity(sim.used_bytes() + (20 << 10));
    flush(&db).unwrap_err();
    assert_eq!(db.health().0, Severity::Full);
    let (from, to) = (key(0), key(199));
    let dropped = db.delete_files_in_ranges(&family, &[(Some(&from), Some(&to))], true).unwrap();
    assert_eq!(dropped, 1);
    sim.jobs().drive(100);
    db.resume().unwrap();
    assert_eq!(db.health().0, Severity::Well);
    assert!(!there(&db, 100) && (200..300).all(|n| there(&db, n)));
    put(&db, 300, &mut rng).unwrap();
}

/// Three tables of the same keys become one: that fits as soon as a little room is there, and makes more.
#[test]
fn compactions_go_on_and_make_room() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(3);
    let (db, mut rng) = full(&sim, 320);
    let family = db.family("default").unwrap();
    // Room for the compacted table but not, beside it, for the flush.
    sim.set_capacity(sim.used_bytes() + (108 << 10));
    batch(&db, |b, family| b.delete(family, &key(0)).unwrap()).unwrap();
    let tables = db.live_files(&family).unwrap();
    let numbers: Vec<_> = tables.iter().map(|f| f.number).collect();
    assert_eq!(numbers.len(), 3);
    assert_eq!(db.health().0, Severity::Full);
    db.compact_files(&family, &numbers, ashlar_base::Level(6), 0).unwrap();
    while db.health().0 != Severity::Well && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().0, Severity::Well);
    put(&db, 320, &mut rng).unwrap();
    assert!((1..321).all(|n| there(&db, n)) && !there(&db, 0));
}

/// The log itself finds the disk full: deletions are refused with everything else. Reads go on, and whole files can be
/// dropped; then writes resume by themselves.
#[test]
fn a_log_without_room_refuses_deletions_but_not_to_drop_files() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(5);
    let (db, mut rng, family) = with_one_table(&sim, 5);
    sim.set_capacity(sim.used_bytes() + 3000);
    let (last, failed) = (200..).find_map(|n| put(&db, n, &mut rng).err().map(|e| (n, e))).unwrap();
    assert!(last > 200 && failed.kind() == ErrorKind::Indeterminate, "{failed}");
    assert!(db.health().0 == Severity::Hard, "{:?}", db.health());
    assert_eq!(db.health().1.unwrap().kind(), NO_SPACE);
    let refused = batch(&db, |b, family| b.delete(family, &key(1)).unwrap()).unwrap_err();
    assert_eq!(refused.kind(), NO_SPACE, "{refused}");
    assert_eq!(db.resume().unwrap_err().kind(), NO_SPACE);
    assert!((0..last).all(|n| there(&db, n)));
    let (from, to) = (key(0), key(199));
    assert_eq!(db.delete_files_in_ranges(&family, &[(Some(&from), Some(&to))], true).unwrap(), 1);
    while db.health().0 != Severity::Well && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().0, Severity::Well);
    assert!(!there(&db, 100) && (200..last).all(|n| there(&db, n)));
    batch(&db, |b, family| b.delete(family, &key(200)).unwrap()).unwrap();
    put(&db, 300, &mut rng).unwrap();
    let crashed = sim.crash(CrashMode::KILL);
    crashed.set_capacity(u64::MAX);
    let db = open(&crashed);
    assert!((201..last).chain([300]).all(|n| there(&db, n)) && !there(&db, 200));
}

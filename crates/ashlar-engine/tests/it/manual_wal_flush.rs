//! `manual_wal_flush`: which writes a kill may lose and which not, on the simulated machine.

use ashlar_base::FamilyId;
use ashlar_base::error::IoKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::Severity;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use std::path::Path;

const DIR: &str = "/data/db";

fn open(sim: &SimEnv, manual_wal_flush: bool) -> Db {
    let options = DbOptions { manual_wal_flush, ..DbOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 64 << 10, ..FamilyOptions::default() };
    let listed = |name: &str| OpenFamily { name: name.to_owned(), options: family.clone() };
    let families = vec![listed("default"), listed("other")];
    Db::open(sim.env(), Path::new(DIR), options, families, family.clone()).unwrap()
}

/// Write `number`: the same key into both families, with different values.
fn write(db: &Db, number: u32, options: WriteOptions) -> Result<(), ashlar_base::Error> {
    let mut batch = WriteBatch::new();
    for (family, len) in db.families().iter().zip([700, 10]) {
        batch.put(family.id(), &number.to_be_bytes(), &vec![7; len]).unwrap();
    }
    db.write(&mut batch, options).map(drop)
}

fn puts(db: &Db, numbers: std::ops::Range<u32>) {
    numbers.for_each(|n| write(db, n, WriteOptions::default()).unwrap());
}

/// The number of writes that both families have, counted from the first; asserts that none is missing in between.
fn count(db: &Db) -> u32 {
    let counts: Vec<u32> = db
        .families()
        .iter()
        .map(|family| {
            let mut iter = db.iter(family, KeyBounds::default(), ReadOptions::default()).unwrap();
            iter.first().unwrap();
            let mut next = 0_u32;
            while let Some((key, _)) = iter.entry() {
                assert_eq!(key, next.to_be_bytes(), "a hole in {}", family.name());
                next += 1;
                iter.next().unwrap();
            }
            next
        })
        .collect();
    assert!(counts.windows(2).all(|w| w[0] == w[1]), "the families hold different writes: {counts:?}");
    counts[0]
}

/// The number of writes after a crash that interrupted no write.
fn after(sim: &SimEnv, mode: CrashMode) -> u32 {
    let db = open(&sim.crash(mode), true);
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    count(&db)
}

/// The number of writes after a kill that follows a half-finished write of the WAL.
fn after_a_torn_write(sim: &SimEnv) -> u32 {
    count(&open(&sim.crash(CrashMode::KILL), true))
}

#[test]
fn a_kill_takes_what_was_not_flushed_and_nothing_else() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(1);
    let db = open(&sim, true);
    puts(&db, 0..10);
    let writes = sim.calls_of(CallClass::Write);
    puts(&db, 10..20);
    assert_eq!(sim.calls_of(CallClass::Write), writes, "no write call");
    assert_eq!(after(&sim, CrashMode::KILL), 0);
    db.flush_wal(false).unwrap();
    puts(&db, 20..25);
    assert_eq!(after(&sim, CrashMode::KILL), 20);
    assert_eq!(after(&sim, CrashMode::DROP_ALL), 0);
    db.flush_wal(true).unwrap();
    assert_eq!(after(&sim, CrashMode::DROP_ALL), 25);
    puts(&db, 25..30);
    write(&db, 30, WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
    assert_eq!(after(&sim, CrashMode::DROP_ALL), 31, "a synced write also syncs the writes before it");
    puts(&db, 31..40);
    db.sync_wal().unwrap();
    assert_eq!(after(&sim, CrashMode::DROP_ALL), 40);
    assert_eq!(db.durable(), db.visible());
    puts(&db, 40..50);
    db.close().unwrap();
    assert_eq!(after(&sim, CrashMode::KILL), 50, "a close hands the buffered records over");
    assert!(db.flush_wal(false).is_err());
}

#[test]
fn a_handle_that_is_dropped_hands_over() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(2);
    let db = open(&sim, true);
    puts(&db, 0..10);
    drop(db);
    assert_eq!(after(&sim, CrashMode::KILL), 10);
    assert_eq!(count(&open(&sim, false)), 10);
}

/// If a family exists, or was dropped, every earlier write is there.
#[test]
fn families_come_and_go_behind_what_was_written() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(6);
    let db = open(&sim, true);
    let after_a_kill = || {
        let left = open(&sim.crash(CrashMode::KILL), true);
        let default = left.family("default").unwrap();
        let there = |n: &u32| left.get(&default, &n.to_be_bytes(), ReadOptions::default()).unwrap().is_some();
        ((0..100).filter(there).count(), left.families().len())
    };
    puts(&db, 0..5);
    assert_eq!(after_a_kill(), (0, 2));
    let made = db.create_family("made", FamilyOptions::default()).unwrap();
    assert_eq!(after_a_kill(), (5, 3));
    puts(&db, 5..8);
    assert_eq!(after_a_kill(), (5, 3));
    db.drop_family(&made).unwrap();
    assert_eq!(after_a_kill(), (8, 2));
}

/// Memtables of one family fill and are flushed while the other family's data waits in the WAL: after a crash before
/// any call, both have the same writes.
#[test]
fn families_stay_in_step_whenever_the_process_dies() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(3);
    let db = open(&sim, true);
    let first = sim.calls_of(CallClass::Change);
    for at in 1..200 {
        sim.photograph_at(first + at, if at % 3 == 0 { CrashMode::DROP_ALL } else { CrashMode::KILL });
    }
    puts(&db, 0..400);
    db.wait_for_background().unwrap();
    let default = db.family("default").unwrap();
    db.flush(&[default]).unwrap();
    assert_eq!(after(&sim, CrashMode::KILL), 400, "a flush writes the log before it");
    let found: Vec<u32> = sim.photographs().iter().map(|(_, _, left)| count(&open(left, true))).collect();
    assert!(found.len() > 20 && found.iter().any(|n| *n > 0) && found.iter().any(|n| *n < 400), "{found:?}");
}

/// A failed flush of the WAL refuses writes until the engine has resumed; acknowledged writes are still there.
#[test]
fn nothing_is_lost_when_a_flush_of_the_log_fails() {
    let _readers = crate::beside_others();
    for (case, sync) in [(0, false), (1, true), (2, false)] {
        let sim = SimEnv::new(10 + case);
        let db = open(&sim, true);
        puts(&db, 0..10);
        db.flush_wal(false).unwrap();
        puts(&db, 10..20);
        let class = CallClass::Write;
        sim.fail_call(class, sim.calls_of(class) + 1, Repeat::Sticky, IoKind::NoSpace);
        let failed = match case {
            // A switch of the memtable writes the WAL first.
            2 => db.flush(&db.families()).unwrap_err(),
            _ => db.flush_wal(sync).unwrap_err(),
        };
        assert!(failed.to_string().contains(".log"), "{failed}");
        assert_eq!(db.health().severity, Severity::Hard);
        assert!(write(&db, 20, WriteOptions::default()).is_err());
        assert!(db.flush_wal(false).is_err());
        assert_eq!(count(&db), 20, "reads go on");
        assert!((10..=20).contains(&after_a_torn_write(&sim)));
        sim.heal();
        db.resume().unwrap();
        assert_eq!(count(&db), 20);
        assert_eq!(after(&sim, CrashMode::DROP_ALL), 20);
        puts(&db, 20..30);
        db.flush_wal(true).unwrap();
        assert_eq!(after(&sim, CrashMode::DROP_ALL), 30);
    }
}

/// A close that cannot hand over the buffered records returns an error.
#[test]
fn a_close_that_loses_writes_says_so() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(4);
    let db = open(&sim, true);
    puts(&db, 0..10);
    let class = CallClass::Write;
    sim.fail_call(class, sim.calls_of(class) + 1, Repeat::Sticky, IoKind::Other);
    assert!(db.close().unwrap_err().to_string().contains(".log"));
    sim.heal();
    assert!(after_a_torn_write(&sim) < 10);
}

#[test]
fn what_is_held_back_is_bounded() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(5);
    let options = DbOptions { manual_wal_flush: true, ..DbOptions::default() };
    let family = FamilyOptions::default();
    let db = Db::open(sim.env(), Path::new(DIR), options, vec![], family).unwrap();
    let value = vec![7; 10_000];
    for n in 0..1000_u32 {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, &n.to_be_bytes(), &value).unwrap();
        db.write(&mut batch, WriteOptions::default()).unwrap();
    }
    let entries = db.env().fs.list(Path::new(DIR)).unwrap();
    let log: u64 = entries.iter().filter(|e| e.name.ends_with(".log")).map(|e| e.len).sum();
    assert!((8_900_000..10_000_000).contains(&log), "{log} of 10 MB are in the log");
}

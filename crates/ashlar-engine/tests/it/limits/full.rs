//! A disk without space for a flush: work that frees space goes on.

use ashlar_base::error::{BusyKind, IoKind};
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_env::{Clock, JobExecutor};
use ashlar_options::{
    CompactFilesOptions, CompactionOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions,
    find_latest_options,
};
use ashlar_testkit::Rng;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
    db.get(&db.family("default").unwrap(), &key(number), ReadOptions::default()).unwrap().is_some()
}

fn flush(db: &Db) -> Result<(), Error> {
    db.flush(&db.families())
}

/// Three tables of the same 100 keys, and the keys up to `end` in memory, on a disk that has no space for them.
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
    assert_eq!((failed.kind(), db.health().severity), (NO_SPACE, Severity::Full), "{failed}");
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
    // Recovers by itself, without any call.
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    put(&db, 300, &mut rng).unwrap();
    batch(&db, |b, family| b.delete(family, &key(300)).unwrap()).unwrap();
    check(&db);
}

/// Writers that wait for a flush leave a full memtable behind. There is a little space above the memtable's limit.
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
    while db.health().severity != Severity::Full && sim.jobs().drive(1) > 0 {}
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

/// Whole files are dropped, and the flush succeeds with the freed space: the disk was not enlarged.
#[test]
fn files_that_are_dropped_make_room() {
    // A reader of another test may keep what goes, and its space.
    let _alone = crate::alone();
    let sim = SimEnv::new(2);
    let (db, mut rng, family) = with_one_table(&sim, 2);
    (200..300).for_each(|n| put(&db, n, &mut rng).unwrap());
    sim.set_capacity(sim.used_bytes() + (20 << 10));
    flush(&db).unwrap_err();
    assert_eq!(db.health().severity, Severity::Full);
    let (from, to) = (key(0), key(199));
    let dropped = db.delete_files_in_ranges(&family, &[(Some(&from), Some(&to))], true).unwrap();
    assert_eq!(dropped, 1);
    sim.jobs().drive(100);
    db.resume().unwrap();
    assert_eq!(db.health().severity, Severity::Healthy);
    assert!(!there(&db, 100) && (200..300).all(|n| there(&db, n)));
    put(&db, 300, &mut rng).unwrap();
}

/// The put leads, and waits for the flush that finds the disk full. It held up the deletions for ten seconds.
#[test]
fn a_put_that_waits_for_a_flush_is_refused_when_the_disk_is_full() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(7);
    let (db, mut rng) = (open(&sim), Rng::new(7));
    let family = db.family("default").unwrap().id();
    // Background jobs run only while a caller waits, so the memtables fill.
    let hurried = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    let mut last = 0;
    loop {
        let mut batch = WriteBatch::new();
        batch.put(family, &key(last), &rng.bytes(1000)).unwrap();
        match db.write(&mut batch, hurried) {
            Ok(_) => last += 1,
            Err(e) if e.kind() == ErrorKind::Busy(BusyKind::Stalled) => break,
            Err(e) => panic!("{e}"),
        }
    }
    sim.set_capacity(sim.used_bytes() + (20 << 10));
    let before = Clock::now(sim.clock());
    let refused = put(&db, last, &mut rng).unwrap_err();
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("Only deletions"), "{refused}");
    assert_eq!(db.health().severity, Severity::Full);
    batch(&db, |b, family| b.delete(family, &key(1)).unwrap()).unwrap();
    let waited = Clock::now(sim.clock()) - before;
    assert!(waited < Duration::from_secs(1), "{waited:?} at put {last}");
    assert!(!there(&db, 1) && !there(&db, last) && (2..last).all(|n| there(&db, n)));
}

/// Three tables of the same keys become one: the compaction needs only a little space and frees more.
#[test]
fn compactions_go_on_and_make_room() {
    // A reader of another test may keep what goes, and its space.
    let _alone = crate::alone();
    let sim = SimEnv::new(3);
    let (db, mut rng) = full(&sim, 320);
    let family = db.family("default").unwrap();
    // Space for the compacted table, but not for the compacted table and the flush together.
    sim.set_capacity(sim.used_bytes() + (108 << 10));
    batch(&db, |b, family| b.delete(family, &key(0)).unwrap()).unwrap();
    let tables = db.live_files(&family).unwrap();
    let numbers: Vec<_> = tables.iter().map(|f| f.number).collect();
    assert_eq!(numbers.len(), 3);
    assert_eq!(db.health().severity, Severity::Full);
    db.compact_files(&family, &numbers, ashlar_base::Level(6), CompactFilesOptions::new()).unwrap();
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().severity, Severity::Healthy);
    put(&db, 320, &mut rng).unwrap();
    assert!((1..321).all(|n| there(&db, n)) && !there(&db, 0));
}

/// The disk has space for flushes and none for the compaction that would end a stop by tables of level 0.
#[test]
fn deletions_do_not_wait_for_a_compaction_that_lacks_space() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(7);
    let compaction =
        CompactionOptions { l0_trigger: 3, l0_slowdown: 4, l0_stop: 5, ..CompactionOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 256 << 10, compaction, ..FamilyOptions::default() };
    let db = Db::open(sim.env(), Path::new("/data/db"), DbOptions::default(), Vec::new(), family).unwrap();
    let mut rng = Rng::new(7);
    db.abort_compactions().unwrap();
    for table in 0..5 {
        (0..100).for_each(|n| put(&db, 5 * n + table, &mut rng).unwrap());
        flush(&db).unwrap();
    }
    sim.set_capacity(sim.used_bytes() + (60 << 10));
    db.resume_compactions().unwrap();
    while db.health().severity == Severity::Healthy && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().severity, Severity::Soft);
    let clock = sim.clock();
    let begun = Clock::now(clock);
    let refused = put(&db, 1, &mut rng).unwrap_err();
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("Only deletions"), "{refused}");
    (0..500).step_by(2).for_each(|n| batch(&db, |b, family| b.delete(family, &key(n)).unwrap()).unwrap());
    assert!(Clock::now(clock) - begun < Duration::from_secs(1), "a deletion waited");
    assert_eq!(found(&db, 500), (1..500).step_by(2).collect::<Vec<_>>());
    sim.set_capacity(u64::MAX);
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    put(&db, 500, &mut rng).unwrap();
}

/// Puts keys until the WAL finds the disk full; returns the number of the refused put.
fn fill_the_log(
    sim: &SimEnv,
    db: &Db,
    from: u32,
    mut write: impl FnMut(&Db, u32) -> Result<(), Error>,
) -> u32 {
    sim.set_capacity(sim.used_bytes() + (30 << 10));
    let (last, refused) = (from..from + 1000).find_map(|n| write(db, n).err().map(|e| (n, e))).unwrap();
    assert!(last > from + 10, "{last}");
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("Only deletions"), "{refused}");
    assert_eq!((db.health().severity, db.health().cause.unwrap().kind()), (Severity::Full, NO_SPACE));
    last
}

fn found(db: &Db, end: u32) -> Vec<u32> {
    (0..end).filter(|n| there(db, *n)).collect()
}

/// The WAL finds the disk full: a put is refused before it is logged, deletions are accepted. Whole files can be
/// dropped, and with the freed space writes resume by themselves.
#[test]
fn a_log_without_room_takes_deletions_too() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(5);
    let (db, mut rng, family) = with_one_table(&sim, 5);
    let last = fill_the_log(&sim, &db, 200, |db, n| put(db, n, &mut rng));
    // Another program takes all the free space.
    sim.set_capacity(sim.used_bytes());
    assert_eq!(put(&db, 1000, &mut rng).unwrap_err().kind(), NO_SPACE);
    batch(&db, |b, family| b.delete(family, &key(1)).unwrap()).unwrap();
    batch(&db, |b, family| b.single_delete(family, &key(202)).unwrap()).unwrap();
    batch(&db, |b, family| b.delete_range(family, &key(10), &key(205)).unwrap()).unwrap();
    db.sync_wal().unwrap();
    let left: Vec<u32> = (0..last).filter(|n| *n != 1 && !(10..205).contains(n)).collect();
    assert_eq!(found(&db, last + 1), left);
    for mode in [CrashMode::DROP_ALL, CrashMode::KILL] {
        let crashed = sim.crash(mode);
        crashed.set_capacity(u64::MAX);
        assert_eq!(found(&open(&crashed), last + 1), left, "{mode:?}");
    }
    assert_eq!(db.resume().unwrap_err().kind(), NO_SPACE);
    assert_eq!(found(&db, last + 1), left);
    batch(&db, |b, family| b.delete(family, &key(last - 1)).unwrap()).unwrap();
    let (from, to) = (key(0), key(199));
    assert_eq!(db.delete_files_in_ranges(&family, &[(Some(&from), Some(&to))], true).unwrap(), 1);
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().severity, Severity::Healthy);
    put(&db, last, &mut rng).unwrap();
    let left: Vec<u32> = (205..last - 1).chain([last]).collect();
    assert_eq!(found(&db, last + 1), left);
    let crashed = sim.crash(CrashMode::KILL);
    crashed.set_capacity(u64::MAX);
    assert_eq!(found(&open(&crashed), last + 1), left);
}

/// There is space for a limited number of deletions. After that they are refused, and the error says so, until there is
/// more space.
#[test]
fn room_for_deletions_ends() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(6);
    let (db, mut rng, _) = with_one_table(&sim, 6);
    let last = fill_the_log(&sim, &db, 200, |db, n| put(db, n, &mut rng));
    sim.set_capacity(sim.used_bytes());
    let delete = |n: u32| batch(&db, |b, family| b.delete(family, &key(n)).unwrap());
    let (taken, refused) = (0..5000).find_map(|n| delete(n % 300).err().map(|e| (n, e))).unwrap();
    assert!((1000..2500).contains(&taken), "{taken} deletions in 48 KiB");
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("used up"), "{refused}");
    assert_eq!(db.health().severity, Severity::Full, "the log is sound");
    let memory = db.property_int(&db.family("default").unwrap(), "rocksdb.cur-size-active-mem-table");
    (0..1000).for_each(|n| assert!(delete(n).is_err()));
    let after = db.property_int(&db.family("default").unwrap(), "rocksdb.cur-size-active-mem-table");
    assert_eq!(memory, after, "what is refused takes no memory");
    sim.set_capacity(u64::MAX);
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    put(&db, last, &mut rng).unwrap();
    assert_eq!(found(&open(&sim.crash(CrashMode::KILL)), last + 1), [last]);
}

/// No space is freed and no call is made: memtables are flushed to tables that are smaller than their WAL file, so that
/// compactions can apply the deletions.
#[test]
fn a_flush_makes_room_for_the_log() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(7);
    let (db, ..) = with_one_table(&sim, 7);
    let write = |db: &Db, n: u32| batch(db, |b, family| b.put(family, &key(n), &[7; 1000]).unwrap());
    let last = fill_the_log(&sim, &db, 200, write);
    batch(&db, |b, family| b.delete_range(family, &key(0), &key(210)).unwrap()).unwrap();
    while db.health().severity != Severity::Healthy && sim.jobs().drive(1) > 0 {}
    assert_eq!(db.health().severity, Severity::Healthy, "{:?}", db.health());
    write(&db, last).unwrap();
    let crashed = sim.crash(CrashMode::KILL);
    for db in [db, open(&crashed)] {
        assert_eq!(found(&db, last + 1), (210..=last).collect::<Vec<_>>());
    }
}

/// Records that the WAL buffers in the process have reserved space too.
#[test]
fn held_records_reach_a_log_on_a_full_disk() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(8);
    let options = DbOptions { manual_wal_flush: true, ..DbOptions::default() };
    let open = |sim: &SimEnv| {
        Db::open(sim.env(), Path::new("/data/db"), options.clone(), Vec::new(), FamilyOptions::default())
            .unwrap()
    };
    let (db, mut rng) = (open(&sim), Rng::new(8));
    put(&db, 0, &mut rng).unwrap();
    let last = fill_the_log(&sim, &db, 1, |db, n| put(db, n, &mut rng));
    batch(&db, |b, family| b.delete(family, &key(3)).unwrap()).unwrap();
    sim.set_capacity(0);
    db.flush_wal(true).unwrap();
    let crashed = sim.crash(CrashMode::DROP_ALL);
    crashed.set_capacity(u64::MAX);
    for db in [db, open(&crashed)] {
        assert_eq!(found(&db, last + 1), (0..last).filter(|n| *n != 3).collect::<Vec<_>>());
    }
}

/// Reserved space is always released: by a switch, by a close, and by the open after a crash.
#[test]
fn room_ahead_is_given_back() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(9);
    let files = |sim: &SimEnv| {
        sim.env().fs.list(Path::new("/data/db")).unwrap().iter().map(|file| file.len).sum::<u64>()
    };
    let (db, mut rng) = (open(&sim), Rng::new(9));
    (0..100).for_each(|n| put(&db, n, &mut rng).unwrap());
    let ahead = sim.used_bytes() - files(&sim);
    assert!(ahead > 64 << 10, "{ahead} bytes");
    let crashed = sim.crash(CrashMode::KILL);
    assert_eq!(crashed.used_bytes() - files(&crashed), ahead);
    flush(&db).unwrap();
    db.wait_for_background().unwrap();
    db.close().unwrap();
    assert_eq!(sim.used_bytes(), files(&sim));
    let db = open(&crashed);
    db.wait_for_background().unwrap();
    // The close begins a WAL file of its own to flush this data.
    let mut unlogged = WriteBatch::new();
    unlogged.put(db.family("default").unwrap().id(), b"unlogged", b"value").unwrap();
    db.write(&mut unlogged, WriteOptions { disable_wal: true, ..WriteOptions::default() }).unwrap();
    db.close().unwrap();
    assert_eq!(crashed.used_bytes(), files(&crashed));
}

/// Regression: settings that were changed on a full disk were lost without a word, and each attempt left a file.
#[test]
fn settings_that_a_full_disk_did_not_take_are_stored_later_or_the_close_fails() {
    let _alone = crate::alone();
    for has_room_later in [true, false] {
        let sim = SimEnv::new(13);
        let db = open(&sim);
        sim.set_capacity(sim.used_bytes());
        let family = db.family("default").unwrap();
        for trigger in ["8", "9"] {
            db.set_options(&family, &[("level0_file_num_compaction_trigger", trigger)]).unwrap();
        }
        let left = sim.env().fs.list(Path::new("/data/db")).unwrap();
        assert!(!left.iter().any(|entry| entry.name.ends_with(".dbtmp")), "{left:?}");
        if has_room_later {
            sim.set_capacity(u64::MAX);
        }
        assert_eq!(db.close().is_ok(), has_room_later);
        sim.set_capacity(u64::MAX);
        drop((db, family));
        let stored = find_latest_options(&*sim.env().fs, Path::new("/data/db")).unwrap().found.unwrap().1;
        let text = stored.print();
        assert_eq!(text.contains("level0_file_num_compaction_trigger=9"), has_room_later);
    }
}

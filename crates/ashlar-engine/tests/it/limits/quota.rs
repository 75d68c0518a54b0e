//! A quota of disk space and a reserve of free space: writes are refused before the limit is passed, work that frees space
//! goes on, and writes resume by themselves.

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FamilyId, Level, ValueType};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_engine::pressure::DiskLimits;
use ashlar_engine::{Db, IngestOptions};
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_env::{Clock, JobExecutor};
use ashlar_options::{
    CompactFilesOptions, CompactionOptions, DbOptions, DbPath, FamilyOptions, ReadOptions, WriteOptions,
};
use ashlar_testkit::Rng;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const NO_SPACE: ErrorKind = ErrorKind::Io(IoKind::NoSpace);
const DIR: &str = "/data/db";
/// What the OPTIONS file, the info log and the MANIFEST may get between two listings.
const SMALL_FILES: u64 = 32 << 10;

fn limited(quota: u64, reserve: u64) -> DbOptions {
    DbOptions { disk_quota_bytes: quota, disk_reserve_bytes: reserve, ..DbOptions::default() }
}

fn open(sim: &SimEnv, options: DbOptions) -> Db {
    let compaction =
        CompactionOptions { l0_trigger: 4, l0_slowdown: 20, l0_stop: 30, ..CompactionOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 256 << 10, compaction, ..FamilyOptions::default() };
    Db::open(sim.env(), Path::new(DIR), options, Vec::new(), family).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

fn write(db: &Db, options: WriteOptions, fill: impl FnOnce(&mut WriteBatch, FamilyId)) -> Result<(), Error> {
    let mut batch = WriteBatch::new();
    fill(&mut batch, FamilyId::DEFAULT);
    db.write(&mut batch, options).map(drop)
}

fn put(db: &Db, number: u32, rng: &mut Rng) -> Result<(), Error> {
    let value = rng.bytes(1000);
    write(db, WriteOptions::default(), |b, family| b.put(family, &key(number), &value).unwrap())
}

fn delete(db: &Db, number: u32) {
    write(db, WriteOptions::default(), |b, family| b.delete(family, &key(number)).unwrap()).unwrap();
}

fn found(db: &Db, end: u32) -> Vec<u32> {
    let family = db.family("default").unwrap();
    (0..end).filter(|n| db.get(&family, &key(*n), ReadOptions::default()).unwrap().is_some()).collect()
}

/// Puts keys until one is refused, and looks at the disk after each; returns the number of the refused put.
fn fill(db: &Db, from: u32, rng: &mut Rng, mut look: impl FnMut()) -> u32 {
    for number in from..from + 20_000 {
        let outcome = put(db, number, rng);
        look();
        let Err(refused) = outcome else { continue };
        let text = refused.to_string();
        assert!(refused.kind() == NO_SPACE && text.contains("Only deletions"), "{text}");
        assert!(text.contains("quota of") || text.contains("the reserve is"), "{text}");
        return number;
    }
    panic!("nothing was refused: {}", db.disk_use());
}

/// A table of 200 KB outside of the database.
fn table(db: &Db, rng: &mut Rng) -> [(Arc<Family>, Vec<PathBuf>); 1] {
    let (family, source) = (db.family("default").unwrap(), Path::new("/table.sst"));
    let mut table = db.sst_writer(&family, source).unwrap();
    for n in 0..200 {
        table.add(ValueType::Put, &key(900_000 + n), &rng.bytes(1000)).unwrap();
    }
    table.finish().unwrap();
    [(family, vec![source.to_path_buf()])]
}

/// Runs background jobs for some virtual minutes, or until writes are accepted.
fn settle(sim: &SimEnv, db: &Db) {
    let end = Clock::now(sim.clock()) + Duration::from_secs(300);
    while db.health().severity != Severity::Healthy
        && Clock::now(sim.clock()) < end
        && sim.jobs().drive(1) > 0
    {}
}

/// The longest history: the quota holds, what was acknowledged survives a crash, deletions and compactions bring writes back
/// without another open.
#[test]
fn a_quota_refuses_and_deletions_bring_writes_back() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(1), Rng::new(1));
    const QUOTA: u64 = 4 << 20;
    sim.set_capacity(2 * QUOTA);
    let db = open(&sim, limited(QUOTA, 0));
    let mut most = 0;
    let mut last = fill(&db, 0, &mut rng, || most = most.max(sim.used_bytes()));
    assert_eq!(db.health().severity, Severity::Full);
    assert!(most > QUOTA / 2, "{most}");
    // The flush of what was logged leaves room. It is used, and in the end writes stay refused.
    for _ in 0..10 {
        settle(&sim, &db);
        most = most.max(sim.used_bytes());
        if db.health().severity == Severity::Full {
            break;
        }
        last = fill(&db, last, &mut rng, || most = most.max(sim.used_bytes()));
    }
    assert_eq!(db.health().severity, Severity::Full, "{}", db.disk_use());
    assert!(last > 3000, "{last} KB in {QUOTA} bytes; {}", db.disk_use());
    // Beyond the quota goes one compaction at a time, while writers are refused.
    let compacts = 1 << 20;
    assert!(most <= QUOTA + compacts, "{most}");
    assert_eq!(found(&db, last + 1), (0..last).collect::<Vec<_>>());

    db.sync_wal().unwrap();
    let crashed = sim.crash(CrashMode::DROP_ALL);
    let again = open(&crashed, limited(QUOTA, 0));
    assert_eq!(found(&again, last + 1), (0..last).collect::<Vec<_>>());

    (0..last).filter(|n| n % 3 > 0).for_each(|n| delete(&db, n));
    let mut kept: Vec<u32> = (0..last).step_by(3).collect();
    assert_eq!(found(&db, last), kept);
    let family = db.family("default").unwrap();
    // A compaction of everything does not fit. It begins only while writes are refused, and its flush may end that.
    for _ in 0..10 {
        match db.compact_range(&family, None, None) {
            Ok(()) => break,
            Err(e) => assert_eq!(e.kind(), NO_SPACE, "{e}"),
        }
        let refused = fill(&db, last, &mut rng, || ());
        kept.extend(last..refused);
        last = refused;
    }
    settle(&sim, &db);
    assert_eq!(db.health().severity, Severity::Healthy, "{}", db.disk_use());
    assert!(sim.used_bytes() < QUOTA / 2, "{}", sim.used_bytes());
    put(&db, last, &mut rng).unwrap();
    assert_eq!(found(&db, last).len(), kept.len());
}

/// Regression: a batch was counted for the WAL and not for the table that it becomes.
#[test]
fn a_large_batch_does_not_pass_the_quota() {
    let _alone = crate::alone();
    const QUOTA: u64 = 4 << 20;
    let (sim, mut rng) = (SimEnv::new(11), Rng::new(11));
    let db = open(&sim, limited(QUOTA, 0));
    let mut written = 0;
    for round in 0..8 {
        let values: Vec<_> = (0..800).map(|_| rng.bytes(1000)).collect();
        let outcome = write(&db, WriteOptions::default(), |b, family| {
            for (number, value) in (round * 800..).zip(&values) {
                b.put(family, &key(number), value).unwrap();
            }
        });
        settle(&sim, &db);
        assert!(sim.used_bytes() <= QUOTA + SMALL_FILES, "{} after {round}", sim.used_bytes());
        match outcome {
            Ok(()) => {
                db.wait_for_background().unwrap();
                written += 1;
            }
            Err(e) => assert_eq!(e.kind(), NO_SPACE, "{e}"),
        }
    }
    assert!((2..5).contains(&written), "{written} batches of 800 KB in {QUOTA} bytes");
}

/// Regression: the space of a refused batch in the memtable counted as a table to come, and refused later puts.
#[test]
fn a_write_that_is_too_large_is_refused_alone() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(14), Rng::new(14));
    let db = open(&sim, limited(4 << 20, 0));
    let large = rng.bytes(8 << 20);
    for round in 0..3 {
        let refused =
            write(&db, WriteOptions::default(), |b, family| b.put(family, b"large", &large).unwrap());
        assert_eq!(refused.unwrap_err().kind(), NO_SPACE);
        settle(&sim, &db);
        assert_eq!(db.health().severity, Severity::Healthy, "{}", db.disk_use());
        assert!(db.disk_use().expected < 1 << 20, "{}", db.disk_use());
        // Refusals take no space, and are counted as none.
        let used = db.disk_use().used;
        for _ in 0..20 {
            write(&db, WriteOptions::default(), |b, family| b.put(family, b"large", &large).unwrap())
                .unwrap_err();
        }
        assert!(db.disk_use().used <= used + (256 << 10), "{used} bytes before: {}", db.disk_use());
        // More than the WAL has reserved, without a flush.
        for number in 0..300 {
            put(&db, 1000 * round + number, &mut rng).unwrap();
        }
    }
    assert_eq!(db.health().severity, Severity::Healthy);
}

/// A caller's flush goes on where puts are refused.
#[test]
fn a_flush_at_the_quota_goes_on() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(12), Rng::new(12));
    let db = open(&sim, limited(1 << 20, 0));
    let last = fill(&db, 0, &mut rng, || ());
    db.flush(&db.families()).unwrap();
    assert_eq!(found(&db, last + 1), (0..last).collect::<Vec<_>>());
}

/// Without a request for a compaction: the one that is due by itself is enough.
#[test]
fn a_range_deletion_brings_writes_back_by_itself() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(2), Rng::new(2));
    let db = open(&sim, limited(2 << 20, 0));
    let last = fill(&db, 0, &mut rng, || ());
    write(&db, WriteOptions::default(), |b, family| b.delete_range(family, &key(0), &key(last)).unwrap())
        .unwrap();
    settle(&sim, &db);
    assert_eq!(db.health().severity, Severity::Healthy, "{}", db.disk_use());
    put(&db, last, &mut rng).unwrap();
    assert_eq!(found(&db, last + 1), [last]);
}

#[test]
fn a_reserve_stays_free() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(3), Rng::new(3));
    const CAPACITY: u64 = 4 << 20;
    const RESERVE: u64 = 2 << 20;
    sim.set_capacity(CAPACITY);
    let db = open(&sim, limited(0, RESERVE));
    // So that only memtables and the WAL take space: compactions may use the reserve while writers are refused.
    db.abort_compactions().unwrap();
    let mut least = CAPACITY;
    let last = fill(&db, 0, &mut rng, || least = least.min(CAPACITY - sim.used_bytes()));
    settle(&sim, &db);
    least = least.min(CAPACITY - sim.used_bytes());
    assert!(least >= RESERVE - SMALL_FILES && last > 500, "{least} bytes free, {last} keys");
    assert_eq!(found(&db, last), (0..last).collect::<Vec<_>>());
    // Another program gives space back.
    db.resume_compactions().unwrap();
    sim.set_capacity(2 * CAPACITY);
    settle(&sim, &db);
    put(&db, last, &mut rng).unwrap();
    assert_eq!(db.disk_use().free, Some(2 * CAPACITY - sim.used_bytes()));
}

#[test]
fn limits_change_while_the_database_is_open() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(4), Rng::new(4));
    let db = open(&sim, DbOptions::default());
    (0..1000).for_each(|n| put(&db, n, &mut rng).unwrap());
    db.limit_disk(DiskLimits { quota: 500_000, reserve: 0 }).unwrap();
    assert_eq!(put(&db, 1000, &mut rng).unwrap_err().kind(), NO_SPACE);
    settle(&sim, &db);
    assert_eq!(put(&db, 1000, &mut rng).unwrap_err().kind(), NO_SPACE);
    assert_eq!(db.health().severity, Severity::Full);
    assert!(db.disk_use().room == Some(0) && db.pressure().disk.quota == 500_000, "{}", db.disk_use());
    delete(&db, 0);
    db.limit_disk(DiskLimits::default()).unwrap();
    put(&db, 1000, &mut rng).unwrap();
    assert_eq!(found(&db, 1001), (1..1001).collect::<Vec<_>>());
}

#[test]
fn a_database_above_its_quota_opens_and_takes_deletions() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(5), Rng::new(5));
    let db = open(&sim, DbOptions::default());
    (0..1000).for_each(|n| put(&db, n, &mut rng).unwrap());
    db.close().unwrap();
    let db = open(&sim, limited(500_000, 0));
    assert_eq!(found(&db, 1000).len(), 1000);
    assert_eq!(put(&db, 1000, &mut rng).unwrap_err().kind(), NO_SPACE);
    (0..900).for_each(|n| delete(&db, n));
    let family = db.family("default").unwrap();
    db.compact_range(&family, None, None).unwrap();
    settle(&sim, &db);
    put(&db, 1000, &mut rng).unwrap();
    assert_eq!(found(&db, 1001), (900..1001).collect::<Vec<_>>());
}

/// Two tables of the same keys, and a quota that has room for their compaction only at the end.
#[test]
fn a_compaction_that_does_not_fit_is_not_begun() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(6), Rng::new(6));
    let db = open(&sim, DbOptions::default());
    for _ in 0..2 {
        (0..100).for_each(|n| put(&db, n, &mut rng).unwrap());
        db.flush(&db.families()).unwrap();
    }
    db.wait_for_background().unwrap();
    let family = db.family("default").unwrap();
    let numbers: Vec<_> = db.live_files(&family).unwrap().iter().map(|f| f.number).collect();
    assert_eq!(numbers.len(), 2);
    let compact = || db.compact_files(&family, &numbers, Level(6), CompactFilesOptions::new());
    // Gives back what the WAL has reserved.
    db.limit_disk(DiskLimits { quota: u64::MAX, reserve: 0 }).unwrap();
    db.wait_for_background().unwrap();
    db.limit_disk(DiskLimits { quota: db.disk_use().used + 150_000, reserve: 0 }).unwrap();
    let before = sim.used_bytes();
    let refused = compact().unwrap_err();
    assert!(refused.kind() == NO_SPACE && refused.to_string().contains("can begin when"), "{refused}");
    assert!(sim.used_bytes() <= before + SMALL_FILES, "a table was begun");
    assert_eq!(db.health().severity, Severity::Soft);
    put(&db, 200, &mut rng).unwrap();
    db.limit_disk(DiskLimits { quota: db.disk_use().used + 350_000, reserve: 0 }).unwrap();
    sim.jobs().drive(10);
    compact().unwrap();
    assert_eq!(found(&db, 201).len(), 101);
}

/// The count is what the files take, in all directories, with tables that only an iterator still holds.
#[test]
fn the_count_is_what_the_files_take() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(7), Rng::new(7));
    let place = DbPath { path: "/other".into(), target_bytes: 1 << 40 };
    let db = open(&sim, DbOptions { db_paths: vec![place], ..DbOptions::default() });
    let family = db.family("default").unwrap();
    for _ in 0..3 {
        (0..300).for_each(|n| put(&db, n, &mut rng).unwrap());
        db.flush(&[Arc::clone(&family)]).unwrap();
    }
    let iter = db.iter(&family, Default::default(), ReadOptions::default()).unwrap();
    db.compact_range(&family, None, None).unwrap();
    let check = || {
        let (counted, there) = (db.disk_use().used, sim.used_bytes());
        // The space that the MANIFEST has reserved does not count.
        assert!(counted.abs_diff(there) < SMALL_FILES + (80 << 10), "{counted} counted, {there} there");
        counted
    };
    let with_old = check();
    drop(iter);
    db.compact_range(&family, None, None).unwrap();
    let without = check();
    assert!(without + 600_000 < with_old, "{with_old} before, {without} after");
    (0..100).for_each(|n| put(&db, n, &mut rng).unwrap());
    check();
    assert!(db.disk_use().expected > 100_000, "{}", db.disk_use());
}

/// Writes that skip the WAL are checked one by one, and an ingestion before it brings a file.
#[test]
fn writes_without_the_log_and_ingestions_are_refused_too() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(8), Rng::new(8));
    const QUOTA: u64 = 2 << 20;
    let db = open(&sim, limited(QUOTA, 0));
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let mut most = 0;
    let refused = (0..5000).find_map(|n| {
        let value = rng.bytes(1000);
        let outcome = write(&db, unlogged, |b, family| b.put(family, &key(n), &value).unwrap());
        most = most.max(sim.used_bytes());
        outcome.err()
    });
    assert_eq!(refused.expect("the quota holds").kind(), NO_SPACE);
    assert!(most <= QUOTA + (512 << 10), "{most}");
    db.limit_disk(DiskLimits::default()).unwrap();
    settle(&sim, &db);
    db.wait_for_background().unwrap();

    let parts = table(&db, &mut rng);
    db.limit_disk(DiskLimits { quota: db.disk_use().used + 100_000, reserve: 0 }).unwrap();
    let ingest = || db.ingest(&parts, IngestOptions::new());
    assert_eq!(ingest().unwrap_err().kind(), NO_SPACE);
    db.limit_disk(DiskLimits::default()).unwrap();
    ingest().unwrap();
}

/// Regression: a whole memtable of writes without the log went in before the first refusal, up to 63 times a small quota.
#[test]
fn writes_without_the_log_keep_to_a_quota_below_a_memtable() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(10), Rng::new(10));
    const QUOTA: u64 = 1 << 20;
    let family = FamilyOptions { write_buffer_bytes: 64 << 20, ..FamilyOptions::default() };
    let db = Db::open(sim.env(), Path::new(DIR), limited(QUOTA, 0), Vec::new(), family).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    // The WAL has its first piece.
    put(&db, 0, &mut rng).unwrap();
    // A batch of nearly half the quota counts once.
    let large = |b: &mut WriteBatch, family| {
        (1..401).for_each(|n| b.put(family, &key(n), &rng.bytes(1000)).unwrap());
    };
    write(&db, unlogged, large).unwrap();
    let mut one = |n| {
        let value = rng.bytes(1000);
        write(&db, unlogged, |b, family| b.put(family, &key(n), &value).unwrap())
    };
    let end = (401..5000).find(|n| one(*n).is_err()).expect("the quota holds");
    assert!((700..1000).contains(&end), "{end}");
    assert_eq!(db.health().severity, Severity::Full);
    // What is refused takes no memory.
    let before = db.disk_use().expected;
    for n in 5000..10_000 {
        assert_eq!(one(n).unwrap_err().kind(), NO_SPACE);
    }
    assert_eq!(db.disk_use().expected, before);
    // Deletions pass. They and the compaction that they make possible bring writes back.
    let mut none = |n| write(&db, unlogged, |b, family| b.delete(family, &key(n)).unwrap()).unwrap();
    (0..end).for_each(&mut none);
    settle(&sim, &db);
    db.flush(&db.families()).unwrap();
    assert!(sim.used_bytes() < QUOTA + (256 << 10), "{}", sim.used_bytes());
    db.compact_range(&db.family("default").unwrap(), None, None).unwrap();
    settle(&sim, &db);
    one(1).unwrap();
    assert_eq!(db.health().severity, Severity::Healthy);
}

/// Failed ingestions take no space. What a full disk did not give counts until the next listing only.
#[test]
fn what_failed_calls_have_taken_is_forgotten() {
    let _alone = crate::alone();
    let (sim, mut rng) = (SimEnv::new(9), Rng::new(9));
    let db = open(&sim, limited(2 << 20, 0));
    put(&db, 900_100, &mut rng).unwrap();
    let parts = table(&db, &mut rng);
    let refused = IngestOptions::new().flush(false);
    for _ in 0..20 {
        assert_ne!(db.ingest(&parts, refused).unwrap_err().kind(), NO_SPACE);
    }
    db.ingest(&parts, IngestOptions::new()).unwrap();

    // The disk is full, and the room job asks for hours.
    sim.set_capacity(sim.used_bytes());
    let full = (0..1000).find_map(|n| put(&db, n, &mut rng).err()).unwrap();
    assert_eq!(full.kind(), NO_SPACE);
    let end = Clock::now(sim.clock()) + Duration::from_secs(3600);
    while Clock::now(sim.clock()) < end && sim.jobs().drive(1) > 0 {}
    // But for what the last attempts have asked for.
    assert!(db.disk_use().used < sim.used_bytes() + (512 << 10), "{}", db.disk_use());
    sim.set_capacity(u64::MAX);
    settle(&sim, &db);
    put(&db, 1, &mut rng).unwrap();
}

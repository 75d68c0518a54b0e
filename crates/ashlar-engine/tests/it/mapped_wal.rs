//! `mapped_wal`: stores into the WAL survive what writes survive, and fail as writes fail.

use ashlar_base::ErrorKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_log::RecoveryMode;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use std::path::Path;
use std::time::{Duration, Instant};

const DIR: &str = "/data/db";

fn open_as(
    env: Env,
    dir: &Path,
    mapped: bool,
    recovery_mode: RecoveryMode,
) -> Result<Db, ashlar_base::Error> {
    let options = DbOptions { mapped_wal: mapped, recovery_mode, ..DbOptions::default() };
    let family = FamilyOptions { write_buffer_bytes: 256 << 10, ..FamilyOptions::default() };
    let families = vec![OpenFamily { name: "default".to_owned(), options: family.clone() }];
    Db::open(env, dir, options, families, family)
}

fn open(env: Env, dir: &Path, mapped: bool) -> Db {
    open_as(env, dir, mapped, RecoveryMode::PointInTime).unwrap()
}

fn put(db: &Db, number: u32) -> Result<(), ashlar_base::Error> {
    let mut batch = WriteBatch::new();
    batch.put(db.families()[0].id(), &number.to_be_bytes(), &vec![7; 20 + number as usize % 400])?;
    db.write(&mut batch, WriteOptions::default()).map(drop)
}

/// The number of writes, counted from the first; asserts that none is missing in between.
fn count(db: &Db) -> u32 {
    let mut iter = db.iter(&db.families()[0], KeyBounds::default(), ReadOptions::default()).unwrap();
    iter.first().unwrap();
    let mut next = 0_u32;
    while let Some((key, _)) = iter.entry() {
        assert_eq!(key, next.to_be_bytes(), "a hole");
        next += 1;
        iter.next().unwrap();
    }
    next
}

/// Kills before each call, the parts of a store among them, in the modes that a kill may meet.
#[test]
fn a_kill_leaves_exactly_what_returned() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(1);
    let db = open(sim.env(), Path::new(DIR), true);
    let first = sim.calls_of(CallClass::Change);
    for at in 1..400 {
        sim.photograph_at(first + at * 3, CrashMode::KILL);
    }
    let mut returned = vec![0];
    for number in 0..500 {
        put(&db, number).unwrap();
        returned.resize(usize::try_from(sim.calls_of(CallClass::Change)).unwrap() + 1, number);
    }
    let photographs = sim.photographs();
    assert!(photographs.len() > 300, "{}", photographs.len());
    for (at, _, after) in photographs {
        for mode in [RecoveryMode::PointInTime, RecoveryMode::TolerateTail] {
            let left =
                count(&open_as(after.crash(CrashMode::KILL).env(), Path::new(DIR), true, mode).unwrap());
            let least = returned[usize::try_from(at).unwrap()];
            assert!(left == least || left == least + 1, "call {at}, {mode:?}: {left}, {least} returned");
        }
    }
}

#[test]
fn the_option_may_change_between_opens() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut written = 0;
    for (round, mapped) in [true, false, true, true, false].into_iter().enumerate() {
        let db = open(Env::os().unwrap(), dir.path(), mapped);
        assert_eq!(count(&db), written);
        for _ in 0..700 {
            put(&db, written).unwrap();
            written += 1;
        }
        // Every second round ends without a close.
        if round % 2 == 0 { db.close().unwrap() } else { drop(db) }
    }
    assert_eq!(count(&open(Env::os().unwrap(), dir.path(), false)), written);
}

/// The WAL is as long as its records once it is closed, and at most a block longer before.
#[test]
fn a_closed_wal_ends_with_its_records() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let db = open(Env::os().unwrap(), dir.path(), true);
    let wal = || {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|e| e == "log")).max().unwrap()
    };
    for number in 0..100 {
        put(&db, number).unwrap();
    }
    let path = wal();
    let live = std::fs::read(&path).unwrap();
    db.close().unwrap();
    let closed = std::fs::read(&path).unwrap();
    assert!(!closed.is_empty() && live.len() - closed.len() < 32 << 10);
    assert!(live.starts_with(&closed) && live[closed.len()..].iter().all(|byte| *byte == 0));
}

/// Whether files of the directory can be mapped.
fn maps(dir: &Path) -> bool {
    let file = Env::os().unwrap().fs.create(&dir.join("mapped")).unwrap();
    file.prepare(0, 4096).unwrap().is_some()
}

/// Another program cuts the WAL beneath the mapping: an error, no signal, and writes go on in the next file.
#[test]
fn a_missing_page_is_an_error_and_the_database_resumes() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    if !maps(dir.path()) {
        ashlar_testkit::report::skipped("mapped WAL", "files of the temporary directory cannot be mapped");
        return;
    }
    let db = open(Env::os().unwrap(), dir.path(), true);
    let mut written = 0;
    while written < 300 {
        put(&db, written).unwrap();
        written += 1;
    }
    for entry in std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|e| e == "log") {
            std::fs::OpenOptions::new().write(true).open(entry).unwrap().set_len(0).unwrap();
        }
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let failed = loop {
        assert!(Instant::now() < deadline, "stores into the missing page succeed");
        match put(&db, written) {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(failed.kind(), ErrorKind::Indeterminate, "{failed}");
    assert!(failed.to_string().contains("a page of the mapped file"), "{failed}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(e) = put(&db, written) {
        assert!(Instant::now() < deadline, "does not resume: {e}");
        std::thread::sleep(Duration::from_millis(20));
    }
    written += 1;
    assert_eq!(count(&db), written);
    for _ in 0..100 {
        put(&db, written).unwrap();
        written += 1;
    }
    drop(db);
    assert_eq!(count(&open(Env::os().unwrap(), dir.path(), true)), written);
}

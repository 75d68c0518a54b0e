//! Logs that a replay does not use to their end: an open and a repair keep them, and name what still stands there.

use crate::quarantine::{bytes, is_in, lost, names};
use crate::repair::{DIR, crashed_before_each, is_kept};
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, report};
use ashlardb::{Builder, Db, Read as _, RecoveryMode, Risk, Write as _, WriteBatch, check_database};
use std::path::Path;

/// The tests cut and join logs, so the logs end with their records.
fn builder(sim: &SimEnv) -> Builder {
    Db::builder(DIR).env(sim.env()).mapped_wal(false)
}

fn put(sim: &SimEnv, name: &str, bytes: &[u8]) {
    let file = sim.env().fs.create(&Path::new(DIR).join(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_all().unwrap();
}

/// A database that was killed with `writes` writes in its log, and the name of that log.
fn killed(writes: usize) -> (SimEnv, String) {
    let sim = SimEnv::new(1);
    let db = builder(&sim).open().unwrap();
    for i in 0..writes {
        db.put(format!("key{i:04}"), "value").unwrap();
    }
    let image = sim.crash(CrashMode::KILL);
    let log = log(&image);
    (image, log)
}

/// The newest log that holds something.
fn log(sim: &SimEnv) -> String {
    let logs = names(sim, DIR).into_iter().filter(|(name, len)| name.ends_with(".log") && *len > 0);
    logs.map(|(name, _)| name).max().unwrap()
}

/// Changes a byte of a log.
fn flip(sim: &SimEnv, log: &str, at: usize) -> Vec<u8> {
    let mut all = bytes(sim, log);
    all[at] ^= 0xff;
    put(sim, log, &all);
    all
}

fn count(db: &Db) -> usize {
    db.scan(..).inspect(|entry| assert!(entry.is_ok(), "{entry:?}")).count()
}

#[test]
fn an_open_that_stops_in_a_log_keeps_it_and_names_what_stands_behind() {
    for (record, read_only) in [(0, true), (0, false), (300, false)] {
        let (sim, log) = killed(500);
        let len = bytes(&sim, &log).len() / 500;
        let damaged = flip(&sim, &log, record * len + 5);
        let checked = check_database(&sim.env(), Path::new(DIR), &mut |_| {}).unwrap();
        let [hole] = &checked.holes[..] else { panic!("{checked}") };
        let Risk::Writes { last, behind, more, .. } = &hole.risk else { panic!("{checked}") };
        let behind_it = 499 - record as u64;
        assert_eq!((behind.len() as u64 + more, last.map(|l| l.get())), (behind_it, Some(500)), "{checked}");
        let db = builder(&sim).read_only(read_only).open().unwrap();
        let recovery = db.recovery();
        let [range] = &recovery.dropped[..] else { panic!("{recovery}") };
        let remains = range.remains.as_ref().unwrap_or_else(|| panic!("{recovery}"));
        assert_eq!((remains.batches, remains.operations), (behind_it, behind_it), "{recovery}");
        assert_eq!((remains.first.get(), remains.last.get()), (record as u64 + 2, 500), "{recovery}");
        assert_eq!(remains.keys[0], format!("key{:04}", record + 1).into_bytes(), "{recovery}");
        let told = format!("behind it stand {behind_it} whole batches, sequences {} to 500", record + 2);
        assert!(recovery.to_string().contains(&told), "{recovery}");
        assert_eq!(count(&db), record);
        assert_eq!(recovery.lost, if read_only { vec![] } else { vec![log.clone()] }, "{recovery}");
        db.close().unwrap();
        assert!(is_kept(&sim, &damaged));
        if !read_only {
            assert!(!is_in(&sim, DIR, &log) && bytes(&sim, &format!("lost/{log}")) == damaged);
            let account = log.trim_end_matches(".log");
            let text = String::from_utf8(bytes(&sim, &format!("lost/QUARANTINE-{account}.txt"))).unwrap();
            assert!(text.contains(&told), "{text}");
        }
    }
}

/// Behind the commit, too: the next open moves what the first had not moved yet.
#[test]
fn an_open_that_crashes_keeps_the_log_that_it_did_not_use() {
    let (sim, log) = killed(300);
    let damaged = flip(&sim, &log, 200);
    let (torn, torn_log) = killed(20);
    let whole = bytes(&torn, &torn_log);
    put(&torn, &torn_log, &whole[..whole.len() - 3]);
    let tail = whole[whole.len() / 20 * 19..whole.len() - 3].to_vec();
    let mut images = 0;
    for (sim, kept) in [(&sim, &damaged), (&torn, &tail)] {
        let run = sim.crash(CrashMode::KILL);
        let before = run.calls_of(CallClass::Change);
        builder(&run).open().unwrap().close().unwrap();
        let changes = run.calls_of(CallClass::Change) - before;
        assert!(is_kept(&run, kept), "{:?}", names(&run, &lost()));
        for (what, image) in
            crashed_before_each(sim, changes, |run| builder(run).open().unwrap().close().unwrap())
        {
            let db = builder(&image).open().unwrap_or_else(|e| panic!("{what}: {e}"));
            db.close().unwrap();
            assert!(is_kept(&image, kept), "{what}: {:?} {:?}", names(&image, DIR), names(&image, &lost()));
            images += 1;
        }
    }
    report::figure(&format!("unused logs: {images} crashes of an open, each log kept"));
}

#[test]
fn of_torn_tails_the_newest_are_kept() {
    let (mut sim, _) = killed(3);
    let mut newest = Vec::new();
    for round in 0_u8..12 {
        let name = log(&sim);
        let whole = bytes(&sim, &name);
        // A record that the crash cut off: no whole one is behind it.
        let torn = [&[9, 9, 9, 9, 200, 1, 1][..], &[round + 1; 30]].concat();
        put(&sim, &name, &[&whole[..], &torn, &[0; 5000]].concat());
        let db = builder(&sim).open().unwrap();
        assert_eq!(db.recovery().lost, [format!("{name}.tail-{}", whole.len())], "{}", db.recovery());
        db.put("more", [round]).unwrap();
        newest.push((db.recovery().lost[0].clone(), torn));
        sim = sim.crash(CrashMode::KILL);
    }
    let found = names(&sim, &lost());
    assert_eq!(found.len(), 8, "{found:?}");
    for (name, torn) in &newest[4..] {
        assert_eq!(bytes(&sim, &format!("lost/{name}")), *torn);
    }
}

#[test]
fn zeros_and_whole_logs_leave_nothing_behind() {
    let (sim, log) = killed(50);
    let whole = bytes(&sim, &log);
    put(&sim, &log, &[&whole[..], &[0; 40_000]].concat());
    let db = builder(&sim).open().unwrap();
    assert!(db.recovery().is_clean() && count(&db) == 50, "{}", db.recovery());
    assert!(!is_in(&sim, DIR, "lost"));
}

#[test]
fn a_mode_that_skips_damage_keeps_the_log() {
    let (sim, log) = killed(3000);
    let damaged = flip(&sim, &log, 100);
    let db = builder(&sim).recovery_mode(RecoveryMode::SkipAny).open().unwrap();
    assert!(count(&db) > 1000 && db.recovery().lost == [log], "{}", db.recovery());
    assert!(is_kept(&sim, &damaged));
}

#[test]
fn a_repair_keeps_a_log_that_it_could_not_read_and_tells_the_loss() {
    let sim = SimEnv::new(1);
    let db = builder(&sim).open().unwrap();
    let batch = WriteBatch::new();
    for i in 0..500 {
        batch.put(format!("key{i:04}"), "value").unwrap();
    }
    db.write(batch).unwrap();
    let sim = sim.crash(CrashMode::KILL);
    let log = log(&sim);
    let damaged = flip(&sim, &log, 5);
    let account = builder(&sim).repair(|_| {}).unwrap();
    assert!(!account.is_lossless() && account.moved.contains(&log), "{account}");
    assert!(account.losses.iter().any(|loss| loss.file == log), "{account}");
    assert_eq!(bytes(&sim, &format!("lost/{log}")), damaged);
}

#[test]
fn a_file_that_only_has_a_logs_name_is_never_removed() {
    let text: Vec<u8> = (0..40_000_u32).map(|i| b"a list of services\n"[i as usize % 19]).collect();
    for (number, repair) in [(1, false), (1, true), (900, false), (900, true)] {
        let (sim, _) = killed(10);
        let name = format!("{number:06}.log");
        put(&sim, &name, &text);
        let moved = match repair {
            true => builder(&sim).repair(|_| {}).unwrap().moved,
            false => builder(&sim).open().unwrap().recovery().lost.clone(),
        };
        assert!(moved.contains(&name), "{name}, repair {repair}: {moved:?}");
        assert_eq!(bytes(&sim, &format!("lost/{name}")), text);
        let db = builder(&sim).open().unwrap();
        assert_eq!(count(&db), 10, "{name}, repair {repair}: {}", db.recovery());
    }
}

/// What an open leaves of such a directory is one that RocksDB opens.
fn judged() -> Result<(), JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Create, "recycle_log_file_num=2")?;
    let change = |i: usize| ashlar_testkit::Change::Put {
        family: "default".to_owned(),
        key: format!("key{i:04}").into_bytes(),
        value: vec![7; 100],
    };
    (0..2000).try_for_each(|i| judge.write(&[change(i)], false))?;
    judge.kill();
    let log = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
    let log = log.filter(|p| p.extension().is_some_and(|e| e == "log")).max().unwrap();
    let mut damaged = std::fs::read(&log).unwrap();
    damaged[60_000] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let found = count(&db);
    let remains = db.recovery().dropped[0].remains.clone().unwrap();
    assert_eq!(found as u64 + remains.batches, 1999, "{}", db.recovery());
    db.close().unwrap();
    assert_eq!(std::fs::read(dir.path().join("lost").join(log.file_name().unwrap())).unwrap(), damaged);
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Existing, "")?;
    assert_eq!(judge.dump("default")?.len(), found);
    Ok(())
}

#[test]
fn rocksdb_opens_a_directory_whose_log_was_kept() {
    match judged() {
        Err(JudgeError::Skip(skip)) => skip.announce("rocksdb_opens_a_directory_whose_log_was_kept"),
        result => result.unwrap_or_else(|e| panic!("{e}")),
    }
}

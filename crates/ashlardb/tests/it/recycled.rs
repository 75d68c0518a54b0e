//! Logs of recyclable records, really written by RocksDB 11.8.1 with `recycle_log_file_num`: nothing of a healthy directory is
//! given up, and no alarm is raised.

use crate::store::{copy, listing};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Op, Rng, report};
use ashlardb::{Db, Env, Read as _, RecoveryMode, Verified, check_database};
use std::path::Path;

const MODES: [RecoveryMode; 4] =
    [RecoveryMode::TolerateTail, RecoveryMode::Absolute, RecoveryMode::PointInTime, RecoveryMode::SkipAny];

/// How a directory comes to be.
struct History {
    name: &'static str,
    /// RocksDB's options.
    options: &'static str,
    families: &'static [&'static str],
    /// Bytes of a value; 0: of sizes that are drawn, up to several blocks.
    value: usize,
    /// Bytes of a batch, about.
    batch: usize,
    /// Bytes written in all.
    bytes: usize,
    /// After this many bytes the last family is flushed, each time.
    flush: usize,
    /// Closed in order, not killed.
    closed: bool,
}

const KILLED: History = History {
    name: "",
    options: "",
    families: &["default"],
    value: 120,
    batch: 0,
    bytes: 3 << 20,
    flush: usize::MAX,
    closed: false,
};

/// Each with `recycle_log_file_num=4`.
const HISTORIES: [History; 14] = [
    History { name: "values of 20", value: 20, bytes: 2 << 20, ..KILLED },
    History { name: "values of 120", ..KILLED },
    History { name: "values of 500", value: 500, ..KILLED },
    History {
        name: "closed without a flush",
        options: "avoid_flush_during_shutdown=true",
        closed: true,
        ..KILLED
    },
    History { name: "batches of many sizes", value: 0, batch: 700, ..KILLED },
    History { name: "compressed", options: "wal_compression=kZSTD", value: 0, batch: 700, ..KILLED },
    History { name: "skip any", options: "wal_recovery_mode=kSkipAnyCorruptedRecords", ..KILLED },
    History { name: "tracked", options: "track_and_verify_wals=true", value: 300, ..KILLED },
    History {
        name: "a chain",
        families: &["default", "one", "two"],
        bytes: 4 << 20,
        flush: 700_000,
        ..KILLED
    },
    History { name: "reused", options: "write_buffer_size=100000", value: 200, flush: 150_000, ..KILLED },
    History {
        name: "reused, large",
        options: "write_buffer_size=300000",
        value: 0,
        flush: 250_000,
        ..KILLED
    },
    History {
        name: "reused, tracked",
        options: "track_and_verify_wals=true;write_buffer_size=100000",
        value: 0,
        flush: 200_000,
        bytes: 2 << 20,
        ..KILLED
    },
    History {
        name: "reused, a chain",
        options: "write_buffer_size=100000;max_total_wal_size=300000",
        families: &["default", "one", "two"],
        value: 333,
        flush: 150_000,
        ..KILLED
    },
    History {
        name: "reused, compressed",
        options: "wal_compression=kZSTD;write_buffer_size=100000",
        value: 0,
        batch: 2000,
        flush: 170_000,
        ..KILLED
    },
];

/// Has RocksDB write a directory.
fn make(history: &History, seed: u64) -> Result<tempfile::TempDir, JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Create, &format!("recycle_log_file_num=4;{}", history.options))?;
    for family in history.families.iter().filter(|family| **family != "default") {
        judge.create_family(family)?;
    }
    let (mut rng, mut written, mut flushed, mut n) = (Rng::new(seed), 0, 0, 0_u32);
    while written < history.bytes {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while changes.is_empty() || bytes < history.batch {
            let len = match history.value {
                0 if rng.below(400) == 0 => rng.between(20_000, 80_000),
                0 => rng.below(600),
                len => len,
            };
            let value = rng.bytes(len);
            let family = history.families[n as usize % history.families.len()].to_owned();
            changes.push(Change::Put { family, key: format!("key{n:08}").into_bytes(), value });
            (n, bytes) = (n + 1, bytes + len + 30);
        }
        judge.write(&changes, false)?;
        written += bytes;
        if written - flushed > history.flush {
            flushed = written;
            judge.apply(&[Op::Flush { family: (*history.families.last().unwrap()).to_owned() }])?;
        }
    }
    if history.closed {
        judge.close()?
    } else {
        judge.kill()
    }
    Ok(dir)
}

/// What RocksDB finds in a copy, by family.
fn theirs(dir: &Path) -> Result<Vec<(String, Vec<KeyValue>)>, JudgeError> {
    let copy = copy(dir);
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(copy.path(), Opening::Existing, "")?;
    judge.families()?.into_iter().map(|name| Ok((name.clone(), judge.dump(&name)?))).collect()
}

fn ours(db: &Db) -> Vec<(String, Vec<KeyValue>)> {
    let mut all: Vec<_> =
        db.families().iter().map(|family| (family.name().to_owned(), listing(family.scan(..)))).collect();
    all.sort();
    all
}

/// What every reader of ours makes of a healthy directory, and RocksDB of what we leave.
fn look(dir: &Path, what: &str) -> Result<usize, JudgeError> {
    let expected = theirs(dir)?;
    let keys = expected.iter().map(|(_, keys)| keys.len()).sum();
    let checked = check_database(&Env::os().unwrap(), dir, &mut |_| ()).unwrap();
    // A kill may leave a table that RocksDB was writing.
    let of_logs = checked.remarks.iter().any(|remark| !remark.ends_with(".sst is not in the MANIFEST"));
    assert!(checked.is_sound() && checked.holes.is_empty() && !of_logs, "{what}: {checked}");
    for mode in MODES {
        for read_only in [true, false] {
            let copy = copy(dir);
            let what = format!("{what}, {mode:?}, read only: {read_only}");
            let builder = Db::builder(copy.path()).recovery_mode(mode).read_only(read_only);
            let db = builder.open().unwrap_or_else(|e| panic!("{what}: {e:?}"));
            assert!(db.recovery().is_clean(), "{what}: {}", db.recovery());
            assert!(ours(&db) == expected, "{what}: {}", db.recovery());
            db.close().unwrap();
            assert!(!copy.path().join("lost").exists(), "{what}");
            if mode == RecoveryMode::PointInTime {
                assert!(theirs(copy.path())? == expected, "{what}: afterwards");
            }
        }
    }
    let copy = copy(dir);
    let repaired = Db::builder(copy.path()).repair(&mut |_: &Verified| ()).unwrap();
    let logs_stay = repaired.moved.iter().all(|name| name.ends_with(".sst"));
    assert!(repaired.is_lossless() && logs_stay, "{what}: {repaired}");
    assert!(theirs(copy.path())? == expected, "{what}: repaired");
    Ok(keys)
}

fn look_at_all() -> Result<Vec<(&'static str, usize)>, JudgeError> {
    HISTORIES
        .iter()
        .step_by(report::scale(15, 1))
        .map(|history| {
            let dir = make(history, 7)?;
            Ok((history.name, look(dir.path(), history.name)?))
        })
        .collect()
}

#[test]
fn nothing_of_rocksdbs_recycled_logs_is_given_up() {
    match look_at_all() {
        Err(JudgeError::Skip(skip)) => skip.announce("nothing_of_rocksdbs_recycled_logs_is_given_up"),
        Err(e) => panic!("{e}"),
        Ok(found) => found.iter().for_each(|(name, keys)| report::figure(&format!("{name}: {keys} keys"))),
    }
}

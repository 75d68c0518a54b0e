//! The four recovery modes over damaged logs, beside what RocksDB 11.8.1 makes of the same bytes.

use crate::store::{copy, listing};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, report};
use ashlardb::{Db, Read as _, RecoveryMode};
use std::path::{Path, PathBuf};

const MODES: [(RecoveryMode, &str); 4] = [
    (RecoveryMode::TolerateTail, "kTolerateCorruptedTailRecords"),
    (RecoveryMode::Absolute, "kAbsoluteConsistency"),
    (RecoveryMode::PointInTime, "kPointInTimeRecovery"),
    (RecoveryMode::SkipAny, "kSkipAnyCorruptedRecords"),
];

/// Writes in the log.
const WRITES: usize = 6;

type Damage = fn(&mut Vec<u8>);

/// Bytes of one record, all being alike.
fn record(log: &[u8]) -> usize {
    log.len() / WRITES
}

const DAMAGES: [(&str, Damage); 10] = [
    ("none", |_| {}),
    ("the last bytes cut off", |b| b.truncate(b.len() - 3)),
    ("cut inside the last header", |b| b.truncate(record(b) * (WRITES - 1) + 4)),
    ("cut between records", |b| b.truncate(record(b) * 4)),
    ("stray bytes at the end", |b| b.extend([1, 2, 3])),
    ("zeros at the end", |b| b.resize(b.len() + 200, 0)),
    ("a flipped bit in the third record", |b| {
        let at = record(b) * 2 + 20;
        b[at] ^= 1;
    }),
    ("a flipped bit in the last record", |b| {
        let at = record(b) * 5 + 20;
        b[at] ^= 1;
    }),
    ("a length past the end in the third record", |b| {
        let at = record(b) * 2 + 5;
        b[at] = 0x7f;
    }),
    ("empty", Vec::clear),
];

/// A database of RocksDB that was killed with its writes in the log.
fn killed() -> Result<tempfile::TempDir, JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Create, "")?;
    for i in 0..WRITES {
        let (key, value) = (format!("key{i}").into_bytes(), b"value of some length".to_vec());
        judge.write(&[Change::Put { family: "default".to_owned(), key, value }], true)?;
    }
    judge.kill();
    Ok(dir)
}

fn log(dir: &Path) -> PathBuf {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    names.filter(|p| p.extension().is_some_and(|e| e == "log")).max().unwrap()
}

/// `012345`: which of the writes are there; or that it was refused.
fn shown(keys: Option<Vec<Vec<u8>>>) -> String {
    match keys {
        None => "refused".to_owned(),
        Some(keys) => keys.iter().map(|k| char::from(*k.last().unwrap())).collect(),
    }
}

fn ours(dir: &Path, mode: RecoveryMode, read_only: bool) -> String {
    let opened = Db::builder(dir).recovery_mode(mode).read_only(read_only).open();
    shown(match opened {
        Ok(db) => Some(listing(db.scan(..)).into_iter().map(|(key, _)| key).collect()),
        Err(e) => {
            assert!(e.is_corruption() && e.offset().is_some(), "{e}");
            None
        }
    })
}

fn theirs(judge: &mut Judge, dir: &Path, mode: &str) -> Result<String, JudgeError> {
    match judge.open(dir, Opening::Existing, &format!("wal_recovery_mode={mode}")) {
        Ok(()) => {}
        Err(JudgeError::Refused(_)) => return Ok(shown(None)),
        Err(e) => return Err(e),
    }
    let found = judge.dump("default")?;
    judge.close()?;
    Ok(shown(Some(found.into_iter().map(|(key, _)| key).collect())))
}

fn compare() -> Result<usize, JudgeError> {
    let source = killed()?;
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let mut cases = 0;
    for (damage, apply) in DAMAGES {
        let damaged = copy(source.path());
        let mut bytes = std::fs::read(log(damaged.path())).unwrap();
        assert_eq!(bytes.len() % WRITES, 0);
        apply(&mut bytes);
        std::fs::write(log(damaged.path()), &bytes).unwrap();
        for (mode, name) in MODES {
            let we = ours(copy(damaged.path()).path(), mode, false);
            assert_eq!(ours(damaged.path(), mode, true), we, "{damage}, {name}: read-only");
            let they = theirs(&mut judge, copy(damaged.path()).path(), name)?;
            assert_eq!(we, they, "{damage}, {name}");
            cases += 1;
        }
    }
    Ok(cases)
}

#[test]
fn each_mode_does_what_rocksdb_does() {
    match compare() {
        Err(JudgeError::Skip(skip)) => skip.announce("each_mode_does_what_rocksdb_does"),
        Err(e) => panic!("{e}"),
        Ok(cases) => report::figure(&format!(
            "recovery modes: {cases} opens of damaged logs in four modes, 0 other than by RocksDB 11.8.1"
        )),
    }
}

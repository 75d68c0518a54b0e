//! Values that RocksDB 11.8.1 with `enable_blob_direct_write` has in blob files which no MANIFEST names.

use crate::store::{copy, listing};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion};
use ashlardb::{Db, Env, Read as _, Write as _, check_database};
use std::path::Path;

const OPTIONS: &str = "enable_blob_files=true;enable_blob_direct_write=true;blob_direct_write_partitions=2;\
                       min_blob_size=20;allow_concurrent_memtable_write=false";

/// RocksDB writes values and entities, some of them below the least size of a blob, and is killed.
fn killed(dir: &Path) -> Result<(), JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir, Opening::Create, OPTIONS)?;
    for line in
        ["bulk put default 0 500 300 1", "bulk put default 300 300 10 2", "bulk entity default 500 100 90 3"]
    {
        judge.bulk(&line.parse().unwrap())?;
    }
    judge.kill();
    Ok(())
}

fn blob_files(dir: &Path) -> usize {
    std::fs::read_dir(dir)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension() == Some("blob".as_ref()))
        .count()
}

fn values_of_the_log_survive() -> Result<(), JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path())?;
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.scan(..).count(), 600);
    let expected = listing(reader.scan(..));
    reader.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    assert!(listing(db.scan(..)) == expected);
    assert!(expected.iter().filter(|(_, value)| value.len() > 100).count() > 100);
    db.put("behind", "it").unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Existing, OPTIONS)?;
    assert_eq!(judge.dump("default")?.len(), 601);
    judge.close()?;
    // A piece of a file that cannot be read costs the values in it, and they are named.
    let damaged = tempfile::tempdir().unwrap();
    killed(damaged.path())?;
    for entry in std::fs::read_dir(damaged.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() == Some("blob".as_ref()) {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[100] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let db = Db::open(damaged.path()).unwrap();
    let bad = db.scan(..).filter(|entry| entry.is_err()).count();
    assert_eq!(bad, 1, "a scan ends at the first value that is damaged");
    assert_eq!(
        db.recovery().foreign.iter().filter(|line| line.contains(".blob")).count(),
        2,
        "{}",
        db.recovery()
    );
    assert_eq!(blob_files(&damaged.path().join("lost")), 2);
    Ok(())
}

#[test]
fn values_that_only_a_log_and_an_unnamed_blob_file_hold_survive_a_crash_of_rocksdb() {
    match values_of_the_log_survive() {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("values_that_only_a_log_and_an_unnamed_blob_file_hold_survive_a_crash_of_rocksdb");
        }
        result => result.unwrap(),
    }
}

fn values_of_tables_stay() -> Result<(), JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path())?;
    // RocksDB recovers: the tables that it writes point into files that it does not name.
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Existing, OPTIONS)?;
    let theirs = judge.dump("default")?;
    judge.kill();
    let files = blob_files(dir.path());
    let db = Db::open(dir.path()).unwrap();
    let reasons = db.recovery().read_only.join("; ");
    assert!(reasons.contains("enable_blob_direct_write") && reasons.contains(".blob"), "{reasons}");
    assert!(db.put("k", "v").is_err());
    assert_eq!(listing(db.scan(..)).len(), theirs.len());
    db.close().unwrap();
    let checked = check_database(&Env::os().unwrap(), dir.path(), &mut |_| ()).unwrap();
    assert!(checked.is_sound(), "{checked}");
    assert_eq!(blob_files(dir.path()), files);
    let copy = copy(dir.path());
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(copy.path(), Opening::Existing, OPTIONS)?;
    assert!(judge.dump("default")? == theirs);
    judge.close()
}

#[test]
fn tables_with_values_in_unnamed_blob_files_are_read_and_not_written() {
    match values_of_tables_stay() {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("tables_with_values_in_unnamed_blob_files_are_read_and_not_written");
        }
        result => result.unwrap(),
    }
}

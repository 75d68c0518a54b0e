//! A tree that a repair builds without a MANIFEST: blob files that several tables refer to, and trees of one level, with
//! RocksDB 11.8.1 as the other writer.

use crate::integrity::files;
use crate::repair::forget_tree;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, Op};
use ashlardb::{Db, Read as _, Write as _};
use std::collections::BTreeMap;
use std::path::Path;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

const FAMILY: &str = "default";

/// Runs a test that needs RocksDB; without one it says that it is skipped.
fn judged(test: &str, run: impl FnOnce() -> Result<(), JudgeError>) {
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce(test),
        result => result.unwrap_or_else(|e| panic!("{test}: {e}")),
    }
}

/// Puts some of 50 keys in RocksDB, with short and with long values.
fn put(judge: &mut Judge, round: usize, contents: &mut Contents) -> Result<(), JudgeError> {
    let mut changes = Vec::new();
    for n in (0..50).filter(|n| !(n + round).is_multiple_of(3)) {
        let (key, long) = (format!("key{n:03}").into_bytes(), if n % 4 == 0 { 1 } else { 30 });
        let value = format!("value{round}-{n}").repeat(long).into_bytes();
        contents.insert(key.clone(), value.clone());
        changes.push(Change::Put { family: FAMILY.into(), key, value });
    }
    judge.write(&changes, true)
}

fn ours(dir: &Path) -> Contents {
    let db = Db::open(dir).unwrap();
    let all =
        db.scan(..).map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect();
    db.close().unwrap();
    all
}

/// What RocksDB finds with the options that it stored, before and after a compaction.
fn theirs(dir: &Path) -> Result<[Contents; 2], JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.open(dir, Opening::Stored, "")?;
    judge.verify()?;
    let before = judge.dump(FAMILY)?.into_iter().collect();
    judge.apply(&[Op::Compact { family: FAMILY.into() }])?;
    let after = judge.dump(FAMILY)?.into_iter().collect();
    judge.close()?;
    Ok([before, after])
}

/// A compaction into the last level sets sequences to 0: its output and its inputs, which a crash left, refer to the same
/// blobs with other internal keys.
#[test]
fn blobs_that_a_table_and_its_successor_refer_to_are_garbage_once() {
    let collects = "enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0;";
    for (more, blobs_too, rounds) in [("", true, 3), ("", true, 6), (collects, true, 6), (collects, false, 3)]
    {
        judged("blobs of a table and its successor", || {
            let (temp, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (dir, mut contents) = (temp.path(), Contents::new());
            let mut judge = Judge::spawn(JudgeVersion::V11)?;
            let options = format!("enable_blob_files=true;min_blob_size=20;{more}");
            judge.open(dir, Opening::Create, &options)?;
            for round in 0..3 {
                put(&mut judge, round, &mut contents)?;
                judge.apply(&[Op::Flush { family: FAMILY.into() }])?;
            }
            let inputs =
                [files(dir, ".sst"), if blobs_too { files(dir, ".blob") } else { Vec::new() }].concat();
            for file in &inputs {
                std::fs::copy(file, aside.path().join(file.file_name().unwrap())).unwrap();
            }
            judge.apply(&[Op::Compact { family: FAMILY.into() }])?;
            for round in 3..rounds {
                put(&mut judge, round, &mut contents)?;
                judge.apply(&[Op::Flush { family: FAMILY.into() }])?;
            }
            judge.kill();
            // As a crash leaves them that comes before they are removed.
            for file in inputs.iter().filter(|file| !file.exists()) {
                std::fs::copy(aside.path().join(file.file_name().unwrap()), file).unwrap();
            }
            forget_tree(dir);
            let account = Db::builder(dir).repair(|_| {}).unwrap();
            assert!(account.rebuilt, "{account}");
            assert!(ours(dir) == contents, "{options} {blobs_too}: {account}");
            let [before, after] = theirs(dir)?;
            assert!(before == contents && after == contents, "{options} {blobs_too}: {account}");
            Ok(())
        });
    }
}

/// RocksDB refuses tables below level 0 where it stored one level or the style FIFO.
#[test]
fn a_tree_that_rocksdb_keeps_in_level_0_stays_there() {
    for options in [
        "compaction_style=kCompactionStyleUniversal;num_levels=1",
        "compaction_style=kCompactionStyleFIFO;num_levels=1",
        "compaction_style=kCompactionStyleNone;num_levels=1",
        "num_levels=1",
        "compaction_style=kCompactionStyleFIFO",
        "compaction_style=kCompactionStyleNone",
        "compaction_style=kCompactionStyleUniversal;num_levels=3",
        "num_levels=2",
    ] {
        judged("trees in level 0", || {
            let temp = tempfile::tempdir().unwrap();
            let (dir, mut contents) = (temp.path(), Contents::new());
            let mut judge = Judge::spawn(JudgeVersion::V11)?;
            let small = "disable_auto_compactions=true;target_file_size_base=1K;compression=kNoCompression;";
            judge.open(dir, Opening::Create, &format!("{small}{options}"))?;
            for round in 0..4 {
                put(&mut judge, round, &mut contents)?;
                judge.apply(&[Op::Flush { family: FAMILY.into() }])?;
            }
            put(&mut judge, 4, &mut contents)?;
            judge.kill();
            forget_tree(dir);
            let account = Db::builder(dir).repair(|_| {}).unwrap();
            assert!(account.rebuilt && account.losses.is_empty(), "{account}");
            let mut judge = Judge::spawn(JudgeVersion::V11)?;
            judge.open(dir, Opening::Stored, "").unwrap_or_else(|e| panic!("{options}: {e}"));
            assert!(
                judge.dump(FAMILY)?.into_iter().collect::<Contents>() == contents,
                "{options}: {account}"
            );
            judge.close()?;
            assert!(ours(dir) == contents, "{options}: {account}");
            let db = Db::open(dir).unwrap();
            for round in 0..3 {
                db.put("key000", format!("{round}")).unwrap();
                db.flush().unwrap();
            }
            contents.insert(b"key000".to_vec(), b"2".to_vec());
            db.close().unwrap();
            let mut judge = Judge::spawn(JudgeVersion::V11)?;
            judge.open(dir, Opening::Stored, "").unwrap_or_else(|e| panic!("{options}: {e}"));
            assert!(judge.dump(FAMILY)?.into_iter().collect::<Contents>() == contents, "{options}: written");
            judge.close()
        });
    }
}

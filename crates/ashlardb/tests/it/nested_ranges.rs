//! Range deletions inside one another, with snapshots between them: tables store them as they were written, and RocksDB reads them.

use crate::judge::{judge, level_of};
use crate::store::listing;
use ashlar_testkit::judge::Opening;
use ashlar_testkit::{JudgeVersion, KeyValue, Op};
use ashlardb::prelude::*;
use std::path::Path;

const COUNT: usize = 1500;

fn key(n: usize) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

/// Each deletion lies inside the one before, and every fourth has a snapshot, and a newer value at its begin. Every snapshot still sees what it
/// did, after a flush and after a compaction into several tables.
fn written(dir: &Path, version: JudgeVersion) -> Vec<KeyValue> {
    let db = Db::builder(dir)
        .format_level(level_of(version))
        .options("disable_auto_compactions=true;target_file_size_base=16384")
        .open()
        .unwrap();
    for n in 0..4 * COUNT {
        db.put(key(n), b"old").unwrap();
    }
    db.flush().unwrap();
    let mut snapshots = Vec::new();
    for n in 0..COUNT {
        db.delete_range(key(n), key(4 * COUNT - n)).unwrap();
        if n % 4 == 0 {
            db.put(key(n), format!("new{n}")).unwrap();
            snapshots.push((db.snapshot().unwrap(), db.scan(..).count()));
        }
    }
    for compacts in [false, true] {
        if compacts { db.compact() } else { db.flush() }.unwrap();
        let tables: u64 =
            db.family("default").unwrap().live_files().unwrap().iter().map(|table| table.bytes).sum();
        assert!(tables < 2 << 20, "{tables} bytes of tables");
        for (at, (snapshot, count)) in snapshots.iter().enumerate().step_by(29) {
            assert_eq!(snapshot.scan(..).count(), *count, "snapshot {at}, compacted: {compacts}");
        }
    }
    let left = listing(db.scan(..));
    drop(snapshots);
    db.close().unwrap();
    left
}

#[test]
fn rocksdb_reads_tombstones_that_overlap_in_a_table() {
    for version in [JudgeVersion::V7, JudgeVersion::V11] {
        let Some(mut judge) = judge(version, "rocksdb_reads_tombstones_that_overlap_in_a_table") else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let ours = written(dir.path(), version);
        assert!(!ours.is_empty() && ours.len() < COUNT, "{}", ours.len());
        judge.open(dir.path(), Opening::Existing, "").unwrap();
        judge.verify().unwrap();
        assert!(judge.dump("default").unwrap() == ours, "{version:?} reads something else");
        judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
        assert!(
            judge.dump("default").unwrap() == ours,
            "{version:?} reads something else after its compaction"
        );
        judge.close().unwrap();
        let db = Db::open(dir.path()).unwrap();
        assert!(listing(db.scan(..)) == ours, "after {version:?}");
    }
}

//! RocksDB 7.8.3 and 11.8.1 ingest the files of our writer, we ingest those of theirs, and each reads the database that the other
//! one has left: tables with a sequence number that only the MANIFEST knows, on several levels, with range deletions.

use crate::judge::{judge, level_of};
use crate::store::copy;
use ashlar_testkit::judge::{MERGING, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Op};
use ashlardb::prelude::*;
use ashlardb::{CompactRangeOptions, FormatLevel, IngestOptions, StringAppend};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn open(path: &Path, level: FormatLevel) -> Db {
    let builder = Db::builder(path).format_level(level);
    builder.default_family(|f| f.merge_operator(Arc::new(StringAppend::new(",")))).open().unwrap()
}

fn put(key: &str, value: &str) -> Change {
    Change::Put { family: "default".into(), key: key.into(), value: value.into() }
}

fn merge(key: &str, operand: &str) -> Change {
    Change::Merge { family: "default".into(), key: key.into(), operand: operand.into() }
}

fn delete(key: &str) -> Change {
    Change::Delete { family: "default".into(), key: key.into() }
}

fn delete_range(from: &str, to: &str) -> Change {
    Change::DeleteRange { family: "default".into(), from: from.into(), to: to.into() }
}

/// Three files: the second one over the first, the third one with range deletions that overlap each other.
fn files() -> [Vec<Change>; 3] {
    let many = (0..500).map(|n| put(&format!("m{n:04}"), &format!("file {n}")));
    [
        many.collect(),
        vec![put("m0100", "second"), merge("m0101", "more"), delete("m0102"), put("n", "second")],
        vec![
            delete_range("m0200", "m0300"),
            delete_range("m0250", "m0350"),
            put("m0260", "third"),
            merge("old1", "third"),
        ],
    ]
}

fn before() -> Vec<Change> {
    vec![put("m0001", "old"), put("m0270", "old"), put("old1", "old"), put("old2", "old"), put("zz", "old")]
}

/// Later writes, in memory and over ingested keys.
fn later() -> Vec<Change> {
    vec![put("m0260", "later"), delete("m0400"), merge("m0101", "later"), put("zzz", "later")]
}

fn write(db: &Db, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put { key, value, .. } => db.put(key, value).unwrap(),
            Change::Merge { key, operand, .. } => db.merge(key, operand).unwrap(),
            Change::Delete { key, .. } => db.delete(key).unwrap(),
            Change::DeleteRange { from, to, .. } => db.delete_range(from, to).unwrap(),
            Change::SingleDelete { key, .. } => db.single_delete(key).unwrap(),
        }
    }
}

/// What the whole history leaves, as a database without ingestion tells.
fn expected() -> Vec<KeyValue> {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), FormatLevel::V9_11);
    write(&db, &before());
    for mut file in files() {
        // A file's range deletions hide no key of the file.
        file.sort_by_key(|change| !matches!(change, Change::DeleteRange { .. }));
        write(&db, &file);
    }
    write(&db, &later());
    listing(&db)
}

fn listing(db: &Db) -> Vec<KeyValue> {
    db.scan(..).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

fn write_ours(db: &Db, dir: &Path) -> Vec<PathBuf> {
    let write = |(n, changes): (usize, Vec<Change>)| {
        let path = dir.join(format!("ours-{n}.sst"));
        let mut writer = db.default_family().sst_writer(&path).unwrap();
        for change in &changes {
            match change {
                Change::Put { key, value, .. } => writer.put(key, value).unwrap(),
                Change::Merge { key, operand, .. } => writer.merge(key, operand).unwrap(),
                Change::DeleteRange { from, to, .. } => writer.delete_range(from, to).unwrap(),
                Change::Delete { key, .. } | Change::SingleDelete { key, .. } => writer.delete(key).unwrap(),
            }
        }
        writer.finish().unwrap();
        path
    };
    files().into_iter().enumerate().map(write).collect()
}

/// RocksDB reads a copy of the database.
fn they_read(judge: &mut Judge, dir: &Path, what: &str) {
    let copy = copy(dir);
    judge.open(copy.path(), Opening::Existing, MERGING).unwrap_or_else(|e| panic!("{what}: {e}"));
    judge.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(judge.dump("default").unwrap(), expected(), "{what}");
    let mut backwards = judge.dump_backwards("default").unwrap();
    backwards.reverse();
    assert_eq!(backwards, expected(), "{what}");
    judge.probe("default").unwrap_or_else(|e| panic!("{what}: {e}"));
    judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
    assert_eq!(judge.dump("default").unwrap(), expected(), "{what}, compacted");
    judge.close().unwrap();
}

#[test]
fn they_ingest_our_files() {
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, "they_ingest_our_files") else { return };
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("ours"), level_of(version));
        let paths = write_ours(&db, dir.path());
        let theirs = dir.path().join("theirs");
        judge.open(&theirs, Opening::Create, MERGING).unwrap();
        judge.write(&before(), false).unwrap();
        for path in &paths {
            judge.ingest("default", &[path]).unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        }
        judge.write(&later(), false).unwrap();
        assert_eq!(judge.dump("default").unwrap(), expected(), "{}", version.name());
        judge.verify().unwrap();
        judge.close().unwrap();
        db.close().unwrap();
        // We read what they made of them.
        let db = open(&theirs, level_of(version));
        assert_eq!(listing(&db), expected(), "{}", version.name());
        db.verify_db(|_| ()).unwrap();
        db.compact().unwrap();
        assert_eq!(listing(&db), expected(), "{}", version.name());
        db.close().unwrap();
        they_read(&mut judge, &theirs, version.name());
    }
}

/// Files that overlap each other, in one call of theirs and in one of ours.
#[test]
fn they_order_the_files_of_one_call_as_we_do() {
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, "they_order_the_files_of_one_call_as_we_do") else { return };
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("ours"), level_of(version));
        let paths = write_ours(&db, dir.path());
        db.ingest(&paths, IngestOptions::new()).unwrap();
        judge.open(&dir.path().join("theirs"), Opening::Create, MERGING).unwrap();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        judge.ingest("default", &paths).unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        assert_eq!(judge.dump("default").unwrap(), listing(&db), "{}", version.name());
    }
}

#[test]
fn we_ingest_their_files() {
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, "we_ingest_their_files") else { return };
        let dir = tempfile::tempdir().unwrap();
        judge.open(&dir.path().join("theirs"), Opening::Create, MERGING).unwrap();
        let mut paths = Vec::new();
        for (n, changes) in files().iter().enumerate() {
            let path = dir.path().join(format!("theirs-{n}.sst"));
            judge.write_sst("default", &path, changes).unwrap();
            paths.push(path);
        }
        judge.close().unwrap();
        let ours = dir.path().join("ours");
        let db = open(&ours, level_of(version));
        write(&db, &before());
        let done = db.ingest(&paths, IngestOptions::new()).unwrap();
        assert!(done.iter().any(|file| file.level.0 == 0) && done.iter().all(|file| file.sequence.get() > 5));
        write(&db, &later());
        assert_eq!(listing(&db), expected(), "{}", version.name());
        db.verify_db(|_| ()).unwrap();
        db.close().unwrap();
        they_read(&mut judge, &ours, version.name());
        let db = open(&ours, level_of(version));
        assert_eq!(listing(&db), expected());
        db.default_family().compact_range(.., CompactRangeOptions::default()).unwrap();
        assert_eq!(listing(&db), expected());
        db.close().unwrap();
        they_read(&mut judge, &ours, version.name());
    }
}

/// Several ingestions in one session, over one family and over two, with flushes between: the order of level 0 that RocksDB
/// checks at an open.
#[test]
fn they_read_level_0_after_many_ingestions() {
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, "they_read_level_0_after_many_ingestions") else { return };
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("ours");
        let builder = Db::builder(&ours).format_level(level_of(version));
        let db = builder.tune(|_, family| family.compaction.automatic = false).open().unwrap();
        let other = db.create_family("other").unwrap();
        for round in 0..6 {
            db.put(format!("a{round}"), "memtable").unwrap();
            db.put("p", format!("{round}")).unwrap();
            if round % 2 == 1 {
                db.flush().unwrap();
            }
            let paths = ["x", "y", "z"].map(|name| dir.path().join(format!("{name}{round}")));
            for path in &paths {
                let mut writer = db.default_family().sst_writer(path).unwrap();
                writer.put("k", format!("{round} {}", path.display())).unwrap();
                writer.put(format!("k{round}"), "1").unwrap();
                writer.finish().unwrap();
            }
            let default = db.default_family();
            db.ingest_families(&[(&default, &paths[..2]), (&other, &paths[2..])], IngestOptions::new())
                .unwrap();
        }
        let (first, second) = (listing(&db), other.scan(..));
        let second: Vec<KeyValue> =
            second.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        db.close().unwrap();
        for mode in [Opening::ReadOnly, Opening::Existing] {
            judge.open(&ours, mode, MERGING).unwrap_or_else(|e| panic!("{}: {e}", version.name()));
            assert_eq!(judge.dump("default").unwrap(), first, "{}", version.name());
            assert_eq!(judge.dump("other").unwrap(), second, "{}", version.name());
            judge.close().unwrap();
        }
    }
}

/// Trees of other styles stay what RocksDB takes them for.
#[test]
fn they_read_trees_of_other_styles_after_an_ingestion() {
    for version in JudgeVersion::ALL {
        for style in ["kCompactionStyleUniversal", "kCompactionStyleFIFO"] {
            let Some(mut judge) = judge(version, "they_read_trees_of_other_styles_after_an_ingestion") else {
                return;
            };
            let what = format!("{} {style}", version.name());
            let dir = tempfile::tempdir().unwrap();
            let options = format!("compaction_style={style};{MERGING}");
            let path = dir.path().join("db");
            judge.open(&path, Opening::Create, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            judge.write(&before(), false).unwrap();
            judge.close().unwrap();
            let db = open(&path, level_of(version));
            let paths = write_ours(&db, dir.path());
            let done = db.ingest(&paths, IngestOptions::new()).unwrap();
            assert!(done.iter().all(|file| file.level.0 == 0), "{what}: {done:?}");
            write(&db, &later());
            assert_eq!(listing(&db), expected(), "{what}");
            db.close().unwrap();
            judge.open(&path, Opening::Existing, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(judge.dump("default").unwrap(), expected(), "{what}");
            judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
            assert_eq!(judge.dump("default").unwrap(), expected(), "{what}, compacted");
            judge.close().unwrap();
        }
    }
}

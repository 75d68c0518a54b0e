//! Everything under `golden/`, compared with what RocksDB's and LevelDB's own tools list.
//!
//! | what | how |
//! |---|---|
//! | 16 directories | opened, read, rewritten by us, read again by us and by RocksDB 7.8.3 |
//! | `txn_2pc`, `udt`, `ttl` | looked at in `carried`; here their entries, out of tables and logs (`entries`) |
//! | `backup` | every file by name, checksum and length; both backups restored by name and opened (`backup`) |
//! | 15 tables of RocksDB 11.8.1 | their entries and range tombstones (`entries`) |
//! | all files | what the specification fixes is written again byte for byte (`reencode`) |

mod backup;
mod entries;
mod reencode;

use crate::store::{copy, listing};
use ashlar_testkit::golden::{DIRECTORIES, Golden, golden};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Skip, Tools, report};
use ashlardb::{Db, FormatLevel, Read as _, UInt64Add};
use std::path::Path;
use std::sync::Arc;

#[derive(Default)]
struct Tally {
    /// Opened as databases.
    directories: usize,
    /// Looked at without opening them as databases.
    looked_into: usize,
    tables: usize,
    entries: usize,
    comparisons: usize,
    differences: Vec<String>,
}

impl Tally {
    fn compare(&mut self, how: &str, name: &str, family: &str, expected: &[KeyValue], found: &[KeyValue]) {
        self.comparisons += 1;
        if let Some(difference) = first_difference(expected, found) {
            self.differences.push(format!("{name}, family {family}, {how}: {difference}"));
        }
    }

    fn read(&mut self, how: &str, name: &str, golden: &Golden, db: &Db) {
        let names: Vec<String> = db.families().iter().map(|f| f.name().to_owned()).collect();
        let expected: Vec<&str> = golden.families.iter().map(|f| f.family.as_str()).collect();
        assert_eq!(names, expected, "{name}, {how}");
        for family in &golden.families {
            let handle = db.family(&family.family).unwrap();
            let found = listing(handle.scan(..));
            self.compare(how, name, &family.family, &family.visible, &found);
            let mut backwards = listing(handle.scan(..).rev());
            backwards.reverse();
            self.compare(&format!("{how} backwards"), name, &family.family, &family.visible, &backwards);
            for (key, value) in &family.visible {
                let got = handle.get(key).unwrap();
                self.compare(
                    &format!("{how} get"),
                    name,
                    &family.family,
                    &[(key.clone(), value.clone())],
                    &got.map(|view| (key.clone(), view.to_vec())).into_iter().collect::<Vec<_>>(),
                );
            }
        }
    }
}

fn open(dir: &Path, merge: bool) -> Db {
    let mut builder = Db::builder(dir).create(false).format_level(FormatLevel::V7_8);
    if merge {
        builder = builder.default_family(|family| family.merge_operator(Arc::new(UInt64Add)));
    }
    builder.open().unwrap_or_else(|e| panic!("{}: {e:?}", dir.display()))
}

fn read_rewrite_read(name: &str, merge: bool, tally: &mut Tally) -> Result<(), Skip> {
    let golden = golden(name)?;
    let db = open(golden.path(), merge);
    let report = db.recovery();
    let rebuilt = !report.regenerated.is_empty();
    assert!(!rebuilt && !report.tail_dropped() && report.lost.is_empty(), "{name}: {report}");
    // LevelDB has no IDENTITY; RocksDB makes one too when it opens such a directory.
    assert!(report.written.is_empty() || name.starts_with("leveldb"), "{name}: {report}");
    tally.read("as it was left", name, &golden, &db);
    tally.directories += 1;
    tally.entries += golden.families.iter().map(|f| f.visible.len()).sum::<usize>();
    db.flush().unwrap();
    db.compact().unwrap();
    tally.read("after our compaction", name, &golden, &db);
    db.close().unwrap();
    drop(db);
    let db = open(golden.path(), merge);
    tally.read("opened again", name, &golden, &db);
    db.close().unwrap();
    drop(db);
    read_by_rocksdb(name, merge, &golden, tally)
}

/// RocksDB 7.8.3 as a library reads every family; so does its `ldb`, which knows no merge operators.
fn read_by_rocksdb(name: &str, merge: bool, golden: &Golden, tally: &mut Tally) -> Result<(), Skip> {
    let tools = Tools::available()?;
    tools.check_consistency(golden.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
    tools.check_tables(golden.path()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut judge = Judge::spawn(JudgeVersion::V7).map_err(|e| match e {
        JudgeError::Skip(skip) => skip,
        other => panic!("{other}"),
    })?;
    let copy = copy(golden.path());
    let options = if merge { "merge_operator=uint64add" } else { "" };
    judge.open(copy.path(), Opening::Existing, options).unwrap_or_else(|e| panic!("{name}: {e}"));
    for family in &golden.families {
        let found = judge.dump(&family.family).unwrap_or_else(|e| panic!("{name}, {}: {e}", family.family));
        tally.compare("RocksDB 7.8.3", name, &family.family, &family.visible, &found);
        if !merge {
            let found = tools.scan(golden.path(), &family.family);
            let found = found.unwrap_or_else(|e| panic!("{name}, {}: {e}", family.family));
            tally.compare("ldb 7.8.3", name, &family.family, &family.visible, &found);
        }
    }
    Ok(())
}

#[test]
fn everything_golden_is_read_equal() {
    let mut tally = Tally::default();
    let mut skipped = None;
    for (name, merge) in DIRECTORIES {
        if let Err(skip) = read_rewrite_read(name, merge, &mut tally) {
            skipped = Some(skip);
        }
    }
    entries::transactions(&mut tally);
    entries::timestamps(&mut tally);
    entries::tables(&mut tally);
    backup::files(&mut tally);
    report::figure(&format!(
        "golden: {} directories opened, {} looked into, {} tables by themselves, {} entries, {} comparisons, {} differences",
        tally.directories,
        tally.looked_into,
        tally.tables,
        tally.entries,
        tally.comparisons,
        tally.differences.len()
    ));
    assert!(tally.differences.is_empty(), "{:#?}", tally.differences);
    // Two directories more are restored from the two backups.
    assert_eq!((tally.directories, tally.looked_into, tally.tables), (DIRECTORIES.len() + 2, 3, 15));
    if let Some(skip) = skipped {
        skip.announce("everything_golden_is_read_equal");
    }
}

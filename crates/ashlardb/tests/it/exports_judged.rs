//! RocksDB opens an export and a database with an imported family, makes a family of our export, and we make one of its export.

use crate::judge::{judge, level_of};
use crate::store::copy;
use ashlar_testkit::judge::{ExportedTable, MERGING, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Op};
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, ExportedFile, FamilyBuilder, FamilyExport, FormatLevel, ImportOptions,
    IngestOptions, Level, SeqNum, StringAppend,
};
use std::path::Path;
use std::sync::Arc;

fn open(path: &Path, level: FormatLevel) -> Db {
    let builder = Db::builder(path).format_level(level);
    builder.default_family(|f| f.merge_operator(Arc::new(StringAppend::new(",")))).open().unwrap()
}

fn listing(family: &Family) -> Vec<KeyValue> {
    family.scan(..).map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// A family with tables in several levels: merges, deletions, ranges, an ingested table, versions for a snapshot.
fn filled(db: &Db, dir: &Path) -> Family {
    let family = db.create_family("source").unwrap();
    for n in 0..1000 {
        family.put(format!("key{n:04}"), format!("old {n}")).unwrap();
    }
    family.compact_range(.., CompactRangeOptions::default()).unwrap();
    let kept = db.snapshot().unwrap();
    for n in (0..1000).step_by(3) {
        family.merge(format!("key{n:04}"), "more").unwrap();
    }
    family.delete_range("key0100", "key0200").unwrap();
    family.flush().unwrap();
    family.compact_range(.."key0500", CompactRangeOptions::default()).unwrap();
    family.delete("key0300").unwrap();
    family.flush().unwrap();
    let mut writer = family.sst_writer(dir.join("ingested.sst")).unwrap();
    writer.put("key0150", "ingested").unwrap();
    writer.delete_range("key0900", "key0950").unwrap();
    writer.finish().unwrap();
    family.ingest(&[dir.join("ingested.sst")], IngestOptions::new()).unwrap();
    family.put("newest", "1").unwrap();
    drop(kept);
    family
}

fn tables_of(export: &FamilyExport) -> Vec<ExportedTable> {
    let table = |file: &ExportedFile| ExportedTable {
        level: file.level.0,
        sequences: (file.sequences.0.get(), file.sequences.1.get()),
        bytes: file.bytes().unwrap(),
        path: file.path.clone(),
        keys: file.keys().map(|(low, high)| (low.to_vec(), high.to_vec())).unwrap(),
    };
    export.files.iter().map(table).collect()
}

/// The export as its MANIFEST describes it, and as another program would.
fn described(comparator: &str, tables: &[ExportedTable]) -> FamilyExport {
    let seq = |n| SeqNum::new(n).unwrap();
    let file = |table: &ExportedTable| {
        let (oldest, newest) = table.sequences;
        ExportedFile::described(&table.path, Level(table.level), (seq(oldest), seq(newest)))
    };
    FamilyExport::described("source", comparator, tables.iter().map(file).collect())
}

/// RocksDB reads a copy of the database, goes on with it, and leaves what we expect.
fn they_read(judge: &mut Judge, dir: &Path, family: &str, expected: &[KeyValue], what: &str) {
    let copy = copy(dir);
    judge.open(copy.path(), Opening::Existing, MERGING).unwrap_or_else(|e| panic!("{what}: {e}"));
    judge.verify().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(judge.dump(family).unwrap(), expected, "{what}");
    let mut backwards = judge.dump_backwards(family).unwrap();
    backwards.reverse();
    assert_eq!(backwards, expected, "{what}");
    judge.probe(family).unwrap_or_else(|e| panic!("{what}: {e}"));
    judge.apply(&[Op::Compact { family: family.into() }]).unwrap();
    assert_eq!(judge.dump(family).unwrap(), expected, "{what}, compacted");
    judge.close().unwrap();
}

#[test]
fn rocksdb_opens_an_export_and_a_database_with_an_imported_family() {
    for version in JudgeVersion::ALL {
        let name = "rocksdb_opens_an_export_and_a_database_with_an_imported_family";
        let Some(mut judge) = judge(version, name) else { return };
        let home = tempfile::tempdir().unwrap();
        let db = open(&home.path().join("from"), level_of(version));
        let source = filled(&db, home.path());
        let export = source.export(home.path().join("out")).unwrap();
        let mut expected = listing(&source);
        they_read(&mut judge, &home.path().join("out"), "source", &expected, "the export");

        let to = open(&home.path().join("to"), level_of(version));
        to.put("own", "1").unwrap();
        let imported = to.import_family("imported", &export).unwrap();
        assert_eq!(listing(&imported), expected);
        // Killed, as it lies after the commit; then with later writes in the WAL; then after a close.
        they_read(&mut judge, &home.path().join("to"), "imported", &expected, "after the import");
        imported.put("newest", "2").unwrap();
        imported.put("key0150", "later").unwrap();
        expected = listing(&imported);
        they_read(&mut judge, &home.path().join("to"), "imported", &expected, "with later writes");
        drop(imported);
        to.close().unwrap();
        they_read(&mut judge, &home.path().join("to"), "imported", &expected, "closed");
    }
}

#[test]
fn rocksdb_makes_a_family_of_our_export() {
    let Some(mut judge) = judge(JudgeVersion::V11, "rocksdb_makes_a_family_of_our_export") else { return };
    let home = tempfile::tempdir().unwrap();
    let db = open(&home.path().join("from"), FormatLevel::V11);
    let source = filled(&db, home.path());
    let export = source.export(home.path().join("out")).unwrap();
    let expected = listing(&source);
    let theirs = home.path().join("theirs");
    judge.open(&theirs, Opening::Create, MERGING).unwrap();
    judge.import_family("imported", &export.comparator, &tables_of(&export)).unwrap();
    assert_eq!(judge.dump("imported").unwrap(), expected);
    judge.verify().unwrap();
    judge.close().unwrap();
    let db = open(&theirs, FormatLevel::V11);
    assert_eq!(listing(&db.family("imported").unwrap()), expected);
    db.verify_db(|_| ()).unwrap();
}

#[test]
fn we_make_a_family_of_rocksdbs_export() {
    let Some(mut judge) = judge(JudgeVersion::V11, "we_make_a_family_of_rocksdbs_export") else { return };
    let home = tempfile::tempdir().unwrap();
    // What RocksDB exports is a database that we filled and it compacted in part.
    let theirs = home.path().join("theirs");
    let db = open(&theirs, FormatLevel::V11);
    let source = filled(&db, home.path());
    let expected = listing(&source);
    drop(source);
    db.close().unwrap();
    judge.open(&theirs, Opening::Existing, MERGING).unwrap();
    let put = |n: u32| Change::Put {
        family: "source".into(),
        key: format!("key{n:04}").into(),
        value: format!("theirs {n}").into(),
    };
    judge.write(&(500..520).map(put).collect::<Vec<_>>(), false).unwrap();
    let out = home.path().join("out");
    let (comparator, tables) = judge.export_family("source", &out).unwrap();
    let theirs = judge.dump("source").unwrap();
    assert_ne!(theirs, expected);
    judge.close().unwrap();
    let levels: std::collections::BTreeSet<u8> = tables.iter().map(|table| table.level).collect();
    assert!(levels.len() >= 2, "{tables:?}");

    let ours = home.path().join("ours");
    let to = open(&ours, FormatLevel::V11);
    let export = described(&comparator, &tables);
    let appending = |f: FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
    let imported = to.import_family_with("imported", &export, ImportOptions::new(), appending).unwrap();
    assert_eq!(listing(&imported), theirs);
    imported.put("zz", "later").unwrap();
    let after = listing(&imported);
    to.verify_db(|_| ()).unwrap();
    they_read(&mut judge, &ours, "imported", &after, "imported from RocksDB");
    to.compact().unwrap();
    assert_eq!(listing(&imported), after);
}

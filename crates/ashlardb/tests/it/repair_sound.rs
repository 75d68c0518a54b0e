//! What a repair leaves is sound: values that lead elsewhere, blob files with damaged records, damaged footers, and
//! families without any table.

use crate::integrity::{check, files};
use crate::repair::{copy, forget_tree};
use crate::store::fingerprint;
use ashlardb::{Builder, Db, ErrorKind, Read as _, RepairReport, Risk, Write as _};
use std::collections::BTreeMap;
use std::path::Path;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database that compacts on request only, with values of ten bytes and more in blob files.
fn with_blob_files(dir: &Path, options: &str) -> Db {
    let builder = Db::builder(dir).options(options).default_family(|f| f.blob_files(10));
    builder.tune(|_, f| f.compaction.automatic = false).open().unwrap()
}

/// Four tables, each with a blob file of one value; all blob files are equally long.
fn four_blob_files(dir: &Path, options: &str) -> Contents {
    let db = with_blob_files(dir, options);
    let mut all = Contents::new();
    for i in 0..4 {
        let (key, value) = (format!("k{i}"), format!("v{i}").repeat(30));
        db.put(&key, &value).unwrap();
        db.flush().unwrap();
        all.insert(key.into_bytes(), value.into_bytes());
    }
    db.close().unwrap();
    all
}

fn contents(dir: &Path) -> Contents {
    let db = Db::builder(dir).create(false).open().unwrap();
    let all = db.scan(..).map(|entry| entry.unwrap());
    let all = all.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    db.close().unwrap();
    all
}

fn told(account: &RepairReport, key: &[u8]) -> bool {
    account.losses.iter().any(|loss| match &loss.risk {
        Risk::Keys(spans) => spans.iter().any(|span| &*span.from <= key && key <= &*span.to),
        _ => false,
    })
}

/// Repairs in place and into a copy, with the MANIFEST and without: the keys that `account` does not tell are as they
/// were, and nothing damaged is left. Returns how many keys are lost.
fn repaired(dir: &Path, all: &Contents, what: &str) -> usize {
    let mut lost = Vec::new();
    for tree in [true, false] {
        let temp = tempfile::tempdir().unwrap();
        let [source, into] = ["source", "copy"].map(|name| temp.path().join(name));
        copy(dir, &source);
        if !tree {
            forget_tree(&source);
        }
        let copied = Db::builder(&source).salvage(&into, |_| {}).unwrap();
        let account = Db::builder(&source).repair(|_| {}).unwrap();
        assert_eq!(copied.losses, account.losses, "{what}");
        assert!(!account.losses.is_empty(), "{what}, a tree: {tree}: {account}");
        for dir in [&source, &into] {
            let sound = check(dir);
            assert!(
                sound.damages.is_empty() && sound.unchecked.is_empty(),
                "{what}, a tree: {tree}: {sound}\n{account}"
            );
            let left = contents(dir);
            let gone = all.iter().filter(|(key, value)| left.get(*key) != Some(*value));
            lost.push(gone.inspect(|(key, _)| assert!(told(&account, key), "{what}: {account}")).count());
        }
    }
    assert!(lost.windows(2).all(|pair| pair[0] == pair[1]), "{what}: {lost:?}");
    lost[0]
}

/// Regression: a repair called such a database undamaged, and left it as it was.
#[test]
fn a_value_in_the_place_of_another_is_lost_and_told() {
    for options in ["", "file_checksum_gen_factory=FileChecksumGenCrc32cFactory"] {
        let temp = tempfile::tempdir().unwrap();
        let all = four_blob_files(temp.path(), options);
        let blobs = files(temp.path(), ".blob");
        let other = std::fs::read(&blobs[1]).unwrap();
        assert_eq!(other.len(), std::fs::read(&blobs[0]).unwrap().len());
        std::fs::write(&blobs[0], &other).unwrap();
        assert!(!check(temp.path()).damages.is_empty());
        assert_eq!(repaired(temp.path(), &all, options), 1);
        Db::builder(temp.path()).repair(|_| {}).unwrap();
        let name = blobs[0].file_name().unwrap();
        assert!(std::fs::read(temp.path().join("lost").join(name)).unwrap() == other, "a damaged file stays");
    }
}

/// Regression: the record of a lost value stayed in its blob file, and each later check called the database damaged.
#[test]
fn no_damaged_record_stays_in_a_blob_file() {
    let temp = tempfile::tempdir().unwrap();
    let db = with_blob_files(temp.path(), "");
    let mut all = Contents::new();
    for round in 0..2 {
        for i in (0..60).filter(|i| round == 0 || i % 2 == 1) {
            let (key, value) = (format!("k{i:02}"), format!("{round}v{i:02}").repeat(20));
            db.put(&key, &value).unwrap();
            all.insert(key.into_bytes(), value.into_bytes());
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    // A value that counts, and one that a later table replaces.
    for (key, lost) in [("0v20", 1), ("0v21", 0)] {
        let damaged = tempfile::tempdir().unwrap();
        copy(temp.path(), damaged.path());
        let blob = &files(damaged.path(), ".blob")[0];
        let mut bytes = std::fs::read(blob).unwrap();
        let at = bytes.windows(key.len()).position(|window| window == key.as_bytes()).unwrap();
        bytes[at + 5] ^= 1;
        std::fs::write(blob, bytes).unwrap();
        let found = repaired(damaged.path(), &all, key);
        assert_eq!(found, lost, "{key}");
    }
}

/// Regression: all values of the file were lost, although each record has a checksum of its own.
#[test]
fn another_end_of_a_blob_file_costs_a_repair_no_value() {
    let temp = tempfile::tempdir().unwrap();
    let db = with_blob_files(temp.path(), "");
    let mut all = Contents::new();
    for i in 0..20 {
        let (key, value) = (format!("k{i:02}"), format!("v{i:02}").repeat(20));
        db.put(&key, &value).unwrap();
        all.insert(key.into_bytes(), value.into_bytes());
    }
    db.flush().unwrap();
    db.close().unwrap();
    for case in 0..6 {
        let damaged = tempfile::tempdir().unwrap();
        copy(temp.path(), damaged.path());
        let blob = &files(damaged.path(), ".blob")[0];
        let mut bytes = std::fs::read(blob).unwrap();
        let len = bytes.len();
        match case {
            0 => bytes.extend(b"garbage"),
            1 => bytes.resize(len + 4096, 0),
            2 => bytes.truncate(len - 1),
            3 => bytes.truncate(len - 32),
            4 => bytes[len - 1] ^= 1,
            // Into the last record.
            _ => bytes.truncate(len - 40),
        }
        std::fs::write(blob, bytes).unwrap();
        assert_eq!(
            repaired(damaged.path(), &all, &format!("case {case}")),
            usize::from(case == 5),
            "case {case}"
        );
    }
}

fn two_tables(dir: &Path, format_version: u32) -> Contents {
    let options = format!("block_based_table_factory={{format_version={format_version}}}");
    let builder = Db::builder(dir).default_family(|f| f.options(&options));
    let db = builder.tune(|_, f| f.compaction.automatic = false).open().unwrap();
    let mut all = Contents::new();
    for j in 0..2 {
        for i in 0..50 {
            let key = format!("k{j}-{i}");
            db.put(&key, b"v").unwrap();
            all.insert(key.into_bytes(), b"v".to_vec());
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    all
}

/// Writes over bytes near the end of the first table.
fn overwrite(dir: &Path, from_end: usize, bytes: &[u8]) {
    let table = &files(dir, ".sst")[0];
    let mut all = std::fs::read(table).unwrap();
    let at = all.len() - from_end;
    all[at..at + bytes.len()].copy_from_slice(bytes);
    std::fs::write(table, all).unwrap();
}

/// Regression: one such byte made every repair end with "not supported".
#[test]
fn a_footer_that_the_rest_of_its_table_contradicts_is_damage_and_loses_nothing() {
    let plain_table = 0x8242_2296_63bf_9564_u64.to_le_bytes();
    for version in [2, 4, 5, 6].into_iter().step_by(ashlar_testkit::report::scale(3, 1)) {
        for (from_end, bytes) in [(12, &[13][..]), (9, &[1]), (8, &plain_table), (3, &[9])] {
            let temp = tempfile::tempdir().unwrap();
            let all = two_tables(temp.path(), version);
            overwrite(temp.path(), from_end, bytes);
            let what = format!("format version {version}, {bytes:x?} at {from_end} from the end");
            let found = check(temp.path());
            assert!(!found.damages.is_empty() && found.unchecked.is_empty(), "{what}: {found}");
            assert_eq!(repaired(temp.path(), &all, &what), 0);
        }
    }
}

/// Regression: a byte behind a table cost a repair all its entries, and so did more bytes, another footer, also one of another table, and an
/// end that was cut off.
#[test]
fn another_end_of_a_table_costs_a_repair_nothing() {
    let magic = 0x88e2_41b7_85f4_cff7_u64.to_le_bytes();
    for version in [5, 6] {
        for with_manifest in [true, false] {
            for case in 0..12 {
                let temp = tempfile::tempdir().unwrap();
                let all = two_tables(temp.path(), version);
                let table = &files(temp.path(), ".sst")[0];
                let mut bytes = std::fs::read(table).unwrap();
                let (len, footer) = (bytes.len(), bytes[bytes.len() - 53..].to_vec());
                let other = std::fs::read(&files(temp.path(), ".sst")[1]).unwrap();
                // Its metaindex lies elsewhere.
                let mut foreign = footer.clone();
                foreign[if version == 5 { 1 } else { 13 }] ^= 1;
                match case {
                    0 => bytes.push(0),
                    1 => bytes.resize(len + 4096, 0),
                    2 => bytes.resize(len + 300_000, 7),
                    3 => bytes.extend(&footer),
                    4 => bytes.extend(footer.repeat(3000)),
                    // The rest looks like a table of an unknown version.
                    5 => bytes.extend([&[9; 90_000][..], &magic].concat()),
                    6 => bytes.truncate(len - 1),
                    7 => bytes.truncate(len - 12),
                    8 => bytes.extend_from_within(..),
                    9 => bytes.extend(foreign),
                    10 => bytes.extend(other),
                    // The MANIFEST knows the length, and nothing stands for the version.
                    _ => bytes.splice(len - 12.., [0; 100]).for_each(drop),
                }
                std::fs::write(table, bytes).unwrap();
                let what =
                    format!("format version {version}, case {case}, with the MANIFEST: {with_manifest}");
                assert!(!check(temp.path()).damages.is_empty(), "{what}");
                if !with_manifest {
                    if matches!(case, 6 | 7 | 11) {
                        // Only the MANIFEST knows the length.
                        continue;
                    }
                    forget_tree(temp.path());
                }
                let report = Db::builder(temp.path()).repair(|_| {}).unwrap();
                assert!(contents(temp.path()) == all, "{what}: {report}");
                assert!(check(temp.path()).damages.is_empty(), "{what}");
            }
        }
    }
}

/// A version that nothing contradicts: the table may be of a newer release.
#[test]
fn a_table_of_an_unknown_version_is_refused_and_nothing_changes() {
    let temp = tempfile::tempdir().unwrap();
    two_tables(temp.path(), 6);
    // As a newer version would have it: another footer.
    overwrite(temp.path(), 48, &[7; 4]);
    overwrite(temp.path(), 12, &[13]);
    let before = fingerprint(temp.path());
    assert_eq!(check(temp.path()).unchecked.len(), 1);
    let e = Db::builder(temp.path()).repair(|_| {}).unwrap_err();
    assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("move it out"), "{e}");
    assert!(fingerprint(temp.path()) == before);
    std::fs::remove_file(&files(temp.path(), ".sst")[0]).unwrap();
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert_eq!((account.losses.len(), contents(temp.path()).len()), (1, 50), "{account}");
}

/// Regression: the way that the refusal names led to the same refusal, because the copy has no tables either.
#[test]
fn a_family_without_any_table_is_salvaged_where_the_caller_says_that_they_are_lost() {
    let temp = tempfile::tempdir().unwrap();
    let [dir, into] = ["db", "copy"].map(|name| temp.path().join(name));
    let all = two_tables(&dir, 5);
    files(&dir, ".sst").iter().for_each(|table| std::fs::remove_file(table).unwrap());
    let builder: fn(&Path) -> Builder = |dir| Db::builder(dir);
    let e = builder(&dir).salvage(&into, |_| {}).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("as db_paths"), "{e}");
    assert!(!into.exists());
    let account = builder(&dir).db_path(&dir, u64::MAX).salvage(&into, |_| {}).unwrap();
    assert!(account.losses.len() == 2 && all.keys().all(|key| told(&account, key)), "{account}");
    assert!(check(&into).damages.is_empty() && contents(&into).is_empty());
    assert!(files(&dir, ".sst").is_empty());
}

/// Regression: keys got their older values from the other file, and the report named none of them.
#[test]
fn exchanged_blob_files_of_different_lengths_give_no_older_value() {
    let temp = tempfile::tempdir().unwrap();
    let db = with_blob_files(temp.path(), "");
    for (round, count) in [("old", 10), ("new", 12)] {
        for i in 0..count {
            db.put(format!("k{i:02}"), format!("{round} {i:02}").repeat(20)).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let blobs = files(temp.path(), ".blob");
    let [first, second] = [0, 1].map(|at| std::fs::read(&blobs[at]).unwrap());
    std::fs::write(&blobs[0], second).unwrap();
    std::fs::write(&blobs[1], first).unwrap();
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    let db = Db::open(temp.path()).unwrap();
    for i in 0..12 {
        let key = format!("k{i:02}");
        let value = db.get(&key).unwrap();
        assert!(
            told(&account, key.as_bytes()) || value.is_some_and(|v| v.starts_with(b"new")),
            "{key}: {account}"
        );
    }
}

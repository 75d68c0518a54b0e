//! Blob files that are missing, cut or changed: a read returns an error with file and offset, or the right value; never
//! a wrong value.

use super::{blob_files, open_with};
use ashlar_base::{ErrorKind, FamilyId};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_options::{BlobOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_testkit::report;
use std::path::{Path, PathBuf};

fn value(n: usize) -> Vec<u8> {
    (0..200).map(|i| (n * 7 + i) as u8).collect()
}

fn key(n: usize) -> Vec<u8> {
    format!("key{n}").into_bytes()
}

const KEYS: usize = 8;

fn open(dir: &Path) -> Result<Db, ashlar_base::Error> {
    let blob = BlobOptions { enabled: true, min_blob_bytes: 1, ..BlobOptions::default() };
    open_with(dir, FormatLevel::V9_11, FamilyOptions { blob, ..FamilyOptions::default() })
}

/// A closed database with all its values in one blob file, and the path of that file.
fn made() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path()).unwrap();
    let mut batch = WriteBatch::new();
    for n in 0..KEYS {
        batch.put(FamilyId::DEFAULT, &key(n), &value(n)).unwrap();
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
    db.flush(&db.families()).unwrap();
    db.close().unwrap();
    assert_eq!(blob_files(dir.path()), 1);
    let names = Env::os().unwrap().fs.list(dir.path()).unwrap();
    let blob = names.iter().find(|entry| entry.name.ends_with(".blob")).unwrap();
    let blob = dir.path().join(&blob.name);
    (dir, blob)
}

fn read(file: &Path) -> Vec<u8> {
    let file = Env::os().unwrap().fs.open_read(file).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn write(file: &Path, bytes: &[u8]) {
    Env::os().unwrap().fs.create(file).unwrap().write_at(bytes, 0).unwrap();
}

/// Reads every key; returns the number of errors, and compares the other values with what was written.
fn read_all(db: &Db, file: &Path, what: &str) -> usize {
    let family = db.family("default").unwrap();
    let mut errors = 0;
    for n in 0..KEYS {
        match db.get(&family, &key(n), ReadOptions::default()) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value(n)[..]), "{what}: a wrong answer"),
            Err(e) => {
                let name = file.file_name().unwrap().to_str().unwrap();
                let text = e.to_string();
                assert!(
                    matches!(e.kind(), ErrorKind::Corruption | ErrorKind::NotSupported),
                    "{what}: {text}"
                );
                assert!(text.contains(name), "{what}: {text}");
                errors += 1;
            }
        }
    }
    errors
}

#[test]
fn damaged_blob_files_give_errors_and_no_wrong_values() {
    let _readers = crate::beside_others();
    let (dir, file) = made();
    let whole = read(&file);
    let (mut seen, mut refused, mut unharmed) = (0, 0, 0);
    let step = if report::scale(0, 1) == 1 { 1 } else { 13 };
    for at in (0..whole.len()).step_by(step) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        write(&file, &flipped);
        match open(dir.path()) {
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Corruption, "byte {at}: {e}");
                refused += 1;
            }
            Ok(db) => {
                let errors = read_all(&db, &file, &format!("byte {at}"));
                if errors == 0 {
                    unharmed += 1
                } else {
                    seen += 1
                }
                db.close().unwrap();
            }
        }
    }
    report::figure(&format!(
        "blob file of {} bytes, a bit flipped every {step} bytes: {seen} seen, {refused} refused at open, {unharmed} in bytes \
         that no read needs, 0 wrong values",
        whole.len()
    ));
    assert!(seen > unharmed * 10, "{seen} of {} seen", whole.len());
}

#[test]
fn a_missing_or_cut_blob_file_is_named() {
    let _readers = crate::beside_others();
    let (dir, file) = made();
    let whole = read(&file);
    let db = open(dir.path()).unwrap();
    Env::os().unwrap().fs.remove(&file).unwrap();
    assert_eq!(read_all(&db, &file, "missing"), KEYS);
    let e = db.get(&db.family("default").unwrap(), &key(3), ReadOptions::default()).unwrap_err();
    assert!(e.to_string().contains("missing") && e.to_string().contains("at offset"), "{e}");
    db.close().unwrap();
    let e = open(dir.path()).err().unwrap();
    assert!(e.is_corruption() && e.to_string().contains("blob file 0000"), "{e}");
    for len in [0, 10, 61, 62, 300, whole.len() - 1] {
        write(&file, &whole[..len]);
        match open(dir.path()) {
            Err(e) => assert!(e.is_corruption() && e.to_string().contains(".blob"), "{len}: {e}"),
            Ok(db) => assert_eq!(read_all(&db, &file, &format!("cut at {len}")), KEYS),
        }
    }
}

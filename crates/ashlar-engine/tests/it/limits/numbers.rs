//! The largest numbers: sequences over 56 bits and file numbers over 62 bits are refused, and existing data stays.

use ashlar_base::{ErrorKind, FamilyId, FileNumber, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/db";

fn open(env: &Env) -> Db {
    let (options, family) = (DbOptions::default(), FamilyOptions::default());
    Db::open(env.clone(), Path::new(DIR), options, Vec::new(), family).unwrap()
}

/// Writes a WAL file whose only write has this sequence number.
fn lay_log(env: &Env, seq: SeqNum) {
    let number = FileNumber(900);
    let path = Path::new(DIR).join(FileKind::Wal(number).name());
    let mut batch = BatchEncoder::new();
    batch.put(FamilyId::DEFAULT, b"old", b"v").unwrap();
    let log = LogWriter::create(Arc::clone(&env.fs), &path, number, Framing::Legacy).unwrap();
    log.append(batch.finish(seq), true).unwrap();
    log.close().unwrap();
}

fn put(db: &Db, keys: &[&str]) -> Result<(), (ErrorKind, String)> {
    let mut batch = WriteBatch::new();
    keys.iter().for_each(|key| batch.put(FamilyId::DEFAULT, key.as_bytes(), b"v").unwrap());
    let written = db.write(&mut batch, WriteOptions::default());
    written.map(drop).map_err(|e| (e.kind(), e.message().to_owned()))
}

fn holds(db: &Db, keys: &[&str]) {
    let family = db.family("default").unwrap();
    let mut found = db.iter(&family, ReadOptions::default()).unwrap();
    found.first().unwrap();
    for key in keys {
        assert_eq!(found.entry().map(|entry| entry.0), Some(key.as_bytes()));
        found.next().unwrap();
    }
    assert!(found.entry().is_none());
}

#[test]
fn writes_beyond_the_last_sequence_number_are_refused() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    open(&env).close().unwrap();
    lay_log(&env, SeqNum::new(SeqNum::MAX.get() - 3).unwrap());
    let db = open(&env);
    let refused = Err((ErrorKind::NotSupported, "more than 2^56 writes in one database".to_owned()));
    assert_eq!(put(&db, &["a", "b", "c"]), refused, "the batch is written whole or not at all");
    assert_eq!(put(&db, &["d"]), Ok(()));
    assert_eq!(put(&db, &["e"]), Ok(()));
    assert_eq!(put(&db, &["f"]), refused);
    holds(&db, &["d", "e", "old"]);
    db.flush(&[db.family("default").unwrap()]).unwrap();
    db.close().unwrap();
    let db = open(&env);
    holds(&db, &["d", "e", "old"]);
    assert_eq!(put(&db, &["f"]), refused);
    db.close().unwrap();
}

/// A MANIFEST with valid checksums and numbers at their maximum: no work is begun that could not be recorded, and a
/// repair continues with lower numbers.
#[test]
fn no_file_is_made_beyond_the_last_file_number() {
    let env = Env::mem();
    let (dir, number) = (Path::new(DIR), FileNumber(5));
    env.fs.create_dir_all(dir).unwrap();
    env.fs.create(&dir.join(FileKind::Current.name())).unwrap().write_at(b"MANIFEST-000005\n", 0).unwrap();
    let edit = VersionEdit {
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber::MAX),
        last_seq: SeqNum::new(9),
        ..VersionEdit::default()
    };
    let path = dir.join(FileKind::Manifest(number).name());
    let manifest = LogWriter::create(Arc::clone(&env.fs), &path, number, Framing::Legacy).unwrap();
    manifest.append(&edit.to_bytes(), true).unwrap();
    manifest.close().unwrap();
    let (options, family) = (DbOptions::default, FamilyOptions::default);
    let opened = Db::open(env.clone(), dir, options(), Vec::new(), family()).map(drop);
    let e = opened.unwrap_err();
    assert!(e.is_corruption() && e.path().is_some(), "{e}");
    assert!(e.message().starts_with("file number 4611686018427387903 is above"), "{e}");
    ashlar_repair::repair(env.clone(), dir, options(), Vec::new(), family(), &mut |_| {}).unwrap();
    let db = open(&env);
    assert_eq!(put(&db, &["a"]), Ok(()));
    db.close().unwrap();
}

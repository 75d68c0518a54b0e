//! The largest sequence numbers: those over 56 bits are refused, and existing data stays.

use ashlar_base::{ErrorKind, FamilyId, FileNumber, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
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
    let mut found = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
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

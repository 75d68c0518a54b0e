//! WAL files of transactions that write before they commit: an ordinary open reads them, takes no writes, and changes
//! nothing.

use ashlar_base::{ErrorKind, FamilyId, FileNumber};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use std::path::Path;

const DIR: &str = "/db";
const LOG: FileNumber = FileNumber(1000);

fn open(env: &Env, read_only: bool) -> Result<Db, ashlar_base::Error> {
    let how = if read_only { Db::open_read_only } else { Db::open };
    how(env.clone(), Path::new(DIR), DbOptions::default(), vec![], FamilyOptions::default())
}

fn put(db: &Db, key: &str, value: &str) -> Result<(), ashlar_base::Error> {
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, key.as_bytes(), value.as_bytes())?;
    db.write(&mut batch, WriteOptions::default()).map(drop)
}

fn slice(out: &mut Vec<u8>, bytes: &str) {
    out.push(u8::try_from(bytes.len()).unwrap());
    out.extend_from_slice(bytes.as_bytes());
}

/// A WAL record: the header, then the operations of `body`: `+key=value`, `-key`, `12`, `13`, `0d`, and marks with a
/// name.
fn record(seq: u64, body: &[&str]) -> Vec<u8> {
    let count = body.iter().filter(|part| part.starts_with(['+', '-'])).count();
    let mut out = seq.to_le_bytes().to_vec();
    out.extend(u32::try_from(count).unwrap().to_le_bytes());
    for part in body {
        if let Some((key, value)) = part.strip_prefix('+').and_then(|p| p.split_once('=')) {
            out.push(1);
            slice(&mut out, key);
            slice(&mut out, value);
        } else if let Some(key) = part.strip_prefix('-') {
            out.push(0);
            slice(&mut out, key);
        } else {
            let (mark, name) = part.split_once(' ').unwrap_or((part, ""));
            out.push(u8::from_str_radix(mark, 16).unwrap());
            if !name.is_empty() {
                slice(&mut out, name);
            }
        }
    }
    out
}

fn files(env: &Env) -> Vec<(String, u64)> {
    env.fs.list(Path::new(DIR)).unwrap().into_iter().map(|e| (e.name, e.len)).collect()
}

#[test]
fn what_is_committed_is_read_and_nothing_is_changed() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let db = open(&env, false).unwrap();
    for key in ["kept", "changed", "gone", "tried"] {
        put(&db, key, "old").unwrap();
    }
    db.flush(&db.families()).unwrap();
    let last = db.visible().get();
    db.close().unwrap();
    let path = Path::new(DIR).join(FileKind::Wal(LOG).name());
    let log = LogWriter::create(env.fs.clone(), &path, LOG, Framing::Legacy).unwrap();
    for (at, body) in [
        &["0d", "+plain=1", "+other=1", "0d"][..],
        &["12", "+changed=new", "-gone", "0a one"],
        &["12", "+tried=new", "0a two"],
        &["0b one"],
        &["+tried=old", "0c two"],
        &["13", "+kept=new", "0a three"],
        &["0d", "+late=1", "0d"],
    ]
    .into_iter()
    .enumerate()
    {
        log.append(&record(last + 1 + at as u64, body), true).unwrap();
    }
    drop(log);
    let before = files(&env);
    for read_only in [false, true] {
        let db = open(&env, read_only).unwrap();
        let family = db.family("default").unwrap();
        let get = |key: &str| {
            let found = db.get(&family, key.as_bytes(), ReadOptions::default()).unwrap();
            found.map(|v| String::from_utf8(v.into_vec()).unwrap())
        };
        let expected = [
            ("kept", Some("old")),
            ("changed", Some("new")),
            ("gone", None),
            ("tried", Some("old")),
            ("plain", Some("1")),
            ("other", Some("1")),
            ("late", Some("1")),
        ];
        for (key, value) in expected {
            assert_eq!(get(key).as_deref(), value, "{key}");
        }
        let reasons = db.recovery().read_only.join("; ");
        assert!(reasons.contains("write before they commit") && reasons.contains("'three'"), "{reasons}");
        let refused = put(&db, "k", "v").unwrap_err();
        assert!(refused.kind() == ErrorKind::NotSupported && refused.to_string().contains("write-prepared"));
        db.close().unwrap();
    }
    assert_eq!(files(&env), before);
}

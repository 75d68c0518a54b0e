//! Compressed WAL files: written by this engine and replayed by it and by RocksDB, written by RocksDB and replayed by
//! this engine.

use ashlar_base::{ErrorKind, FamilyId};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Rng, report};
use std::collections::BTreeMap;
use std::path::Path;

fn options(level: FormatLevel) -> DbOptions {
    DbOptions { format_level: level, wal_compression: Compression::Zstd, ..DbOptions::default() }
}

fn open(dir: &Path, level: FormatLevel) -> Db {
    Db::open(Env::os().unwrap(), dir, options(level), vec![], FamilyOptions::default()).unwrap()
}

fn contents(db: &Db) -> Vec<KeyValue> {
    let mut it = db.iter(&db.family("default").unwrap(), Default::default(), ReadOptions::default()).unwrap();
    let mut all = vec![];
    it.first().unwrap();
    while let Some((key, value)) = it.entry() {
        all.push((key.to_vec(), value.to_vec()));
        it.next().unwrap();
    }
    all
}

/// Values from empty to several blocks of a WAL file, half of them incompressible.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = [0, 10, 200, 3000, 40_000, 120_000][rng.below(6)];
    if rng.percent(50) { rng.bytes(len) } else { b"words, ".iter().copied().cycle().take(len).collect() }
}

fn logs(dir: &Path) -> Vec<Vec<u8>> {
    let fs = Env::os().unwrap().fs;
    let names = fs.list(dir).unwrap().into_iter().filter(|entry| entry.name.ends_with(".log"));
    let read = |name: String| {
        let file = fs.open_read(&dir.join(name)).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    names.map(|entry| read(entry.name)).collect()
}

fn replayed_by(version: JudgeVersion, dir: &Path, want: &[KeyValue]) -> Result<(), JudgeError> {
    let copy = tempfile::tempdir().unwrap();
    copy_flat(dir, copy.path()).unwrap();
    let mut judge = Judge::spawn(version)?;
    let opened = judge.open(copy.path(), Opening::Existing, "wal_recovery_mode=kAbsoluteConsistency");
    opened.unwrap_or_else(|e| panic!("{}: {e}", version.name()));
    assert!(judge.dump("default")? == want, "{} replays other values", version.name());
    judge.close()
}

fn ours(level: FormatLevel, judges: &[JudgeVersion]) -> Result<usize, JudgeError> {
    let (dir, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rng = Rng::new(0x3a1);
    let mut state = BTreeMap::new();
    let db = open(dir.path(), level);
    for round in 0..120 {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + rng.below(4) {
            let (key, value) = (format!("key{:03}", rng.below(200)).into_bytes(), value(&mut rng));
            batch.put(FamilyId::DEFAULT, &key, &value).unwrap();
            state.insert(key, value);
        }
        db.write(&mut batch, WriteOptions::default()).unwrap();
        if round == 60 {
            // A WAL file that continues another is compressed too.
            db.flush(&[db.family("default").unwrap()]).unwrap();
        }
    }
    db.sync_wal().unwrap();
    // No file is removed during the copy.
    db.wait_for_background().unwrap();
    copy_flat(dir.path(), crashed.path()).unwrap();
    db.close().unwrap();
    let want: Vec<KeyValue> = state.into_iter().collect();
    let logs = logs(crashed.path());
    assert!(!logs.is_empty() && logs.iter().all(|log| log[6] == 9), "every log begins with type 9");
    let stored: usize = logs.iter().map(Vec::len).sum();
    for version in judges {
        replayed_by(*version, crashed.path(), &want)?;
    }
    let db = open(crashed.path(), level);
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    assert!(contents(&db) == want);
    db.close().unwrap();
    Ok(stored)
}

fn theirs(version: JudgeVersion) -> Result<usize, JudgeError> {
    let (dir, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rng = Rng::new(0x3a2);
    let mut state = BTreeMap::new();
    let mut judge = Judge::spawn(version)?;
    judge.open(dir.path(), Opening::Create, "wal_compression=kZSTD")?;
    for _ in 0..60 {
        let (key, value) = (format!("key{:03}", rng.below(100)).into_bytes(), value(&mut rng));
        state.insert(key.clone(), value.clone());
        judge.write(&[Change::Put { family: "default".into(), key, value }], false)?;
    }
    copy_flat(dir.path(), crashed.path()).unwrap();
    judge.kill();
    let want: Vec<KeyValue> = state.into_iter().collect();
    let db = open(crashed.path(), FormatLevel::V9_11);
    assert!(contents(&db) == want, "{} wrote other values", version.name());
    db.close().unwrap();
    Ok(want.len())
}

#[test]
fn compressed_logs_go_both_ways() {
    let _readers = crate::beside_others();
    let run = || {
        let stored = ours(FormatLevel::V7_8, &JudgeVersion::ALL)?;
        ours(FormatLevel::V9_11, &[JudgeVersion::V11])?;
        let read = theirs(JudgeVersion::V7)? + theirs(JudgeVersion::V11)?;
        Ok::<_, JudgeError>((stored, read))
    };
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce("compressed_logs_go_both_ways"),
        Err(e) => panic!("{e}"),
        Ok((stored, read)) => report::figure(&format!(
            "compressed logs: {stored} bytes of ours replayed by RocksDB 7.8.3 and 11.8.1 in absolute consistency, {read} keys \
             of theirs by us, 0 differences"
        )),
    }
}

#[test]
fn levels_that_do_not_read_them_refuse_the_option() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |options| {
        let opened = Db::open(Env::os().unwrap(), dir.path(), options, vec![], FamilyOptions::default());
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    };
    let text = refused(options(FormatLevel::V6_29));
    assert!(text.contains("wal_compression") && text.contains("rocksdb-6.29"), "{text}");
    let text = refused(DbOptions { wal_compression: Compression::Lz4, ..DbOptions::default() });
    assert!(text.contains("none or zstd"), "{text}");
}

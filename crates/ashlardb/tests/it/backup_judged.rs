//! RocksDB restores, verifies and continues our backups, and we its own, in one directory.

use crate::backup::{Entries, entries};
use ashlar_testkit::judge::{JudgeError, MERGING, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, golden};
use ashlardb::prelude::*;
use ashlardb::{BackupEngine, BackupOptions, FormatLevel};
use std::fs;
use std::path::Path;

fn judged(what: &str, test: impl Fn(JudgeVersion) -> Result<(), JudgeError>) {
    for version in JudgeVersion::ALL {
        match test(version) {
            Err(JudgeError::Skip(skip)) => skip.announce(what),
            result => result.unwrap(),
        }
    }
}

fn builder(dir: &Path, version: JudgeVersion) -> ashlardb::Builder {
    let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::default() };
    Db::builder(dir).format_level(level).tune(|_, family| {
        family.blob.enabled = true;
        family.blob.min_blob_bytes = 1000;
    })
}

fn fill(db: &Db, round: u32) {
    for n in 0..300_u32 {
        db.put((round * 200 + n).to_be_bytes(), vec![round as u8; 5 * n as usize]).unwrap();
    }
}

fn rocksdb_restores(
    judge: &mut Judge,
    backups: &Path,
    into: &Path,
    expected: &Entries,
) -> Result<(), JudgeError> {
    judge.restore_latest(backups, into)?;
    judge.open(into, Opening::Existing, MERGING)?;
    judge.verify()?;
    let found: Entries = judge.dump("default")?.into_iter().collect();
    assert_eq!(&found, expected);
    Ok(())
}

fn listed(engine: &BackupEngine) -> Vec<(u32, u64, usize)> {
    engine.backups().iter().map(|b| (b.id, b.bytes, b.files)).collect()
}

#[test]
fn rocksdb_restores_verifies_and_continues_our_backups() {
    judged("our backups in RocksDB", |version| {
        let mut judge = Judge::spawn(version)?;
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let db = builder(&at("db"), version).open().unwrap();
        let mut engine = BackupEngine::open(at("b")).unwrap();
        for round in 0..3 {
            fill(&db, round);
            db.flush().unwrap();
            db.put("in the WAL", round.to_be_bytes()).unwrap();
            let options = BackupOptions::new().metadata(format!("round {round}"));
            engine.create_backup_with(&db, &options, |_| ()).unwrap();
        }
        let state = entries(&db);
        assert_eq!(judge.verified_backups(&at("b"))?, listed(&engine));
        drop(engine);
        rocksdb_restores(&mut judge, &at("b"), &at("theirs"), &state)?;
        // RocksDB goes on with the restored database, and adds a backup of it to the directory.
        let put = Change::Put { family: "default".into(), key: b"theirs".to_vec(), value: b"1".to_vec() };
        judge.write(&[put], true)?;
        judge.create_backup(&at("b"))?;
        judge.close()?;
        assert!(at("b/LOCK").exists(), "RocksDB leaves the LOCK");

        let mut engine = BackupEngine::open(at("b")).unwrap();
        assert_eq!(judge.verified_backups(&at("b"))?, listed(&engine));
        assert_eq!(listed(&engine).len(), 4);
        (1..=4).for_each(|id| engine.verify(id).unwrap());
        engine.restore_latest(at("ours")).unwrap();
        let mut expected = state.clone();
        expected.insert(b"theirs".to_vec(), b"1".to_vec());
        assert_eq!(entries(&builder(&at("ours"), version).open().unwrap()), expected);
        // We add one after theirs, and RocksDB deletes all others.
        engine.create_backup(&db).unwrap();
        drop(engine);
        judge.purge_backups(&at("b"), 1)?;
        rocksdb_restores(&mut judge, &at("b"), &at("again"), &state)?;
        judge.close()?;
        let engine = BackupEngine::open(at("b")).unwrap();
        assert_eq!(listed(&engine).len(), 1);
        engine.verify(5).unwrap();
        Ok(())
    });
}

#[test]
fn we_list_verify_restore_and_delete_rocksdbs_backups() {
    judged("RocksDB's backups here", |version| {
        let mut judge = Judge::spawn(version)?;
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        judge.open(
            &at("db"),
            Opening::Create,
            &format!("{MERGING};enable_blob_files=true;min_blob_size=500"),
        )?;
        let mut states: Vec<Entries> = Vec::new();
        for round in 0..3_u8 {
            for n in 0..100_u8 {
                let value = vec![round; 10 * usize::from(n)];
                let put = Change::Put { family: "default".into(), key: vec![round * 50 + n], value };
                judge.write(&[put], false)?;
            }
            judge.create_backup(&at("b"))?;
            states.push(judge.dump("default")?.into_iter().collect());
        }
        let listing = judge.verified_backups(&at("b"))?;
        let mut engine = BackupEngine::open(at("b")).unwrap();
        assert!(engine.corrupt_backups().is_empty());
        assert_eq!(listed(&engine), listing);
        for (id, state) in (1..).zip(&states) {
            engine.verify(id).unwrap();
            engine.restore(id, at("copy")).unwrap();
            let db = Db::open(at("copy")).unwrap();
            assert!(db.recovery().is_clean(), "{}", db.recovery());
            assert_eq!(&entries(&db), state);
        }
        engine.delete(2).unwrap();
        drop(engine);
        assert_eq!(judge.verified_backups(&at("b"))?.len(), 2);
        judge.create_backup(&at("b"))?;
        judge.close()?;
        rocksdb_restores(&mut judge, &at("b"), &at("theirs"), &states[2])?;
        judge.close()
    });
}

/// RocksDB writes `wal_dir` into the OPTIONS file that its backup holds. The restored database must not read the WAL
/// files of the original, which continue after the backup.
#[test]
fn a_restored_database_reads_no_wal_of_the_original() {
    judged("a backup of a database with wal_dir", |version| {
        let mut judge = Judge::spawn(version)?;
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let put = |key: &str| Change::Put { family: "default".into(), key: key.into(), value: b"1".to_vec() };
        let options = format!("{MERGING};wal_dir={}", at("wal").display());
        judge.open(&at("db"), Opening::Create, &options)?;
        judge.write(&[put("before")], true)?;
        judge.create_backup(&at("b"))?;
        judge.write(&[put("after")], true)?;
        judge.close()?;
        let wals = fs::read_dir(at("wal")).unwrap().flatten();
        assert!(wals.filter_map(|entry| entry.metadata().ok()).any(|wal| wal.len() > 0));

        BackupEngine::open(at("b")).unwrap().restore_latest(at("copy")).unwrap();
        let db = Db::open(at("copy")).unwrap();
        assert_eq!(entries(&db), Entries::from([(b"before".to_vec(), b"1".to_vec())]));
        Ok(())
    });
}

/// The backup directory that RocksDB 7.8.3 left.
#[test]
fn the_golden_backup_directory_is_listed_verified_and_restored() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("b");
    for folder in ["meta", "private/1", "private/2", "shared_checksum"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
        for (name, from) in golden::files(&format!("rocksdb-7.8.3/backup/{folder}")).unwrap() {
            fs::copy(from, dir.join(folder).join(name)).unwrap();
        }
    }
    let mut engine = BackupEngine::open(&dir).unwrap();
    assert_eq!(
        engine.backups().iter().map(|b| (b.id, b.sequence.get())).collect::<Vec<_>>(),
        [(1, 2), (2, 3)]
    );
    for id in [1, 2] {
        engine.verify(id).unwrap();
        engine.restore(id, home.path().join(id.to_string())).unwrap();
    }
    let db = Db::open(home.path().join("2")).unwrap();
    assert!(entries(&db).len() > entries(&Db::open(home.path().join("1")).unwrap()).len());
    let made = engine.create_backup(&db).unwrap();
    assert_eq!(made.shared_files, 2, "tables of RocksDB are shared by name");
    engine.purge_old(1).unwrap();
    engine.verify(3).unwrap();
}

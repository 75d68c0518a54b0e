//! WAL files whose first creation failed: the remains of that attempt damage nothing that is written later.

use ashlar_base::Error;
use ashlar_base::error::IoKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_testkit::report;
use std::path::Path;

const FAMILIES: [&str; 2] = ["default", "other"];

fn open(sim: &SimEnv, wal_compression: Compression) -> Result<Db, Error> {
    let options = DbOptions {
        create_if_missing: true,
        create_missing_families: true,
        wal_compression,
        ..DbOptions::default()
    };
    let family = FamilyOptions::default();
    let listed = FAMILIES.map(|name| OpenFamily { name: name.to_owned(), options: family.clone() });
    Db::open(sim.env(), Path::new("/db"), options, listed.into(), family.clone())
}

fn put(db: &Db, families: &[&str], key: &[u8], sync: bool) {
    let mut batch = WriteBatch::new();
    for name in families {
        batch.put(db.family(name).unwrap().id(), key, &[7; 700]).unwrap();
    }
    db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() }).unwrap();
}

/// Whether after a power cut, of every kind, the database opens and has the key in each of the families.
fn survives(sim: &SimEnv, compression: Compression, families: &[&str], key: &[u8], what: &str) {
    for mode in CrashMode::all() {
        let db = open(&sim.crash(mode), compression).unwrap_or_else(|e| panic!("{what}, {mode:?}: {e}"));
        for name in families {
            let found = db.get(&db.family(name).unwrap(), key, ReadOptions::default()).unwrap();
            assert!(found.is_some(), "{what}, {mode:?}: {name} lost a key");
        }
    }
}

#[test]
fn a_log_that_was_begun_in_vain_is_no_damage_before_later_ones() {
    let _readers = crate::beside_others();
    let (mut cases, mut failed, mut crashes) = (0, 0, 0);
    for seed in 0..report::scale(4, 12) as u64 {
        for compression in [Compression::None, Compression::Zstd] {
            for nth in 1..=6 {
                let what = format!("seed {seed}, {compression:?}, write {nth}");
                let sim = SimEnv::new(seed);
                let db = open(&sim, compression).unwrap();
                put(&db, &FAMILIES, b"first", false);
                let other = db.family("other").unwrap();
                sim.fail_call(
                    CallClass::Write,
                    sim.calls_of(CallClass::Write) + nth,
                    Repeat::Once,
                    IoKind::Other,
                );
                // One family is flushed ahead of the other, whose data is only in the older WAL file.
                if db.flush(std::slice::from_ref(&other)).is_err() {
                    failed += 1;
                    db.resume().unwrap();
                    put(&db, &["default"], b"between", false);
                    db.flush(&[other]).unwrap();
                }
                sim.heal();
                survives(&sim, compression, &["other"], b"first", &what);
                put(&db, &FAMILIES, b"second", true);
                survives(&sim, compression, &FAMILIES, b"second", &what);
                cases += 1;
                crashes += 2 * CrashMode::all().len();
            }
        }
    }
    report::figure(&format!("logs begun anew: {failed} attempts failed, {crashes} crashes, 0 differences"));
    assert!(failed * 3 > cases, "{failed} of {cases}");
}

#[test]
fn a_close_takes_a_log_that_was_begun_in_vain_with_it() {
    let _readers = crate::beside_others();
    let mut failed = 0;
    for compression in [Compression::None, Compression::Zstd] {
        for nth in 1..=6 {
            let sim = SimEnv::new(nth);
            let db = open(&sim, compression).unwrap();
            put(&db, &FAMILIES, b"first", true);
            let at = sim.calls_of(CallClass::Write) + nth;
            sim.fail_call(CallClass::Write, at, Repeat::Once, IoKind::Other);
            failed += u32::from(db.flush(&db.families()).is_err());
            db.close().unwrap();
            let again = open(&sim, compression).unwrap();
            assert!(again.recovery().is_clean(), "{compression:?}, write {nth}: {}", again.recovery());
        }
    }
    assert!(failed > 3, "{failed}");
}

/// The numbers of the WAL files in the directory.
fn wal_files(sim: &SimEnv) -> Vec<String> {
    let files = sim.env().fs.list(Path::new("/db")).unwrap();
    files.into_iter().map(|file| file.name).filter(|name| name.ends_with(".log")).collect()
}

fn unlogged(db: &Db, key: &[u8]) {
    let family = db.family("default").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(family.id(), key, &[7; 700]).unwrap();
    db.write(&mut batch, WriteOptions { disable_wal: true, ..WriteOptions::default() }).unwrap();
    db.flush(&[family]).unwrap();
}

#[test]
fn flushes_of_unlogged_writes_begin_no_wal_file() {
    let _readers = crate::beside_others();
    for compression in [Compression::None, Compression::Zstd] {
        for buffered in [false, true] {
            let sim = SimEnv::new(5);
            let db = open(&sim, compression).unwrap();
            db.close().unwrap();
            let options = DbOptions {
                wal_compression: compression,
                manual_wal_flush: buffered,
                ..DbOptions::default()
            };
            let family = FamilyOptions::default();
            let listed = FAMILIES.map(|name| OpenFamily { name: name.to_owned(), options: family.clone() });
            let db = Db::open(sim.env(), Path::new("/db"), options, listed.into(), family.clone()).unwrap();
            let first = wal_files(&sim);
            for key in [b"a", b"b", b"c"] {
                unlogged(&db, key);
                assert_eq!(wal_files(&sim), first);
            }
            // A record of either family makes the next switch begin a file.
            put(&db, &["other"], b"logged", false);
            unlogged(&db, b"d");
            let second = wal_files(&sim);
            assert_ne!(second, first);
            unlogged(&db, b"e");
            assert_eq!(wal_files(&sim), second);
            put(&db, &["default"], b"f", true);
            let what = format!("{compression:?}, buffered {buffered}");
            for key in [b"a", b"b", b"c", b"d", b"e", b"f"] {
                survives(&sim, compression, &["default"], key, &what);
            }
            survives(&sim, compression, &["other"], b"logged", &what);
        }
    }
}

/// A WAL file that begins with a copy of an undecided transaction stays too, and the transaction with it.
#[test]
fn a_kept_wal_file_has_the_undecided_transactions() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(7);
    let db = open(&sim, Compression::None).unwrap();
    let family = db.family("default").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"undecided", b"v").unwrap();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    db.prepare(b"name", &mut batch, synced, &mut || Ok(()), &mut || ()).unwrap();
    put(&db, &FAMILIES, b"logged", true);
    db.flush(&db.families()).unwrap();
    let files = wal_files(&sim);
    for key in [b"a", b"b"] {
        unlogged(&db, key);
        assert_eq!(wal_files(&sim).last(), files.last());
    }
    for mode in CrashMode::all() {
        let again = open(&sim.crash(mode), Compression::None).unwrap();
        assert_eq!(again.prepared().names().count(), 1, "{mode:?}");
    }
}

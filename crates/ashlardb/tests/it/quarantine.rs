//! Quarantine: a damaged table leaves an open database; what is lost was told, the original is kept, and writes go on.
//!
//! A purge takes for held what any reader of the process may hold, other tests among them: so it is after another open that
//! the original must be in `lost/`.

use crate::integrity::{database, files};
use crate::repair::{DIR, compare, crashed_before_each, damaged, holds, is_kept, judged, reads};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::judge::JudgeError;
use ashlar_testkit::{JudgeVersion, report};
use ashlardb::{
    BusyKind, Db, Error, ErrorKind, FormatLevel, IoKind, Read as _, RepairReport, Risk, Severity, Write as _,
};
use std::path::Path;

fn open(sim: &SimEnv) -> Db {
    Db::builder(DIR).env(sim.env()).create(false).open().unwrap()
}

/// Files of a directory with their lengths.
pub fn names(sim: &SimEnv, dir: &str) -> Vec<(String, u64)> {
    let entries = sim.env().fs.list(Path::new(dir)).unwrap_or_default();
    entries.into_iter().map(|entry| (entry.name, entry.len)).collect()
}

pub fn is_in(sim: &SimEnv, dir: &str, name: &str) -> bool {
    names(sim, dir).iter().any(|(there, _)| there == name)
}

pub fn lost() -> String {
    format!("{DIR}/lost")
}

pub fn bytes(sim: &SimEnv, name: &str) -> Vec<u8> {
    let file = sim.env().fs.open_read(&Path::new(DIR).join(name)).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// The table that `damaged` leaves damaged: the largest.
fn victim(sim: &SimEnv) -> String {
    let tables = names(sim, DIR).into_iter().filter(|(name, _)| name.ends_with(".sst"));
    tables.max_by_key(|(_, len)| *len).unwrap().0
}

/// Lets background work come to its end.
pub fn settle(sim: &SimEnv) {
    while sim.env().jobs.drive(100) > 0 {}
}

pub fn kind(outcome: Result<RepairReport, Error>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

#[test]
fn writes_resume_once_the_damaged_table_is_in_quarantine() {
    let (sim, mut model) = damaged(40);
    let name = victim(&sim);
    let original = bytes(&sim, &name);
    let db = open(&sim);
    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::Corruption);
    settle(&sim);
    assert_eq!(db.health().severity, Severity::Corrupt);
    let refused = db.put(b"k", b"v").unwrap_err();
    assert!(refused.to_string().contains("in quarantine"), "{refused}");

    let account = db.quarantine(&name).unwrap();
    assert!(
        account.rewritten == [name.as_str()] && account.losses.iter().all(|l| l.file == name),
        "{account}"
    );
    let lost_keys = model.keys().filter(|key| db.get(key).unwrap().as_deref() != Some(&model[*key][..]));
    let lost_keys = lost_keys.count();
    assert!(0 < lost_keys && lost_keys < model.len() / 4, "{lost_keys}: the rest of the table is there");
    assert_eq!(db.health().severity, Severity::Healthy);
    db.put(b"k", b"v").unwrap();
    model.insert(b"k".to_vec(), b"v".to_vec());
    db.compact().unwrap();
    let note = format!("QUARANTINE-{}.txt", name.trim_end_matches(".sst"));
    assert_eq!(bytes(&sim, &format!("lost/{note}")), account.to_string().into_bytes());
    reads(&db, &model, &account, "open");
    assert_eq!(kind(db.quarantine(&name)), ErrorKind::InvalidArgument, "it is there no more");
    db.close().unwrap();
    assert_eq!(kind(db.quarantine(&name)), ErrorKind::Shutdown(ashlardb::ShutdownKind::Closed));
    holds(&sim, DIR, &model, &account, "opened again");
    assert!(!is_in(&sim, DIR, &name) && is_in(&sim, &lost(), &name) && is_kept(&sim, &original));
}

#[test]
fn what_is_sound_or_unknown_or_not_read_stays() {
    let (sim, model) = damaged(41);
    let name = victim(&sim);
    let run = sim.crash(CrashMode::KILL);
    let db = open(&run);
    let before = (names(&run, DIR), db.default_family().live_files().unwrap());
    let sound = before.0.iter().map(|(name, _)| name.as_str()).filter(|n| n.ends_with(".sst") && *n != name);
    for wrong in sound.chain(["000999.sst", "000012.blob", "CURRENT", "000001.log", "", "../db/000012.sst"]) {
        let e = db.quarantine(wrong).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{wrong}: {e}");
    }
    settle(&run);
    assert_eq!((names(&run, DIR), db.default_family().live_files().unwrap()), before);
    let from = run.calls_of(CallClass::Read);
    let account = db.quarantine(&name).unwrap();
    let reads = run.calls_of(CallClass::Read) - from;
    db.close().unwrap();
    holds(&run, DIR, &model, &account, "whole");

    for at in 1..=reads {
        let run = sim.crash(CrashMode::KILL);
        let db = open(&run);
        run.fail_call(CallClass::Read, run.calls_of(CallClass::Read) + at, Repeat::Once, IoKind::Other);
        let account = db.quarantine(&name).or_else(|e| {
            assert!(matches!(e.kind(), ErrorKind::Io(_)), "read {at}: {e}");
            assert_eq!(db.default_family().live_files().unwrap(), before.1, "read {at}");
            run.heal();
            db.quarantine(&name)
        });
        assert_eq!(account.unwrap().losses, account_of(&sim, &name).losses, "read {at}");
        db.close().unwrap();
    }
    let read_only = Db::builder(DIR).env(sim.env()).read_only(true).open().unwrap();
    assert_eq!(kind(read_only.quarantine(&name)), ErrorKind::NotSupported);
    report::figure(&format!("quarantine: each of {reads} reads failed once; none was taken for damage"));
}

/// What an undisturbed quarantine tells.
fn account_of(sim: &SimEnv, name: &str) -> RepairReport {
    open(&sim.crash(CrashMode::KILL)).quarantine(name).unwrap()
}

#[test]
fn what_a_compaction_works_on_is_not_taken() {
    let sim = SimEnv::new(42);
    let db = Db::builder(DIR).env(sim.env()).open().unwrap();
    let mut kinds = Vec::new();
    for round in 0..20_u32 {
        (0..20_u32).for_each(|i| db.put(i.to_be_bytes(), round.to_be_bytes()).unwrap());
        db.flush().unwrap();
        for file in db.default_family().live_files().unwrap() {
            kinds.push(kind(db.quarantine(&format!("{}.sst", file.number))));
        }
    }
    let (busy, sound) = (ErrorKind::Busy(BusyKind::Locked), ErrorKind::InvalidArgument);
    assert!(kinds.contains(&busy) && kinds.iter().all(|kind| [busy, sound].contains(kind)), "{kinds:?}");
    db.wait_for_background().unwrap();
    db.close().unwrap();
}

#[test]
fn a_table_that_does_not_open_goes_whole_with_its_values() {
    let sim = SimEnv::new(43);
    let builder = || Db::builder(DIR).env(sim.env()).default_family(|f| f.blob_files(500));
    let db = builder().open().unwrap();
    (0..50_u32).for_each(|i| db.put(format!("large{i:02}"), [7; 600]).unwrap());
    db.flush().unwrap();
    (0..50_u32).for_each(|i| db.put(format!("small{i:02}"), [7; 60]).unwrap());
    db.flush().unwrap();
    let oldest = db.default_family().live_files().unwrap().pop().unwrap();
    db.close().unwrap();
    let (name, blob) = (format!("{}.sst", oldest.number), names(&sim, DIR));
    let blob = blob.into_iter().find(|(name, _)| name.ends_with(".blob")).unwrap().0;
    let file = sim.env().fs.open_write(&Path::new(DIR).join(&name)).unwrap();
    // Less would leave a footer that the rest of the file proves.
    file.write_at(&[0; 50], oldest.bytes - 50).unwrap();
    file.sync_all().unwrap();

    let db = builder().open().unwrap();
    assert!(db.get(b"large00").unwrap_err().kind() == ErrorKind::Corruption);
    let account = db.quarantine(&name).unwrap();
    assert!(account.rewritten.is_empty() && account.losses.len() == 1, "{account}");
    let Risk::Keys(spans) = &account.losses[0].risk else { panic!("{account}") };
    assert!(spans.len() == 1 && spans[0].from == b"large00" && spans[0].to == b"large49", "{account}");
    db.close().unwrap();
    let db = builder().open().unwrap();
    assert!(is_in(&sim, &lost(), &name) && is_in(&sim, &lost(), &blob), "{:?}", names(&sim, &lost()));
    assert_eq!(db.scan(..).filter(Result::is_ok).count(), 50);
    assert!(db.get(b"large00").unwrap().is_none() && db.verify_db(|_| {}).unwrap().is_sound());
    db.close().unwrap();
}

/// Takes all files whose names end so out of a database, each with a flipped bit in its middle: of tables on all levels, of
/// two families, one of which has its values in blob files. What is gone was told, and RocksDB reads the rest. How many files,
/// and how many keys that hit.
pub fn rocksdb_reads_what_is_left_without(ends: &str) -> (usize, usize) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let entries = database(&dir, "");
    let open = || {
        let builder = Db::builder(&dir).format_level(FormatLevel::V7_8);
        let builder = builder.tune(|_, family| family.compaction.automatic = false);
        builder.family("blobs", |f| f.blob_files(200)).open().unwrap()
    };
    // The log becomes a table.
    open().close().unwrap();
    let damaged = files(&dir, ends);
    for file in &damaged {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    let db = open();
    let mut all = RepairReport::default();
    for file in &damaged {
        let account = db.quarantine(file.file_name().unwrap().to_str().unwrap()).unwrap();
        assert!(!account.losses.is_empty(), "{account}");
        all.losses.extend(account.losses);
    }
    db.wait_for_background().unwrap();
    db.close().unwrap();
    let hit = compare(&dir, &entries, &all, ends);
    assert!(damaged.iter().all(|file| !file.exists()), "{damaged:?}");
    for version in JudgeVersion::ALL {
        match judged(&dir, version) {
            Err(JudgeError::Skip(skip)) => skip.announce("rocksdb_reads_what_is_left"),
            other => assert!(other.unwrap()),
        }
    }
    report::figure(&format!("quarantine: {} {ends} files, {hit} keys hit, all of them told", damaged.len()));
    (damaged.len(), hit)
}

#[test]
fn rocksdb_reads_what_is_left() {
    assert!(rocksdb_reads_what_is_left_without(".sst").0 >= 4);
}

/// Readers keep the original where it is. A purge moves it once they are gone, or else the next open.
#[test]
fn the_original_stays_while_a_reader_holds_it() {
    let (sim, model) = damaged(44);
    let name = victim(&sim);
    for closes in [false, true] {
        let run = sim.crash(CrashMode::KILL);
        let db = open(&run);
        let mut cursor = db.scan(..).cursor().unwrap();
        cursor.first().unwrap();
        let account = db.quarantine(&name).unwrap();
        settle(&run);
        assert!(is_in(&run, DIR, &name) && !is_in(&run, &lost(), &name), "{:?}", names(&run, DIR));
        let (db, moved) = match closes {
            false => {
                drop(cursor);
                for _ in 0..1000 {
                    db.put(b"0000", &model[&b"0000"[..]]).unwrap();
                    db.flush().unwrap();
                    settle(&run);
                    if is_in(&run, &lost(), &name) {
                        break;
                    }
                }
                (db, Vec::new())
            }
            true => {
                db.close().unwrap();
                assert!(is_in(&run, DIR, &name));
                drop((cursor, db));
                let db = open(&run);
                let moved = db.recovery().lost.clone();
                (db, moved)
            }
        };
        assert_eq!(moved, if closes { vec![name.clone()] } else { Vec::new() });
        assert!(!is_in(&run, DIR, &name) && is_in(&run, &lost(), &name), "{:?}", names(&run, DIR));
        reads(&db, &model, &account, "afterwards");
        db.close().unwrap();
    }
}

/// A crash before any change leaves the table as it was, or replaced; the original is there in any case, and another
/// quarantine comes to the same.
#[test]
fn a_quarantine_that_crashes_loses_no_more() {
    let (sim, model) = damaged(45);
    let name = victim(&sim);
    let original = bytes(&sim, &name);
    let work = |run: &SimEnv| {
        let db = open(run);
        let account = db.quarantine(&name).unwrap();
        db.wait_for_background().unwrap();
        db.close().unwrap();
        account
    };
    let whole = sim.crash(CrashMode::KILL);
    let from = whole.calls_of(CallClass::Change);
    let account = work(&whole);
    let changes = whole.calls_of(CallClass::Change) - from;
    holds(&whole, DIR, &model, &account, "whole");
    assert!(is_in(&whole, &lost(), &name));
    let (mut images, mut replaced, mut moved) = (0, 0, 0);
    for (what, image) in crashed_before_each(&sim, changes, |run| drop(work(run))) {
        assert!(is_kept(&image, &original), "{what}: before the open");
        let db = open(&image);
        assert!(is_kept(&image, &original), "{what}: after the open");
        moved += db.recovery().lost.iter().filter(|lost| **lost == name).count();
        match db.quarantine(&name) {
            Ok(again) => assert_eq!(again.losses, account.losses, "{what}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{what}: {e}");
                replaced += 1;
            }
        }
        settle(&image);
        db.close().unwrap();
        holds(&image, DIR, &model, &account, &what);
        assert!(is_kept(&image, &original) && is_in(&image, &lost(), &name), "{what}: in the end");
        images += 1;
    }
    assert!(images as u64 >= changes && moved > 0 && replaced >= moved, "{images} {moved} {replaced}");
    report::figure(&format!(
        "quarantine: crashed before each of {changes} changes, {images} images; {replaced} replaced, {moved} moved by the open"
    ));
}

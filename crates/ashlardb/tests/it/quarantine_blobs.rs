//! Quarantine of blob files: what can be read of one moves to another, the report names the rest, and the tables that pointed
//! into it point elsewhere.

use crate::quarantine::{bytes, is_in, kind, lost, names, rocksdb_reads_what_is_left_without, settle};
use crate::repair::{DIR, crashed_before_each, holds, is_kept, reads};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::report;
use ashlardb::{Db, ErrorKind, FormatLevel, IoKind, Read as _, RepairReport, Severity, Write as _};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// `moving`: compactions move all values out of old blob files.
fn open(sim: &SimEnv, moving: bool) -> Db {
    let collect = "enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0";
    let builder = Db::builder(DIR).env(sim.env()).format_level(FormatLevel::V11);
    let builder = builder.default_family(|f| f.blob_files(300).options(if moving { collect } else { "" }));
    builder.tune(|_, family| family.compaction.automatic = false).open().unwrap()
}

/// Three blob files, values and columns of entities in them; all behind one table, or each behind its own.
pub fn stored(seed: u64, one_table: bool) -> (SimEnv, Model) {
    let (sim, mut model) = (SimEnv::new(seed), Model::new());
    let db = open(&sim, false);
    for (round, keys) in [0..60_u32, 20..40, 60..80].into_iter().enumerate() {
        for i in keys {
            let (key, value) = (format!("key{i:03}"), vec![(i + round as u32) as u8; 350 + i as usize]);
            match i % 5 {
                0 => db.put_entity(&key, &[("", &value[..]), ("more", &[7; 400])]).unwrap(),
                _ => db.put(&key, &value).unwrap(),
            }
            model.insert(key.into_bytes(), value);
        }
        db.flush().unwrap();
    }
    if one_table {
        db.compact().unwrap();
    }
    db.close().unwrap();
    (sim, model)
}

fn blob_files(sim: &SimEnv) -> Vec<String> {
    names(sim, DIR).into_iter().map(|(name, _)| name).filter(|name| name.ends_with(".blob")).collect()
}

/// What happens to a blob file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    /// A few values in it.
    Values,
    /// Its head: it does not open.
    Head,
    /// Bytes stand behind it.
    End,
    Gone,
}

fn damage(sim: &SimEnv, name: &str, damage: Damage) {
    let (fs, path) = (sim.env().fs, Path::new(DIR).join(name));
    if damage == Damage::Gone {
        return fs.remove(&path).unwrap();
    }
    let len = bytes(sim, name).len() as u64;
    let at = match damage {
        Damage::Head => 0,
        Damage::End => len,
        Damage::Values | Damage::Gone => len / 4,
    };
    let file = fs.open_write(&path).unwrap();
    file.write_at(&[0xA5; 900], at).unwrap();
    file.sync_all().unwrap();
}

/// One table behind which a blob file has lost values.
pub fn with_a_damaged_blob_file(seed: u64) -> (SimEnv, Model) {
    let (sim, model) = stored(seed, true);
    damage(&sim, &blob_files(&sim)[0], Damage::Values);
    (sim, model)
}

/// One table behind which a blob file has other bytes at its end.
pub fn with_bytes_behind_a_blob_file(seed: u64) -> (SimEnv, Model) {
    let (sim, model) = stored(seed, true);
    damage(&sim, &blob_files(&sim)[0], Damage::End);
    (sim, model)
}

/// The keys that cannot be read; the others are as they were.
fn failing(db: &Db, model: &Model) -> BTreeSet<Vec<u8>> {
    let fails = |key: &[u8], value: &[u8]| match db.get(key) {
        Ok(found) => {
            assert_eq!(found.as_deref(), Some(value), "{}", key.escape_ascii());
            false
        }
        Err(_) => true,
    };
    model.iter().filter(|(key, value)| fails(key, value)).map(|(key, _)| key.clone()).collect()
}

#[test]
fn what_can_be_read_of_a_blob_file_moves_and_writes_resume() {
    let mut lost_keys = 0;
    for (seed, one_table) in [(50, false), (51, true)] {
        let (sim, model) = stored(seed, one_table);
        for (at, name) in blob_files(&sim).iter().enumerate() {
            for how in [Damage::Values, Damage::Head, Damage::Gone] {
                let run = sim.crash(CrashMode::KILL);
                // What is gone an open would miss.
                let opened = (how == Damage::Gone).then(|| open(&run, true));
                damage(&run, name, how);
                let db = opened.unwrap_or_else(|| open(&run, true));
                let failing = failing(&db, &model);
                assert!(!failing.is_empty(), "{name} {how:?}");
                let what = format!("one table: {one_table}, blob file {at}, {how:?}");
                if how != Damage::Gone {
                    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::Corruption, "{what}");
                    settle(&run);
                    assert!(
                        db.health().severity == Severity::Corrupt && db.put(b"k", b"v").is_err(),
                        "{what}"
                    );
                }
                let account = db.quarantine(name).unwrap();
                assert_eq!(account.losses[0].file, *name, "{what}: {account}");
                let wrong =
                    model.iter().filter(|(key, value)| db.get(key).unwrap().as_deref() != Some(&value[..]));
                assert_eq!(wrong.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>(), failing, "{what}");
                lost_keys += failing.len();
                db.put(b"key000a", [7; 500]).unwrap();
                db.compact().unwrap();
                reads(&db, &model, &account, &what);
                assert!(db.verify_db(|_| {}).unwrap().is_sound(), "{what}");
                assert_eq!(
                    (db.health().severity, kind(db.quarantine(name))),
                    (Severity::Healthy, ErrorKind::InvalidArgument)
                );
                db.close().unwrap();
                holds(&run, DIR, &model, &account, &what);
                assert!(!is_in(&run, DIR, name), "{what}");
                assert_eq!(
                    is_in(&run, &lost(), name),
                    how != Damage::Gone,
                    "{what}: {:?}",
                    names(&run, &lost())
                );
            }
        }
    }
    report::figure(&format!("quarantine: 18 blob files, {lost_keys} values lost, all of them told"));
}

#[test]
fn a_sound_blob_file_and_one_that_is_not_read_stay() {
    let (sim, model) = stored(52, true);
    let name = blob_files(&sim).remove(0);
    let db = open(&sim, false);
    let before = names(&sim, DIR);
    assert_eq!(kind(db.quarantine(&name)), ErrorKind::InvalidArgument);
    settle(&sim);
    assert_eq!(names(&sim, DIR), before);
    db.close().unwrap();

    damage(&sim, &name, Damage::Values);
    let whole = sim.crash(CrashMode::KILL);
    let db = open(&whole, false);
    let from = whole.calls_of(CallClass::Read);
    let account = db.quarantine(&name).unwrap();
    let reads = whole.calls_of(CallClass::Read) - from;
    for at in 1..=reads {
        let run = sim.crash(CrashMode::KILL);
        let db = open(&run, false);
        run.fail_call(CallClass::Read, run.calls_of(CallClass::Read) + at, Repeat::Once, IoKind::Other);
        let again = db.quarantine(&name).or_else(|e| {
            assert!(matches!(e.kind(), ErrorKind::Io(_)), "read {at}: {e}");
            run.heal();
            db.quarantine(&name)
        });
        assert_eq!(again.unwrap().losses, account.losses, "read {at}");
        db.close().unwrap();
        holds(&run, DIR, &model, &account, &format!("read {at}"));
    }
    assert!(reads > 20);
    report::figure(&format!(
        "quarantine of a blob file: each of {reads} reads failed once; none was taken for damage"
    ));
}

#[test]
fn an_emptying_that_crashes_loses_no_more() {
    let (sim, model) = with_a_damaged_blob_file(53);
    let name = blob_files(&sim).remove(0);
    let original = bytes(&sim, &name);
    let work = |run: &SimEnv| -> RepairReport {
        let db = open(run, false);
        let account = db.quarantine(&name).unwrap();
        db.wait_for_background().unwrap();
        db.close().unwrap();
        account
    };
    let whole = sim.crash(CrashMode::KILL);
    let from = whole.calls_of(CallClass::Change);
    let account = work(&whole);
    let changes = whole.calls_of(CallClass::Change) - from;
    let (mut images, mut emptied) = (0, 0);
    for (what, image) in crashed_before_each(&sim, changes, |run| drop(work(run))) {
        assert!(is_kept(&image, &original), "{what}");
        let db = open(&image, false);
        match db.quarantine(&name) {
            Ok(again) => assert_eq!(again.losses, account.losses, "{what}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{what}: {e}");
                emptied += 1;
            }
        }
        settle(&image);
        db.close().unwrap();
        holds(&image, DIR, &model, &account, &what);
        assert!(is_kept(&image, &original) && is_in(&image, &lost(), &name), "{what}: in the end");
        images += 1;
    }
    assert!(images as u64 >= changes && emptied > 0, "{images} {emptied}");
    report::figure(&format!(
        "quarantine of a blob file: crashed before each of {changes} changes, {images} images, {emptied} emptied"
    ));
}

#[test]
fn rocksdb_reads_what_is_left_of_blob_files() {
    let (files, hit) = rocksdb_reads_what_is_left_without(".blob");
    assert!(files >= 2 && hit > 0, "{files} {hit}");
}

//! A MANIFEST whose end is lost: open, check and repair judge alike, and no data is given up in silence.

use crate::integrity::{check, files};
use ashlardb::{CheckReport, Db, Error, ErrorKind, KeySpan, Read as _, RepairReport, Risk, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

fn manifest(dir: &Path) -> PathBuf {
    let named = fs::read_to_string(dir.join("CURRENT")).unwrap();
    dir.join(named.trim())
}

fn length(dir: &Path) -> usize {
    fs::read(manifest(dir)).unwrap().len()
}

/// Cuts the MANIFEST.
fn cut(dir: &Path, len: usize) {
    let path = manifest(dir);
    let bytes = fs::read(&path).unwrap();
    assert!(len < bytes.len());
    fs::write(path, &bytes[..len]).unwrap();
}

/// Ten writes in `default`, ten in a family that was created after them; all in one log. The MANIFEST has lost the record
/// that created the family, but for `torn` bytes.
fn without_the_family(dir: &Path, torn: usize) {
    let db = Db::open(dir).unwrap();
    for at in 0..10 {
        db.put(format!("k{at}"), b"v").unwrap();
    }
    let before = length(dir);
    let family = db.create_family("fam").unwrap();
    for at in 0..10 {
        family.put(format!("f{at}"), b"v").unwrap();
    }
    db.close().unwrap();
    cut(dir, before + torn);
}

fn refused(dir: &Path) -> Error {
    let e = Db::open(dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
    let read_only = Db::open_read_only(dir).err().unwrap();
    assert_eq!(read_only.to_string(), e.to_string());
    e
}

fn keys(db: &Db, family: &str) -> usize {
    db.family(family).unwrap().scan(..).inspect(|entry| assert!(entry.is_ok())).count()
}

/// The one damage, which is that of the MANIFEST.
fn damage(dir: &Path) -> ashlardb::Damage {
    let report = check(dir);
    let [damage] = &report.damages[..] else { panic!("{report}") };
    assert_eq!(Some(&*damage.file), manifest(dir).file_name().unwrap().to_str(), "{report}");
    damage.clone()
}

/// What a repair in place keeps, after a salvage that keeps the same.
fn repaired(dir: &Path, family: &str) -> RepairReport {
    let temp = tempfile::tempdir().unwrap();
    let copy = temp.path().join("copy");
    let salvaged = Db::builder(dir).salvage(&copy, |_| {}).unwrap();
    let repaired = Db::builder(dir).repair(|_| {}).unwrap();
    assert_eq!(salvaged.losses, repaired.losses);
    for dir in [&copy, dir] {
        let db = Db::open(dir).unwrap();
        assert!(db.recovery().is_clean(), "{}", db.recovery());
        assert_eq!((keys(&db, "default"), keys(&db, family)), (10, 10), "{repaired}");
        assert_eq!(db.create_family("next").unwrap().id(), ashlardb::FamilyId(2));
        db.close().unwrap();
        let report = check(dir);
        assert!(report.is_sound() && report.to_string().contains(": sound"), "{report}");
    }
    repaired
}

#[test]
fn writes_of_a_family_that_no_record_creates_are_kept_by_a_repair() {
    for torn in [0, 5] {
        for listed in [true, false] {
            let temp = tempfile::tempdir().unwrap();
            let dir = temp.path();
            without_the_family(dir, torn);
            if !listed {
                files(dir, "").iter().filter(|f| f.to_str().unwrap().contains("OPTIONS-")).for_each(|file| {
                    fs::remove_file(file).unwrap();
                });
            }
            let old = manifest(dir).file_name().unwrap().to_str().unwrap().to_owned();
            let report = repaired(dir, if listed { "fam" } else { "family_1" });
            assert!(report.losses.iter().all(|loss| loss.risk == Risk::Nothing), "{report}");
            assert!(
                report.losses.iter().any(|loss| loss.cause.contains("10 writes of family 1")),
                "{report}"
            );
            assert!(report.moved.contains(&old), "the MANIFEST is kept: {report}");
            assert_eq!((report.is_lossless(), report.rebuilt), (listed, false), "{report}");
            assert!(!report.to_string().contains("nothing was damaged"), "{report}");
        }
    }
}

#[test]
fn a_family_that_no_record_creates_is_damage_to_open_and_check_alike() {
    for torn in [0, 5] {
        let temp = tempfile::tempdir().unwrap();
        without_the_family(temp.path(), torn);
        let e = refused(temp.path());
        assert!(
            e.to_string().contains("the end of the MANIFEST is lost: the WAL has data of family 1"),
            "{e}"
        );
        let damage = damage(temp.path());
        assert!(
            damage.cause.contains("10 writes of family 1") && damage.cause.contains("repair"),
            "{damage}"
        );
        let span = KeySpan::new(b"f0".to_vec(), b"f9".to_vec());
        assert_eq!(damage.risk, Risk::Keys(vec![span]));
    }
}

/// Their ids were given, whether the MANIFEST drops them or began after that.
#[test]
fn writes_of_dropped_families_are_no_damage() {
    let temp = tempfile::tempdir().unwrap();
    let db = Db::open(temp.path()).unwrap();
    for name in ["one", "two"] {
        db.create_family(name).unwrap().put(b"k", b"v").unwrap();
    }
    for name in ["one", "two"] {
        db.drop_family(&db.family(name).unwrap()).unwrap();
    }
    db.put(b"k", b"v").unwrap();
    db.close().unwrap();
    let report = check(temp.path());
    assert!(report.to_string().contains(": sound"), "{report}");
    let copy = temp.path().with_extension("copy");
    let salvaged = Db::builder(temp.path()).salvage(&copy, |_| {}).unwrap();
    assert!(salvaged.is_lossless() && salvaged.losses.is_empty(), "{salvaged}");
    fs::remove_dir_all(copy).unwrap();
    for _ in 0..2 {
        let db = Db::open(temp.path()).unwrap();
        assert!(db.recovery().is_clean() && db.families().len() == 1, "{}", db.recovery());
        db.close().unwrap();
    }
}

/// A write, and its flush, of which the MANIFEST has lost all but five bytes. `log_stays`: as after a crash in the flush.
/// `after`: a write after the flush, in a log that names the one before.
fn without_the_flush(dir: &Path, log_stays: bool, after: bool) {
    let db = Db::open(dir).unwrap();
    db.put(b"k", b"v").unwrap();
    let before = length(dir);
    let logs: Vec<_> = files(dir, ".log").into_iter().map(|log| (fs::read(&log).unwrap(), log)).collect();
    db.flush().unwrap();
    if after {
        db.put(b"l", b"v").unwrap();
    }
    db.close().unwrap();
    cut(dir, before + 5);
    assert!(logs.iter().all(|(_, log)| !log.exists()));
    // RocksDB names no earlier log in a new one.
    for log in files(dir, ".log").iter().filter(|_| !after) {
        fs::write(log, b"").unwrap();
    }
    for (bytes, log) in logs.iter().filter(|_| log_stays) {
        fs::write(log, bytes).unwrap();
    }
}

#[test]
fn a_log_that_the_lost_end_made_obsolete_is_damage_to_open_and_check_alike() {
    let temp = tempfile::tempdir().unwrap();
    without_the_flush(temp.path(), false, true);
    let e = refused(temp.path());
    assert!(e.to_string().contains("is gone, so a later commit had made it obsolete"), "{e}");
    let report: CheckReport = check(temp.path());
    assert!(
        report.damages.iter().any(|d| e.to_string().contains(&d.cause) && d.file.starts_with("MANIFEST-")),
        "{report}{e}"
    );
    Db::builder(temp.path()).repair(|_| {}).unwrap();
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(keys(&db, "default"), 2);
}

#[test]
fn a_check_calls_nothing_sound_of_which_an_open_moves_files_to_lost() {
    for log_stays in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        without_the_flush(temp.path(), log_stays, false);
        let report = check(temp.path());
        assert_eq!(report.is_sound(), log_stays, "a crash is no damage: {report}");
        assert!(report.unknown.len() == 1 && !report.to_string().contains("sound"), "{report}");
        let db = Db::open(temp.path()).unwrap();
        let recovery = db.recovery();
        assert!(!recovery.is_clean() && recovery.lost == report.unknown, "{recovery}{report}");
        assert_eq!(db.get(b"k").unwrap().is_some(), log_stays);
        db.close().unwrap();
        let report = check(temp.path());
        assert!(report.to_string().contains(": sound"), "{report}");
    }
}

/// The MANIFEST of another database stands in the directory, as after a copy that went wrong.
#[test]
fn tables_beside_the_manifest_of_another_database_move_to_lost() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, value) in [(&own, "own"), (&other, "other")] {
        let db = Db::open(dir.path()).unwrap();
        db.put("key", value).unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }
    let files = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    let is_state = |name: &String| name == "CURRENT" || name.starts_with("MANIFEST");
    let tables: Vec<_> = files(own.path()).into_iter().filter(|name| name.ends_with(".sst")).collect();
    for name in files(own.path()).iter().filter(|name| is_state(name)) {
        fs::remove_file(own.path().join(name)).unwrap();
    }
    for name in files(other.path()).iter().filter(|name| is_state(name)) {
        fs::copy(other.path().join(name), own.path().join(name)).unwrap();
    }
    // The MANIFEST names a table of the other database, whose number is that of the own one.
    for table in &tables {
        fs::rename(own.path().join(table), own.path().join("000900.sst")).unwrap();
        fs::copy(other.path().join(table), own.path().join(table)).unwrap();
    }
    let db = Db::open(own.path()).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"other"[..]));
    let report = db.recovery().to_string();
    assert!(
        !db.recovery().is_clean() && report.contains("000900.sst is not named by the MANIFEST"),
        "{report}"
    );
    assert!(own.path().join("lost/000900.sst").exists(), "{report}");
}

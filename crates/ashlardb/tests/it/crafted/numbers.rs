//! Numbers at their end: of files, of logs, of sequences.

use super::judge;
use super::kit::{Directory, TableFile, block, index, put};
use ashlar_base::{FileNumber, SeqNum};
use ashlardb::{Db, ErrorKind};
use std::path::Path;

const END: u64 = (1 << 62) - 1;

fn directory() -> Directory {
    let mut file = TableFile::new();
    let entries: Vec<_> = ["a", "b", "k"].iter().map(|key| (put(key, 3), &b"v"[..])).collect();
    let handle = file.raw(&block(&entries));
    let index = file.raw(&index(&[(put("k", 1), handle)]));
    let bytes = file.finish(index);
    let mut dir = Directory::new();
    dir.table(7, 1, &bytes, (put("a", 3), put("k", 3)), (3, 3));
    dir
}

/// Reads stay possible, a write is refused before anything changes and says why, a check names it, a repair heals it.
fn is_refused_and_healed(dir: &Path, named: &str) {
    let verdict = judge(dir);
    assert_eq!((verdict.of("forward"), verdict.of("backward")), ("3 entries", "3 entries"), "{verdict:#?}");
    for step in ["check", "write"] {
        assert!(verdict.of(step).contains(named) && verdict.of(step).contains("file number"), "{verdict:#?}");
    }
    assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"), "{verdict:#?}");
    assert_eq!(verdict.of("after"), "4 entries");
}

#[test]
fn a_stray_file_number_near_the_end_locks_no_database_out() {
    for name in ["4611686018427387902.log", "4611686018427387901.log", "4611686018427387900.sst"] {
        let dir = directory().finish();
        std::fs::write(dir.path().join(name), b"").unwrap();
        is_refused_and_healed(dir.path(), name);
    }
    for name in ["4611686018427387900.blob", "MANIFEST-4611686018427387900", "OPTIONS-4611686018427387900"] {
        let dir = directory().finish();
        std::fs::write(dir.path().join(name), b"").unwrap();
        let e = Db::open(dir.path()).unwrap_err();
        assert!(e.is_corruption() && e.path().unwrap().ends_with(name), "{e}");
        Db::builder(dir.path()).repair(|_| {}).unwrap();
        assert_eq!(Db::open(dir.path()).unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]), "{name}");
    }
}

#[test]
fn a_next_file_number_at_its_end_is_damage_that_a_repair_heals() {
    for next in [END - 3, END, END + 1, u64::MAX] {
        let mut dir = directory();
        dir.edit.next_file = Some(FileNumber(next));
        is_refused_and_healed(dir.finish().path(), "MANIFEST-000005");
    }
}

#[test]
fn a_log_number_at_its_end_is_damage_that_a_repair_heals() {
    for log in [END - 3, u64::MAX] {
        let mut dir = directory();
        dir.edit.log_number = Some(FileNumber(log));
        is_refused_and_healed(dir.finish().path(), "MANIFEST-000005");
    }
}

#[test]
fn a_last_sequence_at_its_end_is_told_and_a_repair_counts_anew() {
    let mut dir = directory();
    dir.edit.last_seq = Some(SeqNum::MAX);
    let dir = dir.finish();
    let db = Db::open(dir.path()).unwrap();
    let e = db.put(b"new", b"v").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotSupported);
    assert!(format!("{e:?}").contains("repair"), "{e:?}");
    db.close().unwrap();
    let report = ashlardb::check_database(&ashlardb::Env::os().unwrap(), dir.path(), &mut |_| {}).unwrap();
    let last = SeqNum::MAX.to_string();
    assert!(report.is_sound() && report.remarks.iter().any(|remark| remark.contains(&last)), "{report}");
    Db::builder(dir.path()).repair(|_| {}).unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put(b"new", b"v").unwrap();
    assert_eq!(db.scan(..).into_iter().count(), 4);
}

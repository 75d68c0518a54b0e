//! Numbers at their end: of files, of logs, of sequences.

use super::judge;
use super::kit::{Directory, TableFile, block, index, put};
use ashlar_base::{FileNumber, SeqNum};
use ashlardb::{Db, ErrorKind, Read as _, Write as _};
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
    assert_eq!(db.scan(..).count(), 4);
}

/// The settings say seven levels. A tree that is deeper opens with as many levels as it has, and a check agrees.
#[test]
fn a_table_in_any_of_sixty_four_levels_opens_and_a_check_calls_it_sound() {
    for level in [7, 62, 63] {
        let mut dir = directory();
        let entries: Vec<_> = ["p", "q"].iter().map(|key| (put(key, 4), &b"v"[..])).collect();
        let mut file = TableFile::new();
        let handle = file.raw(&block(&entries));
        let index = file.raw(&index(&[(put("q", 1), handle)]));
        let bytes = file.finish(index);
        dir.table(8, level, &bytes, (put("p", 4), put("q", 4)), (4, 4));
        let verdict = judge(dir.finish().path());
        for step in ["forward", "backward"] {
            assert_eq!(verdict.of(step), "5 entries", "level {level}: {verdict:#?}");
        }
        for (step, said) in
            [("check", "sound"), ("write", "fine"), ("repair", "fine"), ("check after", "sound")]
        {
            assert_eq!(verdict.of(step), said, "level {level}: {verdict:#?}");
        }
        assert_eq!(verdict.of("after"), "6 entries", "level {level}: {verdict:#?}");
    }
}

/// RocksDB has no such limit: the directory may be sound, so nothing calls it damaged, and a repair leaves it as it is.
#[test]
fn a_table_below_the_sixty_fourth_level_is_refused_and_a_check_calls_it_unchecked() {
    for level in [64, 254, 255] {
        let mut dir = directory();
        let mut file = TableFile::new();
        let handle = file.raw(&block(&[(put("p", 4), &b"v"[..])]));
        let index = file.raw(&index(&[(put("p", 1), handle)]));
        let bytes = file.finish(index);
        dir.table(8, level, &bytes, (put("p", 4), put("p", 4)), (4, 4));
        let dir = dir.finish();
        let verdict = judge(dir.path());
        for step in ["forward", "backward", "write", "repair", "after"] {
            let said = verdict.of(step);
            assert!(said.starts_with("NotSupported") && said.contains("64 levels at most"), "{verdict:#?}");
            assert!(
                said.contains(&format!("num_levels is at least {}", u32::from(level) + 1)),
                "{verdict:#?}"
            );
        }
        for step in ["check", "check after"] {
            assert!(verdict.of(step).starts_with("unchecked: MANIFEST-000005"), "{verdict:#?}");
        }
        assert!(dir.path().join("000008.sst").exists());
    }
}

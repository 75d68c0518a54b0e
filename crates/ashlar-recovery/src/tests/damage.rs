//! Damaged directories: an error that names the place, or a report; and nothing is changed on disk.

use super::*;
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_tree::places::{PlaceSettings, Purpose, enter};

/// Recovers; asserts that this fails and leaves the directory unchanged.
fn refused(env: &Env) -> Error {
    let before = contents(env);
    let e = recover(env).map(|r| shape(&r.versions)).unwrap_err();
    assert_eq!(contents(env), before, "{e}");
    e
}

fn manifest_path() -> PathBuf {
    dir().join("MANIFEST-000005")
}

#[test]
fn no_database() {
    let env = Env::mem();
    env.fs.create_dir_all(dir()).unwrap();
    assert_eq!(survey(&*env.fs, dir()).unwrap(), DirState::Empty);
    assert_eq!(refused(&env).kind(), ErrorKind::InvalidArgument);
    put(&env, "notes", b"");
    put(&env, "MANIFEST-000001", b"a text of the user's");
    let e = survey(&*env.fs, dir()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("MANIFEST-000001"), "{e}");
    // Remains of a crash during creation: the beginning of a record, or zeros in its place.
    for left in [&b""[..], b"\x12\x34\x56\x78\x20", b"\x12\x34\x56\x78\x20\x00\x01half", &[0; 60]] {
        put(&env, "MANIFEST-000001", left);
        assert_eq!(survey(&*env.fs, dir()).unwrap(), DirState::Empty);
    }
    for data in ["000004.log", "000004.sst", "000004.ldb", "000004.blob"] {
        put(&env, data, b"");
        let e = survey(&*env.fs, dir()).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(data), "{e}");
        assert!(e.to_string().contains("MANIFEST-000001"), "{e}");
        env.fs.remove(&dir().join(data)).unwrap();
    }
    put(&env, "file", b"");
    let e = survey(&*env.fs, &dir().join("file")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn tables_that_are_not_there() {
    let env = golden("rocksdb-7.8.3/manifest_history");
    let path = dir().join("000011.sst");
    let bytes = get(&*env.fs, &path);
    env.fs.remove(&path).unwrap();
    let e = refused(&env);
    assert!(e.is_corruption() && e.to_string().contains("table 000011 is missing"), "{e}");
    assert_eq!(e.path(), Some(&*path));
    put(&env, "000011.sst", &bytes[..1000]);
    // An open that only reads goes on: reads of the table fail.
    recover(&env).unwrap();
    let entered = enter(&env, dir(), &PlaceSettings::default(), Purpose::Write).unwrap();
    let tables = OpenTables::new(FramePool::new(1 << 20));
    let e = recover_in(&entered, dir(), FormatLevel::V9_11, &tables, &every_family()).map(drop).unwrap_err();
    assert!(e.to_string().contains("has 1000 bytes, the MANIFEST says 1068"), "{e}");
    assert_eq!((e.path(), e.offset()), (Some(&*path), Some(1000)));
}

#[test]
fn a_manifest_that_is_not_there() {
    let env = golden("rocksdb-7.8.3/manifest_history");
    env.fs.rename(&manifest_path(), &dir().join("MANIFEST-000004")).unwrap();
    let e = refused(&env);
    assert!(e.is_corruption(), "{e}");
    assert_eq!(e.path(), Some(&*manifest_path()));
    assert!(e.to_string().contains("MANIFEST-000004"), "candidates are listed: {e}");
}

#[test]
fn every_flipped_byte_of_a_manifest_is_seen() {
    for name in ["rocksdb-7.8.3/manifest_history", "rocksdb-7.8.3/column_families"] {
        let env = golden(name);
        let good = get(&*env.fs, &manifest_path());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            put(&env, "MANIFEST-000005", &bad);
            match recover(&env) {
                // A wrong length in the last block looks like the torn end of the file. Then the report has it, or the
                // rest is no complete database.
                Ok(r) => assert!(r.report.tail_dropped(), "{name}: byte {at}: {}", r.report),
                Err(e) => {
                    assert!(e.is_corruption(), "{name}: byte {at}: {e}");
                    assert!(e.path().is_some(), "{name}: byte {at}: {e}");
                }
            }
        }
    }
}

#[test]
fn a_manifest_cut_anywhere_is_a_prefix_or_an_error() {
    let env = golden("rocksdb-7.8.3/manifest_history");
    let good = get(&*env.fs, &manifest_path());
    let mut shapes = Vec::new();
    for len in 0..good.len() {
        put(&env, "MANIFEST-000005", &good[..len]);
        match recover(&env) {
            Ok(r) => {
                let shape = shape(&r.versions).join("; ");
                if shapes.last() != Some(&shape) {
                    shapes.push(shape);
                }
            }
            Err(e) => assert!(e.is_corruption() && shapes.is_empty(), "cut at {len}: {e}"),
        }
    }
    assert_eq!(
        shapes,
        [
            "0 default: log 0",
            "0 default: L0 9 log 8",
            "0 default: L0 11 9 log 10",
            "0 default: L0 13 11 9 log 12",
            "0 default: L1 9 11 13 log 12",
            "0 default: L0 15 L1 9 11 13 log 14",
        ]
    );
}

#[test]
fn edits_that_make_no_sense() {
    let record = |edit: VersionEdit| edit.to_bytes();
    let base = VersionEdit {
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber(2)),
        last_seq: Some(seq(9)),
        ..VersionEdit::default()
    };
    let of = |id| VersionEdit::of(FamilyId(id));
    let add = |id, name: &[u8]| VersionEdit { family_add: Some(name.to_vec()), ..of(id) };
    let in_group = |n| VersionEdit { atomic_group: Some(n), ..VersionEdit::default() };
    let mut elsewhere = flush_edit(FileNumber(1), "k", 5);
    elsewhere.added[0].1.path_id = 3;
    let cases: Vec<(Vec<VersionEdit>, &str)> = vec![
        (vec![], "no log_file_number entry"),
        (vec![VersionEdit { log_number: None, ..base.clone() }], "no log_file_number entry"),
        (vec![VersionEdit { next_file: None, ..base.clone() }], "no next_file_number entry"),
        (vec![VersionEdit { last_seq: None, ..base.clone() }], "no last_sequence entry"),
        (vec![base.clone(), VersionEdit { last_seq: Some(seq(8)), ..of(0) }], "goes back from 9 to 8"),
        (vec![base.clone(), of(3)], "family 3, which does not exist"),
        (vec![base.clone(), add(3, b"x"), add(3, b"y")], "adds family 3 again"),
        (vec![base.clone(), add(3, b"x"), add(4, b"x")], "a second family \"x\""),
        (vec![base.clone(), add(0, b"x")], "adds family 0 again"),
        (vec![base.clone(), add(3, b"a\xff")], "a family name that is not UTF-8: \"a\\xff\""),
        (
            vec![base.clone(), elsewhere],
            "table 000001 is in directory 3 of the family's list (counted from 0), but neither db_paths",
        ),
        (vec![base.clone(), VersionEdit { family_drop: true, ..of(0) }], "drops the default family"),
        (
            vec![base.clone(), VersionEdit { family_drop: true, ..of(4) }],
            "drops family 4, which does not exist",
        ),
        (vec![base.clone(), in_group(1), of(0)], "interrupted by an ordinary version edit"),
        (vec![base.clone(), in_group(2), in_group(0)], "counts down from 2 to 0"),
        (
            vec![base.clone(), VersionEdit { comparator: Some("mine".into()), ..of(0) }],
            "needs the comparator mine",
        ),
    ];
    for (edits, expected) in cases {
        let env = Env::mem();
        env.fs.create_dir_all(dir()).unwrap();
        put(&env, "CURRENT", b"MANIFEST-000005\n");
        write_manifest(&env, &edits.into_iter().map(record).collect::<Vec<_>>());
        let e = refused(&env);
        assert!(e.to_string().contains(expected), "{expected}: {e}");
    }
    // The smallest possible MANIFEST, a record of no bytes, an ignorable tag.
    let env = Env::mem();
    env.fs.create_dir_all(dir()).unwrap();
    put(&env, "CURRENT", b"MANIFEST-000005\n");
    write_manifest(&env, &[vec![2, 0, 3, 2, 4, 0], vec![], vec![0xe7, 0x47, 3, 0x61, 0x62, 0x63]]);
    let r = recover(&env).unwrap();
    let notes = &r.report.foreign;
    assert!(
        notes.iter().any(|line| line.starts_with("MANIFEST tag 9191 is unknown and was skipped")),
        "{notes:?}"
    );
    write_manifest(&env, &[vec![2, 0, 3, 2, 4, 0], vec![0xe7, 0x07, 3, 0x61, 0x62, 0x63]]);
    let e = refused(&env);
    assert_eq!(e.offset(), Some(13), "{e}");
}

#[test]
fn family_numbers_end_at_32_bits() {
    let env = Env::mem();
    env.fs.create_dir_all(dir()).unwrap();
    put(&env, "CURRENT", b"MANIFEST-000005\n");
    let full = VersionEdit {
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber(6)),
        last_seq: Some(seq(9)),
        max_family: Some(FamilyId(u32::MAX)),
        ..VersionEdit::default()
    };
    write_manifest(&env, &[full.to_bytes()]);
    let v = recover(&env).unwrap().versions;
    let e = v.create_family("one too many", Order::Bytewise, 7, FileNumber(4)).map(drop).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::NotSupported, "more than 2^32 families"));
    assert_eq!(list_families(&env, dir()).unwrap(), ["default"]);
}

fn write_manifest(env: &Env, records: &[Vec<u8>]) {
    use ashlar_log::{Framing, LogWriter};
    let fs = std::sync::Arc::clone(&env.fs);
    let log = LogWriter::create(fs, &manifest_path(), FileNumber(5), Framing::Legacy).unwrap();
    for record in records {
        log.append(record, false).unwrap();
    }
}

/// A database whose `CURRENT` names a replaced MANIFEST; returns the number of the newer MANIFEST, and its content.
fn with_an_old_current(env: &Env) -> (FileNumber, Vec<String>) {
    let v = fresh(env).versions;
    flush(env, &v, "a", 5).unwrap();
    let first = v.manifest_number();
    // A newer MANIFEST with only its first commit may come from a crash before the switch.
    v.set_manifest_bound(0);
    let mut numbers = 6..;
    while v.manifest_number() == first {
        flush(env, &v, "a", numbers.next().unwrap()).unwrap();
    }
    let second = v.manifest_number();
    flush(env, &v, "a", numbers.next().unwrap()).unwrap();
    assert_eq!(v.manifest_number(), second);
    put(env, "CURRENT", ashlar_format::filename::current_content(first).as_bytes());
    (second, shape(&v))
}

/// A failed read does not hide the newer MANIFEST.
#[test]
fn a_current_that_was_superseded_is_seen_or_the_open_fails() {
    let sim = SimEnv::new(1);
    let _ = with_an_old_current(&sim.env());
    for at in 1.. {
        let run = sim.crash(CrashMode::KILL);
        run.fail_call(CallClass::Read, at, Repeat::Once, IoKind::Other);
        let e = recover(&run.env()).map(|r| shape(&r.versions)).unwrap_err();
        let hit = run.injected() > 0;
        assert!(e.is_corruption() || hit && matches!(e.kind(), ErrorKind::Io(_)), "read {at}: {e}");
        if !hit {
            break;
        }
    }
}

#[test]
fn a_current_that_was_superseded() {
    let env = Env::mem();
    let (second, both) = with_an_old_current(&env);
    let e = refused(&env);
    assert!(e.is_corruption() && e.to_string().contains("was in use"), "{e}");
    put(&env, "CURRENT", ashlar_format::filename::current_content(second).as_bytes());
    assert_eq!(shape(&recover(&env).unwrap().versions), both);
}

#[test]
fn a_new_manifest_before_the_switch_is_no_damage() {
    let env = golden("rocksdb-7.8.3/manifest_history");
    let current = get(&*env.fs, &dir().join("CURRENT"));
    let r = recover(&env).unwrap();
    let before = shape(&r.versions);
    let number = r.versions.new_file_number();
    table_file(&env, number).unwrap();
    r.versions.commit(vec![flush_edit(number, "zz", 99)]).unwrap();
    put(&env, "CURRENT", &current);
    let r = recover(&env).unwrap();
    assert_eq!(shape(&r.versions), before);
    assert!(r.versions.next_file_number() > number, "numbers of a crashed open are not used again");
}

#[test]
fn identity_disagrees() {
    let env = golden("rocksdb-7.8.3/wal_ops");
    let r = recover(&env).unwrap();
    r.versions.commit(Vec::new()).unwrap();
    ashlar_tree::version::write_identity(&*env.fs, dir(), "another").unwrap();
    let settled = settle_identity(&*env.fs, &r.versions).unwrap();
    assert!(matches!(&settled, Settled::Wrong(what) if what.contains("another")), "{settled:?}");
    assert_eq!(ashlar_tree::version::read_identity(&*env.fs, dir()).unwrap(), r.versions.db_facts().db_id);
}

//! LevelDB's directories: what the first open for writing makes of them, and directories of users that are no database.

use crate::store::{fingerprint, listing};
use ashlar_repair::check_level;
use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion};
use ashlardb::{Db, Env, ErrorKind, FormatLevel, Read as _, Write as _, is_leveldb_directory};
use std::path::Path;

fn at_7_8(dir: &Path) -> Db {
    let builder = Db::builder(dir).format_level(FormatLevel::V7_8);
    builder.tune(|_, family| family.table.format_version = 5).open().unwrap()
}

#[test]
fn tables_of_leveldb_in_level_0_keep_their_order_for_rocksdb_7_8() {
    let golden = golden("leveldb-1.23/level0").unwrap_or_else(|skip| panic!("{skip}"));
    let fs = Env::os().unwrap().fs;
    let report = check_level(&*fs, golden.path()).unwrap();
    let above = report.above(FormatLevel::V7_8);
    assert!(above.iter().any(|found| found.shape.to_string().contains("overlapping sequences")), "{above:?}");

    let db = at_7_8(golden.path());
    let mut expected = golden.family("default").unwrap().visible.clone();
    assert_eq!(listing(db.scan(..)), expected);
    db.put("zz", "1").unwrap();
    expected.push((b"zz".to_vec(), b"1".to_vec()));
    db.close().unwrap();
    let report = check_level(&*fs, golden.path()).unwrap();
    assert!(report.above(FormatLevel::V7_8).is_empty(), "{report:?}");
    let judged = || {
        let mut judge = Judge::spawn(JudgeVersion::V7)?;
        judge.open(golden.path(), Opening::Existing, "disable_auto_compactions=true")?;
        assert_eq!(judge.dump("default")?, expected);
        judge.close()
    };
    match judged() {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("tables_of_leveldb_in_level_0_keep_their_order_for_rocksdb_7_8");
        }
        outcome => outcome.unwrap(),
    }
}

#[test]
fn the_way_from_leveldb_is_told_to_be_one_way() {
    let env = Env::os().unwrap();
    for name in ["leveldb-1.23/level0", "leveldb-1.23/plain"] {
        let golden = golden(name).unwrap();
        assert!(is_leveldb_directory(&env, golden.path()).unwrap(), "{name}");
        for (read_only, told) in [(true, true), (false, true), (false, false)] {
            let db = Db::builder(golden.path()).read_only(read_only).open().unwrap();
            let report = db.recovery().to_string();
            assert_eq!(report.contains("LevelDB no longer opens it"), told, "{report}");
            db.close().unwrap();
            assert_eq!(is_leveldb_directory(&env, golden.path()).unwrap(), read_only, "{name}");
        }
    }
    let rocksdb = golden("rocksdb-7.8.3/atomic_flush").unwrap();
    assert!(!is_leveldb_directory(&env, rocksdb.path()).unwrap());
    let empty = tempfile::tempdir().unwrap();
    assert!(!is_leveldb_directory(&env, empty.path()).unwrap());
}

#[test]
fn a_creation_leaves_the_files_of_a_user_alone() {
    // A name that a database's files have, and that no interrupted creation leaves: the creation is refused.
    for name in ["000009.dbtmp", "MANIFEST-000007", "MANIFEST-000001"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), "notes of a user\n").unwrap();
        let before = fingerprint(dir.path());
        let e = Db::open(dir.path()).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(name), "{e}");
        assert!(fingerprint(dir.path()) == before, "{name}: something was changed");
    }
    // Names that only look like them, in a new database and later.
    let dir = tempfile::tempdir().unwrap();
    let names = ["MANIFEST-1", "9.dbtmp", "7.sst.bak", "letters.txt"];
    for name in names {
        std::fs::write(dir.path().join(name), "notes of a user\n").unwrap();
    }
    for _ in 0..2 {
        let db = Db::open(dir.path()).unwrap();
        db.put("k", "v").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        for name in names {
            assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), b"notes of a user\n", "{name}");
        }
    }
}

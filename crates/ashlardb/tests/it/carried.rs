//! Directories that hold what we do not carry along: opened for reading only, with the reason.

use crate::store::{fingerprint, listing};
use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Op};
use ashlardb::{Db, Env, ErrorKind, Read as _, Write as _, WriteBatch, check_database};
use std::path::{Path, PathBuf};

/// Opens a copy of the golden directory with default settings. The open must be read-only and name `reason`, and the
/// directory must stay as it is.
fn read_only_for(name: &str, reason: &str, look: impl FnOnce(&Db)) {
    let golden = golden(name).unwrap_or_else(|skip| panic!("{skip}"));
    let before = fingerprint(golden.path());
    let db = Db::open(golden.path()).unwrap();
    assert!(matches!(&db.recovery().read_only[..], [only] if only.contains(reason)), "{}", db.recovery());
    assert!(db.recovery().to_string().contains("read-only: "));
    let batch = WriteBatch::new();
    batch.delete("k").unwrap();
    let refusals = [
        db.put("k", "v"),
        db.write(&batch),
        db.delete_range("a", "b"),
        db.flush(),
        db.compact(),
        db.sync(),
        db.create_family("new").map(drop),
    ];
    for refusal in refusals {
        let e = refusal.unwrap_err();
        assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains(reason), "{e}");
    }
    look(&db);
    assert!(Db::open(golden.path()).is_err(), "an ordinary open holds the LOCK, whatever it may write");
    db.close().unwrap();
    assert!(fingerprint(golden.path()) == before, "{name}: something was changed");
}

#[test]
fn a_prepared_transaction_is_taken_over() {
    let golden = golden("rocksdb-7.8.3/txn_2pc").unwrap_or_else(|skip| panic!("{skip}"));
    let db = Db::open(golden.path()).unwrap();
    assert!(db.recovery().read_only.is_empty(), "{}", db.recovery());
    assert!(
        matches!(&db.recovery().undecided[..], [only] if only.to_string().contains("transaction 'tx-pending'")),
        "{}",
        db.recovery()
    );
    let keys = |db: &Db| listing(db.scan(..)).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(&db), [&b"k-tx-commit"[..], b"no-2pc", b"plain"]);
    assert_eq!(db.sequence().get(), 3);
    let pending = db.transaction_by_name("tx-pending").unwrap().unwrap();
    assert!(db.begin().unwrap().get_for_update("k-tx-pending").is_err(), "it is locked");
    pending.commit().unwrap();
    assert_eq!(keys(&db), [&b"k-tx-commit"[..], b"k-tx-pending", b"no-2pc", b"plain"]);
    db.close().unwrap();
    let db = Db::open(golden.path()).unwrap();
    assert!(db.recovery().undecided.is_empty(), "{}", db.recovery());
    assert_eq!((keys(&db).len(), db.sequence().get()), (4, 4));
}

/// RocksDB opens again and closes: the families' logs begin behind the one that prepares, and no record says that it is kept.
#[test]
fn a_prepared_transaction_is_found_behind_another_open_of_rocksdb() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let judged = || {
        for (opening, bulk) in [
            (Opening::Create, "bulk prepared default 5 3 20 3"),
            (Opening::Existing, "bulk put default 50 3 20 3"),
        ] {
            let mut judge = Judge::spawn(JudgeVersion::V11)?;
            for line in ["without", "with db ", "with family default ", "with transactions"] {
                judge.prepare(line)?;
            }
            judge.open(&dir, opening, "")?;
            judge.bulk(&bulk.parse().unwrap())?;
            if opening == Opening::Create { judge.kill() } else { judge.close()? }
        }
        Ok(())
    };
    match judged() {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("a_prepared_transaction_is_found_behind_another_open_of_rocksdb");
        }
        outcome => {
            outcome.unwrap();
            let db = Db::open(&dir).unwrap();
            let undecided = &db.recovery().undecided;
            assert!(
                matches!(&undecided[..], [only] if only.to_string().contains("'prepared-3'")),
                "{undecided:?}"
            );
            assert_eq!(listing(db.scan(..)).len(), 3);
            db.flush().unwrap();
            db.close().unwrap();
            let db = Db::open(&dir).unwrap();
            db.transaction_by_name("prepared-3").unwrap().unwrap().commit().unwrap();
            assert_eq!(listing(db.scan(..)).len(), 6);
            db.close().unwrap();
        }
    }
}

/// RocksDB 11.8.1 with a MANIFEST that names no comparator; `put` and `get` of the family `default`.
fn without_comparator_in_the_manifest(dir: &Path, comparator: &str) -> Result<Vec<KeyValue>, JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let family = format!("with family default comparator={comparator}");
    for line in ["without", "with db create_if_missing=true;reuse_manifest_on_open=true", &family] {
        judge.prepare(line)?;
    }
    judge.open(dir, if dir.exists() { Opening::Existing } else { Opening::Create }, "")?;
    judge.bulk(&"bulk put default 0 100 20 1".parse().unwrap())?;
    judge.apply(&[Op::Flush { family: "default".to_owned() }])?;
    let entries = judge.dump("default")?;
    judge.close()?;
    Ok(entries)
}

#[test]
fn a_comparator_that_the_manifest_does_not_name_is_that_of_options_or_tables() {
    for (comparator, served) in
        [("rocksdb.ReverseBytewiseComparator", true), ("leveldb.BytewiseComparator.u64ts", false)]
    {
        for with_options in [true, false] {
            let home = tempfile::tempdir().unwrap();
            let dir = home.path().join("db");
            let entries = match without_comparator_in_the_manifest(&dir, comparator) {
                Err(JudgeError::Skip(skip)) => {
                    return skip.announce(
                        "a_comparator_that_the_manifest_does_not_name_is_that_of_options_or_tables",
                    );
                }
                outcome => outcome.unwrap(),
            };
            for path in options_files(&dir).filter(|_| !with_options) {
                std::fs::remove_file(path).unwrap();
            }
            let checked = check_database(&Env::os().unwrap(), &dir, &mut |_| ()).unwrap();
            assert!(checked.is_sound(), "{comparator}, {with_options}: {checked}");
            let db = Db::open(&dir).unwrap();
            assert_eq!(db.recovery().read_only.is_empty(), served, "{}", db.recovery());
            if !served {
                assert!(db.recovery().read_only[0].contains(comparator), "{}", db.recovery());
                continue;
            }
            assert_eq!(listing(db.scan(..)), entries);
            db.put("zzz", "first").unwrap();
            db.close().unwrap();
            let found = without_comparator_in_the_manifest(&dir, comparator).unwrap();
            assert_eq!((found.len(), &*found[0].0), (entries.len() + 1, &b"zzz"[..]));
        }
    }
}

/// RocksDB 11.8.1 with these settings of the database and of the family `default`; the entries of `default`.
fn with_tables_behind(dir: &Path, db: &str, family: &str) -> Result<Vec<KeyValue>, JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    judge.prepare(&format!("with db create_if_missing=true;{db}"))?;
    judge.prepare(&format!("with family default {family}"))?;
    judge.open(dir, if dir.exists() { Opening::Existing } else { Opening::Create }, "")?;
    if !dir.join("made").exists() {
        judge.bulk(&"bulk put default 0 100 20 1".parse().unwrap())?;
        judge.apply(&[Op::Flush { family: "default".to_owned() }])?;
        std::fs::write(dir.join("made"), "").unwrap();
    }
    let entries = judge.dump("default")?;
    judge.close()?;
    Ok(entries)
}

/// A tree whose tables all stay in level 0 keeps no level for them here.
#[test]
fn a_tree_without_a_level_for_tables_behind_all_data_makes_the_open_read_only() {
    let (settings, family) = ("allow_ingest_behind=true", "compaction_style=kCompactionStyleFIFO");
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let entries = match with_tables_behind(&dir, settings, family) {
        Err(JudgeError::Skip(skip)) => return skip.announce("tables behind all data"),
        // A release that refuses the pair leaves no such directory.
        Err(JudgeError::Refused(_)) => return,
        outcome => outcome.unwrap(),
    };
    let before = fingerprint(&dir);
    let db = Db::open(&dir).unwrap();
    let why = db.recovery().read_only.clone();
    assert!(matches!(&why[..], [only] if only.contains(settings)), "{}", db.recovery());
    let e = db.put("k", "v").unwrap_err();
    assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains(settings), "{e}");
    assert_eq!(listing(db.scan(..)), entries);
    db.close().unwrap();
    assert!(fingerprint(&dir) == before, "something was changed");
    assert_eq!(with_tables_behind(&dir, settings, family).unwrap(), entries);
}

#[test]
fn a_family_with_timestamps_is_named() {
    read_only_for("rocksdb-7.8.3/udt", "user-defined timestamps", |db| {
        let e = db.get("a").unwrap_err();
        assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("timestamps"), "{e}");
        assert!(db.scan(..).cursor().is_err());
    });
}

/// The rows that `make_golden.py` wrote to the family `default`.
fn rows(count: usize) -> Vec<KeyValue> {
    (0..count).map(|i| (format!("key{i:06}").into_bytes(), format!("value{i}").into_bytes())).collect()
}

#[test]
fn tables_of_another_kind_make_the_open_read_only() {
    for (name, reason) in [("plain_table", "table_factory=PlainTable"), ("cuckoo_table", "CuckooTable")] {
        read_only_for(&format!("rocksdb-11.8.1/{name}"), reason, |db| {
            let e = db.get("key000003").unwrap_err();
            assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("Table files"), "{e}");
            assert!(db.scan(..).cursor().and_then(|mut cursor| cursor.next().map(drop)).is_err());
        });
    }
}

#[test]
fn tables_of_another_kind_are_recognised_without_an_options_file() {
    let golden = golden("rocksdb-11.8.1/plain_table").unwrap();
    std::fs::remove_file(golden.path().join("OPTIONS-000007")).unwrap();
    let before = fingerprint(golden.path());
    let db = Db::open(golden.path()).unwrap();
    let report = db.recovery().to_string();
    assert!(report.contains("PlainTable") && report.contains("000009"), "{report}");
    assert_eq!(db.put("k", "v").unwrap_err().kind(), ErrorKind::NotSupported);
    db.close().unwrap();
    assert!(fingerprint(golden.path()) == before, "something was changed");
}

#[test]
fn a_user_defined_index_as_the_primary_one_makes_the_open_read_only() {
    read_only_for("rocksdb-11.8.1/trie_primary", "use_udi_as_primary_index=true", |db| {
        assert_eq!(listing(db.scan(..)), rows(25));
    });
}

fn options_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-"))
}

#[test]
fn a_user_defined_index_that_every_table_must_have_makes_the_open_read_only() {
    let golden = golden("rocksdb-11.8.1/trie_primary").unwrap();
    for path in options_files(golden.path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("use_udi_as_primary_index=true", "use_udi_as_primary_index=false");
        let demanding = text.replace("fail_if_no_udi_on_open=false", "fail_if_no_udi_on_open=true");
        assert_ne!(text, demanding);
        std::fs::write(&path, demanding).unwrap();
    }
    let db = Db::open(golden.path()).unwrap();
    let reasons = &db.recovery().read_only;
    assert!(matches!(&reasons[..], [only] if only.contains("fail_if_no_udi_on_open=true")), "{reasons:?}");
}

#[test]
fn values_with_a_time_behind_them_make_the_open_read_only() {
    for (name, keys) in [("rocksdb-11.8.1/ttl", 25), ("rocksdb-7.8.3/ttl", 2)] {
        read_only_for(name, "TtlCompactionFilterFactory", |db| {
            let found = listing(db.scan(..));
            assert_eq!(found.len(), keys);
            if keys == 25 {
                for ((key, value), (same, plain)) in found.iter().zip(rows(keys)) {
                    assert_eq!(
                        (key, &value[..value.len() - 4]),
                        (&same, &plain[..]),
                        "4 bytes of time follow"
                    );
                }
            }
        });
    }
}

#[test]
fn a_family_with_stripped_timestamps_leaves_the_others_readable() {
    let name = "rocksdb-11.8.1/udt_stripped";
    read_only_for(name, "family \"ts\" has user-defined timestamps", |db| {
        assert_eq!(listing(db.scan(..)), rows(8));
        assert_eq!(db.family("ts").unwrap().get("key000001").unwrap_err().kind(), ErrorKind::NotSupported);
    });
    let golden = golden(name).unwrap();
    let db = Db::open_read_only(golden.path()).unwrap();
    assert_eq!(listing(db.scan(..)), rows(8));
    let check = check_database(&Env::os().unwrap(), golden.path(), &mut |_| {}).unwrap();
    assert!(check.is_sound() && check.tables == 2, "{check}");
}

#[test]
fn a_check_calls_what_it_cannot_read_unchecked_and_not_damaged() {
    for name in ["plain_table", "cuckoo_table"] {
        let golden = golden(&format!("rocksdb-11.8.1/{name}")).unwrap();
        let check = check_database(&Env::os().unwrap(), golden.path(), &mut |_| {}).unwrap();
        assert!(check.is_sound(), "{check}");
        assert!(matches!(&check.unchecked[..], [one] if one.starts_with("000009.sst: ")), "{check}");
        assert!(check.to_string().contains("not checked: 000009.sst: "), "{check}");
    }
}

#[test]
fn a_repair_refuses_what_an_open_does_not_write_to() {
    for name in ["plain_table", "cuckoo_table", "trie_primary", "ttl"] {
        let golden = golden(&format!("rocksdb-11.8.1/{name}")).unwrap();
        let before = fingerprint(golden.path());
        let e = Db::builder(golden.path()).repair(|_| {}).unwrap_err();
        assert!(e.kind() == ErrorKind::NotSupported, "{name}: {e}");
        assert!(fingerprint(golden.path()) == before, "{name}: something was changed");
    }
    // The tables alone say it too, with a MANIFEST and without.
    for also_gone in [None, Some("MANIFEST-000005")] {
        for name in ["plain_table", "cuckoo_table", "trie_primary"] {
            let golden = golden(&format!("rocksdb-11.8.1/{name}")).unwrap();
            for file in Some("OPTIONS-000007").into_iter().chain(also_gone) {
                std::fs::remove_file(golden.path().join(file)).unwrap();
            }
            let before = fingerprint(golden.path());
            let e = Db::builder(golden.path()).repair(|_| {}).unwrap_err();
            assert!(e.kind() == ErrorKind::NotSupported, "{name}: {e}");
            assert!(fingerprint(golden.path()) == before, "{name}: something was changed");
        }
    }
}

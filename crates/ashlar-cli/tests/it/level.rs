//! `ashlar db level` and `ashlar db rewrite`, with RocksDB 7.8's tool as the judge.

use super::{ashlar, good};
use ashlar_testkit::Tools;
use std::path::Path;

fn lines(from: u32, to: u32) -> String {
    (from..to).map(|i| format!("key{i:05}\tvalue {i}\n")).collect()
}

/// A database as 9.11 writes it, two families, tables on more than one level and a log with entries.
fn database(dir: &Path) -> String {
    let db = format!("--db={}", dir.join("db").display());
    good(&["db", &db, "load", "--tsv", "--create_if_missing", "--compact"], lines(0, 3000).as_bytes());
    good(&["db", &db, "load", "--tsv", "--disable_wal"], lines(1000, 1500).as_bytes());
    good(&["db", &db, "create_family", "other"], b"");
    let other = "--column_family=other";
    good(&["db", &db, "load", "--tsv", "--disable_wal", other], lines(7, 70).as_bytes());
    good(&["db", &db, "delete", "key00017"], b"");
    good(&["db", &db, "put", "last", "in the log"], b"");
    db
}

fn hex(db: &str, family: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |text: &str| -> Vec<u8> {
        let digits = text.strip_prefix("0x").unwrap();
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
    };
    let shown = good(&["db", db, "scan", "--hex", &format!("--column_family={family}")], b"");
    shown.lines().map(|l| l.split_once(" ==> ").unwrap()).map(|(k, v)| (bytes(k), bytes(v))).collect()
}

#[test]
fn what_9_11_wrote_is_brought_down_to_7_8() {
    let dir = tempfile::tempdir().unwrap();
    let db = database(dir.path());
    let own = good(&["db", &db, "level"], b"");
    assert!(own.contains(".sst: table format 6, needs rocksdb-9.11 or newer\n"), "{own}");
    assert!(
        own.lines().last().unwrap().starts_with("rocksdb-9.11: ") && own.ends_with("; nothing above\n"),
        "{own}"
    );
    let above = ashlar(&["db", &db, "level", "--level=rocksdb-7.8"], b"");
    assert_eq!(above.status, 1, "{above:?}");
    assert!(above.out.contains(".sst: table format 6, needs rocksdb-9.11 or newer: ABOVE\n"), "{above:?}");
    assert!(
        above.err.starts_with("rocksdb-7.8 does not read ")
            && above.err.ends_with("; RocksDB of rocksdb-9.11 reads everything\n"),
        "{above:?}"
    );

    let before = (hex(&db, "default"), hex(&db, "other"));
    assert_eq!((before.0.len(), before.1.len()), (3000, 63));
    let said = good(&["db", &db, "rewrite", "--level=rocksdb-7.8"], b"");
    assert!(
        said.starts_with("rocksdb-7.8: 2 tables, 1 WAL file, ") && said.ends_with("; nothing above\n"),
        "{said}"
    );
    good(&["db", &db, "level", "--level=6.29"], b"");
    match Tools::available() {
        Err(skip) => skip.announce("what_9_11_wrote_is_brought_down_to_7_8"),
        Ok(tools) => {
            let path = dir.path().join("db");
            tools.check_consistency(&path).unwrap();
            assert_eq!(tools.check_tables(&path), Ok(2));
            assert_eq!(tools.families(&path).unwrap(), ["default", "other"]);
            assert!(tools.scan(&path, "default").unwrap() == before.0);
            assert!(tools.scan(&path, "other").unwrap() == before.1);
        }
    }
    // Looking at it opened nothing: only now is it opened, at the default level, and reads the same.
    assert!((hex(&db, "default"), hex(&db, "other")) == before);
}

#[test]
fn up_and_down_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = database(dir.path());
    let before = hex(&db, "default");
    let said = good(&["db", &db, "rewrite", "--level=rocksdb-11"], b"");
    assert_eq!(said.matches("table format 7, needs rocksdb-11 or newer\n").count(), 2, "{said}");
    assert_eq!(ashlar(&["db", &db, "level", "--level=9.11"], b"").status, 1);
    let said = good(&["db", &db, "rewrite", "--level=rocksdb-9.11"], b"");
    assert_eq!(said.matches("table format 6, needs").count(), 2, "{said}");
    assert!(hex(&db, "default") == before);
}

#[test]
fn leveldb_s_tables_become_rocksdb_s() {
    let golden =
        ashlar_testkit::golden::golden("leveldb-1.23/snappy").unwrap_or_else(|skip| panic!("{skip}"));
    let db = format!("--db={}", golden.path().display());
    let old = ashlar(&["db", &db, "level", "--level=rocksdb-11"], b"");
    assert!(
        old.status == 1 && old.out.contains("LevelDB table, needs rocksdb-9.11 or older: ABOVE\n"),
        "{old:?}"
    );
    let before = hex(&db, "default");
    let ran = ashlar(&["db", &db, "rewrite", "--level=rocksdb-11"], b"");
    assert!(ran.status == 0 && ran.err.contains("LevelDB no longer opens it"), "{ran:?}");
    good(&["db", &db, "rewrite", "--level=rocksdb-11"], b"");
    assert!(hex(&db, "default") == before && !before.is_empty());
}

#[test]
fn damage_and_absence_prove_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("--db={}", dir.path().display());
    for command in ["level", "rewrite"] {
        let ran = ashlar(&["db", &missing, command], b"");
        assert!(ran.status == 1 && ran.err.contains("there is no database"), "{ran:?}");
    }
    let db = database(dir.path());
    let folder = dir.path().join("db");
    let table = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let table = table.filter(|p| p.extension().is_some_and(|e| e == "sst")).min().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let ran = ashlar(&["db", &db, "level"], b"");
    assert!(
        ran.status == 1 && ran.err.contains("checksum mismatch") && ran.err.contains(".sst at offset 0"),
        "{ran:?}"
    );
}

//! `ashlar db DIR transactions`, `commit_transaction` and `rollback_transaction`.

use super::{Ran, ashlar, good};
use ashlardb::prelude::*;
use std::path::Path;

/// Prepares transactions in a new database, and leaves it open in the returned handle.
fn prepared(dir: &Path) -> Db {
    let db = Db::open(dir).unwrap();
    let accounts = db.create_family("accounts").unwrap();
    db.put("plain", "1").unwrap();
    for (name, keys) in [(&b"transfer 17"[..], 2), (b"odd\n\xff", 1)] {
        let t = db.begin_with(TransactionOptions::new().write_options(WriteOptions::synced())).unwrap();
        t.set_name(name).unwrap();
        for n in 0..keys {
            t.put(format!("{keys}/{n}"), "v").unwrap();
        }
        t.family(&accounts).put(format!("{keys}"), "a").unwrap();
        t.family(&accounts).put(format!("{keys}"), "b").unwrap();
        t.prepare().unwrap();
    }
    db
}

fn home() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db").display().to_string();
    (dir, db)
}

/// The lines of the list, without the number of the WAL file.
fn listed(db: &str, more: &[&str]) -> Vec<String> {
    let said = good(&[&["db", db, "transactions"], more].concat(), b"");
    let cut = |line: &str| line.split(", WAL file ").next().unwrap().to_owned();
    said.lines().map(cut).collect()
}

#[test]
fn prepared_transactions_are_listed_beside_the_program_that_has_them() {
    let (_home, dir) = home();
    let db = prepared(Path::new(&dir));
    let head = format!("Prepared transactions in {dir}: 2");
    let (odd, transfer) = ("2 keys, 19 bytes, families {default, accounts}", "3 keys, 26 bytes");
    let want = [
        &head[..],
        &format!("'odd\\n\\xff': {odd}"),
        &format!("'transfer 17': {transfer}, families {{default, accounts}}"),
    ];
    assert_eq!(listed(&dir, &[]), want);
    let e = ashlar(&["db", &dir, "commit_transaction", "transfer 17"], b"");
    assert!(e.status == 1 && e.err.contains("open"), "the program has the LOCK: {e:?}");
    db.close().unwrap();
    assert_eq!(listed(&dir, &[]), want, "nothing was changed");
    let (level, said) = (good(&["db", &dir, "transactions"], b""), good(&["db", &dir, "info"], b""));
    assert!(
        level.contains(", WAL file 0000") && said.contains("undecided: transaction 'transfer 17'"),
        "{level}{said}"
    );
    let hex = listed(&dir, &["--hex"]);
    assert!(hex[1].starts_with("0x6F64640AFF: 2 keys"), "{hex:?}");
}

#[test]
fn a_decision_by_name_is_durable_and_made_once() {
    let (_home, dir) = home();
    prepared(Path::new(&dir)).close().unwrap();
    assert_eq!(good(&["db", &dir, "commit_transaction", "transfer 17"], b""), "OK\n");
    assert_eq!(good(&["db", &dir, "scan"], b""), "2/0 ==> v\n2/1 ==> v\nplain ==> 1\n");
    assert_eq!(good(&["db", &dir, "scan", "--column_family=accounts"], b""), "2 ==> b\n");
    let again = ashlar(&["db", &dir, "commit_transaction", "transfer 17"], b"");
    let err = "no prepared transaction has the name 'transfer 17'; there are: 'odd\\n\\xff'\n".to_owned();
    assert_eq!(again, Ran { status: 1, out: String::new(), err });
    assert_eq!(good(&["db", &dir, "--hex", "rollback_transaction", "0x6F64640AFF"], b""), "OK\n");
    assert_eq!(listed(&dir, &[]), [format!("Prepared transactions in {dir}: 0")]);
    let none = ashlar(&["db", &dir, "rollback_transaction", "x"], b"");
    assert_eq!(none.err, "no prepared transaction has the name 'x'; no transaction is prepared\n");
    assert_eq!(good(&["db", &dir, "scan", "--no_value"], b""), "2/0\n2/1\nplain\n");
}

#[test]
fn a_dropped_family_is_named_by_its_id() {
    let (_home, dir) = home();
    let db = prepared(Path::new(&dir));
    db.drop_family(&db.family("accounts").unwrap()).unwrap();
    db.close().unwrap();
    assert!(listed(&dir, &[])[2].contains("families {default, (dropped, id 1)}"), "{:?}", listed(&dir, &[]));
    assert_eq!(good(&["db", &dir, "commit_transaction", "transfer 17"], b""), "OK\n");
    assert_eq!(good(&["db", &dir, "scan", "--no_value"], b""), "2/0\n2/1\nplain\n");
}

#[test]
fn wrong_words_are_refused() {
    let (_home, dir) = home();
    prepared(Path::new(&dir)).close().unwrap();
    for (words, status, part) in [
        (&["commit_transaction"][..], 2, "<NAME>"),
        (&["transactions", "--key_hex"], 2, "--hex has no effect"),
        (&["transactions", "--column_family=accounts"], 2, "--column_family has no effect"),
        (&["--hex", "commit_transaction", "transfer 17"], 2, "Invalid hex input"),
        (&["--create_if_missing", "rollback_transaction", "x"], 2, "--create_if_missing has no effect"),
    ] {
        let ran = ashlar(&[&["db", dir.as_str()], words].concat(), b"");
        assert!(ran.status == status && ran.err.contains(part), "{words:?}: {ran:?}");
    }
    let nowhere = ashlar(&["db", &format!("{dir}/none"), "transactions"], b"");
    assert_eq!(nowhere.status, 1, "{nowhere:?}");
    assert_eq!(listed(&dir, &[]).len(), 3, "a wrong command line decides nothing");
}

//! Directories that hold what we do not carry along: opened for reading only, with the reason.

use crate::store::{fingerprint, listing};
use ashlar_testkit::golden::golden;
use ashlardb::{Db, ErrorKind, WriteBatch};

/// Opens the golden directory as anybody would; it must be read-only for `reason`, and stay as it is.
fn read_only_for(name: &str, reason: &str, look: impl FnOnce(&Db)) {
    let golden = golden(&format!("rocksdb-7.8.3/{name}")).unwrap_or_else(|skip| panic!("{skip}"));
    let before = fingerprint(golden.path());
    let db = Db::open(golden.path()).unwrap();
    assert!(matches!(&db.recovery().read_only[..], [only] if only.contains(reason)), "{}", db.recovery());
    assert!(db.recovery().to_string().contains("read-only: "));
    let refusals = [
        db.put("k", "v"),
        db.write(WriteBatch::new().delete("k")),
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
fn a_prepared_transaction_is_kept() {
    read_only_for("txn_2pc", "transaction 'tx-pending'", |db| {
        let found: Vec<_> = listing(db.scan(..)).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, [&b"k-tx-commit"[..], b"no-2pc", b"plain"]);
        assert_eq!(db.sequence().get(), 3);
    });
}

#[test]
fn a_family_with_timestamps_is_named() {
    read_only_for("udt", "user-defined timestamps", |db| {
        let e = db.get("a").unwrap_err();
        assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("timestamps"), "{e}");
        assert!(db.scan(..).cursor().is_err());
    });
}

//! Repair takes from the OPTIONS file what no other file tells: merge operators, and families that only logs write to.

use crate::integrity::files;
use crate::repair::forget_tree;
use ashlardb::{CompactRangeOptions, Db, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ADDS: &str = "merge_operator=uint64add";

/// A counter: two operands that a flush folded into one, one in the log, which has the others too.
fn counters(dir: &Path) {
    let db = Db::builder(dir).family("sums", |f| f.options(ADDS)).open().unwrap();
    let sums = db.family("sums").unwrap();
    // Keeps the log.
    db.put(b"in the log", b"").unwrap();
    for add in [1_u64, 4] {
        sums.merge(b"k", add.to_le_bytes()).unwrap();
    }
    for family in &db.families()[1..] {
        family.flush().unwrap();
    }
    sums.merge(b"k", 7_u64.to_le_bytes()).unwrap();
    db.close().unwrap();
}

#[test]
fn merge_operators_come_from_the_options_file() {
    for tree in [true, false] {
        let temp = tempfile::tempdir().unwrap();
        counters(temp.path());
        if !tree {
            forget_tree(temp.path());
        }
        let other = Db::builder(temp.path()).family("sums", |f| f.options("merge_operator=max"));
        let e = other.repair(|_| {}).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("merge operator"), "{e}");
        let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
        assert!(account.losses.is_empty(), "{account}");
        let db = Db::open(temp.path()).unwrap();
        let sum = db.family("sums").unwrap().get(b"k").unwrap();
        assert_eq!(sum.as_deref(), Some(&12_u64.to_le_bytes()[..]), "a tree: {tree}");
    }
}

/// A compaction sets the sequence of the folded operand to 0. Then nothing tells whether the table holds those of the log.
#[test]
fn operands_that_may_count_twice_are_named() {
    for compacted in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        counters(temp.path());
        let db = Db::open(temp.path()).unwrap();
        let sums = db.family("sums").unwrap();
        sums.flush().unwrap();
        // Keeps the log.
        db.put(b"in the log", b"").unwrap();
        for (key, add) in [(b"k", 1_u64), (b"m", 2)] {
            sums.merge(key, add.to_le_bytes()).unwrap();
        }
        sums.flush().unwrap();
        if compacted {
            sums.compact_range(.., CompactRangeOptions::default()).unwrap();
        }
        // After the compaction: no table holds it.
        sums.merge(b"z", 3_u64.to_le_bytes()).unwrap();
        db.close().unwrap();
        forget_tree(temp.path());
        let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
        let named = "family \"sums\": merge operands may count twice, 2 in WAL files, of keys 'k' to 'm'";
        assert_eq!(account.to_string().contains(named), compacted, "{account}");
        let db = Db::open(temp.path()).unwrap();
        let sums = db.family("sums").unwrap();
        let sum = |key: &[u8]| u64::from_le_bytes(sums.get(key).unwrap().unwrap()[..].try_into().unwrap());
        assert_eq!(sum(b"z"), 3);
        // Nothing is lost, and without a doubt nothing counts twice.
        assert!(sum(b"k") >= 13 && sum(b"m") >= 2, "{account}");
        assert!(compacted || (sum(b"k"), sum(b"m")) == (13, 2), "{account}");
    }
}

#[test]
fn families_that_only_logs_write_to_keep_their_names() {
    let temp = tempfile::tempdir().unwrap();
    let reverse = "comparator=rocksdb.ReverseBytewiseComparator";
    let db =
        Db::builder(temp.path()).family("one", |f| f).family("two", |f| f.options(reverse)).open().unwrap();
    db.family("one").unwrap().put(b"k", b"in a table").unwrap();
    db.flush().unwrap();
    for key in [b"a", b"b"] {
        db.family("two").unwrap().put(key, b"in the log").unwrap();
    }
    db.close().unwrap();
    forget_tree(temp.path());
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    let told =
        |account: &ashlardb::RepairReport, what: &str| account.remarks.iter().any(|r| r.contains(what));
    assert!(
        account.losses.is_empty() && told(&account, "family 2 of the WAL files: it gets the name \"two\""),
        "{account}"
    );
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(db.family("one").unwrap().get(b"k").unwrap().as_deref(), Some(&b"in a table"[..]));
    let two: Vec<_> = db.family("two").unwrap().scan(..).map(|e| e.unwrap().0.to_vec()).collect();
    assert_eq!(two, [b"b", b"a"], "in its own order");
    db.close().unwrap();
}

/// Where the OPTIONS file lists more families than logs have, which is which is not guessed.
#[test]
fn a_family_that_nothing_names_gets_a_name_from_its_number() {
    let temp = tempfile::tempdir().unwrap();
    let db = Db::builder(temp.path()).family("one", |f| f).family("two", |f| f).open().unwrap();
    db.family("two").unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    forget_tree(temp.path());
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert!(account.remarks.iter().any(|r| r.contains("it gets the name \"family_2\"")), "{account}");
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(db.family("family_2").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// The tables of a family that was dropped, found beside those of a newer one of its name, are another family.
#[test]
fn a_dropped_family_does_not_share_a_name() {
    let temp = tempfile::tempdir().unwrap();
    let db = Db::builder(temp.path()).family("f", |f| f).open().unwrap();
    db.family("f").unwrap().put(b"k", b"dropped").unwrap();
    db.flush().unwrap();
    let table = files(temp.path(), ".sst").pop().unwrap();
    let dropped = std::fs::read(&table).unwrap();
    db.drop_family(&db.family("f").unwrap()).unwrap();
    db.create_family("f").unwrap().put(b"k", b"there").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    std::fs::write(&table, dropped).unwrap();
    forget_tree(temp.path());
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert!(account.remarks.iter().any(|r| r.contains("gets the name \"f_1\"")), "{account}");
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(db.family("f").unwrap().get(b"k").unwrap().as_deref(), Some(&b"there"[..]));
    assert_eq!(db.family("f_1").unwrap().get(b"k").unwrap().as_deref(), Some(&b"dropped"[..]));
}

#[test]
fn stored_settings_are_found_without_a_manifest() {
    let temp = tempfile::tempdir().unwrap();
    let builder = Db::builder(temp.path()).tune(|_, family| family.table.block_size = 2345);
    builder.open().unwrap().close().unwrap();
    forget_tree(temp.path());
    std::fs::write(temp.path().join("CURRENT"), "?").unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let record = Arc::clone(&seen);
    let builder = Db::builder(temp.path())
        .tune(move |_, family| record.store(family.table.block_size, Ordering::Relaxed));
    assert!(builder.repair(|_| {}).unwrap().rebuilt);
    assert_eq!(seen.load(Ordering::Relaxed), 2345);
    Db::open(temp.path()).unwrap().close().unwrap();
    for file in files(temp.path(), "").into_iter().filter(|f| f.to_str().unwrap().contains("OPTIONS-")) {
        std::fs::write(file, "[Version]\n  torn").unwrap();
    }
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert!(account.is_lossless() && account.losses[0].file.starts_with("OPTIONS-"), "{account}");
}

/// A table names the family that it was written for. Without a MANIFEST its entries are there, whatever family had them.
#[test]
fn a_rebuild_without_a_manifest_is_no_lossless_one_and_tells_strange_families() {
    let temp = tempfile::tempdir().unwrap();
    let db = Db::builder(temp.path()).family("written for", |f| f).open().unwrap();
    db.family("written for").unwrap().put(b"k", b"v").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert!(Db::builder(temp.path()).repair(|_| {}).unwrap().is_lossless());
    for file in files(temp.path(), "").into_iter().filter(|f| f.to_str().unwrap().contains("OPTIONS-")) {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("written for", "imported")).unwrap();
    }
    forget_tree(temp.path());
    let account = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert!(account.rebuilt && account.losses.is_empty() && !account.is_lossless(), "{account}");
    let text = account.to_string();
    assert!(!text.contains("nothing was damaged") && text.contains("rebuilt without a MANIFEST"), "{text}");
    let strange = "1 table names family \"written for\", which the OPTIONS file does not list: the entries are in family \"written for\"";
    assert!(account.remarks.iter().any(|remark| remark.contains(strange)), "{account}");
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(db.family("written for").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Regression: a family that only the WAL has got the order of bytes, and the options that had repaired the directory did not open it.
#[test]
fn a_family_of_the_log_gets_the_order_that_the_caller_gave_for_default() {
    let temp = tempfile::tempdir().unwrap();
    let builder = || Db::builder(temp.path()).default_family(|f| f.reverse_order());
    let db = builder().family("other", |f| f.reverse_order()).open().unwrap();
    let other = db.family("other").unwrap();
    for key in ["a", "b", "c"] {
        other.put(key, key).unwrap();
    }
    db.sync().unwrap();
    db.pause_background_work().unwrap();
    let copied = tempfile::tempdir().unwrap();
    crate::repair::copy(temp.path(), copied.path());
    drop(db);
    forget_tree(copied.path());
    files(copied.path(), "").iter().filter(|file| file.to_string_lossy().contains("OPTIONS")).for_each(
        |file| {
            std::fs::remove_file(file).unwrap();
        },
    );
    let builder = || Db::builder(copied.path()).default_family(|f| f.reverse_order());
    let report = builder().repair(|_| {}).unwrap();
    assert!(report.to_string().contains("rocksdb.ReverseBytewiseComparator"), "{report}");
    let names = ashlardb::list_families(&ashlardb::Env::os().unwrap(), copied.path()).unwrap();
    let name = names.iter().find(|name| *name != "default").unwrap();
    let db = builder().family(name, |f| f.reverse_order()).open().unwrap();
    let keys: Vec<_> = db.family(name).unwrap().scan(..).map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(keys, [b"c", b"b", b"a"]);
}

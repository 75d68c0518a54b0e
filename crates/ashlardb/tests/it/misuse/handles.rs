//! Handles of another database, or of a family that was dropped.

use super::kind;
use crate::store::listing;
use ashlardb::{CompactRangeOptions, Db, ErrorKind, SizeOptions, WriteBatch};
use tempfile::TempDir;

const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);

/// Two databases whose families have the same names and ids. Each holds its own name under `k` everywhere.
fn two() -> (TempDir, Db, Db) {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let db = Db::open(dir.path().join(name)).unwrap();
        db.put("k", name).unwrap();
        db.create_family("f").unwrap().put("k", name).unwrap();
        db
    };
    let (a, b) = (open("a"), open("b"));
    assert_eq!(a.family("f").unwrap().id(), b.family("f").unwrap().id());
    (dir, a, b)
}

fn value(db: &Db) -> Vec<u8> {
    db.family("f").unwrap().get("k").unwrap().unwrap().to_vec()
}

#[test]
fn a_family_of_another_database_is_not_dropped() {
    let (_dir, a, b) = two();
    assert_eq!(kind(a.drop_family(&b.family("f").unwrap())), INVALID);
    assert_eq!((value(&a), value(&b)), (b"a".to_vec(), b"b".to_vec()));
}

#[test]
fn a_batch_for_a_family_of_another_database_is_refused() {
    let (_dir, a, b) = two();
    let [fa, fb] = [&a, &b].map(|db| db.family("f").unwrap());
    let batch = WriteBatch::new().in_family(&fb, |batch| batch.put("k", "x"));
    assert_eq!(kind(a.write(batch)), INVALID);
    let both = WriteBatch::new().in_family(&fa, |b| b.put("k", "x")).in_family(&fb, |b| b.put("k", "x"));
    assert_eq!(kind(a.write(both.clone())), INVALID);
    assert_eq!(kind(b.write(both.clone())), INVALID);
    let nested = WriteBatch::new().in_family(&fa, |batch| batch.in_family(&fb, |b| b.put("k", "x")));
    assert_eq!(kind(a.write(nested)), INVALID);
    assert_eq!((value(&a), value(&b)), (b"a".to_vec(), b"b".to_vec()));
    // Cleared, it is a batch of no database.
    let mut cleared = both;
    cleared.clear();
    b.write(cleared.in_family(&fb, |b| b.put("k", "y"))).unwrap();
    assert_eq!(value(&b), b"y");
}

#[test]
fn a_batch_that_in_family_gets_back_must_be_the_one_it_gave() {
    let (_dir, a, _) = two();
    let family = a.family("f").unwrap();
    let other = WriteBatch::new().put("kept", "1").in_family(&family, |_| WriteBatch::new().put("k", "x"));
    assert_eq!(kind(a.write(other)), INVALID);
    assert_eq!((value(&a), a.get("kept").unwrap().is_none()), (b"a".to_vec(), true));
}

#[test]
fn a_snapshot_of_another_database_shows_nothing_of_this_one() {
    let (_dir, a, b) = two();
    let (of_a, fb) = (a.snapshot().unwrap(), b.family("f").unwrap());
    for n in 0..20 {
        b.put(format!("more{n}"), "x").unwrap();
    }
    let answers = [
        kind(of_a.get_in(&fb, "k")),
        kind(of_a.get_entity_in(&fb, "k")),
        kind(b.scan(..).at(&of_a).cursor()),
        kind(fb.scan(..).at(&of_a).cursor()),
        kind(of_a.scan(..).family(&fb).cursor()),
        kind(b.scan(..).at(&of_a).explain(10)),
        b.scan(..).at(&of_a).into_iter().next().map(|entry| entry.unwrap_err().kind()),
    ];
    assert_eq!(answers, [INVALID; 7]);
}

#[test]
fn a_scan_of_a_family_of_another_database_is_refused() {
    let (_dir, a, b) = two();
    let fb = b.family("f").unwrap();
    assert_eq!(kind(a.scan(..).family(&fb).cursor()), INVALID);
    assert_eq!(kind(a.scan(..).family(&fb).explain(10)), INVALID);
}

#[test]
fn a_family_of_an_earlier_open_is_of_another_database() {
    let (dir, a, b) = two();
    let (before, snapshot) = (a.family("f").unwrap(), a.snapshot().unwrap());
    a.close().unwrap();
    let a = Db::open(dir.path().join("a")).unwrap();
    assert_eq!(kind(a.drop_family(&before)), INVALID);
    assert_eq!(kind(a.scan(..).family(&before).cursor()), INVALID);
    assert_eq!(kind(a.scan(..).at(&snapshot).cursor()), INVALID);
    assert_eq!(kind(a.write(WriteBatch::new().in_family(&before, |b| b.put("k", "x")))), INVALID);
    assert_eq!(value(&a), b"a");
    drop(b);
}

/// What may change something is refused. Reads go on: the handle shows the family as it was when it was dropped.
#[test]
fn a_dropped_family_is_read_as_it_was_and_takes_no_change() {
    let (_dir, a, _) = two();
    let old = a.family("f").unwrap();
    a.drop_family(&old).unwrap();
    let new = a.create_family("f").unwrap();
    new.put("k", "new").unwrap();
    let answers = [
        kind(old.put("k", "x")),
        kind(old.delete("k")),
        kind(old.delete_range("a", "z")),
        kind(a.write(WriteBatch::new().put("k", "x").in_family(&old, |b| b.put("k", "x")))),
        kind(a.drop_family(&old)),
        kind(old.flush()),
        kind(old.compact_range(None, None, CompactRangeOptions::default())),
        kind(old.compact_files(&[1], 1, 0)),
        kind(old.delete_files_in_ranges(&[(Some("a"), Some("z"))])),
        kind(old.set_options(&[("write_buffer_size", "1000000")])),
    ];
    assert_eq!(answers, [INVALID; 10]);
    assert_eq!(old.get("k").unwrap().as_deref(), Some(&b"a"[..]));
    assert_eq!(listing(old.scan(..)), [(b"k".to_vec(), b"a".to_vec())]);
    assert_eq!(listing(new.scan(..)), [(b"k".to_vec(), b"new".to_vec())]);
    assert_eq!(a.get("k").unwrap().as_deref(), Some(&b"a"[..]), "a refused batch changes nothing");
    assert!(old.approximate_sizes(&[("a", "z")], SizeOptions::default()).is_ok());
}

#[test]
fn a_synced_write_that_skips_the_log_is_refused() {
    let (dir, a, _) = two();
    let answers = [
        kind(a.without_wal().with_sync(true).put("s", "x")),
        kind(a.with_sync(true).without_wal().put("s", "x")),
        kind(a.without_wal().with_sync(true).family("f").unwrap().put("s", "x")),
        kind(a.without_wal().with_sync(true).write(WriteBatch::new())),
    ];
    assert_eq!(answers, [INVALID; 4]);
    assert!(a.get("s").unwrap().is_none());
    a.without_wal().with_sync(true).with_sync(false).put("s", "x").unwrap();
    a.close().unwrap();
    assert!(Db::open(dir.path().join("a")).unwrap().get("s").unwrap().is_some());
}

//! Scans that are described in an unusual order, and prefixes in orders that are not bytewise.

use super::kind;
use crate::store::listing;
use ashlardb::{Comparator, Db, ErrorKind, Family, Scan};
use std::cmp::Ordering;
use std::sync::Arc;
use tempfile::TempDir;

const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);

#[derive(Debug)]
struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        "ShortestFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

const KEYS: [&[u8]; 12] = [
    b"",
    b"a",
    b"a\xff",
    b"a\xff\xff",
    b"a\xff\xff\x01",
    b"a1",
    b"a2",
    b"b",
    b"b1",
    b"c",
    b"\xff",
    b"\xff\xff1",
];

/// A database with the families `default` (bytewise), `back` (descending) and `short` (a comparator), all with [`KEYS`].
fn orders(dir: &TempDir) -> Db {
    let db = Db::builder(dir.path())
        .family("back", |f| f.reverse_order())
        .family("short", |f| f.comparator(Arc::new(ShortestFirst)))
        .open()
        .unwrap();
    for family in db.families() {
        for key in KEYS {
            family.put(key, "v").unwrap();
        }
    }
    db
}

fn keys(scan: Scan) -> Vec<Vec<u8>> {
    listing(scan).into_iter().map(|(key, _)| key).collect()
}

/// What a scan of the family must show, in its order.
fn wanted(descending: bool, shown: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = KEYS.into_iter().filter(|key| shown(key)).map(<[u8]>::to_vec).collect();
    keys.sort();
    if descending {
        keys.reverse();
    }
    keys
}

const PREFIXES: [&[u8]; 9] =
    [b"", b"a", b"a\xff", b"a\xff\xff", b"b", b"b1", b"\xff", b"\xff\xff", b"nothing"];

#[test]
fn a_prefix_shows_the_keys_that_begin_with_it_in_ascending_and_in_descending_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    for round in ["in memory", "in tables"] {
        for (name, descending) in [("default", false), ("back", true)] {
            let family = db.family(name).unwrap();
            for prefix in PREFIXES {
                let want = wanted(descending, |key| key.starts_with(prefix));
                let what = format!("{round}, {name}, prefix {:?}", prefix.escape_ascii().to_string());
                assert_eq!(keys(family.scan(..).prefix(prefix)), want, "{what}");
                assert_eq!(keys(db.scan(..).prefix(prefix).family(&family)), want, "{what}, family behind");
                let mut back = want.clone();
                back.reverse();
                assert_eq!(keys(family.scan(..).prefix(prefix).rev()), back, "{what}, rev");
                walk(&family, prefix, &want, &what);
                assert_eq!(family.scan(..).prefix(prefix).explain(100).unwrap().keys(), want.len() as u64);
            }
        }
        db.flush().unwrap();
    }
}

/// The cursor of a prefix goes to the wanted keys only, whichever call positions it.
fn walk(family: &Family, prefix: &[u8], want: &[Vec<u8>], what: &str) {
    let descending = family.name() == "back";
    let before = |a: &[u8], b: &[u8]| if descending { a > b } else { a < b };
    let mut cursor = family.scan(..).prefix(prefix).cursor().unwrap();
    for target in KEYS.into_iter().chain(PREFIXES) {
        cursor.seek(target).unwrap();
        let first = want.iter().find(|key| !before(key, target));
        assert_eq!(cursor.entry().map(|(key, _)| key), first.map(Vec::as_slice), "{what}, seek {target:?}");
        cursor.seek_for_prev(target).unwrap();
        let last = want.iter().rev().find(|key| !before(target, key));
        assert_eq!(cursor.entry().map(|(key, _)| key), last.map(Vec::as_slice), "{what}, back {target:?}");
    }
}

#[test]
fn a_prefix_narrows_the_range_in_whatever_order_the_calls_come() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let [plain, back] = ["default", "back"].map(|name| db.family(name).unwrap());
    let from_a2 = wanted(false, |key| key >= b"a2" && key.starts_with(b"a"));
    assert_eq!(keys(plain.scan("a2"..).prefix("a")), from_a2);
    let until_a2 = wanted(false, |key| key < b"a2" && key.starts_with(b"a"));
    assert_eq!(keys(plain.scan(.."a2").prefix("a")), until_a2);
    assert!(keys(plain.scan("b".."c").prefix("a")).is_empty());
    assert_eq!(keys(plain.scan(..).prefix("a").prefix("a\u{0}")), Vec::<Vec<u8>>::new());
    assert_eq!(keys(plain.scan(..).prefix("a1").prefix("a")), [b"a1".to_vec()]);
    assert_eq!(keys(plain.scan(..).prefix("a").prefix("a1")), [b"a1".to_vec()]);
    assert!(keys(plain.scan(..).prefix("a").prefix("b")).is_empty());
    // In descending order a range begins at its larger end.
    let down = wanted(true, |key| key <= b"a2" && key.starts_with(b"a"));
    assert_eq!(keys(back.scan("a2"..).prefix("a")), down);
    let rest = wanted(true, |key| key > b"a2" && key.starts_with(b"a"));
    assert_eq!(keys(back.scan(.."a2").prefix("a")), rest);
    assert_eq!(keys(back.scan(.."a2").prefix("a").rev()), rest.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn a_prefix_is_refused_where_the_order_is_a_comparator_of_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let short = db.family("short").unwrap();
    assert_eq!(kind(short.scan(..).prefix("a").cursor()), INVALID);
    assert_eq!(kind(db.scan(..).prefix("a").family(&short).explain(10)), INVALID);
    let first = short.scan(..).prefix("a").into_iter().next().unwrap();
    let e = first.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("ShortestFirst"), "{e}");
    // An empty prefix is every key, in any order.
    assert_eq!(keys(short.scan(..).prefix("")).len(), KEYS.len());
}

#[test]
fn a_cursor_of_a_reverse_scan_is_refused_and_does_not_forget_the_direction() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    assert_eq!(kind(db.scan(..).rev().cursor()), INVALID);
    assert_eq!(kind(db.scan(..).rev().explain(10)), INVALID);
    assert_eq!(kind(db.scan(..).rev().rev().cursor()), None);
}

#[test]
fn a_new_cursor_steps_to_the_first_or_the_last_entry() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let mut cursor = db.scan("a1"..).cursor().unwrap();
    cursor.next().unwrap();
    assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"a1"[..]));
    cursor.next().unwrap();
    assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"a2"[..]));
    let mut cursor = db.scan(.."b").cursor().unwrap();
    cursor.prev().unwrap();
    assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"a\xff\xff\x01"[..]));
    // Off the end is not new: the cursor stays there.
    cursor.next().unwrap();
    assert!(cursor.entry().is_none());
    cursor.next().unwrap();
    assert!(cursor.entry().is_none());
}

/// The snapshot was released when the expression that took it ended. A compaction dropped what only the scan needed.
#[test]
fn a_scan_keeps_its_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    for n in 0..100 {
        db.put(format!("k{n:02}"), "old").unwrap();
    }
    let scan = db.snapshot().unwrap().scan(..);
    for n in 0..100 {
        db.put(format!("k{n:02}"), "new").unwrap();
    }
    db.delete("k50").unwrap();
    db.put("later", "new").unwrap();
    db.compact().unwrap();
    assert_eq!(db.pins().unwrap().snapshots, 1);
    let shown = listing(scan.clone());
    assert_eq!(shown.len(), 100);
    assert!(shown.iter().all(|(_, value)| value == b"old"));
    drop(scan);
    assert_eq!(db.pins().unwrap().snapshots, 0);
}

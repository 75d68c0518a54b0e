//! Scans that are described in an unusual order, and prefixes in orders that are not bytewise.

use super::kind;
use crate::store::listing;
use ashlar_testkit::KeyValue;
use ashlardb::{Comparator, Db, ErrorKind, Family, Read as _, Write as _};
use std::cmp::Ordering;
use std::ops::Bound;
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

fn keys(scan: impl Iterator<Item = ashlardb::Result<KeyValue>>) -> Vec<Vec<u8>> {
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
                assert_eq!(keys(family.prefix(prefix)), want, "{what}, in one call");
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
        let found = cursor.seek(target).unwrap().map(|(key, _)| key.to_vec());
        let first = want.iter().find(|key| !before(key, target));
        assert_eq!(found.as_ref(), first, "{what}, seek {target:?}");
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
    assert_eq!(kind(short.prefix("a").explain(10)), INVALID);
    let first = short.scan(..).prefix("a").next().unwrap();
    let e = first.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("ShortestFirst"), "{e}");
    // An empty prefix is every key, in any order.
    assert_eq!(keys(short.scan(..).prefix("")).len(), KEYS.len());
}

/// No key begins with both: the scan was taken, and showed nothing.
#[test]
fn prefixes_that_exclude_each_other_are_refused_where_one_alone_is() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let short = db.family("short").unwrap();
    assert_eq!(kind(short.prefix("a").prefix("b").cursor()), INVALID);
    assert_eq!(kind(short.prefix("a").prefix("b").prefix("").explain(10)), INVALID);
    assert!(keys(db.prefix("a").prefix("b")).is_empty());
}

/// Every way to take entries from both ends shows each entry once, in either order.
#[test]
fn the_two_ends_of_a_scan_meet() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    for family in db.families() {
        let all = keys(family.scan(..));
        for turns in 0..1_u32 << all.len() {
            let mut scan = family.scan(..);
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for turn in 0..all.len() {
                match turns >> turn & 1 {
                    0 => front.push(scan.next().unwrap().unwrap().0),
                    _ => back.push(scan.next_back().unwrap().unwrap().0),
                }
            }
            assert!(scan.next().is_none() && scan.next_back().is_none(), "{turns:b}");
            back.reverse();
            assert_eq!([front, back].concat(), all, "{turns:b}");
        }
    }
}

/// The second end is opened later than the first, and shows the same moment.
#[test]
fn both_ends_of_a_scan_show_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let mut scan = db.scan("a".."c");
    assert_eq!(scan.next().unwrap().unwrap().0, b"a");
    db.put("b2", "later").unwrap();
    db.delete("b1").unwrap();
    db.compact().unwrap();
    assert_eq!(scan.next_back().unwrap().unwrap().0, b"b1");
}

#[test]
fn every_form_of_a_range_has_the_ends_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let between = |shown: fn(&[u8]) -> bool| wanted(false, shown);
    assert_eq!(keys(db.scan("a1"..="b")), between(|key| (&b"a1"[..]..=b"b").contains(&key)));
    assert_eq!(keys(db.scan(..="b")), between(|key| key <= b"b"));
    let open = (Bound::Excluded("a1"), Bound::Included(vec![b'b']));
    assert_eq!(keys(db.scan(open)), between(|key| key > b"a1" && key <= b"b"));
    assert_eq!(keys(db.scan((Bound::Unbounded::<&str>, Bound::Excluded("b")))), between(|key| key < b"b"));
    let back = db.family("back").unwrap();
    assert_eq!(keys(back.scan("b"..="a1")), wanted(true, |key| (&b"a1"[..]..=b"b").contains(&key)));
    let open = (Bound::Excluded("b"), Bound::Excluded("a1"));
    assert_eq!(keys(back.scan(open)), wanted(true, |key| key < b"b" && key > b"a1"));
}

#[test]
fn a_range_that_begins_behind_its_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = orders(&dir);
    let e = db.scan("b".."a").next().unwrap().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("family's order"), "{e}");
    assert_eq!(kind(db.scan("b"..="a").cursor()), INVALID);
    assert_eq!(kind(db.family("back").unwrap().scan("a".."b").explain(10)), INVALID);
    assert!(keys(db.scan("b".."b")).is_empty());
    assert_eq!(keys(db.scan("b"..="b")), [b"b".to_vec()]);
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
    let mut shown = Vec::new();
    let mut cursor = scan.cursor().unwrap();
    while let Some((_, value)) = cursor.next().unwrap() {
        shown.push(value.to_vec());
    }
    assert_eq!(shown.len(), 100);
    assert!(shown.iter().all(|value| value == b"old"));
    drop(scan);
    assert_eq!(db.pins().unwrap().snapshots, 0);
}

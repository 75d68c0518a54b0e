//! Tailing cursors, against a model and call by call.
//!
//! 1. A model that follows the rules of `Scan::tailing` predicts every entry that a tailing cursor shows, whatever is written,
//!    deleted, flushed and compacted between the calls.
//! 2. A reader that follows a queue by `next` alone sees every key once, in order, beside a writer on another thread.

use crate::transactions::fresh;
use ashlar_testkit::{Rng, within};
use ashlardb::prelude::*;
use ashlardb::{CompactRangeOptions, Cursor, Env, ErrorKind, PrefixExtractor, Read, ReadTier};
use std::collections::BTreeMap;
use std::ops::Bound;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(cursor: Option<(&[u8], &[u8])>) -> Option<String> {
    cursor.map(|(key, _)| String::from_utf8(key.to_vec()).unwrap())
}

fn next(cursor: &mut Cursor) -> Option<String> {
    key(cursor.next().unwrap())
}

/// Where the model goes on from off the end.
#[derive(Clone, Debug)]
enum Resume {
    Nowhere,
    From(Bound<Vec<u8>>),
}

/// What the cursor should show.
struct Model {
    newest: Map,
    shown: Map,
    bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    at: Option<Vec<u8>>,
    resume: Resume,
}

impl Model {
    fn position(&mut self, to: impl FnOnce(&Map) -> Option<Vec<u8>>, resume: Resume) {
        self.shown = self.newest.range(self.bounds.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
        (self.at, self.resume) = (to(&self.shown), resume);
    }

    fn next(&mut self) {
        if let Some(at) = self.at.take() {
            self.at = after(&self.shown, &Bound::Excluded(at.clone()));
            self.resume = Resume::From(Bound::Excluded(at));
        }
        if self.at.is_none()
            && let Resume::From(from) = self.resume.clone()
        {
            self.position(|shown| after(shown, &from), Resume::From(from.clone()));
        }
    }

    fn prev(&mut self) {
        if let Some(at) = self.at.take() {
            self.at = self.shown.range(..at).next_back().map(|(key, _)| key.clone());
            self.resume = Resume::Nowhere;
        }
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        let key = self.at.as_ref()?;
        Some((key, &self.shown[key]))
    }
}

fn after(map: &Map, from: &Bound<Vec<u8>>) -> Option<Vec<u8>> {
    map.range((from.clone(), Bound::Unbounded)).next().map(|(key, _)| key.clone())
}

fn drawn_key(rng: &mut Rng) -> Vec<u8> {
    format!("k{:03}", rng.below(60)).into_bytes()
}

/// Writes something, or moves the tree. Returns a text for a failure.
fn write(db: &Db, model: &mut Map, rng: &mut Rng, step: u64) -> String {
    let key = drawn_key(rng);
    match rng.below(100) {
        0..60 => {
            let value = format!("v{step}").into_bytes();
            db.put(&key, &value).unwrap();
            model.insert(key.clone(), value);
        }
        60..90 => {
            db.delete(&key).unwrap();
            model.remove(&key);
        }
        90..95 => {
            let end = drawn_key(rng);
            if key < end {
                db.delete_range(&key, &end).unwrap();
                model.retain(|k, _| *k < key || *k >= end);
            }
        }
        95 => db.flush().unwrap(),
        96 => db.compact_range(.., CompactRangeOptions::default()).unwrap(),
        _ => {}
    }
    format!("a write near {}", key.escape_ascii())
}

fn moved(cursor: &mut Cursor, model: &mut Model, rng: &mut Rng) -> String {
    let key = drawn_key(rng);
    let what = match rng.below(16) {
        0 => {
            cursor.first().unwrap();
            model.position(|m| m.keys().next().cloned(), Resume::From(Bound::Unbounded));
            "first"
        }
        1 => {
            cursor.last().unwrap();
            model.position(|m| m.keys().next_back().cloned(), Resume::From(Bound::Unbounded));
            "last"
        }
        2 => {
            cursor.seek(&key).unwrap();
            let from = Bound::Included(key.clone());
            model.position(|m| after(m, &from), Resume::From(from.clone()));
            "seek"
        }
        3 => {
            cursor.seek_for_prev(&key).unwrap();
            let found = |m: &Map| m.range(..=key.clone()).next_back().map(|(key, _)| key.clone());
            model.position(found, Resume::Nowhere);
            "seek_for_prev"
        }
        4 => {
            cursor.prev().unwrap();
            model.prev();
            "prev"
        }
        _ => {
            cursor.next().unwrap();
            model.next();
            "next"
        }
    };
    format!("{what} {}", key.escape_ascii())
}

#[test]
fn a_tailing_cursor_shows_what_the_model_shows() {
    for round in 0..ashlar_testkit::report::scale(8, 300) {
        let mut rng = Rng::new(round as u64);
        let db = Db::builder("db").env(Env::mem());
        let db = db.default_family(|f| f.prefix_extractor(PrefixExtractor::Fixed(2))).open().unwrap();
        let (a, b) = (drawn_key(&mut rng), drawn_key(&mut rng));
        let bounds = match round % 3 {
            0 => (Bound::Unbounded, Bound::Unbounded),
            1 => (Bound::Included(a.clone().min(b.clone())), Bound::Excluded(a.max(b))),
            _ => (Bound::Excluded(a), Bound::Unbounded),
        };
        let mut model = Model {
            newest: Map::new(),
            shown: Map::new(),
            bounds: bounds.clone(),
            at: None,
            resume: Resume::Nowhere,
        };
        let mut cursor = db.scan(bounds).tailing().unwrap();
        cursor.first().unwrap();
        model.position(|m| m.keys().next().cloned(), Resume::From(Bound::Unbounded));
        let mut history = Vec::new();
        for step in 0..400 {
            let writes = rng.below(if round % 4 == 3 { 2 } else { 4 });
            for _ in 0..writes {
                history.push(write(&db, &mut model.newest, &mut rng, step));
            }
            history.push(moved(&mut cursor, &mut model, &mut rng));
            let recent = &history[history.len().saturating_sub(12)..];
            assert_eq!(cursor.entry(), model.entry(), "round {round} step {step}: {recent:?}");
        }
    }
}

#[test]
fn a_queue_is_followed_by_next_alone() {
    let (_dir, db) = fresh();
    within(120, "a queue is followed", move || follow_a_queue(&db));
}

fn follow_a_queue(db: &Db) {
    const ITEMS: usize = 4000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ITEMS {
                db.put(format!("job/{n:06}"), [b'x'; 40]).unwrap();
                if n % 900 == 899 {
                    db.flush().unwrap();
                }
            }
        });
        let mut jobs = db.prefix("job/").tailing().unwrap();
        for n in 0..ITEMS {
            let found = loop {
                match next(&mut jobs) {
                    Some(found) => break found,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(found, format!("job/{n:06}"));
            db.delete(&found).unwrap();
        }
        assert_eq!(next(&mut jobs), None);
    });
    assert_eq!(db.scan(..).count(), 0);
}

#[test]
fn writes_before_the_position_are_shown_by_a_seek() {
    let (_dir, db) = fresh();
    db.put("m", "1").unwrap();
    let mut cursor = db.scan(..).tailing().unwrap();
    assert_eq!(next(&mut cursor).as_deref(), Some("m"));
    db.put("a", "1").unwrap();
    db.put("m", "2").unwrap();
    assert_eq!(
        cursor.entry(),
        Some((&b"m"[..], &b"1"[..])),
        "an entry stays as it is until the cursor moves"
    );
    assert_eq!(next(&mut cursor), None, "a is before the position");
    assert_eq!(key(cursor.seek("a").unwrap()).as_deref(), Some("a"));
    assert_eq!(cursor.next().unwrap(), Some((&b"m"[..], &b"2"[..])));
    db.delete("m").unwrap();
    assert_eq!(cursor.entry(), Some((&b"m"[..], &b"2"[..])), "the key under the cursor was deleted");
    db.put("n", "1").unwrap();
    assert_eq!(next(&mut cursor).as_deref(), Some("n"));
    assert_eq!(key(cursor.prev().unwrap()).as_deref(), Some("a"), "the state that shows n has no m");
}

#[test]
fn only_newer_keys_are_followed_from_the_last_one() {
    let (_dir, db) = fresh();
    let mut cursor = db.scan(..).tailing().unwrap();
    assert_eq!(key(cursor.last().unwrap()), None);
    db.put("a", "1").unwrap();
    assert_eq!(next(&mut cursor).as_deref(), Some("a"));
    assert_eq!(key(cursor.seek_for_prev("0").unwrap()), None);
    assert_eq!(next(&mut cursor), None, "after seek_for_prev there is no place to go on from");
    assert_eq!(key(cursor.seek("b").unwrap()), None);
    db.put("b", "1").unwrap();
    assert_eq!(next(&mut cursor).as_deref(), Some("b"), "next repeats the seek");
}

#[test]
fn bounds_prefixes_and_tiers_hold() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).default_family(|f| f.prefix_extractor(PrefixExtractor::Fixed(2)));
    let db = db.open().unwrap();
    for k in ["aa1", "bb1", "cc1"] {
        db.put(k, "old").unwrap();
    }
    db.flush().unwrap();
    let mut bounded = db.scan("aa".."bb2").tailing().unwrap();
    let mut prefixed = db.prefix("bb").tailing().unwrap();
    let mut in_memory =
        db.reading(ReadOptions::new().read_tier(ReadTier::Memtable)).scan(..).tailing().unwrap();
    let mut cached =
        db.reading(ReadOptions::new().read_tier(ReadTier::BlockCache)).scan("cc"..).tailing().unwrap();
    assert_eq!([next(&mut bounded), next(&mut bounded)], [Some("aa1".into()), Some("bb1".into())]);
    assert_eq!([next(&mut prefixed), next(&mut in_memory)], [Some("bb1".into()), None]);
    assert!(cached.next().is_ok_and(|found| found.is_some()), "the scans above have cached the block");
    for k in ["bb15", "bb2", "cc2"] {
        db.put(k, "new").unwrap();
    }
    assert_eq!([next(&mut bounded), next(&mut bounded)], [Some("bb15".into()), None]);
    assert_eq!([next(&mut prefixed), next(&mut prefixed)], [Some("bb15".into()), Some("bb2".into())]);
    assert_eq!(next(&mut prefixed), None);
    assert_eq!(next(&mut in_memory).as_deref(), Some("bb15"));
    assert_eq!(next(&mut cached).as_deref(), Some("cc2"));
}

#[test]
fn a_close_ends_the_cursor_and_a_dropped_family_stands_still() {
    let (_dir, db) = fresh();
    let family = db.create_family("f").unwrap();
    db.put("a", "1").unwrap();
    family.put("x", "1").unwrap();
    let mut dropped = family.scan(..).tailing().unwrap();
    let mut cursor = db.scan(..).tailing().unwrap();
    db.drop_family(&family).unwrap();
    assert_eq!([next(&mut dropped), next(&mut dropped)], [Some("x".into()), None]);
    assert_eq!(next(&mut cursor).as_deref(), Some("a"));
    drop((family, db));
    assert_eq!(cursor.entry(), Some((&b"a"[..], &b"1"[..])), "a cursor keeps its state");
    for e in [cursor.next().map(drop), cursor.seek("a").map(drop), dropped.first().map(drop)] {
        assert!(matches!(e.unwrap_err().kind(), ErrorKind::Shutdown(_)));
    }
    assert_eq!(next(&mut cursor), None, "after an error the cursor is off the end");
}

#[test]
fn views_of_one_moment_have_no_tailing_cursor() {
    let (_dir, db) = fresh();
    db.put("a", "1").unwrap();
    let (snapshot, t, batch) = (db.snapshot().unwrap(), db.begin().unwrap(), db.indexed_batch());
    fn refused(from: &impl Read) -> String {
        let e = from.scan(..).tailing().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        e.to_string()
    }
    assert!(refused(&snapshot).contains("over a snapshot"), "{}", refused(&snapshot));
    assert!(refused(&t).contains("over a transaction or an indexed batch"), "{}", refused(&t));
    refused(&batch);
    let e = db.scan("b".."a").tailing().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
}

/// A tailing cursor that has moved to a newer state pins nothing of the older one.
#[test]
fn a_renewed_cursor_keeps_no_former_state() {
    let (_dir, db) = fresh();
    db.put("a", "1").unwrap();
    let mut cursor = db.scan(..).tailing().unwrap();
    assert_eq!(next(&mut cursor).as_deref(), Some("a"));
    db.flush().unwrap();
    db.put("b", "1").unwrap();
    db.compact_range(.., CompactRangeOptions::default()).unwrap();
    assert!(cursor.pins().memtable_bytes > 0);
    assert_eq!(next(&mut cursor).as_deref(), Some("b"));
    let pins = cursor.pins();
    assert_eq!((pins.memtable_bytes, pins.obsolete_files), (0, 0));
}

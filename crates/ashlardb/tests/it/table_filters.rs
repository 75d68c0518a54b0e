//! Scans with a filter of tables, against a model that knows which table each change is in.

use ashlar_testkit::{KeyValue, Rng};
use ashlardb::{Db, Family, Lent, Level, Read as _, Scan, StoredProperties, Write as _};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// A database with some tables in the last level, and some in level 0, each with what it has.
struct Tables {
    db: Db,
    /// The tables with their changes, the oldest first.
    changes: Vec<(u64, Vec<Change>)>,
    /// Changes of the memtable.
    unflushed: Vec<Change>,
}

fn numbers(family: &Family) -> BTreeSet<u64> {
    family.live_files().unwrap().iter().map(|file| file.number.0).collect()
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("{:03}", rng.below(600)).into_bytes()
}

fn draw(db: &Db, rng: &mut Rng, count: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    for _ in 0..count {
        let at = key(rng);
        let change = match rng.below(12) {
            0 => {
                let end = [at.as_slice(), b"~"].concat();
                let end = if rng.percent(50) { key(rng).max(end) } else { end };
                db.delete_range(at.as_slice(), end.as_slice()).unwrap();
                Change::DeleteRange(at, end)
            }
            1..3 => {
                db.delete(&at).unwrap();
                Change::Delete(at)
            }
            _ => {
                let value = rng.bytes(100);
                db.put(&at, &value).unwrap();
                Change::Put(at, value)
            }
        };
        changes.push(change);
    }
    changes
}

impl Tables {
    fn draw(dir: &Path, rng: &mut Rng) -> Tables {
        let options = "disable_auto_compactions=true;target_file_size_base=4096;compression=kNoCompression";
        let db = Db::builder(dir).options(options).open().unwrap();
        let family = db.default_family();
        let mut base = Map::new();
        for _ in 0..500 {
            let entry = (key(rng), rng.bytes(100));
            db.put(&entry.0, &entry.1).unwrap();
            base.insert(entry.0, entry.1);
        }
        db.compact().unwrap();
        let mut changes = Vec::new();
        for file in family.live_files().unwrap() {
            assert!(file.level > Level::ZERO);
            let held = base.range(file.smallest..=file.largest);
            let held = held.map(|(key, value)| Change::Put(key.clone(), value.clone())).collect();
            changes.push((file.number.0, held));
        }
        assert!(changes.len() > 4, "{} tables in the last level", changes.len());
        for _ in 0..4 {
            let before = numbers(&family);
            let some = draw(&db, rng, 12);
            db.flush().unwrap();
            let fresh: Vec<_> = numbers(&family).difference(&before).copied().collect();
            changes.push((fresh[0], some));
        }
        let unflushed = draw(&db, rng, 5);
        Tables { db, changes, unflushed }
    }

    /// What a scan sees that reads the tables in `kept` only.
    fn model(&self, kept: &BTreeSet<u64>) -> Map {
        let mut map = Map::new();
        let of_tables = self.changes.iter().map(|(number, changes)| (kept.contains(number), changes));
        for (is_kept, changes) in of_tables.chain([(true, &self.unflushed)]) {
            for change in changes {
                match change {
                    Change::DeleteRange(start, end) => map.retain(|key, _| key < start || key >= end),
                    Change::Put(key, value) if is_kept => drop(map.insert(key.clone(), value.clone())),
                    Change::Delete(key) if is_kept => drop(map.remove(key)),
                    Change::Put(..) | Change::Delete(_) => {}
                }
            }
        }
        map
    }
}

/// The scan with the filter, which must be asked about each table once.
fn filtered(scan: Scan, kept: &BTreeSet<u64>) -> (Scan, Arc<Mutex<Vec<u64>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (kept, noted) = (kept.clone(), Arc::clone(&asked));
    let filter = move |stored: &StoredProperties| {
        let number = stored.original_file_number.unwrap();
        noted.lock().unwrap().push(number);
        kept.contains(&number)
    };
    (scan.filter_tables(filter), asked)
}

fn pairs<'m>(entries: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>) -> Vec<KeyValue> {
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn shown(lent: Option<Lent<'_>>) -> Option<KeyValue> {
    lent.map(|lent| (lent.0.to_vec(), lent.1.to_vec()))
}

fn agrees(tables: &Tables, kept: &BTreeSet<u64>, rng: &mut Rng) {
    let (db, model) = (&tables.db, tables.model(kept));
    let all = || filtered(db.scan(..), kept).0;
    let expected = pairs(model.iter());
    let (forward, asked) = filtered(db.scan(..), kept);
    assert_eq!(forward.map(Result::unwrap).collect::<Vec<_>>(), expected, "forward, {kept:?}");
    let mut asked = asked.lock().unwrap().clone();
    asked.sort_unstable();
    let known: Vec<_> = tables.changes.iter().map(|(number, _)| *number).collect();
    assert!(asked.iter().all(|number| known.contains(number)) && asked.windows(2).all(|w| w[0] < w[1]));
    let mut backward: Vec<_> = all().rev().map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, expected, "backward, {kept:?}");
    let snapshot = db.snapshot().unwrap();
    let at_snapshot = filtered(snapshot.scan(..), kept).0;
    assert_eq!(at_snapshot.map(Result::unwrap).collect::<Vec<_>>(), expected, "at a snapshot, {kept:?}");

    // Both ends, in turns.
    let (mut scan, mut left, mut right) = (all(), Vec::new(), Vec::new());
    loop {
        let is_front = rng.percent(50);
        let next = if is_front { scan.next() } else { scan.next_back() };
        let Some(entry) = next.transpose().unwrap() else { break };
        if is_front { left.push(entry) } else { right.push(entry) }
    }
    right.reverse();
    assert_eq!([left, right].concat(), expected, "from both ends, {kept:?}");

    let (start, end) = (key(rng), key(rng));
    if start < end {
        let bounded = filtered(db.scan(start.as_slice()..end.as_slice()), kept).0;
        let expected = pairs(model.range(start..end));
        assert_eq!(bounded.map(Result::unwrap).collect::<Vec<_>>(), expected, "bounded, {kept:?}");
    }
    for mut cursor in [all().cursor().unwrap(), all().tailing().unwrap()] {
        for _ in 0..40 {
            let at = key(rng);
            let mut above = model.range(at.clone()..).map(|(key, value)| (key.clone(), value.clone()));
            let mut below = model.range(..=at.clone()).rev().map(|(key, value)| (key.clone(), value.clone()));
            assert_eq!(shown(cursor.seek(&at).unwrap()), above.next(), "seek {at:?}, {kept:?}");
            let is_there = cursor.entry().is_some();
            if is_there {
                assert_eq!(shown(cursor.next().unwrap()), above.next(), "behind {at:?}, {kept:?}");
            }
            assert_eq!(shown(cursor.seek_for_prev(&at).unwrap()), below.next(), "seek back {at:?}, {kept:?}");
            let is_there = cursor.entry().is_some();
            if is_there {
                assert_eq!(shown(cursor.prev().unwrap()), below.next(), "before {at:?}, {kept:?}");
            }
        }
    }
}

#[test]
fn a_filtered_scan_shows_the_accepted_tables_and_every_range_deletion() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::draw(&dir.path().join("db"), &mut rng);
        let numbers: Vec<_> = tables.changes.iter().map(|(number, _)| *number).collect();
        agrees(&tables, &BTreeSet::new(), &mut rng);
        agrees(&tables, &numbers.iter().copied().collect(), &mut rng);
        for _ in 0..6 {
            let kept = numbers.iter().copied().filter(|_| rng.percent(50)).collect();
            agrees(&tables, &kept, &mut rng);
        }
    }
}

/// A tailing cursor asks the filter about tables that were flushed after its begin.
#[test]
fn a_tailing_cursor_filters_later_tables() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let scan = db.scan(..).filter_tables(|stored| stored.num_entries == Some(2));
    let mut cursor = scan.tailing().unwrap();
    assert_eq!(shown(cursor.first().unwrap()), None);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "2").unwrap();
    db.put("c", "3").unwrap();
    assert_eq!(shown(cursor.first().unwrap()), Some((b"b".to_vec(), b"2".to_vec())));
    db.flush().unwrap();
    assert_eq!(shown(cursor.first().unwrap()), Some((b"b".to_vec(), b"2".to_vec())));
    assert_eq!(shown(cursor.next().unwrap()), Some((b"c".to_vec(), b"3".to_vec())));
    assert_eq!(shown(cursor.next().unwrap()), None);
}

//! What a scan must show: the model's entries in the order of a family, between bounds, with a prefix.

use super::options::Options;
use ashlar_testkit::KeyValue;
use ashlar_testkit::ops::Change;
use ashlar_testkit::oracle::first_difference;
use ashlardb::{Comparator, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The contents of a family.
pub(super) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The values that each key has had.
pub(super) type Past = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

/// Which part of a family a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// Without what was flushed: a key may be absent, and a value may lack what later operands were merged into.
    Memtables,
    /// Without what was not flushed: an earlier state.
    Tables,
}

impl Part {
    /// Whether a read of this part may show `found` where the family holds `now`, and has held the values in `past`.
    pub(super) fn may_show(
        self,
        now: Option<&[u8]>,
        past: Option<&BTreeSet<Vec<u8>>>,
        found: Option<&[u8]>,
    ) -> bool {
        let is_end = |now: &[u8], end: &[u8]| now.strip_suffix(end).is_some_and(|head| head.ends_with(b","));
        match (self, found) {
            (Part::All, _) => now == found,
            (_, None) => true,
            (Part::Memtables, Some(found)) => now.is_some_and(|now| now == found || is_end(now, found)),
            (Part::Tables, Some(found)) => past.is_some_and(|past| past.contains(found)),
        }
    }
}

/// The two ends of a range of keys.
pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The order of a family's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sorted {
    Up,
    Down,
    /// [`ShortestFirst`].
    Own,
}

/// A comparator of the user's.
#[derive(Debug)]
pub(super) struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        "ShortestFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        Sorted::Own.compare(a, b)
    }
}

impl Sorted {
    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Sorted::Up => a.cmp(b),
            Sorted::Down => b.cmp(a),
            Sorted::Own => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }

    /// Does a change, whose range is in this order.
    pub(super) fn apply(self, map: &mut Map, change: &Change) {
        match change {
            Change::Put { key, value, .. } => drop(map.insert(key.clone(), value.clone())),
            Change::Delete { key, .. } | Change::SingleDelete { key, .. } => drop(map.remove(key)),
            Change::Merge { key, operand, .. } => match map.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend_from_slice(operand);
                }
                None => drop(map.insert(key.clone(), operand.clone())),
            },
            Change::DeleteRange { from, to, .. } => {
                map.retain(|key, _| self.compare(key, from).is_lt() || self.compare(key, to).is_ge());
            }
        }
    }

    /// Whether the keys between the bounds contain `key`.
    pub(super) fn holds(self, (from, to): &Bounds, key: &[u8]) -> bool {
        let begun = match from {
            Bound::Unbounded => true,
            Bound::Included(from) => self.compare(key, from).is_ge(),
            Bound::Excluded(from) => self.compare(key, from).is_gt(),
        };
        let over = match to {
            Bound::Unbounded => false,
            Bound::Included(to) => self.compare(key, to).is_gt(),
            Bound::Excluded(to) => self.compare(key, to).is_ge(),
        };
        begun && !over
    }

    /// Whether the range begins behind its end.
    pub(super) fn is_inverted(self, bounds: &Bounds) -> bool {
        let key = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        key(&bounds.0).zip(key(&bounds.1)).is_some_and(|(from, to)| self.compare(&from, &to).is_gt())
    }

    /// The entries that a scan shows, in its order.
    pub(super) fn shown(self, map: &Map, bounds: &Bounds, prefixes: &[Vec<u8>]) -> Vec<KeyValue> {
        let wanted = |key: &[u8]| self.holds(bounds, key) && prefixes.iter().all(|p| key.starts_with(p));
        let entries = map.iter().filter(|(key, _)| wanted(key));
        let mut entries: Vec<KeyValue> = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        entries.sort_by(|(a, _), (b, _)| self.compare(a, b));
        entries
    }
}

/// What a scan must show, when it is not all or not known.
pub(super) struct Shown<'a> {
    pub(super) sorted: Sorted,
    pub(super) entries: Vec<KeyValue>,
    pub(super) lossy: Vec<Bounds>,
    pub(super) part: Part,
    pub(super) past: &'a Past,
}

impl Shown<'_> {
    /// Checks what a scan forwards and one backwards found.
    pub(super) fn check(
        &self,
        ways: [Result<Vec<KeyValue>>; 2],
        options: &Options,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> std::result::Result<(), String> {
        let mut both = Vec::new();
        for (found, backwards) in ways.into_iter().zip([false, true]) {
            let mut found = match found {
                Err(e) if options.allow(&e) => continue,
                found => found.map_err(|e| e.to_string())?,
            };
            if backwards {
                found.reverse();
            }
            both.push(found);
        }
        let known = |key: &[u8]| !self.lossy.iter().any(|range| self.sorted.holds(range, key));
        if let [forwards, backwards] = &both[..]
            && let Some(difference) = first_difference(forwards, backwards)
        {
            return Err(format!("forwards and backwards: {difference}"));
        }
        for found in both {
            if !found.is_sorted_by(|(a, _), (b, _)| self.sorted.compare(a, b).is_lt()) {
                return Err("out of order".to_owned());
            }
            let expected: Map = self.entries.iter().filter(|(key, _)| known(key)).cloned().collect();
            let found: Map = found.into_iter().filter(|(key, _)| known(key)).collect();
            for key in expected.keys().chain(found.keys()) {
                let (now, found) = (expected.get(key), found.get(key));
                let (now, found) = (now.map(Vec::as_slice), found.map(Vec::as_slice));
                if !wanted(key) || !self.part.may_show(now, self.past.get(key), found) {
                    return Err(format!("{:?} shows another value of {}", self.part, key.escape_ascii()));
                }
            }
        }
        Ok(())
    }
}

/// A move of a cursor.
#[derive(Clone, Debug)]
pub(super) enum Move {
    First,
    Last,
    Next,
    Prev,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
}

/// A cursor of the model: the entries that it may be on, and which of them it is on.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) sorted: Sorted,
    pub(super) entries: Vec<KeyValue>,
    at: Option<usize>,
    fresh: bool,
}

impl Expected {
    pub(super) fn new(sorted: Sorted, entries: Vec<KeyValue>) -> Expected {
        Expected { sorted, entries, at: None, fresh: true }
    }

    /// The cursor has failed: it is off the end.
    pub(super) fn fail(&mut self) {
        (self.at, self.fresh) = (None, false);
    }

    pub(super) fn go(&mut self, to: &Move) -> Option<&KeyValue> {
        let compare = |(key, _): &KeyValue, other: &[u8]| self.sorted.compare(key, other);
        let last = self.entries.len().checked_sub(1);
        self.at = match (to, self.at) {
            (Move::First, _) => Some(0),
            (Move::Last, _) => last,
            (Move::Next, None) => self.fresh.then_some(0),
            (Move::Prev, None) => last.filter(|_| self.fresh),
            (Move::Next, Some(at)) => Some(at + 1),
            (Move::Prev, Some(at)) => at.checked_sub(1),
            (Move::Seek(key), _) => self.entries.iter().position(|entry| compare(entry, key).is_ge()),
            (Move::SeekForPrev(key), _) => self.entries.iter().rposition(|entry| compare(entry, key).is_le()),
        };
        self.at = self.at.filter(|at| *at < self.entries.len());
        self.fresh = false;
        self.entries.get(self.at?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shows_ends_of_values_or_earlier_values() {
        let past = BTreeSet::from([b"a".to_vec(), b"a,b".to_vec()]);
        let shows = |part: Part, found: &'static str| {
            part.may_show(Some(b"a,b"), Some(&past), (!found.is_empty()).then_some(found.as_bytes()))
        };
        let all = ["a,b", "a", "b", ",b", ""];
        assert_eq!(all.map(|found| shows(Part::All, found)), [true, false, false, false, false]);
        assert_eq!(all.map(|found| shows(Part::Memtables, found)), [true, false, true, false, true]);
        assert_eq!(all.map(|found| shows(Part::Tables, found)), [true, true, false, false, true]);
        assert!(!Part::Memtables.may_show(None, Some(&past), Some(b"a")));
        assert!(!Part::Tables.may_show(Some(b"a"), None, Some(b"a")));
    }

    #[test]
    fn the_model_shows_a_range_in_the_order_of_its_family() {
        let map: Map = ["a", "ab", "b", "bb"].map(|key| (key.into(), Vec::new())).into();
        let keys = |sorted: Sorted, bounds: &Bounds, prefixes: &[Vec<u8>]| {
            let shown = sorted.shown(&map, bounds, prefixes).into_iter();
            shown.map(|(key, _)| String::from_utf8(key).unwrap()).collect::<Vec<_>>()
        };
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert_eq!(keys(Sorted::Down, &all, &[]), ["bb", "b", "ab", "a"]);
        assert_eq!(keys(Sorted::Own, &all, &[]), ["a", "b", "ab", "bb"]);
        assert_eq!(keys(Sorted::Up, &all, &[b"b".to_vec(), b"bb".to_vec()]), ["bb"]);
        let down = (Bound::Excluded(b"bb".to_vec()), Bound::Included(b"ab".to_vec()));
        assert_eq!(keys(Sorted::Down, &down, &[]), ["b", "ab"]);
        assert!(Sorted::Up.is_inverted(&down) && !Sorted::Down.is_inverted(&down));
        let mut cursor = Expected::new(Sorted::Up, Sorted::Up.shown(&map, &all, &[]));
        assert_eq!(cursor.go(&Move::Prev).map(|e| &*e.0), Some(&b"bb"[..]));
        assert_eq!(cursor.go(&Move::Next), None);
        assert_eq!(cursor.go(&Move::Prev), None);
        assert_eq!(cursor.go(&Move::SeekForPrev(b"ac".to_vec())).map(|e| &*e.0), Some(&b"ab"[..]));
    }
}

//! A store as a list of atomic writes.
//!
//! 1. Writes are numbered 1, 2, … in sequence order; "cut at M" is the state after the first M of them. Each change
//!    takes one sequence number, so [`Model::sequence`] follows a store that numbers changes from 1.
//! 2. The floor is the largest number the store has acknowledged as durable. After a crash the store must hold the cut
//!    at some M with `floor <= M <= writes`: no hole, no invention, no half batch.
//! 3. A family never written equals one that is not there.

use super::Difference;
use crate::KeyValue;
use crate::ops::Change;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a store: per family the keys and values.
#[derive(Clone, Debug, Default)]
pub struct State {
    families: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl State {
    /// A state from listings, as a scan of every family gives them.
    pub fn of(listings: impl IntoIterator<Item = (String, Vec<KeyValue>)>) -> State {
        State {
            families: listings.into_iter().map(|(name, list)| (name, list.into_iter().collect())).collect(),
        }
    }

    /// Applies changes in order.
    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            let family = match self.families.get_mut(change.family()) {
                Some(family) => family,
                None => self.families.entry(change.family().to_owned()).or_default(),
            };
            match change {
                Change::Put { key, value, .. } => drop(family.insert(key.clone(), value.clone())),
                Change::Delete { key, .. } | Change::SingleDelete { key, .. } => drop(family.remove(key)),
                Change::Merge { key, operand, .. } => match family.get_mut(key) {
                    Some(value) => {
                        value.push(b',');
                        value.extend_from_slice(operand);
                    }
                    None => drop(family.insert(key.clone(), operand.clone())),
                },
                Change::DeleteRange { from, to, .. } => {
                    let gone = family.range(from.clone()..to.clone()).map(|(key, _)| key.clone());
                    for key in gone.collect::<Vec<_>>() {
                        family.remove(&key);
                    }
                }
            }
        }
    }

    /// The keys that hold something now and that `change` may change.
    fn touched(&self, change: &Change) -> Vec<Vec<u8>> {
        match (change, self.families.get(change.family())) {
            (Change::DeleteRange { from, to, .. }, Some(family)) => {
                family.range(from.clone()..to.clone()).map(|(key, _)| key.clone()).collect()
            }
            (Change::DeleteRange { .. }, None) => Vec::new(),
            _ => vec![change.key().to_vec()],
        }
    }

    /// The value of a key.
    pub fn get(&self, family: &str, key: &[u8]) -> Option<&[u8]> {
        self.families.get(family)?.get(key).map(Vec::as_slice)
    }

    /// The entries of a family.
    pub fn family(&self, name: &str) -> Option<&BTreeMap<Vec<u8>, Vec<u8>>> {
        self.families.get(name)
    }

    /// Entries with `from <= key < to`.
    pub fn scan(&self, family: &str, from: &[u8], to: &[u8]) -> Vec<KeyValue> {
        let Some(map) = self.families.get(family) else { return Vec::new() };
        map.iter()
            .filter(|(k, _)| k.as_slice() >= from && k.as_slice() < to)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// Names of all families that hold or held something.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    fn differing(&self, other: &State) -> BTreeSet<(String, Vec<u8>)> {
        let mut out = BTreeSet::new();
        for (a, b) in [(self, other), (other, self)] {
            for (name, map) in &a.families {
                for (key, value) in map {
                    if b.get(name, key) != Some(value) {
                        out.insert((name.clone(), key.clone()));
                    }
                }
            }
        }
        out
    }
}

/// Two states are equal when every family holds the same entries; empty families do not count.
impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.differing(other).is_empty()
    }
}

/// Everything written, in order, and what of it was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Model {
    writes: Vec<Vec<Change>>,
    now: State,
    sequence: u64,
    floor: usize,
}

impl Model {
    /// An empty store.
    pub fn new() -> Model {
        Model::default()
    }

    /// Adds one atomic write and returns its number, counted from 1. Call it when the write is *invoked*: after a crash
    /// it may be there without ever having been acknowledged.
    pub fn apply(&mut self, changes: &[Change]) -> usize {
        self.now.apply(changes);
        self.sequence += changes.len() as u64;
        self.writes.push(changes.to_vec());
        self.writes.len()
    }

    /// The store has promised that writes up to `number` survive a crash. A lower number than before changes nothing.
    pub fn acknowledge(&mut self, number: usize) {
        self.floor = self.floor.max(number.min(self.writes.len()));
    }

    /// Largest acknowledged write, 0 for none.
    pub fn floor(&self) -> usize {
        self.floor
    }

    /// Writes so far.
    pub fn writes(&self) -> usize {
        self.writes.len()
    }

    /// The last of the first `upto` writes that changed the family, 0 for none.
    pub fn last_write_to(&self, family: &str, upto: usize) -> usize {
        let touches = |changes: &Vec<Change>| changes.iter().any(|c| c.family() == family);
        let writes = self.writes.get(..upto).unwrap_or(&self.writes);
        writes.iter().rposition(touches).map_or(0, |index| index + 1)
    }

    /// Sequence number of the last change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The state after all writes.
    pub fn now(&self) -> &State {
        &self.now
    }

    /// The state after the first `m` writes. Replays them: O(m).
    pub fn cut(&self, m: usize) -> State {
        let mut state = State::default();
        for changes in self.writes.iter().take(m) {
            state.apply(changes);
        }
        state
    }

    /// Finds the largest M whose cut equals `recovered`.
    ///
    /// # Errors
    /// As [`Model::matches`].
    /// # Cost
    /// As [`Model::matches`].
    pub fn match_prefix(&self, recovered: &State) -> Result<usize, Difference> {
        self.matches(recovered).map(|(_, largest)| largest)
    }

    /// Finds the smallest M from the floor on whose cut equals `recovered`, and the largest one. They differ where writes
    /// changed nothing, or took each other back.
    ///
    /// # Errors
    /// [`Difference::Lost`] when the only such M lie below the floor, [`Difference::NoPrefix`] if there is no such M.
    /// # Cost
    /// One pass over the writes; per write as much as it has changes and deletes by range.
    pub fn matches(&self, recovered: &State) -> Result<(usize, usize), Difference> {
        let mut state = State::default();
        let mut differing = state.differing(recovered);
        let mut smallest = (differing.is_empty() && self.floor == 0).then_some(0);
        let mut largest = differing.is_empty().then_some(0);
        let mut nearest = (differing.len(), 0);
        for (m, changes) in (1..).zip(&self.writes) {
            for change in changes {
                // What a range deletes and the recovered store lacks differed before, and is among these.
                let touched = state.touched(change);
                state.apply(std::slice::from_ref(change));
                for key in touched {
                    let at = (change.family().to_owned(), key);
                    if state.get(&at.0, &at.1) == recovered.get(&at.0, &at.1) {
                        differing.remove(&at);
                    } else {
                        differing.insert(at);
                    }
                }
            }
            if differing.is_empty() {
                smallest = smallest.or((m >= self.floor).then_some(m));
                largest = Some(m);
            }
            nearest = nearest.min((differing.len(), m));
        }
        match (smallest, largest) {
            (Some(smallest), Some(largest)) => Ok((smallest, largest)),
            (_, Some(m)) => Err(Difference::Lost { recovered: m, floor: self.floor }),
            (_, None) => Err(self.no_prefix(nearest.1, recovered)),
        }
    }

    /// The changes after the first `m` writes, in order.
    pub fn since(&self, m: usize) -> impl Iterator<Item = &Change> {
        self.writes.iter().skip(m).flatten()
    }

    /// What a key would hold if it had had `value` before all writes: every write to it counts, the oldest first.
    pub fn above(&self, family: &str, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let mut state = State::default();
        let put = |value: &[u8]| Change::Put {
            family: family.to_owned(),
            key: key.to_vec(),
            value: value.to_vec(),
        };
        state.apply(&[put(value)]);
        for change in self.writes.iter().flatten().filter(|change| change.family() == family) {
            let meets = match change {
                Change::DeleteRange { from, to, .. } => from.as_slice() <= key && key < to.as_slice(),
                _ => change.key() == key,
            };
            if meets {
                state.apply(std::slice::from_ref(change));
            }
        }
        state.get(family, key).map(<[u8]>::to_vec)
    }

    /// Forgets the writes after the first `m`: the store was recovered there and goes on from it.
    pub fn truncate(&mut self, m: usize) {
        self.writes.truncate(m);
        self.now = self.cut(m);
        self.sequence = self.writes.iter().map(|changes| changes.len() as u64).sum();
        self.floor = self.floor.min(m);
    }

    /// The same writes, seen through some of the families only: the numbers and the floor stay. For a store that has
    /// dropped the others, which happens outside of the order of writes.
    pub fn of_families(&self, keep: impl Fn(&str) -> bool) -> Model {
        self.mapped(|change| keep(change.family()).then(|| change.clone()))
    }

    /// The same writes with other changes in place of theirs, or without them: the numbers and the floor stay.
    pub fn mapped(&self, f: impl Fn(&Change) -> Option<Change>) -> Model {
        let mut model = Model::new();
        for changes in &self.writes {
            model.apply(&changes.iter().filter_map(&f).collect::<Vec<_>>());
        }
        model.floor = self.floor;
        model
    }

    fn no_prefix(&self, nearest: usize, recovered: &State) -> Difference {
        let cut = self.cut(nearest);
        let differing = cut.differing(recovered);
        let keys = differing.len();
        let (family, key) = differing.into_iter().next().unwrap_or_default();
        let expected = cut.get(&family, &key).map(<[u8]>::to_vec);
        let found = recovered.get(&family, &key).map(<[u8]>::to_vec);
        Difference::NoPrefix { nearest, keys, family, key, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Mix, Op, draw};

    fn put(key: &str, value: &str) -> Change {
        Change::Put { family: "default".into(), key: key.into(), value: value.into() }
    }

    fn model(writes: usize) -> Model {
        let mut model = Model::new();
        for op in draw(3, writes * 2, &Mix { max_value_bytes: 20, ..Mix::writes_only() }) {
            if let Op::Write { changes, .. } = op {
                model.apply(&changes);
            }
        }
        model.truncate(writes);
        model
    }

    #[test]
    fn every_cut_is_found() {
        let model = model(200);
        for m in 0..=200 {
            let cut = model.cut(m);
            let (least, found) = model.matches(&cut).unwrap();
            assert!(
                (least..=found).contains(&m) && model.cut(found) == cut,
                "cut {m}, found {least} to {found}"
            );
            assert!(model.cut(least) == cut && (least == 0 || model.cut(least - 1) != cut), "{least} of {m}");
        }
        assert!(*model.now() == model.cut(200));
    }

    #[test]
    fn every_write_counts_above_what_was_there_before() {
        let mut model = Model::new();
        let (family, key) = ("default".to_owned(), b"a".to_vec());
        model.apply(&[Change::Merge { family: family.clone(), key: key.clone(), operand: b"1".to_vec() }]);
        assert_eq!(model.above(&family, &key, b"0"), Some(b"0,1".to_vec()));
        assert_eq!(model.above(&family, b"b", b"0"), Some(b"0".to_vec()));
        model.apply(&[Change::DeleteRange { family: family.clone(), from: key.clone(), to: b"b".to_vec() }]);
        assert_eq!(model.above(&family, &key, b"0"), None);
        assert_eq!(model.above(&family, b"b", b"0"), Some(b"0".to_vec()));
    }

    #[test]
    fn a_lost_acknowledged_write_is_told() {
        let mut model = Model::new();
        for i in 0..10 {
            model.apply(&[put("k", &i.to_string())]);
        }
        model.acknowledge(8);
        assert_eq!(model.match_prefix(&model.cut(9)), Ok(9));
        assert_eq!(model.match_prefix(&model.cut(7)), Err(Difference::Lost { recovered: 7, floor: 8 }));
        assert_eq!((model.sequence(), model.floor()), (10, 8));
    }

    #[test]
    fn holes_inventions_and_half_batches_are_told() {
        let mut model = Model::new();
        model.apply(&[put("a", "1")]);
        model.apply(&[put("b", "2"), put("c", "3")]);
        model.apply(&[put("d", "4")]);
        let state = |list: &[(&str, &str)]| {
            let list = list.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
            State::of([("default".to_owned(), list)])
        };
        for (bad, key) in [
            (state(&[("a", "1"), ("d", "4")]), "d"),
            (state(&[("a", "1"), ("b", "2")]), "b"),
            (state(&[("a", "1"), ("x", "9")]), "x"),
        ] {
            match model.match_prefix(&bad) {
                Err(Difference::NoPrefix { key: named, .. }) => assert_eq!(named, key.as_bytes()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(model.match_prefix(&state(&[])), Ok(0));
    }

    #[test]
    fn a_dropped_family_is_left_out() {
        let mut model = Model::new();
        model.apply(&[put("a", "1"), Change::Put { family: "other".into(), key: vec![1], value: vec![] }]);
        model.apply(&[Change::Put { family: "other".into(), key: vec![2], value: vec![] }]);
        model.apply(&[put("b", "2")]);
        model.acknowledge(2);
        let last = |family, upto| model.last_write_to(family, upto);
        assert_eq!((last("other", 9), last("other", 1), last("other", 0), last("none", 9)), (2, 1, 0, 0));
        let left = model.of_families(|name| name == "default");
        assert_eq!((left.writes(), left.floor(), left.now().names().count()), (3, 2, 1));
        let cut = State::of([("default".to_owned(), vec![(b"a".to_vec(), b"1".to_vec())])]);
        assert_eq!(left.match_prefix(&cut), Ok(2), "the write in between changed nothing that is left");
    }

    #[test]
    fn every_change_does_what_it_says() {
        let family = || "default".to_owned();
        let merge = |key: &str, operand: &str| Change::Merge {
            family: family(),
            key: key.into(),
            operand: operand.into(),
        };
        let mut state = State::default();
        state.apply(&[put("a", "1"), put("b", "2"), put("c", "3"), merge("a", "x"), merge("n", "y")]);
        assert_eq!(state.get("default", b"a"), Some(&b"1,x"[..]));
        assert_eq!(state.get("default", b"n"), Some(&b"y"[..]));
        state.apply(&[Change::DeleteRange { family: family(), from: b"a".to_vec(), to: b"c".to_vec() }]);
        state.apply(&[Change::SingleDelete { family: family(), key: b"n".to_vec() }]);
        assert_eq!(state.entries("default"), [(b"c".to_vec(), b"3".to_vec())]);
    }

    #[test]
    fn an_empty_family_is_no_family() {
        let mut model = Model::new();
        model.apply(&[put("a", "1")]);
        model.apply(&[Change::Delete { family: "default".into(), key: b"a".to_vec() }]);
        assert_eq!(model.match_prefix(&State::of([("other".to_owned(), vec![])])), Ok(2));
    }
}

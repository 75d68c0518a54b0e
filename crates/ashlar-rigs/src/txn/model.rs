//! What transactions answer, by the contract.

use std::collections::BTreeMap;

/// A family, by its place in the list, and a key.
pub type Place = (usize, Vec<u8>);
/// The values of a state.
pub type State = BTreeMap<Place, Vec<u8>>;

/// A change of one key.
#[derive(Clone, Debug)]
pub enum Change {
    Put(Vec<u8>),
    Delete,
    /// Appends after a comma.
    Merge(Vec<u8>),
}

impl Change {
    pub fn apply(&self, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match (self, value) {
            (Change::Put(value), _) => Some(value.clone()),
            (Change::Delete, _) => None,
            (Change::Merge(operand), None) => Some(operand.clone()),
            (Change::Merge(operand), Some(value)) => Some([&value[..], b",", operand].concat()),
        }
    }
}

/// The committed states, and when each key was written.
pub struct Database {
    /// After each write.
    states: Vec<State>,
    written: BTreeMap<Place, usize>,
}

impl Database {
    pub fn new() -> Database {
        Database { states: vec![State::new()], written: BTreeMap::new() }
    }

    /// The number of writes so far.
    pub fn now(&self) -> usize {
        self.states.len() - 1
    }

    pub fn at(&self, version: usize) -> &State {
        &self.states[version]
    }

    pub fn write(&mut self, changes: &[(Place, Change)]) {
        let mut state = self.at(self.now()).clone();
        for (place, change) in changes {
            if let Some(value) = change.apply(state.remove(place)) {
                state.insert(place.clone(), value);
            }
            self.written.insert(place.clone(), self.states.len());
        }
        self.states.push(state);
    }

    /// Deletes these keys, which are all of a range.
    pub fn delete(&mut self, places: impl IntoIterator<Item = Place>) {
        let changes: Vec<_> = places.into_iter().map(|place| (place, Change::Delete)).collect();
        self.write(&changes);
    }

    /// Whether a check for writes to `place` since `since` has to fail. `present`: the transaction found a value.
    pub fn conflict(&self, place: &Place, since: usize, present: bool) -> Verdict {
        match self.written.get(place).is_some_and(|at| *at > since) {
            false => Verdict::No,
            true if present || self.at(self.now()).contains_key(place) => Verdict::Yes,
            true => Verdict::Open,
        }
    }
}

/// Whether something is a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    No,
    /// Both answers are right.
    Open,
    Yes,
}

/// A key that a transaction tracks.
#[derive(Clone, Debug)]
pub struct Tracked {
    pub exclusive: bool,
    pub since: usize,
    /// The transaction has found a value.
    pub present: bool,
}

/// A range of keys of a family that a transaction has locked: the first byte, and the one behind the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRange {
    pub family: usize,
    pub keys: std::ops::Range<u8>,
    pub exclusive: bool,
}

impl LockedRange {
    fn holds(&self, place: &Place) -> bool {
        self.family == place.0 && place.1.first().is_some_and(|byte| self.keys.contains(byte))
    }

    fn meets(&self, other: &LockedRange) -> bool {
        self.family == other.family && self.keys.start < other.keys.end && other.keys.start < self.keys.end
    }

    fn covers(&self, other: &LockedRange) -> bool {
        let within = self.keys.start <= other.keys.start && other.keys.end <= self.keys.end;
        self.family == other.family && within && (self.exclusive || !other.exclusive)
    }
}

/// An open transaction.
#[derive(Clone, Debug, Default)]
pub struct Open {
    pub pessimistic: bool,
    pub snapshot: Option<usize>,
    pub snapshot_due: bool,
    pub changes: Vec<(Place, Change)>,
    pub tracked: BTreeMap<Place, Tracked>,
    /// The ranges that it has locked, in this order.
    pub ranges: Vec<LockedRange>,
    pub savepoints: Vec<Savepoint>,
}

/// What a rollback returns to.
#[derive(Clone, Debug)]
pub struct Savepoint {
    changes: usize,
    tracked: BTreeMap<Place, Tracked>,
    ranges: usize,
    snapshot: Option<usize>,
    snapshot_due: bool,
}

/// The answer to a request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Others hold the key.
    Held,
    Conflict(Verdict),
}

impl Open {
    /// The state that it reads.
    pub fn base<'a>(&self, database: &'a Database) -> &'a State {
        database.at(self.snapshot.unwrap_or(database.now()))
    }

    /// What it sees.
    pub fn view(&self, database: &Database) -> State {
        let mut state = self.base(database).clone();
        for (place, change) in &self.changes {
            if let Some(value) = change.apply(state.remove(place)) {
                state.insert(place.clone(), value);
            }
        }
        state
    }

    /// The value that a read shows. It notes a value that was found in the database.
    pub fn read(&mut self, database: &Database, place: &Place) -> Option<Vec<u8>> {
        let base = self.base(database).get(place).cloned();
        let own = || self.changes.iter().filter(|(changed, _)| changed == place).map(|(_, change)| change);
        let asks = own().all(|change| matches!(change, Change::Merge(_)));
        let value = own().fold(base.clone(), |value, change| change.apply(value));
        if asks
            && base.is_some()
            && let Some(tracked) = self.tracked.get_mut(place)
        {
            tracked.present = true;
        }
        value
    }

    /// Asks for a lock beside `others`. A refusal changes nothing.
    pub fn lock(&self, database: &Database, others: &[&Open], place: &Place, exclusive: bool) -> Lock {
        let held = self.tracked.get(place);
        if held.is_some_and(|held| held.exclusive || !exclusive) {
            return Lock::Conflict(Verdict::No);
        }
        let in_range = |theirs: &LockedRange| theirs.holds(place) && (exclusive || theirs.exclusive);
        let excludes = |other: &&Open| {
            let key = other.tracked.get(place).is_some_and(|theirs| exclusive || theirs.exclusive);
            other.pessimistic && (key || other.ranges.iter().any(in_range))
        };
        if self.pessimistic && others.iter().any(excludes) {
            return Lock::Held;
        }
        match self.snapshot {
            Some(since) if self.pessimistic && held.is_none() && !self.snapshot_due => {
                Lock::Conflict(database.conflict(place, since, false))
            }
            _ => Lock::Conflict(Verdict::No),
        }
    }

    /// Asks for a range beside `others`: whether it is free of their locks.
    pub fn may_lock_range(&self, others: &[&Open], range: &LockedRange) -> bool {
        if self.ranges.iter().any(|own| own.covers(range)) {
            return true;
        }
        let excludes = |other: &&Open| {
            let key = |(place, theirs): (&Place, &Tracked)| {
                range.holds(place) && (range.exclusive || theirs.exclusive)
            };
            let meets = |theirs: &LockedRange| theirs.meets(range) && (range.exclusive || theirs.exclusive);
            other.pessimistic && (other.tracked.iter().any(key) || other.ranges.iter().any(meets))
        };
        !others.iter().any(excludes)
    }

    /// Locks a range: the lock was given.
    pub fn lock_range(&mut self, database: &Database, range: LockedRange) {
        if std::mem::take(&mut self.snapshot_due) {
            self.snapshot = Some(database.now());
        }
        self.ranges.push(range);
    }

    /// Tracks a key: the lock was given.
    pub fn track(&mut self, database: &Database, place: &Place, exclusive: bool) {
        if std::mem::take(&mut self.snapshot_due) {
            self.snapshot = Some(database.now());
        }
        let since = self.snapshot.unwrap_or(database.now());
        let tracked =
            self.tracked.entry(place.clone()).or_insert(Tracked { exclusive, since, present: false });
        tracked.exclusive |= exclusive;
    }

    /// Whether its commit has to fail.
    pub fn commit(&self, database: &Database) -> Verdict {
        let verdicts = self.tracked.iter();
        let verdicts = verdicts.map(|(place, of)| database.conflict(place, of.since, of.present));
        verdicts.max().unwrap_or(Verdict::No)
    }

    pub fn set_savepoint(&mut self) {
        self.savepoints.push(Savepoint {
            changes: self.changes.len(),
            tracked: self.tracked.clone(),
            ranges: self.ranges.len(),
            snapshot: self.snapshot,
            snapshot_due: self.snapshot_due,
        });
    }

    pub fn rollback_to_savepoint(&mut self) -> bool {
        let Some(saved) = self.savepoints.pop() else { return false };
        self.changes.truncate(saved.changes);
        self.ranges.truncate(saved.ranges);
        (self.snapshot, self.snapshot_due) = (saved.snapshot, saved.snapshot_due);
        let before = std::mem::replace(&mut self.tracked, saved.tracked);
        for (place, tracked) in &mut self.tracked {
            // What was read stays read.
            tracked.present |= before.get(place).is_some_and(|before| before.present);
        }
        true
    }
}

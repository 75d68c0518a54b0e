//! A cursor with pending changes over it: it merges a cursor of the database with the changes, in the order of the family.
//!
//! 1. Both sides stand on their first entry that was not shown yet, in the direction of the last move. The nearer of the
//!    two is shown. On the same key, the change counts; if it has merge operands only, they apply to the entry below.
//! 2. A change that deletes its key is passed, together with the entry below.
//! 3. A move in the other direction seeks both sides to the shown key again.
//! 4. Off the end, `next` and `prev` stay off the end. After an error the cursor is off the end until the next positioning
//!    call.
//!
//! Source: RocksDB `utilities/write_batch_with_index/write_batch_with_index_internal.cc` (`BaseDeltaIterator`).

use crate::ordered::Key;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Direction, Order, Result};
use ashlar_read::iter::KeyBounds;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

/// A cursor that changes can be put over.
pub trait Below {
    /// Moves to the first entry.
    ///
    /// # Errors
    /// Those of a read.
    fn first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    ///
    /// # Errors
    /// Those of a read.
    fn last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after `key`.
    ///
    /// # Errors
    /// Those of a read.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// Moves to the last entry at or before `key`.
    ///
    /// # Errors
    /// Those of a read.
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()>;
    /// Moves to the next entry.
    ///
    /// # Errors
    /// Those of a read.
    fn next(&mut self) -> Result<()>;
    /// Moves to the entry before.
    ///
    /// # Errors
    /// Those of a read.
    fn prev(&mut self) -> Result<()>;
    /// Key and value; `None` off the end.
    fn entry(&self) -> Option<(&[u8], &[u8])>;
    /// The key; `None` off the end.
    fn key(&self) -> Option<&[u8]>;
}

/// The changes that a cursor shows over another one.
pub trait Changes {
    /// What the operations on one key amount to.
    type Change;
    /// The order of the keys.
    fn order(&self) -> &Order;
    /// The first change in this range of keys.
    ///
    /// # Errors
    /// The changes cannot be read.
    fn first_from(&self, from: Bound<&[u8]>) -> Result<Option<(Key, Self::Change)>>;
    /// The last change in this range of keys.
    ///
    /// # Errors
    /// The changes cannot be read.
    fn last_to(&self, to: Bound<&[u8]>) -> Result<Option<(Key, Self::Change)>>;
    /// The value of `key` after the change; `below` is the value in the database.
    ///
    /// # Errors
    /// Those of the merge operator.
    fn value<'a>(
        &self,
        key: &Key,
        change: &'a Self::Change,
        below: Option<&'a [u8]>,
    ) -> Result<Option<Cow<'a, [u8]>>>;
}

/// What the cursor shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// The entry of the database.
    Entry,
    /// The change, whose value is in `value`. `over`: the database has an entry of the key.
    Change {
        over: bool,
    },
}

/// A cursor over the keys of a family, with pending changes over them, within bounds.
pub struct MergedIter<B, C: Changes> {
    below: B,
    changes: C,
    bounds: KeyBounds,
    /// Where the cursor of the changes stands; `None`: off the end.
    change: Option<(Key, C::Change)>,
    shown: Shown,
    direction: Direction,
    value: Vec<u8>,
}

impl<B: Below, C: Changes> MergedIter<B, C> {
    /// A cursor over `below` with `changes` within `bounds` over it. It is off the end.
    pub fn new(below: B, changes: C, bounds: KeyBounds) -> Self {
        let (shown, direction) = (Shown::Nothing, Direction::Forward);
        MergedIter { below, changes, bounds, change: None, shown, direction, value: Vec::new() }
    }

    /// The cursor of the database.
    pub fn below(&self) -> &B {
        &self.below
    }

    /// The changes.
    pub fn changes(&self) -> &C {
        &self.changes
    }

    /// The change that is shown, with its key, and whether the database has an entry of the key; `None`: no change is shown.
    pub(crate) fn shown_change(&self) -> Option<(&Key, &C::Change, bool)> {
        match (self.shown, &self.change) {
            (Shown::Change { over }, Some((key, change))) => Some((key, change, over)),
            _ => None,
        }
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// Those of the cursor below, and of the merge operator.
    pub fn first(&mut self) -> Result<()> {
        self.shown = Shown::Nothing;
        self.below.first()?;
        self.change = self.changes.first_from(self.bounds.lower_end())?;
        self.settle(Direction::Forward)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`MergedIter::first`].
    pub fn last(&mut self) -> Result<()> {
        self.shown = Shown::Nothing;
        self.below.last()?;
        self.change = self.changes.last_to(self.bounds.upper_end())?;
        self.settle(Direction::Backward)
    }

    /// Moves to the first entry at or after `key`.
    ///
    /// # Errors
    /// As [`MergedIter::first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.shown = Shown::Nothing;
        self.below.seek(key)?;
        let before = self.bounds.is_before(self.changes.order(), key);
        let from = if before { self.bounds.lower_end() } else { Bound::Included(key) };
        self.change = self.changes.first_from(from)?;
        self.settle(Direction::Forward)
    }

    /// Moves to the last entry at or before `key`.
    ///
    /// # Errors
    /// As [`MergedIter::first`].
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.shown = Shown::Nothing;
        self.below.seek_for_prev(key)?;
        let behind = self.bounds.is_behind(self.changes.order(), key);
        let to = if behind { self.bounds.upper_end() } else { Bound::Included(key) };
        self.change = self.changes.last_to(to)?;
        self.settle(Direction::Backward)
    }

    /// Moves to the next entry.
    ///
    /// # Errors
    /// As [`MergedIter::first`].
    #[expect(clippy::should_implement_trait, reason = "a cursor lends its entries")]
    pub fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward)
    }

    /// Moves to the previous entry.
    ///
    /// # Errors
    /// As [`MergedIter::first`].
    pub fn prev(&mut self) -> Result<()> {
        self.step(Direction::Backward)
    }

    /// The shown key; `None` off the end.
    pub fn key(&self) -> Option<&[u8]> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Entry => self.below.key(),
            Shown::Change { .. } => self.change.as_ref().map(|(key, _)| key.bytes()),
        }
    }

    /// The shown key and value; `None` off the end.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Entry => self.below.entry(),
            Shown::Change { .. } => self.change.as_ref().map(|(key, _)| (key.bytes(), &self.value[..])),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        let shown = std::mem::replace(&mut self.shown, Shown::Nothing);
        if self.direction == direction {
            return match shown {
                Shown::Nothing => Ok(()),
                Shown::Entry => {
                    self.pass_entry()?;
                    self.settle(direction)
                }
                Shown::Change { over } => {
                    self.pass_change(over)?;
                    self.settle(direction)
                }
            };
        }
        let key: Vec<u8> = match (shown, &self.change) {
            (Shown::Entry, _) => self.below.key().unwrap_or_default().to_vec(),
            (Shown::Change { .. }, Some((key, _))) => key.bytes().to_vec(),
            _ => return Ok(()),
        };
        self.direction = direction;
        let from =
            if planted(Bug::TurnShowsAKeyTwice) { Bound::Included(&key) } else { Bound::Excluded(&key) };
        let from = from.map(Vec::as_slice);
        match direction {
            Direction::Forward => {
                self.below.seek(&key)?;
                self.change = self.changes.first_from(from)?;
            }
            Direction::Backward => {
                self.below.seek_for_prev(&key)?;
                self.change = self.changes.last_to(from)?;
            }
        }
        if self.below.key() == Some(&key) {
            self.pass_entry()?;
        }
        self.settle(direction)
    }

    fn pass_entry(&mut self) -> Result<()> {
        match self.direction {
            Direction::Forward => self.below.next(),
            Direction::Backward => self.below.prev(),
        }
    }

    fn pass_change(&mut self, over: bool) -> Result<()> {
        if over {
            self.pass_entry()?;
        }
        if let Some((key, _)) = self.change.take() {
            self.change = match self.direction {
                Direction::Forward => self.changes.first_from(Bound::Excluded(key.bytes()))?,
                Direction::Backward => self.changes.last_to(Bound::Excluded(key.bytes()))?,
            };
        }
        Ok(())
    }

    /// Shows the nearer of the two sides, and passes keys that a change deletes.
    fn settle(&mut self, direction: Direction) -> Result<()> {
        self.direction = direction;
        let order = self.changes.order().clone();
        loop {
            let (key, change) = match &self.change {
                Some((key, change)) if !self.is_outside(key) => (key, change),
                _ => {
                    self.shown = if self.below.key().is_some() { Shown::Entry } else { Shown::Nothing };
                    return Ok(());
                }
            };
            let ahead = self.below.key().map(|below| order.compare(below, key.bytes()));
            let ahead = match direction {
                Direction::Forward => ahead,
                Direction::Backward => ahead.map(Ordering::reverse),
            };
            if ahead == Some(Ordering::Less) {
                self.shown = Shown::Entry;
                return Ok(());
            }
            let over = ahead == Some(Ordering::Equal);
            let below = if over { self.below.entry().map(|(_, value)| value) } else { None };
            if let Some(value) = self.changes.value(key, change, below)? {
                self.value.clear();
                self.value.extend_from_slice(&value);
                self.shown = Shown::Change { over };
                return Ok(());
            }
            self.pass_change(over)?;
        }
    }

    /// Whether the cursor of the changes has left the bounds.
    fn is_outside(&self, key: &Key) -> bool {
        match self.direction {
            Direction::Forward => self.bounds.is_behind(self.changes.order(), key.bytes()),
            Direction::Backward => self.bounds.is_before(self.changes.order(), key.bytes()),
        }
    }
}

impl<B: Below, C: Changes> fmt::Debug for MergedIter<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key().map(|key| key.escape_ascii().to_string());
        f.debug_struct("MergedIter").field("key", &key).finish_non_exhaustive()
    }
}

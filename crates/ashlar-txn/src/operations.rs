//! A cursor over the operations of a batch on one family, as they were when the cursor was made.
//!
//! 1. Keys are in the order of the family. The operations on one key are newest first, so a cursor that goes backward shows
//!    the oldest one first.
//! 2. Off the end, `next` and `prev` stay off the end; before the first move, they go to the first and to the last operation.
//! 3. The iterator has a cursor for each end. It ends where the two meet.
//!
//! Source: RocksDB `include/rocksdb/utilities/write_batch_with_index.h` (`WBWIIterator`, for the order).

use crate::changes::{Change, Operation, View};
use crate::ordered::Key;
use ashlar_read::iter::KeyBounds;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

/// Where a cursor stands.
#[derive(Clone)]
struct Place {
    key: Key,
    /// Those on the key, newest first.
    operations: Vec<Operation>,
    index: usize,
}

/// A position among the operations of a batch on one family: on an operation, or off the end. It shows the moment of the call
/// that made it. The operations on one key are newest first.
///
/// Each call that moves the cursor returns what is there, or `None` off the end.
#[derive(Clone)]
pub struct OperationCursor {
    view: View,
    bounds: KeyBounds,
    place: Option<Place>,
    /// No call has moved the cursor yet.
    fresh: bool,
}

impl OperationCursor {
    fn new(view: View, bounds: KeyBounds) -> OperationCursor {
        OperationCursor { view, bounds, place: None, fresh: true }
    }

    /// The current key and operation; `None` off the end.
    pub fn entry(&self) -> Option<(&[u8], &Operation)> {
        let place = self.place.as_ref()?;
        Some((place.key.bytes(), place.operations.get(place.index)?))
    }

    /// Moves to the first operation.
    pub fn first(&mut self) -> Option<(&[u8], &Operation)> {
        let found = self.view.first_from(self.bounds.lower_end());
        self.ascend(found)
    }

    /// Moves to the last operation.
    pub fn last(&mut self) -> Option<(&[u8], &Operation)> {
        let found = self.view.last_to(self.bounds.upper_end());
        self.descend(found)
    }

    /// Moves to the first operation on a key at or after `key`: the newest one on the first such key.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Option<(&[u8], &Operation)> {
        let key = key.as_ref();
        if self.bounds.is_before(self.view.order(), key) {
            return self.first();
        }
        let found = self.view.first_from(Bound::Included(key));
        self.ascend(found)
    }

    /// Moves to the last operation on a key at or before `key`: the oldest one on the last such key.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Option<(&[u8], &Operation)> {
        let key = key.as_ref();
        if self.bounds.is_behind(self.view.order(), key) {
            return self.last();
        }
        let found = self.view.last_to(Bound::Included(key));
        self.descend(found)
    }

    /// Moves to the next operation: the next older one on the key, or else the newest one on the next key. A new cursor moves to
    /// the first.
    #[expect(
        clippy::should_implement_trait,
        reason = "a cursor lends its entries; `Operations` is the iterator"
    )]
    pub fn next(&mut self) -> Option<(&[u8], &Operation)> {
        if self.fresh {
            return self.first();
        }
        let place = self.place.as_mut()?;
        if place.index + 1 < place.operations.len() {
            place.index += 1;
            return self.entry();
        }
        let found = self.view.first_from(Bound::Excluded(place.key.bytes()));
        self.ascend(found)
    }

    /// Moves to the previous operation: the next newer one on the key, or else the oldest one on the key before. A new cursor
    /// moves to the last.
    pub fn prev(&mut self) -> Option<(&[u8], &Operation)> {
        if self.fresh {
            return self.last();
        }
        let place = self.place.as_mut()?;
        if let Some(newer) = place.index.checked_sub(1) {
            place.index = newer;
            return self.entry();
        }
        let found = self.view.last_to(Bound::Excluded(place.key.bytes()));
        self.descend(found)
    }

    /// Stands on the newest operation of a key found going forward.
    fn ascend(&mut self, found: Option<(Key, Change)>) -> Option<(&[u8], &Operation)> {
        self.fresh = false;
        let found = found.filter(|(key, _)| !self.bounds.is_behind(self.view.order(), key.bytes()));
        self.place = found.map(|(key, change)| Place { key, operations: change.operations(), index: 0 });
        self.entry()
    }

    /// Stands on the oldest operation of a key found going backward.
    fn descend(&mut self, found: Option<(Key, Change)>) -> Option<(&[u8], &Operation)> {
        self.fresh = false;
        let found = found.filter(|(key, _)| !self.bounds.is_before(self.view.order(), key.bytes()));
        self.place = found.map(|(key, change)| {
            let operations = change.operations();
            Place { key, index: operations.len().saturating_sub(1), operations }
        });
        self.entry()
    }

    /// Whether both are on an operation, and this one is not before the other.
    fn has_met(&self, other: &OperationCursor) -> bool {
        let (Some(own), Some(other)) = (&self.place, &other.place) else { return false };
        let keys = self.view.order().compare(own.key.bytes(), other.key.bytes());
        keys.then(own.index.cmp(&other.index)) != Ordering::Less
    }
}

impl fmt::Debug for OperationCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some((key, operation)) => write!(f, "OperationCursor({operation:?} on {})", key.escape_ascii()),
            None => f.write_str("OperationCursor(off the end)"),
        }
    }
}

/// The operations of a batch on one family, an iterator from both ends. It shows the moment of the call that made it. The
/// operations on one key are newest first.
#[derive(Clone, Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Operations {
    front: OperationCursor,
    back: OperationCursor,
    ended: bool,
}

impl Operations {
    /// The operations of `view` on keys within `bounds`.
    pub fn new(view: View, bounds: KeyBounds) -> Operations {
        let front = OperationCursor::new(view, bounds);
        Operations { back: front.clone(), front, ended: false }
    }

    /// A cursor over the same operations. It starts on no operation: [`OperationCursor::next`] moves to the first one,
    /// [`OperationCursor::prev`] to the last one.
    pub fn cursor(&self) -> OperationCursor {
        OperationCursor::new(self.front.view.clone(), self.front.bounds.clone())
    }

    /// The entry of the end that has moved, unless the ends have met.
    fn entry(&mut self, at_front: bool) -> Option<(Vec<u8>, Operation)> {
        self.ended |= self.front.has_met(&self.back);
        let moved = if at_front { &self.front } else { &self.back };
        let entry = moved.entry().filter(|_| !self.ended);
        let entry = entry.map(|(key, operation)| (key.to_vec(), operation.clone()));
        self.ended |= entry.is_none();
        entry
    }
}

impl Iterator for Operations {
    type Item = (Vec<u8>, Operation);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.front.next();
        self.entry(true)
    }
}

impl DoubleEndedIterator for Operations {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.back.prev();
        self.entry(false)
    }
}

impl std::iter::FusedIterator for Operations {}

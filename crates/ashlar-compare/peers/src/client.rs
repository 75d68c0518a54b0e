//! The handle of one client thread: it reads, scans within bounds in both directions, and applies mixed atomic batches.
//!
//! 1. Each read sees every change that was applied before it began, by any client.
//! 2. A batch is applied whole or not at all. TreeDB alone lets another client read a batch that is half applied.
//! 3. A scan shows one moment, except on TreeDB.

use crate::peer::{Keys, NoWriter, Result, not_driven};

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Sets the value of a key.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Removes a key, if it exists.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// Where a change lies in the bytes of its batch. `value` is `None` for a delete.
#[derive(Clone, Copy, Debug)]
struct Place {
    from: usize,
    key: usize,
    value: Option<usize>,
}

/// Puts and deletes of one atomic batch, in order. Later changes of a key win.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Changes {
    /// None yet.
    pub fn new() -> Changes {
        Changes::default()
    }

    /// Appends a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.places.push(Place { from: self.bytes.len(), key: key.len(), value: Some(value.len()) });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// Appends a delete.
    pub fn delete(&mut self, key: &[u8]) {
        self.places.push(Place { from: self.bytes.len(), key: key.len(), value: None });
        self.bytes.extend_from_slice(key);
    }

    /// Forgets them; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there is no change.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        self.places.iter().map(|place| {
            let (key, rest) = self.bytes[place.from..].split_at(place.key);
            place.value.map_or(Change::Delete { key }, |value| Change::Put { key, value: &rest[..value] })
        })
    }
}

/// The entries of a scan: at or after `from`, and before `to`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// The first key that may be seen.
    pub from: &'a [u8],
    /// The first key behind the range.
    pub to: &'a [u8],
    /// Whether the scan begins at the last entry.
    pub reverse: bool,
}

impl<'a> Bounds<'a> {
    /// The range in ascending order.
    pub fn forward(from: &'a [u8], to: &'a [u8]) -> Bounds<'a> {
        Bounds { from, to, reverse: false }
    }

    /// Whether the range has `key`, for engines without bounds of their own.
    pub fn has(&self, key: &[u8]) -> bool {
        self.from <= key && key < self.to
    }
}

/// The beginning of the message of a transaction that met a conflict, or waited too long for a lock. After a rollback the
/// transaction can be tried again.
pub const CONFLICT: &str = "conflict: ";

/// The handle of one client thread.
pub trait Client: Send {
    /// Calls `see` with the value of `key`. False: there is no such key.
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool>;

    /// Calls `see` with place and value of each of `keys` that exists, in their order. An engine without such a call gets one
    /// key after the other.
    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(usize, &[u8])) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            self.get(key, |value| see(place, value))?;
        }
        Ok(())
    }

    /// Calls `see` with the entries in `bounds`, in order, until it answers false.
    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()>;

    /// Applies all changes or none.
    fn apply(&mut self, changes: &Changes) -> Result<()>;

    /// Begins a transaction of the kind in [`crate::settings::Settings::transactions`].
    fn begin(&mut self) -> Result<()> {
        not_driven("transactions")
    }

    /// In the transaction: as [`Client::get`], and keeps the key from changes by others until the transaction ends.
    fn get_for_update(&mut self, _key: &[u8], _see: impl FnOnce(&[u8])) -> Result<bool> {
        not_driven("transactions")
    }

    /// Makes the changes in the transaction and commits it. After an error the transaction needs a rollback.
    fn commit(&mut self, _changes: &Changes) -> Result<()> {
        not_driven("transactions")
    }

    /// Ends the transaction without its changes.
    fn rollback(&mut self) -> Result<()> {
        not_driven("transactions")
    }
}

/// Peers without clients have none of this type.
impl Client for NoWriter {
    fn get(&mut self, _: &[u8], _: impl FnOnce(&[u8])) -> Result<bool> {
        match *self {}
    }

    fn scan(&mut self, _: Bounds<'_>, _: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        match *self {}
    }

    fn apply(&mut self, _: &Changes) -> Result<()> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_in_order() {
        let mut changes = Changes::new();
        changes.put(b"a", b"one");
        changes.delete(b"bc");
        changes.put(b"d", b"");
        let all: Vec<_> = changes.iter().collect();
        let put = |key, value| Change::Put { key, value };
        assert_eq!(all, [put(b"a", b"one"), Change::Delete { key: b"bc" }, put(b"d", b"")]);
        assert_eq!((changes.len(), changes.bytes(), changes.is_empty()), (3, 7, false));
        changes.clear();
        assert_eq!((changes.iter().count(), changes.is_empty()), (0, true));
    }

    #[test]
    fn bounds_leave_the_end_out() {
        let bounds = Bounds::forward(b"b", b"d");
        assert_eq!([&b"a"[..], b"b", b"c\xff", b"d"].map(|key| bounds.has(key)), [false, true, true, false]);
    }
}

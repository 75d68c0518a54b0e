//! An iterator that is on an entry or not, and has a status.
//!
//! 1. RocksDB's iterators answer no error where they fail: they become invalid, and a program asks for the status.
//! 2. A tailing iterator is over a tailing cursor, which looks for newer entries where it is positioned and where it ends. Within a
//!    prefix, the iterator ends before its cursor does, so there it positions the cursor again.
//! 3. With `prefix_same_as_start`, the iterator ends where the prefix of the key of the last positioning ends.

use ashlardb::{Cursor, Error, PrefixExtractor, Result, Snapshot};

/// The state that an iterator shows.
#[derive(Debug)]
pub enum At {
    /// That of the snapshot of its options; without one the newest.
    Options,
    /// The newest.
    Newest,
    /// That of a snapshot.
    Snapshot(Snapshot),
}

/// Makes a cursor over a state.
pub type Make = Box<dyn Fn(&At) -> Result<Cursor> + Send>;

/// Over one family.
pub struct Iterator {
    make: Make,
    cursor: Result<Cursor>,
    valid: bool,
    status: Option<Error>,
    tailing: bool,
    /// How prefixes are taken, if the iterator stays within one.
    extractor: Option<PrefixExtractor>,
    /// The prefix within which the iterator stays.
    prefix: Option<Vec<u8>>,
}

impl std::fmt::Debug for Iterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iterator").field("valid", &self.valid).field("status", &self.status).finish()
    }
}

impl Iterator {
    /// With the cursor that `make` makes now. One that cannot be made is the iterator's status. `tailing`: the cursor is a tailing
    /// one. `extractor`: the iterator stays within one prefix.
    pub fn new(make: Make, tailing: bool, extractor: Option<PrefixExtractor>) -> Iterator {
        let cursor = make(&At::Options);
        let status = cursor.as_ref().err().cloned();
        Iterator { make, cursor, valid: false, status, tailing, extractor, prefix: None }
    }

    /// Over a cursor that cannot be made again.
    pub fn once(cursor: Result<Cursor>) -> Iterator {
        let make: Make = Box::new(|_| Err(Error::not_supported("a refresh of an iterator of a transaction")));
        let status = cursor.as_ref().err().cloned();
        Iterator { make, cursor, valid: false, status, tailing: false, extractor: None, prefix: None }
    }

    /// Shows the newest state, or that of the snapshot, from now on, and is on no entry.
    ///
    /// # Errors
    /// Those of a new iterator. `NotSupported`: a tailing iterator at a snapshot.
    pub fn refresh(&mut self, snapshot: Option<Snapshot>) -> Result<()> {
        if self.tailing && snapshot.is_some() {
            return Err(Error::not_supported("a refresh of a tailing iterator to a snapshot"));
        }
        self.cursor = (self.make)(&snapshot.map_or(At::Newest, At::Snapshot));
        (self.valid, self.status) = (false, self.cursor.as_ref().err().cloned());
        self.status()
    }

    #[inline]
    fn step(&mut self, moved: impl FnOnce(&mut Cursor) -> Result<bool>) {
        let Ok(cursor) = &mut self.cursor else { return };
        match moved(cursor) {
            Ok(valid) => self.valid = valid,
            Err(e) => (self.valid, self.status) = (false, Some(e)),
        }
        if self.valid && self.prefix.is_some() {
            self.end_behind_prefix();
        }
    }

    /// Ends the iterator on a key of another prefix.
    #[cold]
    fn end_behind_prefix(&mut self) {
        let same = self.entry().is_some_and(|(key, _)| self.prefix_of(key) == self.prefix);
        self.valid = same;
    }

    fn prefix_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.extractor.as_ref()?.prefix(key).map(<[u8]>::to_vec)
    }

    /// A move that positions: it begins with a new status. `near`: the key to which it goes.
    fn position(&mut self, near: Option<&[u8]>, moved: impl FnOnce(&mut Cursor) -> Result<bool>) {
        if self.cursor.is_ok() {
            self.status = None;
        }
        self.prefix = near.and_then(|key| self.prefix_of(key));
        self.step(moved);
        if near.is_none() {
            self.prefix = self.entry().and_then(|(key, _)| self.prefix_of(key));
        }
    }

    /// Whether the iterator is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.position(None, |cursor| Ok(cursor.first()?.is_some()));
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.position(None, |cursor| Ok(cursor.last()?.is_some()));
    }

    /// To the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.position(Some(key), |cursor| Ok(cursor.seek(key)?.is_some()));
    }

    /// To the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.position(Some(key), |cursor| Ok(cursor.seek_for_prev(key)?.is_some()));
    }

    /// To the next entry. Off the entries the iterator stays there.
    #[inline]
    pub fn next(&mut self) {
        if self.valid {
            if self.tailing && self.prefix.is_some() {
                return self.next_in_prefix();
            }
            self.step(|cursor| Ok(cursor.next()?.is_some()));
        }
    }

    /// To the next entry of the prefix. Where the cursor's next entry has another prefix, a newer entry may be before it.
    #[cold]
    fn next_in_prefix(&mut self) {
        let Some(last) = self.entry().map(|(key, _)| key.to_vec()) else { return };
        self.step(|cursor| Ok(cursor.next()?.is_some()));
        if self.valid || self.status.is_some() {
            return;
        }
        self.step(|cursor| match cursor.seek(&last)? {
            Some((key, _)) if key == last => Ok(cursor.next()?.is_some()),
            entry => Ok(entry.is_some()),
        });
    }

    /// To the entry before. Off the entries the iterator stays there.
    #[inline]
    pub fn prev(&mut self) {
        if self.valid {
            self.step(|cursor| Ok(cursor.prev()?.is_some()));
        }
    }

    /// Key and value; `None` off the entries.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.as_ref().ok().filter(|_| self.valid)?.entry()
    }

    /// The error that ended the iterator.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.status.clone().map_or(Ok(()), Err)
    }
}

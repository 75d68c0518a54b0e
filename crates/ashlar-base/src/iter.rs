//! Cursors over internal keys: the general trait (one entry at a time) and the fast one (a window at a time).

use crate::error::Result;
use crate::key::{InternalKey, LookupKey, Trailer};

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// One entry under a cursor.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The internal key.
    pub key: InternalKey<'a>,
    /// The value as stored: what it means depends on the key's type.
    pub value: &'a [u8],
}

/// A cursor over internal keys in comparator order, newest version of a user key first.
/// On an entry or off the end, no third state; after an error it is off the end until the next positioning call.
pub trait InternalIterator: Send {
    /// Moves to the first entry at or after `target`.
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()>;
    /// Moves to the last entry at or before `target`.
    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()>;
    /// Moves to the first entry.
    fn first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn last(&mut self) -> Result<()>;
    /// Moves one entry on. Off the end it stays there.
    fn next(&mut self) -> Result<()>;
    /// Moves one entry back. Off the end it stays there.
    fn prev(&mut self) -> Result<()>;
    /// The entry under the cursor; `None` past either end.
    fn entry(&self) -> Option<Entry<'_>>;
    /// The key of that entry. Some cursors find the key in fewer steps than key and value.
    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        self.entry().map(|entry| entry.key)
    }
}

impl<T: InternalIterator + ?Sized> InternalIterator for Box<T> {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        (**self).seek(target)
    }
    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        (**self).seek_for_prev(target)
    }
    fn first(&mut self) -> Result<()> {
        (**self).first()
    }
    fn last(&mut self) -> Result<()> {
        (**self).last()
    }
    fn next(&mut self) -> Result<()> {
        (**self).next()
    }
    fn prev(&mut self) -> Result<()> {
        (**self).prev()
    }
    fn entry(&self) -> Option<Entry<'_>> {
        (**self).entry()
    }
    fn key(&self) -> Option<InternalKey<'_>> {
        (**self).key()
    }
}

/// A forward cursor over one sorted run that hands out entries in windows: one virtual call per window.
/// The source of the merge loop of flush and compaction.
pub trait RunCursor: Send {
    /// Positions at the first entry at or after `key`; `None` = the first entry of the run.
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()>;
    /// Replaces the content of `window` with the next entries; `false` and an empty window at the end of the run.
    fn window(&mut self, window: &mut Window) -> Result<bool>;
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key_at: usize,
    value_at: usize,
    value_end: usize,
}

/// Up to [`Window::CAPACITY`] entries of one run, in order. Owns a copy of what it holds, in one flat buffer.
#[derive(Debug, Default)]
pub struct Window {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Window {
    /// A window closes at this many entries.
    pub const CAPACITY: usize = 64;
    /// A window closes once it holds this many bytes.
    pub const BYTES: usize = 64 << 10;

    /// An empty window.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops all entries, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }

    /// True when no further entry should be pushed.
    pub fn is_full(&self) -> bool {
        self.slots.len() >= Self::CAPACITY || self.bytes.len() >= Self::BYTES
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there is no current entry.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Drops the entries from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.slots.truncate(len);
        self.bytes.truncate(self.slots.last().map_or(0, |slot| slot.value_end));
    }

    /// Appends an entry from an encoded internal key.
    pub fn push(&mut self, key: InternalKey<'_>, value: &[u8]) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key.encoded());
        self.push_value(key_at, value);
    }

    /// Appends an entry from its parts.
    pub fn push_parts(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(user_key);
        self.bytes.extend_from_slice(&trailer.raw().to_le_bytes());
        self.push_value(key_at, value);
    }

    fn push_value(&mut self, key_at: usize, value: &[u8]) {
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let value_end = self.bytes.len();
        self.slots.push(Slot { key_at, value_at, value_end });
    }

    /// The entry at `index`; `None` past the last.
    #[inline]
    pub fn entry(&self, index: usize) -> Option<Entry<'_>> {
        let slot = self.slots.get(index)?;
        let key = self.bytes.get(slot.key_at..slot.value_at)?;
        let value = self.bytes.get(slot.value_at..slot.value_end)?;
        Some(Entry { key: InternalKey::decode(key).ok()?, value })
    }
}

//! Cursors over internal keys: the general trait (one entry at a time) and the fast one (a window at a time).

use crate::error::Result;
use crate::key::{InternalKey, LookupKey, Sharing, Trailer};
use std::ops::Range;
use std::sync::Arc;

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
    /// [`InternalIterator::next`]. Returns the new user key beside the old one; `None` off the end.
    fn next_sharing(&mut self) -> Result<Option<Sharing>> {
        sharing(self, |cursor| cursor.next())
    }
    /// [`InternalIterator::prev`]. Returns the new user key beside the old one; `None` off the end.
    fn prev_sharing(&mut self) -> Result<Option<Sharing>> {
        sharing(self, |cursor| cursor.prev())
    }
    /// The entry under the cursor; `None` past either end.
    fn entry(&self) -> Option<Entry<'_>>;
    /// The key of that entry. Some cursors find the key in fewer steps than key and value.
    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        self.entry().map(|entry| entry.key)
    }
    /// Whether the cursor is on an entry.
    #[inline]
    fn is_on_entry(&self) -> bool {
        self.key().is_some()
    }
}

/// Moves a cursor, and compares the user keys before and after the move.
fn sharing<T: InternalIterator + ?Sized>(
    cursor: &mut T,
    step: impl FnOnce(&mut T) -> Result<()>,
) -> Result<Option<Sharing>> {
    let Some(from) = cursor.key().map(InternalKey::to_buf) else { return Ok(None) };
    step(cursor)?;
    Ok(cursor.key().map(|key| Sharing::of(from.as_key().user_key(), key.user_key())))
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
    fn next_sharing(&mut self) -> Result<Option<Sharing>> {
        (**self).next_sharing()
    }
    fn prev_sharing(&mut self) -> Result<Option<Sharing>> {
        (**self).prev_sharing()
    }
    fn entry(&self) -> Option<Entry<'_>> {
        (**self).entry()
    }
    fn key(&self) -> Option<InternalKey<'_>> {
        (**self).key()
    }
    fn is_on_entry(&self) -> bool {
        (**self).is_on_entry()
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
    key_end: usize,
    /// A range of the pinned block when `in_block`, else of the window's buffer.
    value_at: usize,
    value_end: usize,
    in_block: bool,
}

/// Up to [`Window::CAPACITY`] entries of one run, in order. Keys are copies in one flat buffer. Values are copies behind their
/// keys ([`Window::push`]), or ranges of a block that the window holds ([`Window::pin`], [`Window::push_in_block`]).
#[derive(Debug, Default)]
pub struct Window {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    block: Option<Arc<Vec<u8>>>,
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

    /// Drops all entries and the pinned block, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.block = None;
    }

    /// Replaces the content by no entries and a block, for [`Window::push_in_block`].
    pub fn pin(&mut self, block: &Arc<Vec<u8>>) {
        self.clear();
        self.block = Some(Arc::clone(block));
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
        let end = |slot: &Slot| if slot.in_block { slot.key_end } else { slot.value_end };
        self.bytes.truncate(self.slots.last().map_or(0, end));
    }

    /// Appends an entry whose value is the range `value` of the pinned block. The caller has checked the range: the value of
    /// a range that is not in the block is empty.
    #[inline]
    pub fn push_in_block(&mut self, key: InternalKey<'_>, value: Range<usize>) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key.encoded());
        let key_end = self.bytes.len();
        self.slots.push(Slot {
            key_at,
            key_end,
            value_at: value.start,
            value_end: value.end,
            in_block: true,
        });
    }

    /// Replaces the trailer of the entry added last.
    pub fn set_last_trailer(&mut self, trailer: Trailer) {
        let key = self.slots.last().and_then(|slot| self.bytes.get_mut(slot.key_at..slot.key_end));
        if let Some(last) = key.and_then(|key| key.last_chunk_mut::<8>()) {
            *last = trailer.raw().to_le_bytes();
        }
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
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let value_end = self.bytes.len();
        self.slots.push(Slot { key_at, key_end, value_at: key_end, value_end, in_block: false });
    }

    /// The entry at `index`; `None` past the last.
    #[inline]
    pub fn entry(&self, index: usize) -> Option<Entry<'_>> {
        let slot = self.slots.get(index)?;
        let key = self.key_of(slot)?;
        let values =
            if slot.in_block { self.block.as_ref().map_or(&[][..], |block| block) } else { &self.bytes };
        let value = values.get(slot.value_at..slot.value_end).unwrap_or_default();
        Some(Entry { key, value })
    }

    /// The key of that entry.
    #[inline]
    pub fn key(&self, index: usize) -> Option<InternalKey<'_>> {
        self.key_of(self.slots.get(index)?)
    }

    #[inline]
    fn key_of(&self, slot: &Slot) -> Option<InternalKey<'_>> {
        InternalKey::decode(self.bytes.get(slot.key_at..slot.key_end)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{InternalKeyBuf, SeqNum, ValueType};

    fn key(user_key: &[u8], seq: u64) -> InternalKeyBuf {
        InternalKeyBuf::new(user_key, Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put))
    }

    fn content(window: &Window) -> Vec<(InternalKeyBuf, Vec<u8>)> {
        (0..window.len())
            .map(|at| window.entry(at).map(|e| (e.key.to_buf(), e.value.to_vec())).unwrap())
            .collect()
    }

    #[test]
    fn entries_in_a_block_and_copies() {
        let block = Arc::new(b"0123456789".to_vec());
        let mut window = Window::new();
        window.pin(&block);
        window.push_in_block(key(b"a", 1).as_key(), 2..4);
        window.push_in_block(key(b"bb", 2).as_key(), 4..4);
        window.push(key(b"c", 3).as_key(), b"copied");
        window.push_in_block(key(b"d", 4).as_key(), 8..10);
        window.set_last_trailer(key(b"", 9).as_key().trailer());
        window.push_in_block(key(b"e", 5).as_key(), 9..11);
        let expected = [
            (key(b"a", 1), b"23".to_vec()),
            (key(b"bb", 2), vec![]),
            (key(b"c", 3), b"copied".to_vec()),
            (key(b"d", 9), b"89".to_vec()),
            (key(b"e", 5), vec![]),
        ];
        assert_eq!(content(&window), expected);
        for len in (0..5).rev() {
            window.truncate(len);
            assert_eq!(content(&window), expected[..len]);
        }
        window.push(key(b"f", 6).as_key(), b"v");
        assert_eq!(content(&window), [(key(b"f", 6), b"v".to_vec())]);
        assert_eq!(Arc::strong_count(&block), 2);
        window.clear();
        assert_eq!((window.len(), Arc::strong_count(&block)), (0, 1));
    }
}

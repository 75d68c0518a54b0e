//! A series: neighbouring entries of a block that a step backward decoded at once. Further steps backward are steps in a list.
//!
//! 1. A cursor stands on `here`. If the list is not empty, `here` is a copy of its last entry. The others are before it in the
//!    block.
//! 2. The keys lie one after the other in one buffer, and no key is copied when the cursor moves back. Each key but the first
//!    is at least eight bytes behind the key before it.
//! 3. With an empty list, the buffer holds the key of `here` alone.

use super::RawEntry;

/// The bytes that the keys of a series may take, except that the last entry is always kept. A small block can have many keys that
/// share megabytes.
pub(super) const ROOM: usize = 1 << 20;

/// One decoded entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoded<V> {
    /// Its offset in the block.
    pub at: usize,
    /// The offset behind it.
    pub next: usize,
    /// The number of bytes at the beginning of its key that it does not store, because the key before it has them.
    pub shared: usize,
    key_at: usize,
    key_end: usize,
    pub value: V,
}

impl<V> Decoded<V> {
    /// The length of its key.
    #[inline]
    pub(super) fn key_len(&self) -> usize {
        self.key_end - self.key_at
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Series<V> {
    here: Decoded<V>,
    list: Vec<Decoded<V>>,
    keys: Vec<u8>,
}

impl<V: Copy + Default> Series<V> {
    /// The entry under the cursor.
    #[inline]
    pub(super) fn here(&self) -> &Decoded<V> {
        &self.here
    }

    /// Bytes of its copies of keys.
    pub(super) fn key_bytes(&self) -> usize {
        self.keys.capacity()
    }

    /// The key of that entry.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.key_of(&self.here)
    }

    /// The key of an entry of the series.
    #[inline]
    pub(super) fn key_of(&self, entry: &Decoded<V>) -> &[u8] {
        self.keys.get(entry.key_at..entry.key_end).unwrap_or_default()
    }

    /// Forgets all; keeps the memory. [`Series::follow`] goes on with the entry at `next`.
    #[inline]
    pub(super) fn clear(&mut self, next: usize) {
        self.here = Decoded { next, ..Decoded::default() };
        self.list.clear();
        self.keys.clear();
    }

    /// [`Series::clear`], with a key of which the entry at `next` may share bytes.
    pub(super) fn set_key(&mut self, parts: [&[u8]; 2], next: usize) {
        self.clear(next);
        parts.iter().for_each(|part| self.keys.extend_from_slice(part));
        self.here.key_end = self.keys.len();
    }

    /// Whether the list is empty.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all entries but the one under the cursor.
    #[cold]
    pub(super) fn keep_one(&mut self) {
        let Decoded { key_at, key_end, .. } = self.here;
        self.keys.copy_within(key_at..key_end, 0);
        (self.here.key_at, self.here.key_end) = (0, key_end - key_at);
        self.keys.truncate(self.here.key_end);
        self.list.clear();
    }

    /// Moves to the entry at `at`, which follows `here`. The list must be empty. False: the entry shares more bytes than the key
    /// of `here` has, and the cursor has not moved.
    #[inline]
    pub(super) fn follow(&mut self, at: usize, entry: &RawEntry<'_, V>) -> bool {
        debug_assert!(self.list.is_empty());
        if entry.shared > self.keys.len() {
            return false;
        }
        self.keys.truncate(entry.shared);
        self.keys.extend_from_slice(entry.tail);
        let (shared, key_end) = (entry.shared, self.keys.len());
        self.here = Decoded { at, next: entry.next, shared, key_at: 0, key_end, value: entry.value };
        true
    }

    /// The length of all keys.
    #[inline]
    pub(super) fn keys_len(&self) -> usize {
        self.keys.len()
    }

    /// Begins a list with the entry under the cursor. The list must be empty.
    pub(super) fn begin_list(&mut self) {
        self.list.push(self.here);
    }

    /// Moves to the entry at `at`, which follows the last one of the list. False: it shares more bytes than the key before it
    /// has, and the cursor has not moved.
    #[inline]
    pub(super) fn push(&mut self, at: usize, entry: &RawEntry<'_, V>) -> bool {
        let before = self.list.last().map_or(0..0, |last| last.key_at..last.key_end);
        if entry.shared > before.len() {
            return false;
        }
        let key_at = self.keys.len();
        if entry.shared > 0 {
            self.keys.extend_from_within(before.start..before.start + entry.shared);
        }
        self.keys.extend_from_slice(entry.tail);
        let (shared, key_end) = (entry.shared, self.keys.len());
        self.here = Decoded { at, next: entry.next, shared, key_at, key_end, value: entry.value };
        self.list.push(self.here);
        true
    }

    /// The entry that is `steps` steps before the cursor's. `None`: it is not in the list.
    #[inline]
    pub(super) fn before(&self, steps: usize) -> Option<&Decoded<V>> {
        self.list.get(self.list.len().checked_sub(1 + steps)?)
    }

    /// Moves one entry back. False: that entry is not in the list, and the cursor has not moved.
    #[inline]
    pub(super) fn step_back(&mut self) -> bool {
        let Some(&entry) = self.before(1) else { return false };
        self.here = entry;
        self.list.pop();
        true
    }
}

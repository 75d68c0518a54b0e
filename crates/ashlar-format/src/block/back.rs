//! Backward steps: the entries of one restart interval, decoded once. A step back is then a step in a list of offsets.
//!
//! 1. The list is empty, or its last entry is the one under the cursor. The entries before it are those of the same
//!    interval.
//! 2. The keys lie one after the other in one buffer, and no key is copied when the cursor moves. Each key but the first
//!    is at least eight bytes behind the key before it.

use super::RawEntry;

/// One kept entry.
#[derive(Clone, Copy, Debug)]
struct Kept<V> {
    at: usize,
    next: usize,
    key_at: usize,
    key_end: usize,
    value: V,
}

/// The entries of an interval up to the cursor's.
#[derive(Clone, Debug, Default)]
pub(super) struct Back<V> {
    kept: Vec<Kept<V>>,
    keys: Vec<u8>,
}

impl<V: Copy> Back<V> {
    /// Forgets all, keeps the memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Whether nothing is kept.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Appends the entry at `at`, which follows the last kept one. Returns the length of its key; `None`: it shares more
    /// bytes than the key before it has.
    #[inline]
    pub(super) fn push(&mut self, at: usize, entry: &RawEntry<'_, V>) -> Option<usize> {
        let before = self.kept.last().map_or(0..0, |last| last.key_at..last.key_end);
        if entry.shared > before.len() {
            return None;
        }
        self.keys.truncate(before.end);
        let key_at = self.keys.len();
        if entry.shared > 0 {
            self.keys.extend_from_within(before.start..before.start + entry.shared);
        }
        self.keys.extend_from_slice(entry.tail);
        let key_end = self.keys.len();
        self.kept.push(Kept { at, next: entry.next, key_at, key_end, value: entry.value });
        Some(key_end - key_at)
    }

    /// Goes to the entry before the last one. Without such an entry it answers false and keeps nothing.
    #[inline]
    pub(super) fn pop(&mut self) -> bool {
        self.kept.pop();
        !self.kept.is_empty()
    }

    /// Place, next place and value of the last entry.
    #[inline]
    pub(super) fn last(&self) -> Option<(usize, usize, V)> {
        self.kept.last().map(|last| (last.at, last.next, last.value))
    }

    /// The key of the last entry; empty if nothing is kept.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.kept.last().map_or(&[], |last| self.key_of(last))
    }

    /// The key of the entry before the last one.
    #[inline]
    pub(super) fn key_before(&self) -> Option<&[u8]> {
        let before = self.kept.len().checked_sub(2)?;
        Some(self.key_of(self.kept.get(before)?))
    }

    #[inline]
    fn key_of(&self, kept: &Kept<V>) -> &[u8] {
        self.keys.get(kept.key_at..kept.key_end).unwrap_or_default()
    }
}

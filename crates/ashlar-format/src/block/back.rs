//! Backward steps: keeps the entries of one restart interval, so that each interval is decoded once.

/// One kept entry.
#[derive(Clone, Copy, Debug)]
struct Kept<V> {
    at: usize,
    next: usize,
    key_at: usize,
    value: V,
}

/// A stack of entries; the last pushed comes back first.
#[derive(Clone, Debug, Default)]
pub(super) struct Back<V> {
    kept: Vec<Kept<V>>,
    keys: Vec<u8>,
}

impl<V: Copy> Back<V> {
    /// Forgets all, keeps the memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.kept.is_empty() {
            self.kept.clear();
            self.keys.clear();
        }
    }

    /// Keeps an entry.
    pub(super) fn push(&mut self, at: usize, next: usize, key: &[u8], value: V) {
        self.kept.push(Kept { at, next, key_at: self.keys.len(), value });
        self.keys.extend_from_slice(key);
    }

    /// Gives the last one back: its key into `key`; returns its place, the next place, its value.
    pub(super) fn pop(&mut self, key: &mut Vec<u8>) -> Option<(usize, usize, V)> {
        let last = self.kept.pop()?;
        key.clear();
        key.extend_from_slice(self.keys.get(last.key_at..).unwrap_or_default());
        self.keys.truncate(last.key_at);
        Some((last.at, last.next, last.value))
    }
}

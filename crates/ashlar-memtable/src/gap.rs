//! The gap of a memtable: a range of keys in which reads of the family see no key.
//!
//! The keys at the head of a queue are deleted one by one. Each cursor that looks for the first key would pass all of
//! them, in the memtable and in the tables. Instead, a cursor that has passed many deleted keys notes them as the gap,
//! and later cursors begin at its end. A memtable has one gap, because a new entry of the family enters its memtable.
//!
//! 1. A gap holds for reads at or above one sequence number, and as long as flushes and compactions keep what reads see. The deleted keys
//!    may be in any memtable or table. The next memtable takes the gap over.
//! 2. A deletion does not make a key visible. So among the entries written later, only a value can end a gap: it ends
//!    at the key of the value. The writer knows only the first and the last key of its group. If the
//!    group begins before the gap and reaches into it, the writer removes the gap.
//! 3. A writer inserts its values, raises the newest sequence in `front`, and asks the same word whether there is a
//!    gap. A cursor sets the flag in `front`, and asks the same word whether there is a value that is newer than its
//!    read. All accesses of one atomic word have one order, so one of the two sees the other: the cursor drops its gap,
//!    or the writer shortens it. Both happen before the write becomes visible.
//! 4. The lock is held over comparisons, so a memtable under a custom comparator has no gap.

use ashlar_base::{Order, SeqNum};
use ashlar_sync::atomic::{AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};

/// The flag in `front`. Sequence numbers have 56 bits.
const NOTED: u64 = 1 << 63;

/// The keys from `from` (`None`: the first of all) up to `to`, not included.
#[derive(Clone, Debug)]
struct Range {
    from: Option<Vec<u8>>,
    to: Vec<u8>,
    /// The number of the family's contents in which the keys were passed.
    contents: u64,
    /// The sequence number at which they were passed.
    seq: SeqNum,
}

/// The newest value of a memtable, and its gap. See the module.
#[derive(Debug)]
pub struct Gap {
    order: Order,
    /// The largest sequence number of a value, and the flag [`NOTED`].
    front: AtomicU64,
    /// `None`, unless the flag is set.
    range: Mutex<Option<Range>>,
}

/// A position among the keys: a key, or before all of them.
type From<'a> = Option<&'a [u8]>;

impl Gap {
    pub(crate) fn new(order: Order) -> Self {
        Gap { order, front: AtomicU64::new(0), range: Mutex::new(Rank::Inner, None) }
    }

    /// Takes over the gap of the memtable before this one, which takes no more writes. This memtable has no entry yet.
    pub(crate) fn take_over(&self, before: &Gap) {
        let noted = before.range.lock().clone();
        if noted.is_some() {
            *self.range.lock() = noted;
            self.front.fetch_or(NOTED, Ordering::AcqRel);
        }
    }

    /// The largest sequence number of an entry that is no deletion; 0 without such an entry. A read sees the sequence numbers
    /// of all entries that it may read. One load.
    #[inline]
    pub fn newest_value(&self) -> SeqNum {
        // Acquire pairs with the update in `written`.
        SeqNum::new(self.front.load(Ordering::Acquire) & !NOTED).unwrap_or(SeqNum::MAX)
    }

    /// Whether a gap may be noted. A writer of values asks before it inserts them.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        self.front.load(Ordering::Relaxed) & NOTED != 0
    }

    /// Records that values up to `newest` were inserted. `keys`: the first and the last of their keys; `None` if the writer
    /// did not look for them, because there was no gap when it began.
    #[inline]
    pub(crate) fn written(&self, newest: SeqNum, keys: Option<(&[u8], &[u8])>) {
        let raise = |front: u64| Some(front & NOTED | (front & !NOTED).max(newest.get()));
        let before = self.front.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
        if before.is_ok_and(|before| before & NOTED != 0) {
            self.shorten(keys);
        }
    }

    /// Ends the gap at the first of the keys. Removes it if some key may be in it that is not known.
    #[cold]
    fn shorten(&self, keys: Option<(&[u8], &[u8])>) {
        let mut range = self.range.lock();
        if let (Some(gap), Some((first, last))) = (&mut *range, keys) {
            if !gap.begins_by(&self.order, Some(last)) || self.order.compare(first, &gap.to).is_ge() {
                return;
            }
            if gap.begins_by(&self.order, Some(first)) {
                gap.to.clear();
                gap.to.extend_from_slice(first);
                return;
            }
        }
        *range = None;
        self.front.fetch_and(!NOTED, Ordering::AcqRel);
    }

    /// Whether `key` is in the gap, for a read at `seq` of these contents: then there is no visible key from `key` up
    /// to the one copied to `to`. One load when there is no gap.
    #[inline]
    pub fn end_of(&self, key: From<'_>, (contents, seq): (u64, SeqNum), to: &mut Vec<u8>) -> bool {
        self.is_noted() && self.copy_end(key, (contents, seq), to)
    }

    #[cold]
    fn copy_end(&self, key: From<'_>, (contents, seq): (u64, SeqNum), to: &mut Vec<u8>) -> bool {
        let mut range = self.range.lock();
        if range.as_ref().is_some_and(|gap| gap.contents < contents) {
            // An ingestion or a filter has ended the gap. Without it, writers need not look for their keys.
            *range = None;
            self.front.fetch_and(!NOTED, Ordering::AcqRel);
        }
        let holds = |gap: &&Range| gap.contents == contents && gap.seq <= seq && gap.holds(&self.order, key);
        let Some(gap) = range.as_ref().filter(holds) else { return false };
        to.clear();
        to.extend_from_slice(&gap.to);
        true
    }

    /// Notes that a read at `seq` of these contents found no visible key from `from` up to `to`, and met no entry
    /// newer than itself there. A gap that holds `from` becomes longer; any other one is replaced.
    pub fn note(&self, from: From<'_>, to: &[u8], (contents, seq): (u64, SeqNum)) {
        if matches!(self.order, Order::Custom(_)) {
            return;
        }
        let mut range = self.range.lock();
        let newest = self.front.fetch_or(NOTED, Ordering::AcqRel) & !NOTED;
        if newest <= seq.get() {
            match &mut *range {
                Some(gap) if gap.contents == contents && gap.reaches(&self.order, from) => {
                    if self.order.compare(&gap.to, to).is_lt() {
                        gap.to = to.to_vec();
                    }
                    gap.seq = gap.seq.max(seq);
                }
                _ => *range = Some(Range { from: from.map(<[u8]>::to_vec), to: to.to_vec(), contents, seq }),
            }
        } else if range.is_none() {
            self.front.fetch_and(!NOTED, Ordering::AcqRel);
        }
    }
}

impl Range {
    fn begins_by(&self, order: &Order, key: From<'_>) -> bool {
        match (&self.from, key) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(from), Some(key)) => order.compare(from, key).is_le(),
        }
    }

    /// Whether `key` is in the range.
    fn holds(&self, order: &Order, key: From<'_>) -> bool {
        self.begins_by(order, key) && key.is_none_or(|key| order.compare(key, &self.to).is_lt())
    }

    /// Whether `key` is in the range, or is its end.
    fn reaches(&self, order: &Order, key: From<'_>) -> bool {
        self.begins_by(order, key) && key.is_none_or(|key| order.compare(key, &self.to).is_le())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: each memtable took the gap over, and each group of values looked for its keys because of it.
    #[test]
    fn a_read_of_newer_contents_ends_the_gap() {
        let [first, second] = [(); 2].map(|()| Gap::new(Order::Bytewise));
        let (seq, mut to) = (SeqNum::new(5).unwrap(), Vec::new());
        first.note(None, b"m", (1, seq));
        second.take_over(&first);
        assert!(second.end_of(Some(b"a"), (1, seq), &mut to) && to == b"m");
        assert!(!second.end_of(Some(b"a"), (2, seq), &mut to) && !second.is_noted());
        assert!(!second.end_of(Some(b"a"), (1, seq), &mut to));
    }
}

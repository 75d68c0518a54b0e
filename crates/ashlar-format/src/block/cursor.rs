//! The cursor over the entries of a block.

use super::entry::standard;
use super::series::{ROOM, Series};
use super::sidecar::{Place, Start};
use super::target::BorrowedOrder;
use super::{
    DataBlock, EntryFormat, IndexEntries, IndexValue, InternalEntries, InternalTarget, PlainEntries,
    RawEntry, SeekTarget, UserTarget, ValueRange,
};
use ashlar_base::ext::comparator::{BytewiseOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::key::Sharing;
use ashlar_base::{Entry, InternalKey, Malformed, Order, SeqNum, Trailer, ValueType};
use std::cmp::Ordering;

/// A cursor over a data block.
pub type BlockCursor = EntryCursor<InternalEntries>;
/// A cursor over an index block, a partition of one, or the index of a partitioned filter.
pub type IndexCursor = EntryCursor<IndexEntries>;
/// A cursor over a metaindex or properties block.
pub type PlainCursor = EntryCursor<PlainEntries>;

/// A position in a block: on an entry or off the end. The block is given with every call and must be the same from
/// one positioning call (`seek*`, `first`, `last`) to the next; with another one, answers are `Malformed` or
/// meaningless, never out of bounds. After an error the cursor is off the end.
#[derive(Clone, Debug, Default)]
pub struct EntryCursor<F: EntryFormat> {
    format: F,
    on: bool,
    series: Series<F::Value>,
}

impl<F: EntryFormat> EntryCursor<F> {
    /// A cursor off the end; keeps its buffers from block to block.
    pub fn new(format: F) -> Self {
        EntryCursor { format, on: false, series: Series::default() }
    }

    /// True on an entry.
    #[inline]
    pub fn is_on_entry(&self) -> bool {
        self.on
    }

    /// The whole key under the cursor; empty off the end.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.on { self.series.key() } else { &[] }
    }

    /// Bytes of its copies of keys.
    pub fn key_bytes(&self) -> usize {
        self.series.key_bytes()
    }

    /// Offset of the entry under the cursor.
    #[inline]
    pub fn offset(&self) -> usize {
        self.series.here().at
    }

    /// The value under the cursor as the format gives it; a default value off the end.
    #[inline]
    pub fn raw_value(&self) -> F::Value {
        if self.on { self.series.here().value } else { F::Value::default() }
    }

    /// Leaves the block.
    #[inline]
    pub fn reset(&mut self) {
        self.leave_to(0);
    }

    /// Leaves the entry under the cursor. The entry at `next` can be decoded if it shares no byte with the one before it.
    #[inline]
    fn leave_to(&mut self, next: usize) {
        self.on = false;
        self.series.clear(next);
    }

    /// Moves to the first entry at or after the target.
    #[inline]
    pub fn seek<T: SeekTarget>(&mut self, block: &DataBlock<'_>, target: &T) -> Result<(), Malformed> {
        self.reset();
        let at = self.search_restarts(block, target)?;
        self.forward_to(block, at, target)
    }

    #[inline]
    fn forward_to<T: SeekTarget>(
        &mut self,
        block: &DataBlock<'_>,
        mut at: usize,
        target: &T,
    ) -> Result<(), Malformed> {
        while at < block.entries().len() {
            self.decode(block.entries(), at)?;
            if target.order_of(self.series.key()) != Ordering::Less {
                self.on = true;
                return Ok(());
            }
            at = self.series.here().next;
        }
        Ok(())
    }

    /// Moves to the last entry at or before the target.
    pub fn seek_for_prev<T: SeekTarget>(
        &mut self,
        block: &DataBlock<'_>,
        target: &T,
    ) -> Result<(), Malformed> {
        self.seek(block, target)?;
        if !self.on {
            return self.last(block);
        }
        if target.order_of(self.series.key()) == Ordering::Greater {
            return self.prev(block);
        }
        Ok(())
    }

    /// Moves to the first entry.
    pub fn first(&mut self, block: &DataBlock<'_>) -> Result<(), Malformed> {
        self.reset();
        self.forward(block.entries())
    }

    /// Moves to the last entry.
    pub fn last(&mut self, block: &DataBlock<'_>) -> Result<(), Malformed> {
        self.reset();
        self.enter_before(block, block.entries().len())
    }

    /// Moves one entry on. Off the end it stays there.
    #[inline]
    pub fn next(&mut self, block: &DataBlock<'_>) -> Result<(), Malformed> {
        self.step(block.entries())
    }

    /// [`EntryCursor::next`] for a caller that has kept [`DataBlock::entries`] of the block.
    #[inline]
    pub fn step(&mut self, entries: &[u8]) -> Result<(), Malformed> {
        if !self.on {
            return Ok(());
        }
        if !self.series.is_single() {
            self.series.keep_one();
        }
        self.forward(entries)
    }

    /// Moves one entry back. Off the end it stays there.
    /// Cost: one restart interval is decoded at its end, then its entries come from memory.
    pub fn prev(&mut self, block: &DataBlock<'_>) -> Result<(), Malformed> {
        if !self.on || self.step_back() {
            return Ok(());
        }
        self.on = false;
        self.enter_before(block, self.series.here().at)
    }

    /// Moves one entry back if that entry is decoded already. False: the cursor has not moved, and
    /// [`EntryCursor::prev`] has to decode another interval.
    #[inline]
    pub fn step_back(&mut self) -> bool {
        self.on && self.series.step_back()
    }

    /// Decodes the interval before `end`, the offset of an entry or the end of the block, and moves to its last entry.
    fn enter_before(&mut self, block: &DataBlock<'_>, end: usize) -> Result<(), Malformed> {
        if end == 0 {
            return Ok(());
        }
        let (entries, start) = (block.entries(), block.restart_before(end));
        self.series.clear(0);
        self.push_until(entries, start, end, ROOM)?;
        if self.series.keys_len() > ROOM {
            self.push_last(entries, start, end)?;
        }
        if self.series.here().next != end {
            return Err(Malformed { field: "block.restart", at: start, what: "no entry starts at the end" });
        }
        self.on = true;
        Ok(())
    }

    /// Decodes the entries from `at` up to `end` into the series, or until their keys take more than `room` bytes.
    fn push_until(
        &mut self,
        entries: &[u8],
        mut at: usize,
        end: usize,
        room: usize,
    ) -> Result<(), Malformed> {
        while at < end && self.series.keys_len() <= room {
            let entry = self.decoded(entries, at)?;
            if !self.series.push(at, &entry) {
                return Err(too_much_shared(at));
            }
            at = entry.next;
        }
        Ok(())
    }

    /// Decodes the last entries of an interval whose keys take more than the room of a series: one entry, and those behind it
    /// that have room. Of the others, one key at a time is in memory.
    #[cold]
    fn push_last(&mut self, entries: &[u8], start: usize, end: usize) -> Result<(), Malformed> {
        let (mut left, mut at) = (0_usize, start);
        self.series.clear(0);
        while at < end {
            self.decode(entries, at)?;
            left = left.saturating_add(self.series.here().key_len());
            at = self.series.here().next;
        }
        self.series.clear(0);
        at = start;
        while at < end && left > ROOM {
            self.decode(entries, at)?;
            left = left.saturating_sub(self.series.here().key_len());
            at = self.series.here().next;
        }
        self.series.begin_list();
        self.push_until(entries, at, end, usize::MAX)
    }

    /// Decodes the entry at `at`, which follows the one of `series.here`.
    #[inline]
    fn decoded<'b>(&self, entries: &'b [u8], at: usize) -> Result<RawEntry<'b, F::Value>, Malformed> {
        let entry = self.format.decode(entries, at, &self.series.here().value)?;
        if entry.shared + entry.tail.len() < self.format.min_key() {
            return Err(short_key(at));
        }
        Ok(entry)
    }

    #[inline]
    fn forward(&mut self, entries: &[u8]) -> Result<(), Malformed> {
        self.on = false;
        let at = self.series.here().next;
        if at < entries.len() {
            self.decode(entries, at)?;
            self.on = true;
        }
        Ok(())
    }

    /// Moves to the entry at `at`, which follows the one of `series.here`.
    #[inline]
    fn decode(&mut self, entries: &[u8], at: usize) -> Result<(), Malformed> {
        let entry = self.decoded(entries, at)?;
        if self.series.follow(at, &entry) { Ok(()) } else { Err(too_much_shared(at)) }
    }

    /// Offset of the last restart point whose key is before the target; if there is no such point, of the first one.
    #[inline]
    fn search_restarts<T: SeekTarget>(&self, block: &DataBlock<'_>, target: &T) -> Result<usize, Malformed> {
        let (mut found, mut low, mut high) = (0, 1, block.restart_count());
        while low < high {
            let middle = low + (high - low) / 2;
            let at = block.restart(middle).unwrap_or(usize::MAX);
            let entry = self.format.decode(block.entries(), at, &F::Value::default())?;
            if entry.shared != 0 || entry.tail.len() < self.format.min_key() {
                return Err(Malformed { field: "block.restart", at, what: "not a whole key" });
            }
            if target.order_of(entry.tail) == Ordering::Less {
                (found, low) = (at, middle + 1);
            } else {
                high = middle;
            }
        }
        Ok(found)
    }
}

#[cold]
fn too_much_shared(at: usize) -> Malformed {
    Malformed { field: "entry.shared", at, what: "longer than the key before" }
}

#[cold]
fn short_key(at: usize) -> Malformed {
    Malformed { field: "entry.key", at, what: "shorter than eight bytes" }
}

impl<F: EntryFormat<Value = ValueRange>> EntryCursor<F> {
    /// The place of the value under the cursor in the bytes of the block.
    #[inline]
    pub fn value_range(&self) -> ValueRange {
        self.raw_value()
    }

    /// The value under the cursor; empty off the end.
    #[inline]
    pub fn value<'b>(&self, block: &DataBlock<'b>) -> &'b [u8] {
        self.raw_value().of(block.entries())
    }
}

/// The result of [`BlockCursor::pass_deletions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The number of passed entries.
    pub entries: usize,
    /// The cursor is in the last restart interval of the block.
    pub last_interval: bool,
}

/// The number of consecutive entries that begin from `at` up to `until`, not included, and that are deletions with sequence
/// numbers up to `seq`; and the offset of the last one. An entry that shares bytes of its trailer ends the series, as does one
/// that does not decode.
#[inline]
fn deletions(entries: &[u8], mut at: usize, until: usize, seq: SeqNum) -> (usize, Option<usize>) {
    let (mut count, mut last) = (0, None);
    while at < until.min(entries.len()) {
        let Ok(entry) = standard(entries, at) else { break };
        let Some(raw) = entry.tail.last_chunk::<8>() else { break };
        let trailer = Trailer::from_raw(u64::from_le_bytes(*raw));
        let deletes = matches!(trailer.value_type(), Some(ValueType::Delete | ValueType::SingleDelete));
        if !deletes || trailer.seq() > seq {
            break;
        }
        (count, last, at) = (count + 1, Some(at), entry.next);
    }
    (count, last)
}

/// Runs one call with the order as a type, so that the match is outside every loop.
macro_rules! with_order {
    ($order:expr, |$o:ident| $body:expr) => {
        match $order {
            Order::Bytewise => {
                let $o = &BytewiseOrder;
                $body
            }
            Order::ReverseBytewise => {
                let $o = &ReverseBytewiseOrder;
                $body
            }
            Order::Custom(c) => {
                let $o = &BorrowedOrder(c.as_ref());
                $body
            }
        }
    };
}

impl BlockCursor {
    /// Moves to the first entry at or after (`user_key`, `trailer`).
    #[inline]
    pub fn seek_key(
        &mut self,
        block: &DataBlock<'_>,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), Malformed> {
        match block.start(order, user_key) {
            Some(start) => self.seek_from(block, start, order, user_key, trailer),
            None => {
                with_order!(order, |order| self.seek(block, &InternalTarget { order, user_key, trailer }))
            }
        }
    }

    /// [`BlockCursor::seek_key`] from where [`DataBlock::start`] says that the search for this key begins.
    #[inline]
    pub fn seek_from(
        &mut self,
        block: &DataBlock<'_>,
        start: Start,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), Malformed> {
        self.reset();
        let at = match start.0 {
            Place::Past => return Ok(()),
            Place::First => 0,
            Place::Behind { at, prefix, word, .. } => {
                let first = standard(block.entries(), 0)?.tail;
                self.series.set_key([first.get(..prefix).unwrap_or_default(), &word.to_be_bytes()], at);
                at
            }
        };
        with_order!(order, |order| self.forward_to(block, at, &InternalTarget { order, user_key, trailer }))
    }

    /// Moves to the entry after the one of (`user_key`, `trailer`), which this block holds and which ends at `end`: one step
    /// without the search for that entry.
    pub fn seek_behind(
        &mut self,
        block: &DataBlock<'_>,
        user_key: &[u8],
        trailer: Trailer,
        end: usize,
    ) -> Result<(), Malformed> {
        self.on = false;
        self.series.set_key([user_key, &trailer.raw().to_le_bytes()], end);
        if end < block.entries().len() {
            self.decode(block.entries(), end)?;
            self.on = true;
        }
        Ok(())
    }

    /// Passes deletions: moves forward to a later entry, if that entry and all entries on the way are deletions with
    /// sequence numbers up to `seq` and user keys before `limit` (`None`: no limit). Returns the number of passed entries, and
    /// whether the last restart interval was reached. Deletions near `limit` may remain.
    /// Cost: a bisection of the restart points, and one decoding per entry, without its key.
    pub fn pass_deletions(
        &mut self,
        block: &DataBlock<'_>,
        order: &Order,
        seq: SeqNum,
        limit: Option<&[u8]>,
    ) -> Result<Passed, Malformed> {
        if !self.on {
            return Ok(Passed::default());
        }
        let until = match limit {
            None => block.entries().len(),
            // The last restart point before the limit: its entry and all before it.
            Some(user_key) => {
                let trailer = Trailer::FIRST;
                let at = with_order!(order, |order| {
                    self.search_restarts(block, &InternalTarget { order, user_key, trailer })
                })?;
                at + 1
            }
        };
        let (passed, last) = deletions(block.entries(), self.series.here().next, until, seq);
        if let Some(at) = last {
            self.go_to(block, at)?;
        }
        let last_interval = block.restart(block.restart_count() - 1).is_some_and(|at| at <= self.offset());
        Ok(Passed { entries: passed, last_interval })
    }

    /// Moves to the entry at `at`, which is the offset of one.
    fn go_to(&mut self, block: &DataBlock<'_>, at: usize) -> Result<(), Malformed> {
        self.leave_to(block.restart_before(at + 1));
        while self.series.here().next <= at {
            self.decode(block.entries(), self.series.here().next)?;
        }
        if self.offset() != at {
            return Err(Malformed { field: "block.restart", at, what: "no entry starts here" });
        }
        self.on = true;
        Ok(())
    }

    /// Moves to the last entry at or before (`user_key`, `trailer`).
    pub fn seek_key_for_prev(
        &mut self,
        block: &DataBlock<'_>,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), Malformed> {
        with_order!(order, |order| self.seek_for_prev(block, &InternalTarget { order, user_key, trailer }))
    }

    /// The entry under the cursor; `None` off the end. `block` is the one the cursor was moved in.
    #[inline]
    pub fn entry<'b>(&'b self, block: &DataBlock<'b>) -> Option<Entry<'b>> {
        if !self.on {
            return None;
        }
        Some(Entry {
            key: InternalKey::decode(self.key()).ok()?,
            value: self.raw_value().of(block.entries()),
        })
    }

    /// The internal key under the cursor; `None` off the end.
    #[inline]
    pub fn internal_key(&self) -> Option<InternalKey<'_>> {
        if self.on { InternalKey::decode(self.series.key()).ok() } else { None }
    }

    /// Moves one entry on if that entry is plain. A plain entry is a put with a sequence number up to `seq`, of a user key that
    /// comes after the user key before it. False: the cursor has not moved. No entry is plain in a custom order or right after steps
    /// backward. An entry need not be plain if one of the two user keys begins with the other.
    #[inline]
    pub fn step_plain(&mut self, entries: &[u8], order: &Order, seq: SeqNum) -> bool {
        let at = self.series.here().next;
        if !self.on || !self.series.is_single() || at >= entries.len() {
            return false;
        }
        let Ok(entry) = standard(entries, at) else { return false };
        is_plain(self.left_key(), entry.shared, entry.tail, order, seq) && self.series.follow(at, &entry)
    }

    /// Moves one entry on. Returns the new user key beside the old one; `None`: the block ends here, the cursor is off the end, and
    /// [`BlockCursor::left_key`] is the key that it has left.
    #[inline]
    pub fn step_sharing(&mut self, entries: &[u8]) -> Result<Option<Sharing>, Malformed> {
        if !self.on {
            return Ok(None);
        }
        if !self.series.is_single() {
            self.series.keep_one();
        }
        self.on = false;
        let at = self.series.here().next;
        if at >= entries.len() {
            return Ok(None);
        }
        let entry = self.decoded(entries, at)?;
        let from = self.left_key();
        let sharing = match (from.get(entry.shared..), entry.tail.split_last_chunk::<8>()) {
            (Some(from), Some((rest, _))) => Ok(Sharing::behind(entry.shared, from, rest)),
            // The key shares bytes of the trailer, or shares so many that one user key is a prefix of the other.
            _ => Err(from.len()),
        };
        if !self.series.follow(at, &entry) {
            return Err(too_much_shared(at));
        }
        self.on = true;
        Ok(Some(sharing.unwrap_or_else(|len| Sharing::of_prefix(len, self.left_key()))))
    }

    /// The user key under the cursor, or after a step off the end, the one that it has left.
    #[inline]
    pub fn left_key(&self) -> &[u8] {
        self.series.key().split_last_chunk::<8>().map_or(&[], |(user_key, _)| user_key)
    }

    /// The user key of the entry to which [`EntryCursor::step_back`] would move, beside the one under the cursor. `None`: it would
    /// not.
    #[inline]
    pub fn sharing_before(&self) -> Option<Sharing> {
        let (key, from, shared) =
            (self.key_before(1)?.user_key(), self.left_key(), self.series.here().shared);
        let known = shared.min(key.len()).min(from.len());
        let [from, key] = [from, key].map(|key| key.get(known..).unwrap_or_default());
        Some(Sharing::behind(known, from, key))
    }

    /// Moves one entry back if that entry is plain, and if it and the entry before it are decoded already. False: the cursor has not
    /// moved.
    #[inline]
    pub fn step_back_plain(&mut self, order: &Order, seq: SeqNum) -> bool {
        let entry = self.series.before(1).zip(self.key_before(2));
        let is_plain = entry.is_some_and(|(entry, before)| {
            let tail = self.series.key_of(entry).get(entry.shared..).unwrap_or_default();
            is_plain(before.user_key(), entry.shared, tail, order, seq)
        });
        is_plain && self.step_back()
    }

    /// The internal key of the entry that is `steps` steps before the one under the cursor; `None`: it is not decoded yet.
    #[inline]
    pub fn key_before(&self, steps: usize) -> Option<InternalKey<'_>> {
        if !self.on {
            return None;
        }
        InternalKey::decode(self.series.key_of(self.series.before(steps)?)).ok()
    }

    /// The length of user key and value under the cursor.
    #[inline]
    pub fn shown_len(&self) -> usize {
        let here = self.series.here();
        here.key_len().saturating_sub(8) + (here.value.end - here.value.start)
    }
}

/// Whether an entry is plain ([`BlockCursor::step_plain`]) that follows the user key `before`, shares `shared` bytes with it, and
/// has `tail` as the rest of its internal key.
#[inline]
fn is_plain(before: &[u8], shared: usize, tail: &[u8], order: &Order, seq: SeqNum) -> bool {
    let later = match order {
        Order::Bytewise => Ordering::Greater,
        Order::ReverseBytewise => Ordering::Less,
        Order::Custom(_) => return false,
    };
    let (Some(before), Some((after, trailer))) = (before.get(shared..), tail.split_last_chunk::<8>()) else {
        return false;
    };
    let trailer = Trailer::from_raw(u64::from_le_bytes(*trailer));
    // Not by `Sharing`: nothing here needs the length, and this is the shortest step of a scan.
    let place = match (after.first(), before.first()) {
        (Some(a), Some(b)) if a != b => a.cmp(b),
        _ => after.cmp(before),
    };
    place == later && trailer.value_type() == Some(ValueType::Put) && trailer.seq() <= seq
}

impl IndexCursor {
    /// Moves to the first entry at or after the key: the block that may hold (`user_key`, `trailer`).
    /// Where the index has user keys, the trailer is not looked at.
    #[inline]
    pub fn seek_key(
        &mut self,
        block: &DataBlock<'_>,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), Malformed> {
        with_order!(order, |order| self.seek_ordered(block, order, user_key, trailer))
    }

    fn seek_ordered<C: KeyOrder>(
        &mut self,
        block: &DataBlock<'_>,
        order: &C,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), Malformed> {
        if self.format.user_keys {
            self.seek(block, &UserTarget { order, user_key })
        } else {
            self.seek(block, &InternalTarget { order, user_key, trailer })
        }
    }

    /// What the entry under the cursor points to; `None` off the end.
    #[inline]
    pub fn index_value(&self) -> Option<IndexValue> {
        if self.on { Some(self.raw_value()) } else { None }
    }
}

//! Memtables whose entries carry checksums, so that a flipped bit is found before a read returns the entry or a flush writes it.
//!
//! The memtable below does not know about the checksums. In it the value of an entry is
//! ```text
//! | value | sum: the low bytes of xxh3 of the value, seeded with xxh3 of the key, seeded with the type; little-endian |
//! ```
//! 1. The checksum is computed from the entry in the batch, before the entry is copied into the memtable.
//! 2. Gets, iterators and the cursor of a flush compare it before they return an entry. They answer `Corruption` if it
//!    differs; the WAL still has the write as it was.
//! 3. Not covered: sequence numbers, which an entry gets later; range tombstones; the order. A get may miss a key that is
//!    not where it belongs. The flush, which meets every entry, does not.
//!
//! Source: RocksDB `memtable_protection_bytes_per_key` (behaviour).

use crate::entry::{MemoryLimit, Op, TombstoneParts};
use crate::gap::Gap;
use crate::rep::{Found, MemtableRep, Prepared, Show, WriterSlot};
use ashlar_base::checksum::xxh3_64_with_seed;
use ashlar_base::key::Sharing;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{
    Entry, Error, InternalIterator, InternalKey, InternalKeyBuf, LookupKey, Result, RunCursor, SeqNum,
    Trailer, ValueType, Window,
};
use ashlar_sync::ReadPin;
use std::sync::Arc;

/// `memtable`, with a checksum of `bytes` bytes (at most 8) for each entry; 0: without checksums. It must be empty.
pub fn protected(memtable: Arc<dyn MemtableRep>, bytes: usize) -> Arc<dyn MemtableRep> {
    match bytes {
        0 => memtable,
        _ => Arc::new(Protected { memtable, sums: Sums { bytes: bytes.min(8) } }),
    }
}

/// Computes and compares checksums.
#[derive(Clone, Copy)]
struct Sums {
    bytes: usize,
}

impl Sums {
    fn of(self, key: &[u8], type_byte: u8, value: &[u8]) -> [u8; 8] {
        let seed = xxh3_64_with_seed(key, u64::from(type_byte));
        xxh3_64_with_seed(value, seed).to_le_bytes()
    }

    /// Splits a stored value into the value and its checksum.
    fn strip(self, stored: &[u8]) -> Option<(&[u8], &[u8])> {
        stored.split_at_checked(stored.len().checked_sub(self.bytes)?)
    }

    /// # Errors
    /// `Corruption`: the entry has changed since it was written.
    fn check<'a>(self, key: &[u8], trailer: Trailer, stored: &'a [u8]) -> Result<&'a [u8]> {
        let right = |(value, sum): &(&[u8], &[u8])| {
            self.of(key, trailer.type_byte(), value).get(..self.bytes) == Some(sum)
        };
        match self.strip(stored).filter(right) {
            Some((value, _)) => Ok(value),
            None => Err(differs(trailer)),
        }
    }
}

#[cold]
fn differs(trailer: Trailer) -> Error {
    let text = format!("the entry of sequence {} in memory differs from its checksum", trailer.seq().get());
    Error::corruption(text).hint(
        "Open the database again: the WAL has the original, unless the write used disable_wal. Test the machine's memory",
    )
}

struct Protected {
    memtable: Arc<dyn MemtableRep>,
    sums: Sums,
}

impl MemtableRep for Protected {
    fn prepare(
        &self,
        writer: &mut WriterSlot,
        ops: &mut dyn Iterator<Item = Op<'_>>,
    ) -> Result<Prepared, MemoryLimit> {
        let mut with_sums = Vec::new();
        for op in ops {
            let mut value = Vec::new();
            value.try_reserve_exact(op.value.len() + self.sums.bytes).map_err(|_| MemoryLimit)?;
            value.extend_from_slice(op.value);
            if op.value_type != ValueType::RangeDelete {
                let sum = self.sums.of(op.key, op.value_type as u8, op.value);
                value.extend(sum.iter().take(self.sums.bytes));
            }
            with_sums.push((op, value));
        }
        let mut ops = with_sums.iter().map(|(op, value)| Op { value, ..*op });
        self.memtable.prepare(writer, &mut ops)
    }

    fn insert(&self, writer: &mut WriterSlot, prepared: Prepared, first: SeqNum) {
        self.memtable.insert(writer, prepared, first);
    }

    fn get<'g>(&'g self, key: &LookupKey<'_>) -> Result<Option<Found<'g>>> {
        let Some(found) = self.memtable.get(key)? else { return Ok(None) };
        let value = self.sums.check(found.at.user_key(), found.trailer, found.value)?;
        Ok(Some(Found { value, ..found }))
    }

    fn older(&self, found: &Found<'_>, show: &mut Show<'_>) -> Result<()> {
        let key = found.at.user_key();
        self.memtable.older(found, &mut |trailer, value| show(trailer, self.sums.check(key, trailer, value)?))
    }

    fn range_tombstones(&self) -> Option<TombstoneParts> {
        self.memtable.range_tombstones()
    }

    fn cut_tombstones<'g>(&'g self, pin: &'g ReadPin) -> Option<&'g [Arc<FragmentedTombstones>]> {
        self.memtable.cut_tombstones(pin)
    }

    fn range_tombstone_count(&self) -> u64 {
        self.memtable.range_tombstone_count()
    }

    fn gap(&self) -> &Gap {
        self.memtable.gap()
    }

    fn iter(self: Arc<Self>) -> Box<dyn InternalIterator> {
        Box::new(self.checked())
    }

    fn cursor(self: Arc<Self>) -> Box<dyn RunCursor> {
        Box::new(ProtectedCursor { iter: self.checked(), begun: false })
    }

    fn memory(&self) -> usize {
        self.memtable.memory()
    }

    fn held(&self) -> usize {
        self.memtable.held()
    }

    fn filled(&self) -> usize {
        self.memtable.filled()
    }

    fn len(&self) -> u64 {
        self.memtable.len()
    }

    fn deletions(&self) -> u64 {
        self.memtable.deletions()
    }

    fn approximate_count(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        self.memtable.approximate_count(from, to)
    }

    fn smallest_and_largest(&self) -> Option<(InternalKeyBuf, InternalKeyBuf)> {
        self.memtable.smallest_and_largest()
    }

    fn seal(&self, last: SeqNum) {
        self.memtable.seal(last);
    }

    fn sealed_at(&self) -> Option<SeqNum> {
        self.memtable.sealed_at()
    }
}

impl Protected {
    fn checked(&self) -> ProtectedIter {
        ProtectedIter { iter: Arc::clone(&self.memtable).iter(), sums: self.sums, off: true }
    }
}

/// An iterator that compares the checksum of each entry that it reaches.
struct ProtectedIter {
    iter: Box<dyn InternalIterator>,
    sums: Sums,
    /// Off the end, or on an entry whose checksum differs.
    off: bool,
}

impl ProtectedIter {
    fn reached(&mut self, moved: Result<()>) -> Result<()> {
        self.off = true;
        moved?;
        if let Some(entry) = self.iter.entry() {
            let (user_key, trailer) = entry.key.split();
            self.sums.check(user_key, trailer, entry.value)?;
            self.off = false;
        }
        Ok(())
    }

    fn reached_sharing(&mut self, moved: Result<Option<Sharing>>) -> Result<Option<Sharing>> {
        let sharing = moved.as_ref().map_or(None, |sharing| *sharing);
        self.reached(moved.map(drop)).map(|()| sharing)
    }
}

impl InternalIterator for ProtectedIter {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let moved = self.iter.seek(target);
        self.reached(moved)
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let moved = self.iter.seek_for_prev(target);
        self.reached(moved)
    }

    fn first(&mut self) -> Result<()> {
        let moved = self.iter.first();
        self.reached(moved)
    }

    fn last(&mut self) -> Result<()> {
        let moved = self.iter.last();
        self.reached(moved)
    }

    fn next(&mut self) -> Result<()> {
        if self.off {
            return Ok(());
        }
        let moved = self.iter.next();
        self.reached(moved)
    }

    fn prev(&mut self) -> Result<()> {
        if self.off {
            return Ok(());
        }
        let moved = self.iter.prev();
        self.reached(moved)
    }

    fn next_sharing(&mut self) -> Result<Option<Sharing>> {
        if self.off {
            return Ok(None);
        }
        let moved = self.iter.next_sharing();
        self.reached_sharing(moved)
    }

    fn prev_sharing(&mut self) -> Result<Option<Sharing>> {
        if self.off {
            return Ok(None);
        }
        let moved = self.iter.prev_sharing();
        self.reached_sharing(moved)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let entry = self.iter.entry().filter(|_| !self.off)?;
        self.sums.strip(entry.value).map(|(value, _)| Entry { value, ..entry })
    }
}

/// The cursor for a flush.
struct ProtectedCursor {
    iter: ProtectedIter,
    begun: bool,
}

impl RunCursor for ProtectedCursor {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        self.begun = true;
        match key {
            Some(key) => self.iter.seek(key.to_internal().as_key()),
            None => self.iter.first(),
        }
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        window.clear();
        if !self.begun {
            self.seek(None)?;
        }
        while !window.is_full() {
            let Some(entry) = self.iter.entry() else { break };
            window.push(entry.key, entry.value);
            self.iter.next()?;
        }
        Ok(!window.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable;
    use ashlar_base::{ErrorKind, Order};

    const KEY: &[u8] = b"key";
    const VALUE: &[u8] = b"value";

    /// A protected memtable where, in memory, `stored` stands as the entry that was to be `KEY` and `VALUE`.
    fn holding(bytes: usize, key: &[u8], value_type: ValueType, stored: &[u8]) -> Arc<dyn MemtableRep> {
        let below = memtable(Order::Bytewise);
        let mut writer = WriterSlot::default();
        let op = Op { key, value: stored, value_type, seq_delta: 0 };
        let prepared = below.prepare(&mut writer, &mut [op].into_iter()).unwrap();
        below.insert(&mut writer, prepared, SeqNum::new(7).unwrap());
        protected(below, bytes)
    }

    /// The entry that was written, as it stands in memory.
    fn stored(bytes: usize) -> Vec<u8> {
        let sum = Sums { bytes }.of(KEY, ValueType::Put as u8, VALUE);
        [VALUE, &sum[..bytes]].concat()
    }

    /// Whether a get of `key`, an iterator and the cursor of a flush say that the entry is wrong.
    fn found_wrong(memtable: &Arc<dyn MemtableRep>, key: &[u8]) -> [bool; 3] {
        let wrong = |result: Result<()>| match result {
            Ok(()) => false,
            Err(e) => e.kind() == ErrorKind::Corruption,
        };
        let got = memtable.get(&LookupKey::new(key, SeqNum::MAX)).map(drop);
        let mut iter = Arc::clone(memtable).iter();
        let (first, last) = (iter.first(), iter.last());
        let sought = iter.seek(LookupKey::new(b"", SeqNum::MAX).to_internal().as_key());
        let moved = first.and(last).and(sought);
        assert_eq!(iter.entry().is_none(), moved.is_err(), "off the end after an error");
        let window = Arc::clone(memtable).cursor().window(&mut Window::new()).map(drop);
        [wrong(got), wrong(moved), wrong(window)]
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = 8;
        let sound = stored(bytes);
        let memtable = holding(bytes, KEY, ValueType::Put, &sound);
        assert_eq!(found_wrong(&memtable, KEY), [false; 3]);
        for bit in 0..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let memtable = holding(bytes, KEY, ValueType::Put, &flipped);
            assert_eq!(found_wrong(&memtable, KEY), [true; 3], "bit {bit} of the value and its sum");
        }
        for bit in 0..KEY.len() * 8 {
            let mut flipped = KEY.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let memtable = holding(bytes, &flipped, ValueType::Put, &sound);
            assert_eq!(found_wrong(&memtable, &flipped), [true; 3], "bit {bit} of the key");
        }
        for value_type in [ValueType::Delete, ValueType::Merge, ValueType::SingleDelete, ValueType::BlobIndex]
        {
            let memtable = holding(bytes, KEY, value_type, &sound);
            assert_eq!(found_wrong(&memtable, KEY), [true; 3], "{value_type:?}");
        }
        let memtable = holding(bytes, KEY, ValueType::Put, &sound[..bytes - 1]);
        assert_eq!(found_wrong(&memtable, KEY), [true; 3], "too short for a sum");
    }

    #[test]
    fn few_bytes_find_most() {
        for bytes in [1, 2, 4] {
            let sound = stored(bytes);
            let found = (0..sound.len() * 8).filter(|bit| {
                let mut flipped = sound.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                found_wrong(&holding(bytes, KEY, ValueType::Put, &flipped), KEY) == [true; 3]
            });
            assert!(found.count() + 1 >= sound.len() * 8, "{bytes} bytes");
        }
    }
}

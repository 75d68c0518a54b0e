//! The range-deletion block of a table that is being written.
//!
//! ```text
//! key: begin | trailer (sequence, type 0x0f)     value: end, no trailer     restart interval 1, never compressed
//! ```
//! 1. Entries ascend by internal key; an exact duplicate is refused.
//! 2. The bounds of a table include its tombstones: from the first begin to the last end. That end has the trailer
//!    [`Trailer::RANGE_END`], which means that the end itself is outside.
//!
//! Source: RocksDB `table/block_based/block_based_table_builder.cc` (`WriteRangeDelBlock`), `db/dbformat.h`
//! (`kMaxSequenceNumber` with `kTypeRangeDeletion` as the sentinel).

use ashlar_base::{InternalKey, InternalKeyBuf, Order, SeqNum, Trailer, ValueType};
use ashlar_format::block::BlockBuilder;
use std::cmp::Ordering;

/// See the module.
#[derive(Debug)]
pub(super) struct TombstoneBlock {
    block: BlockBuilder,
    smallest: Option<InternalKeyBuf>,
    largest_end: Vec<u8>,
}

impl TombstoneBlock {
    pub(super) fn new() -> Self {
        TombstoneBlock { block: BlockBuilder::new(1), smallest: None, largest_end: Vec::new() }
    }

    /// Appends a tombstone; what is wrong with it otherwise.
    pub(super) fn add(
        &mut self,
        order: &Order,
        begin: &[u8],
        end: &[u8],
        seq: SeqNum,
    ) -> Result<InternalKeyBuf, &'static str> {
        if order.compare(begin, end) != Ordering::Less {
            return Err("covers nothing");
        }
        let key = InternalKeyBuf::new(begin, Trailer::new(seq, ValueType::RangeDelete));
        let last = InternalKey::decode(self.block.last_key()).ok().filter(|_| !self.is_empty());
        if last.is_some_and(|last| order.compare_internal(last, key.as_key()).is_ge()) {
            return Err("is not above the one before");
        }
        self.block.add(key.as_key().encoded(), end);
        if self.smallest.is_none() || order.compare(&self.largest_end, end) == Ordering::Less {
            self.largest_end.clear();
            self.largest_end.extend_from_slice(end);
        }
        self.smallest.get_or_insert_with(|| key.clone());
        Ok(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.block.entries() as u64
    }

    /// About the bytes of the block; 0 while it is empty.
    pub(super) fn size_estimate(&self) -> usize {
        if self.is_empty() { 0 } else { self.block.size_estimate() }
    }

    pub(super) fn finish(&mut self) -> &[u8] {
        self.block.finish()
    }

    /// The bounds of a table with these point entries (`None`: with none); `None` when it has nothing at all.
    pub(super) fn widen(
        &self,
        order: &Order,
        points: Option<(InternalKeyBuf, InternalKeyBuf)>,
    ) -> Option<(InternalKeyBuf, InternalKeyBuf)> {
        let Some(first) = self.smallest.clone() else { return points };
        let end = InternalKeyBuf::new(&self.largest_end, Trailer::RANGE_END);
        let Some((smallest, largest)) = points else { return Some((first, end)) };
        let less = |a: &InternalKeyBuf, b: &InternalKeyBuf| {
            order.compare_internal(a.as_key(), b.as_key()) == Ordering::Less
        };
        let smallest = if less(&first, &smallest) { first } else { smallest };
        let largest = if less(&largest, &end) { end } else { largest };
        Some((smallest, largest))
    }
}

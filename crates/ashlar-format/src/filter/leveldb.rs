//! LevelDB's filter block: one small Bloom filter for each 2 KiB range of the file in which a data block starts.
//!
//! ```text
//! filter*   offset of each filter: u32 LE   position of the offsets: u32 LE   log2 of the range: u8, 11
//! filter:   | bits | probes: u8 |
//! ```
//! 1. A data block at offset `o` belongs to filter `o >> log2`; an empty filter means that nothing is there.
//! 2. What does not fit together is no filter: it may match.
//!
//! Source: LevelDB `table/filter_block.cc`, `util/bloom.cc`.

use super::hash32::{BLOOM_SEED, leveldb_hash32};
use ashlar_base::bytes::Cursor;

/// A decoded filter block, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelDbFilter {
    /// Where the offsets start: the end of the last filter.
    offsets_at: usize,
    /// Number of filters.
    count: usize,
    range_log2: u8,
}

impl LevelDbFilter {
    /// The name of the policy, which follows `filter.` in the metaindex.
    pub const POLICY: &'static str = "leveldb.BuiltinBloomFilter2";

    /// Parses a filter block. `None`: the block is not a filter block.
    pub fn decode(block: &[u8]) -> Option<LevelDbFilter> {
        let (rest, [a, b, c, d, range_log2]) = block.split_last_chunk::<5>()?;
        let offsets_at = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?;
        let offsets = rest.len().checked_sub(offsets_at)?;
        let valid = *range_log2 < 64 && offsets.is_multiple_of(4);
        valid.then_some(LevelDbFilter { offsets_at, count: offsets / 4, range_log2: *range_log2 })
    }

    /// Number of filters in the block.
    pub fn count(self) -> usize {
        self.count
    }

    /// True unless the filter of the data block at `block_offset` proves that it does not hold the user key.
    /// `block` are the bytes this was decoded from.
    pub fn may_contain(self, block: &[u8], block_offset: u64, user_key: &[u8]) -> bool {
        let filter = usize::try_from(block_offset >> self.range_log2)
            .ok()
            .filter(|index| *index < self.count)
            .and_then(|index| self.filter(block, index));
        match filter.map(|filter| filter.split_last()) {
            Some(Some((&probes, bits))) => bloom(bits, probes, user_key),
            Some(None) => false,
            None => true,
        }
    }

    /// The bytes of one filter. The offset after the last one is the position of the offsets.
    fn filter(self, block: &[u8], index: usize) -> Option<&[u8]> {
        let mut c = Cursor::new(block.get(self.offsets_at.checked_add(index * 4)?..)?);
        let start = usize::try_from(c.fixed32("filter.start").ok()?).ok()?;
        let end = usize::try_from(c.fixed32("filter.end").ok()?).ok()?;
        block.get(..self.offsets_at)?.get(start..end)
    }
}

fn bloom(bits: &[u8], probes: u8, user_key: &[u8]) -> bool {
    // More probes are kept for encodings to come.
    if probes > 30 {
        return true;
    }
    let len = (bits.len() as u64).saturating_mul(8);
    let mut hash = leveldb_hash32(user_key, BLOOM_SEED);
    let delta = hash.rotate_right(17);
    for _ in 0..probes {
        let Some(bit) = u64::from(hash).checked_rem(len) else { return false };
        let byte = usize::try_from(bit / 8).ok().and_then(|at| bits.get(at));
        if byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 0) {
            return false;
        }
        hash = hash.wrapping_add(delta);
    }
    !bits.is_empty()
}

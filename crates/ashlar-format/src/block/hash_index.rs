//! The hash index at the end of a data block: for a user key, the restart interval that holds all its versions.
//!
//! ```text
//! | bucket: u8 * N | N: u16 LE |     bucket of a key: hash32(user key, 397) mod N
//! bucket: 0..=253 the one interval of its keys, 254 keys of several intervals, 255 no key
//! ```
//! 1. A key of one interval is searched there only; of several, by bisection. An empty bucket proves that the block has
//!    no version of the key.
//! 2. A block that grows to 64 KiB, or past interval 253, has none. Nor do orders in which other bytes can be equal.
//!
//! Source: RocksDB `table/block_based/data_block_hash_index.cc`.

use crate::filter::{DATA_BLOCK_SEED, hash32};

const COLLISION: u8 = 254;
const ABSENT: u8 = 255;
const LAST_INTERVAL: usize = 253;
/// Blocks of this size and more have no hash index.
pub(super) const MAX_HASHED_BLOCK: usize = 64 << 10;
/// The default number of keys per bucket.
pub(super) const DEFAULT_RATIO: f64 = 0.75;

/// What the hash index says about a user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// The block does not hold the key.
    Absent,
    /// Keys of more than one interval fall here: only bisection can tell.
    Collision,
    /// If the block holds the key, then only in this restart interval.
    Interval(usize),
}

/// The hash index of a block, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct HashIndex<'a> {
    buckets: &'a [u8],
}

impl<'a> HashIndex<'a> {
    /// The hash index of a data block that [`super::DataBlock::parse`] has accepted; `None` when it has none.
    #[inline]
    pub fn of(block: &'a [u8]) -> Option<HashIndex<'a>> {
        let (body, [.., last]) = block.split_last_chunk::<4>()?;
        if last & 0x80 == 0 { None } else { Self::split(body) }
    }

    fn split(body: &'a [u8]) -> Option<HashIndex<'a>> {
        let (body, count) = body.split_last_chunk::<2>()?;
        let start = body.len().checked_sub(usize::from(u16::from_le_bytes(*count)))?;
        let buckets = body.get(start..)?;
        (!buckets.is_empty()).then_some(HashIndex { buckets })
    }

    /// Looks a user key up.
    #[inline]
    pub fn find(&self, user_key: &[u8]) -> Bucket {
        let count = u32::try_from(self.buckets.len()).unwrap_or(1).max(1);
        let at = hash32(user_key, DATA_BLOCK_SEED) % count;
        match self.buckets.get(at as usize).copied() {
            Some(ABSENT) => Bucket::Absent,
            Some(COLLISION) | None => Bucket::Collision,
            Some(interval) => Bucket::Interval(usize::from(interval)),
        }
    }
}

/// Collects the keys of a block in the making.
#[derive(Clone, Debug)]
pub(super) struct HashIndexBuilder {
    buckets_per_key: f64,
    wanted: f64,
    pairs: Vec<(u32, u8)>,
    valid: bool,
}

impl HashIndexBuilder {
    /// `ratio` keys per bucket; what is not above zero means the default.
    pub(super) fn new(ratio: f64) -> Self {
        let ratio = if ratio > 0.0 { ratio } else { DEFAULT_RATIO };
        HashIndexBuilder { buckets_per_key: 1.0 / ratio, wanted: 0.0, pairs: Vec::new(), valid: true }
    }

    /// Records a user key of that interval.
    pub(super) fn add(&mut self, user_key: &[u8], interval: usize) {
        match u8::try_from(interval) {
            Ok(small) if interval <= LAST_INTERVAL => {
                self.pairs.push((hash32(user_key, DATA_BLOCK_SEED), small));
                self.wanted += self.buckets_per_key;
            }
            _ => self.valid = false,
        }
    }

    fn buckets(&self) -> u16 {
        // A float that does not fit saturates: the block is then far too large for an index.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let wanted = self.wanted as u16;
        wanted.max(1) | 1
    }

    /// Bytes the index adds to a block of `block` bytes; 0 when the block will have none.
    pub(super) fn size(&self, block: usize) -> usize {
        let own = usize::from(self.buckets()) + 2;
        if self.valid && block + own < MAX_HASHED_BLOCK { own } else { 0 }
    }

    /// At most the bytes one more key adds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn most_per_key(&self) -> usize {
        // Saturates; made odd, the number of buckets grows by one more.
        self.buckets_per_key.ceil().min(65536.0) as usize + 2
    }

    /// Appends the index; false, and nothing appended, when the block is to have none. `block` as for
    /// [`HashIndexBuilder::size`].
    pub(super) fn finish(&self, out: &mut Vec<u8>, block: usize) -> bool {
        if self.size(block) == 0 {
            return false;
        }
        let count = self.buckets();
        let mut buckets = vec![ABSENT; usize::from(count)];
        for (hash, interval) in &self.pairs {
            if let Some(bucket) = buckets.get_mut((hash % u32::from(count)) as usize) {
                *bucket = match *bucket {
                    ABSENT => *interval,
                    same if same == *interval => same,
                    _ => COLLISION,
                };
            }
        }
        out.extend_from_slice(&buckets);
        out.extend_from_slice(&count.to_le_bytes());
        true
    }

    pub(super) fn reset(&mut self) {
        self.pairs.clear();
        self.wanted = 0.0;
        self.valid = true;
    }
}

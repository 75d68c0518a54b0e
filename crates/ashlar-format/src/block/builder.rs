//! The builder of data, metaindex, properties and range-deletion blocks.

use super::data_block::HASHED;
use super::hash_index::HashIndexBuilder;
use super::index::{offset32, put_restarts};
use ashlar_base::bytes::{common_prefix, put_varint32, varint_len};

/// Builds a block. The order of keys is the caller's duty; the bytes equal those of RocksDB's builder.
#[derive(Clone, Debug)]
pub struct BlockBuilder {
    interval: usize,
    share_prefixes: bool,
    out: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    entries: usize,
    last_key: Vec<u8>,
    hash: Option<HashIndexBuilder>,
}

impl BlockBuilder {
    /// The interval of properties blocks: one restart point whatever comes.
    pub const ONE_RESTART: usize = usize::MAX;
    /// The most room for entries that stays for the next block.
    pub const ROOM_KEPT: usize = 2 << 20;

    /// An empty block with a restart point every `interval` entries (0 counts as 1).
    pub fn new(interval: usize) -> Self {
        BlockBuilder {
            interval: interval.max(1),
            share_prefixes: true,
            out: Vec::new(),
            restarts: vec![0],
            since_restart: 0,
            entries: 0,
            last_key: Vec::new(),
            hash: None,
        }
    }

    /// A builder that stores every key whole: larger blocks, no joining of keys for readers.
    pub fn without_delta(interval: usize) -> Self {
        BlockBuilder { share_prefixes: false, ..Self::new(interval) }
    }

    /// A builder of data blocks that adds a hash index with `ratio` keys per bucket, where the block allows one. Keys
    /// must be internal keys of an order in which only equal bytes are equal.
    pub fn with_hash_index(interval: usize, ratio: f64) -> Self {
        BlockBuilder { hash: Some(HashIndexBuilder::new(ratio)), ..Self::new(interval) }
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// When key, value or block reach 4 GiB: every caller has refused such input before.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.add_sharing(common_prefix(&self.last_key, key), key, value);
    }

    /// [`BlockBuilder::add`] for a caller that has compared the key with [`BlockBuilder::last_key`]: `common` is the number of
    /// bytes that both start with.
    ///
    /// # Panics
    /// As [`BlockBuilder::add`].
    #[inline]
    pub fn add_sharing(&mut self, common: usize, key: &[u8], value: &[u8]) {
        debug_assert_eq!(common, common_prefix(&self.last_key, key));
        if self.since_restart >= self.interval {
            self.restarts.push(offset32(self.out.len()));
            self.since_restart = 0;
        }
        let shared = if self.share_prefixes && self.since_restart > 0 { common } else { 0 };
        let tail = key.get(shared..).unwrap_or_default();
        put_lengths(&mut self.out, shared, tail.len(), value.len());
        self.out.extend_from_slice(tail);
        self.out.extend_from_slice(value);
        self.last_key.truncate(common);
        self.last_key.extend_from_slice(key.get(common..).unwrap_or_default());
        self.since_restart += 1;
        self.entries += 1;
        if let Some(hash) = &mut self.hash {
            let user_key = key.get(..key.len().saturating_sub(8)).unwrap_or_default();
            hash.add(user_key, self.restarts.len() - 1);
        }
    }

    /// Bytes the block has when finished now.
    #[inline]
    pub fn size_estimate(&self) -> usize {
        let plain = self.plain_size();
        plain + self.hash.as_ref().map_or(0, |hash| hash.size(plain))
    }

    #[inline]
    fn plain_size(&self) -> usize {
        self.out.len() + 4 * self.restarts.len() + 4
    }

    /// At most the bytes the block has when finished after one more entry of these lengths.
    #[inline]
    pub fn size_estimate_after(&self, key_len: usize, value_len: usize) -> usize {
        let lengths = 1 + varint_len(key_len as u64) + varint_len(value_len as u64);
        let restart = if self.since_restart >= self.interval { 4 } else { 0 };
        let hash = self.hash.as_ref().map_or(0, HashIndexBuilder::most_per_key);
        self.size_estimate() + key_len + value_len + lengths + restart + hash
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// True before the first entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The key added last, to this block or to the one before [`BlockBuilder::reset`]; empty before the first.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Completes the block and lends it; [`BlockBuilder::reset`] starts the next one.
    pub fn finish(&mut self) -> &[u8] {
        let plain = self.plain_size();
        match &self.hash {
            None => put_restarts(&mut self.out, &self.restarts),
            Some(hash) => put_restarts_hashed(&mut self.out, &self.restarts, hash, plain),
        }
        &self.out
    }

    /// Bytes of memory that the entries take.
    pub fn memory(&self) -> usize {
        self.out.capacity()
    }

    /// Starts a new block in the same memory, unless that is more than [`BlockBuilder::ROOM_KEPT`]. The last key stays, for a caller that compares the next key with it.
    pub fn reset(&mut self) {
        if self.out.capacity() > Self::ROOM_KEPT {
            self.out = Vec::new();
        }
        self.out.clear();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
        self.entries = 0;
        if let Some(hash) = &mut self.hash {
            hash.reset();
        }
    }
}

/// The head of an entry. Nearly always each length is one byte.
#[inline]
fn put_lengths(out: &mut Vec<u8>, shared: usize, tail: usize, value: usize) {
    if let (Ok(s @ 0..0x80), Ok(t @ 0..0x80), Ok(v @ 0..0x80)) =
        (u8::try_from(shared), u8::try_from(tail), u8::try_from(value))
    {
        out.extend_from_slice(&[s, t, v]);
        return;
    }
    for length in [shared, tail, value] {
        put_varint32(out, offset32(length));
    }
}

/// [`put_restarts`] with the hash index between the array and its count.
fn put_restarts_hashed(out: &mut Vec<u8>, restarts: &[u32], hash: &HashIndexBuilder, plain: usize) {
    put_restarts(out, restarts);
    out.truncate(out.len() - 4);
    let flag = if hash.finish(out, plain) { HASHED } else { 0 };
    out.extend_from_slice(&(offset32(restarts.len()) | flag).to_le_bytes());
}

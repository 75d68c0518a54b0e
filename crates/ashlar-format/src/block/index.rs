//! Index blocks: separators between data blocks, and where each block is.
//!
//! ```text
//! plain value:  | offset: varint64 | size: varint64 | first key: varint32 length + bytes, if the kind has it |
//! delta value:  shared == 0: as above;  else  | size - previous size: zigzag varint64 | first key, if ... |
//! ```
//! 1. Separator: last key of its block <= separator < first key of the next block. As an internal key or, when the
//!    file's properties say so, as a user key.
//! 2. With delta-coded handles there is no value_len; `shared` alone tells the form; the block then follows directly
//!    on the previous one: offset = previous offset + previous size + block trailer.
//!
//! Source: RocksDB `table/format.cc` (IndexValue), `table/block_based/index_builder.cc`, `block.cc`.

use super::entry::standard;
use super::{EntryFormat, RawEntry, ValueRange};
use crate::table::BlockHandle;
use ashlar_base::Malformed;
use ashlar_base::bytes::{Cursor, common_prefix, put_slice, put_varint32, put_varsigned64};

/// The form of the index entries of a file; comes from its properties. The same for partitions and their index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEntries {
    /// Keys are user keys, not internal keys.
    pub user_keys: bool,
    /// Handles are delta-coded and entries have no value length.
    pub delta_values: bool,
    /// The first internal key of the block follows the handle.
    pub first_keys: bool,
}

/// What an index entry points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexValue {
    /// The block.
    pub handle: BlockHandle,
    /// The block's first internal key, as a range of the index block's bytes, in files that store it.
    pub first_key: Option<ValueRange>,
}

impl EntryFormat for IndexEntries {
    type Value = IndexValue;

    #[inline]
    fn min_key(&self) -> usize {
        if self.user_keys { 0 } else { 8 }
    }

    #[inline]
    fn decode<'a>(
        &self,
        entries: &'a [u8],
        at: usize,
        previous: &IndexValue,
    ) -> Result<RawEntry<'a, IndexValue>, Malformed> {
        if self.delta_values {
            return self.delta_entry(entries, at, previous);
        }
        let raw = standard(entries, at)?;
        let mut c = Cursor::new(raw.value.of(entries));
        let value = self.value(&mut c, raw.value.start, None)?;
        Ok(RawEntry { shared: raw.shared, tail: raw.tail, value, next: raw.next })
    }
}

impl IndexEntries {
    #[inline]
    fn delta_entry<'a>(
        &self,
        entries: &'a [u8],
        at: usize,
        previous: &IndexValue,
    ) -> Result<RawEntry<'a, IndexValue>, Malformed> {
        let mut c = Cursor::new(entries.get(at..).unwrap_or_default());
        let mut read = || {
            let shared = c.varint32("index.shared")? as usize;
            let non_shared = c.varint32("index.non_shared")?;
            let tail = c.bytes(non_shared as usize, "index.key")?;
            let base = if shared == 0 { None } else { Some(previous.handle) };
            let value = self.value(&mut c, at, base)?;
            Ok(RawEntry { shared, tail, value, next: at + c.position() })
        };
        read().map_err(|m: Malformed| Malformed { at: m.at.saturating_add(at), ..m })
    }

    /// Reads a value; `start` is where the cursor's slice starts in the block, `base` the handle a delta refers to.
    fn value(
        &self,
        c: &mut Cursor<'_>,
        start: usize,
        base: Option<BlockHandle>,
    ) -> Result<IndexValue, Malformed> {
        let handle = match base {
            None => BlockHandle::decode(c)?,
            Some(previous) => {
                let delta = c.varsigned64("index.size_delta")?;
                let follow = || {
                    let offset = previous.end_with_trailer()?;
                    Some(BlockHandle { offset, size: previous.size.checked_add_signed(delta)? })
                };
                follow().ok_or_else(|| c.malformed("index.size_delta", "handle out of range"))?
            }
        };
        let mut first_key = None;
        if self.first_keys {
            let len = c.slice("index.first_key")?.len();
            let end = start + c.position();
            first_key = Some(ValueRange { start: end - len, end });
        }
        Ok(IndexValue { handle, first_key })
    }
}

/// Builds an index block.
#[derive(Clone, Debug)]
pub struct IndexBlockBuilder {
    format: IndexEntries,
    interval: usize,
    out: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    last_key: Vec<u8>,
    last_handle: BlockHandle,
}

impl IndexBlockBuilder {
    /// An empty block with a restart point every `interval` entries (0 counts as 1).
    pub fn new(format: IndexEntries, interval: usize) -> Self {
        IndexBlockBuilder {
            format,
            interval: interval.max(1),
            out: Vec::new(),
            restarts: vec![0],
            since_restart: 0,
            last_key: Vec::new(),
            last_handle: BlockHandle::default(),
        }
    }

    /// Makes room for `bytes` more, so that a long block is not moved while it grows.
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve_exact(bytes);
    }

    /// Appends an entry. Keys come in order, in the form the format names; `first_key` is stored only by a format
    /// with first keys.
    pub fn add(&mut self, key: &[u8], handle: BlockHandle, first_key: &[u8]) {
        let mut shared = 0;
        if self.since_restart >= self.interval {
            self.restarts.push(offset32(self.out.len()));
            self.since_restart = 0;
        } else if self.since_restart > 0 {
            shared = common_prefix(&self.last_key, key);
        }
        let follows = self.last_handle.end_with_trailer() == Some(handle.offset);
        if self.format.delta_values && !follows {
            shared = 0;
        }
        let tail = key.get(shared..).unwrap_or_default();
        put_varint32(&mut self.out, offset32(shared));
        put_varint32(&mut self.out, offset32(tail.len()));
        if self.format.delta_values {
            self.out.extend_from_slice(tail);
            let previous = self.last_handle;
            put_value(&mut self.out, self.format, handle, (shared > 0).then_some(previous), first_key);
        } else {
            let mut value = Vec::with_capacity(24);
            put_value(&mut value, self.format, handle, None, first_key);
            put_varint32(&mut self.out, offset32(value.len()));
            self.out.extend_from_slice(tail);
            self.out.extend_from_slice(&value);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(tail);
        self.last_handle = handle;
        self.since_restart += 1;
    }

    /// Bytes the block has when finished now.
    pub fn size_estimate(&self) -> usize {
        self.out.len() + 4 * self.restarts.len() + 4
    }

    /// The form of its entries.
    pub fn format(&self) -> IndexEntries {
        self.format
    }

    /// True before the first entry.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The block.
    pub fn finish(mut self) -> Vec<u8> {
        put_restarts(&mut self.out, &self.restarts);
        self.out
    }
}

fn put_value(
    out: &mut Vec<u8>,
    format: IndexEntries,
    handle: BlockHandle,
    base: Option<BlockHandle>,
    first_key: &[u8],
) {
    match base {
        None => handle.encode(out),
        Some(previous) => {
            put_varsigned64(out, handle.size.wrapping_sub(previous.size).cast_signed());
        }
    }
    if format.first_keys {
        put_slice(out, first_key);
    }
}

/// Appends the restart array and its count.
pub(super) fn put_restarts(out: &mut Vec<u8>, restarts: &[u32]) {
    for restart in restarts {
        out.extend_from_slice(&restart.to_le_bytes());
    }
    out.extend_from_slice(&offset32(restarts.len()).to_le_bytes());
}

/// A length or offset inside a block.
#[inline]
#[expect(
    clippy::expect_used,
    reason = "an offset that does not fit would be written cut: worse than a panic"
)]
pub(super) fn offset32(value: usize) -> u32 {
    u32::try_from(value).expect("keys, values and blocks are below 4 GiB: refused at the door")
}

//! The index of a table while its data blocks are written.
//!
//! Only the end of the table shows whether the index may hold plain user keys, so separators are kept in both forms:
//! the user key in one flat buffer, the trailer beside it. Blocks that wait for a dictionary get their place in the
//! file later. So handles are added separately, in the same order.

use ashlar_base::{InternalKey, Order, Trailer};
use ashlar_format::block::{IndexBlockBuilder, IndexEntries};
use ashlar_format::table::BlockHandle;
use std::ops::Range;

/// A partition has so many separators at least. With fewer long ones the top level would be as large as all partitions.
const SEPARATORS_LEAST: usize = 16;

/// An index has so many bytes per block at most, beside the keys: their lengths, a trailer, a handle and a restart point.
const BESIDE_KEYS: usize = 52;

#[derive(Debug)]
struct Separator {
    end: usize,
    trailer: Trailer,
    first_key_end: usize,
}

/// Separators and handles of the blocks written so far.
#[derive(Debug, Default)]
pub(super) struct Separators {
    keys: Vec<u8>,
    /// First keys of the blocks; empty when the index has none.
    first_keys: Vec<u8>,
    blocks: Vec<Separator>,
    handles: Vec<BlockHandle>,
    /// Some user key has versions in two blocks: user keys alone cannot tell the blocks apart.
    straddles: bool,
}

impl Separators {
    /// About the bytes of the index.
    pub(super) fn size_estimate(&self) -> usize {
        self.keys.len() + self.first_keys.len() + 24 * self.blocks.len()
    }

    /// Bytes in use: lengths, not capacities, because the unused end of a long array has no pages as a rule.
    pub(super) fn memory(&self) -> usize {
        self.keys.len()
            + self.first_keys.len()
            + self.blocks.len() * size_of::<Separator>()
            + self.handles.len() * size_of::<BlockHandle>()
    }

    /// Number of blocks noted.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Notes a block that ends with `last`; the next one will begin with `next`, if there is a next one. `first_key` is
    /// its first internal key, empty where the index does not hold it.
    pub(super) fn push(
        &mut self,
        order: &Order,
        first_key: &[u8],
        last: InternalKey<'_>,
        next: Option<InternalKey<'_>>,
    ) {
        let (last_user, last_trailer) = last.split();
        let short = next.and_then(|next| {
            let next_user = next.user_key();
            self.straddles |= next_user == last_user;
            order.shortest_separator(last_user, next_user).filter(|s| s.len() <= last_user.len())
        });
        let trailer = match short {
            Some(short) => {
                self.keys.extend_from_slice(&short);
                Trailer::FIRST
            }
            None => {
                self.keys.extend_from_slice(last_user);
                last_trailer
            }
        };
        self.first_keys.extend_from_slice(first_key);
        let (end, first_key_end) = (self.keys.len(), self.first_keys.len());
        self.blocks.push(Separator { end, trailer, first_key_end });
    }

    /// Notes where the next block of those pushed has been written.
    pub(super) fn place(&mut self, handle: BlockHandle) {
        self.handles.push(handle);
    }

    /// The form of the index entries: `user_keys_allowed` and `delta_values` come from the format version.
    pub(super) fn format(
        &self,
        user_keys_allowed: bool,
        delta_values: bool,
        first_keys: bool,
    ) -> IndexEntries {
        IndexEntries { user_keys: user_keys_allowed && !self.straddles, delta_values, first_keys }
    }

    /// An index block over all blocks.
    pub(super) fn whole(self, format: IndexEntries, interval: usize) -> Vec<u8> {
        let mut builder = IndexBlockBuilder::new(format, interval);
        builder.reserve(self.keys.len() + self.first_keys.len() + BESIDE_KEYS * self.blocks.len());
        self.fill(builder, 0, usize::MAX).0
    }

    /// The next index block from data block `from` on, closed when it has `size` bytes and [`SEPARATORS_LEAST`] separators, and the
    /// number of the first data block behind it; `None` past the last.
    pub(super) fn partition(
        &self,
        from: usize,
        size: usize,
        format: IndexEntries,
        interval: usize,
    ) -> Option<(Vec<u8>, usize)> {
        (from < self.handles.len()).then(|| self.fill(IndexBlockBuilder::new(format, interval), from, size))
    }

    fn fill(&self, mut builder: IndexBlockBuilder, from: usize, size: usize) -> (Vec<u8>, usize) {
        let format = builder.format();
        let mut encoded = Vec::new();
        let mut next = from;
        for handle in self.handles.get(from..).unwrap_or_default() {
            self.encode_key(next, format.user_keys, &mut encoded);
            builder.add(&encoded, *handle, self.first_key(next));
            next += 1;
            if builder.size_estimate() >= size && next - from >= SEPARATORS_LEAST {
                break;
            }
        }
        (builder.finish(), next)
    }

    /// Replaces `out` with separator `at` in the form the index has.
    pub(super) fn encode_key(&self, at: usize, user_keys: bool, out: &mut Vec<u8>) {
        let range = |end_of: fn(&Separator) -> usize| self.range(at, end_of);
        out.clear();
        out.extend_from_slice(self.keys.get(range(|s| s.end)).unwrap_or_default());
        if let Some(separator) = self.blocks.get(at).filter(|_| !user_keys) {
            out.extend_from_slice(&separator.trailer.raw().to_le_bytes());
        }
    }

    fn first_key(&self, at: usize) -> &[u8] {
        self.first_keys.get(self.range(at, |s| s.first_key_end)).unwrap_or_default()
    }

    fn range(&self, at: usize, end_of: fn(&Separator) -> usize) -> Range<usize> {
        let start = at.checked_sub(1).and_then(|before| self.blocks.get(before)).map_or(0, end_of);
        start..self.blocks.get(at).map_or(start, end_of)
    }
}

//! The index of a table while its data blocks are written.
//!
//! Whether the index may hold plain user keys is known only at the end, so separators are kept in both forms at once:
//! the user key in one flat buffer, the trailer beside it.

use ashlar_base::{InternalKey, Order, Trailer};
use ashlar_format::block::{IndexBlockBuilder, IndexEntries};
use ashlar_format::table::BlockHandle;

#[derive(Debug)]
struct Separator {
    end: usize,
    trailer: Trailer,
    handle: BlockHandle,
}

/// Separators and handles of the blocks written so far.
#[derive(Debug, Default)]
pub(super) struct Separators {
    keys: Vec<u8>,
    blocks: Vec<Separator>,
    /// Some user key has versions in two blocks: user keys alone cannot tell the blocks apart.
    straddles: bool,
}

impl Separators {
    /// About the bytes of the index block.
    pub(super) fn size_estimate(&self) -> usize {
        self.keys.len() + 24 * self.blocks.len()
    }

    /// Notes a block that ends with `last`; the next one will begin with `next`, if there is a next one.
    pub(super) fn push(
        &mut self,
        order: &Order,
        last: InternalKey<'_>,
        next: Option<InternalKey<'_>>,
        handle: BlockHandle,
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
        self.blocks.push(Separator { end: self.keys.len(), trailer, handle });
    }

    /// The index block and whether its keys are user keys. `user_keys_allowed` and `delta_values` come from the
    /// format version.
    pub(super) fn finish(
        &self,
        user_keys_allowed: bool,
        delta_values: bool,
        interval: usize,
    ) -> (Vec<u8>, bool) {
        let user_keys = user_keys_allowed && !self.straddles;
        let format = IndexEntries { user_keys, delta_values, first_keys: false };
        let mut builder = IndexBlockBuilder::new(format, interval);
        let mut encoded = Vec::new();
        let mut start = 0;
        for block in &self.blocks {
            let key = self.keys.get(start..block.end).unwrap_or_default();
            start = block.end;
            encoded.clear();
            encoded.extend_from_slice(key);
            if !user_keys {
                encoded.extend_from_slice(&block.trailer.raw().to_le_bytes());
            }
            builder.add(&encoded, block.handle, &[]);
        }
        (builder.finish(), user_keys)
    }
}

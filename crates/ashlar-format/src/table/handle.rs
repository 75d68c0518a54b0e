//! The place of a block in its file.

use super::checksum::BLOCK_TRAILER_LEN;
use ashlar_base::Malformed;
use ashlar_base::bytes::{Cursor, put_varint64};

/// Offset and size of a block; the size excludes the block trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes as stored, without the trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Two varints.
    pub fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(BlockHandle { offset: c.varint64("handle.offset")?, size: c.varint64("handle.size")? })
    }

    /// Appends the two varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// True for the handle that means "no block".
    pub fn is_null(&self) -> bool {
        *self == BlockHandle::default()
    }

    /// Behind the block's trailer; `None` past 2^64.
    #[inline]
    pub fn end_with_trailer(&self) -> Option<u64> {
        self.offset.checked_add(self.size)?.checked_add(BLOCK_TRAILER_LEN as u64)
    }

    /// Bytes to read for block and trailer.
    ///
    /// # Errors
    /// `Malformed` when block and trailer do not end at or before `limit`, the offset of the footer.
    #[inline]
    pub fn len_with_trailer(&self, limit: u64) -> Result<usize, Malformed> {
        let len = match self.end_with_trailer() {
            Some(end) if end <= limit => usize::try_from(end - self.offset).ok(),
            _ => None,
        };
        len.ok_or(Malformed { field: "handle", at: 0, what: "block reaches past the end of the file" })
    }
}

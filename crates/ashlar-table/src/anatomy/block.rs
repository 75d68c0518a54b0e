//! One block as it is stored, and its decoded forms.

use super::Anatomy;
use crate::reader::MAX_BLOCK;
use ashlar_base::bytes::zeroed;
use ashlar_base::{Error, Malformed, Result};
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock, is_separated, join_separated};
use ashlar_format::compress::{Compression, decompress_with};
use ashlar_format::table::{BLOCK_TRAILER_LEN, BlockHandle, TableKind};

/// A block read from its file.
#[derive(Clone, Debug)]
pub struct StoredBlock {
    pub(super) with_trailer: Vec<u8>,
    /// The type byte of its trailer.
    pub compression: u8,
    /// Whether the checksum is right.
    pub checksum_holds: bool,
    /// The decompressed bytes, or the reason why there are none: `Corruption` (the checksum, the compressed stream),
    /// `NotSupported`.
    pub content: Result<Vec<u8>>,
}

impl StoredBlock {
    /// The stored bytes, without the trailer.
    pub fn stored(&self) -> &[u8] {
        let len = self.with_trailer.len().saturating_sub(BLOCK_TRAILER_LEN);
        self.with_trailer.get(..len).unwrap_or_default()
    }

    /// The name of its compression, as tables up to version 6 call it; `None` for a number that is not known.
    pub fn compression_name(&self, kind: TableKind) -> Option<&'static str> {
        codec(kind, self.compression).map(Compression::name)
    }

    /// Passes every entry of a block with internal keys to `each`: key and value, in the order of the block.
    ///
    /// # Errors
    /// The reason why the content cannot be read or decoded, without a place. Also the errors of `each`.
    pub fn entries(&self, mut each: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let content = self.content.as_ref().map_err(Error::clone)?;
        let joined;
        let plain = if is_separated(content) {
            joined = join_separated(content).map_err(Malformed::into_error)?;
            &joined
        } else {
            content
        };
        let block = DataBlock::parse(plain).map_err(Unreadable::into_error)?;
        let mut cursor = BlockCursor::default();
        cursor.first(&block).map_err(Malformed::into_error)?;
        while cursor.is_on_entry() {
            each(cursor.key(), cursor.value(&block))?;
            cursor.next(&block).map_err(Malformed::into_error)?;
        }
        Ok(())
    }
}

impl Anatomy {
    /// Reads the block at `handle`.
    ///
    /// # Errors
    /// `Corruption`: it would reach into the footer. `Io`. The block itself reports what is wrong with its bytes.
    pub fn block(&self, handle: BlockHandle) -> Result<StoredBlock> {
        self.block_within(handle, MAX_BLOCK)
    }

    /// [`Anatomy::block`], but a content of more than `max` bytes is an error.
    pub(super) fn block_within(&self, handle: BlockHandle, max: usize) -> Result<StoredBlock> {
        let with_trailer = self.stored(handle)?;
        let checked = self.footer.checksum.verify(handle.offset, &with_trailer);
        let [.., compression, _, _, _, _] = with_trailer.as_slice() else {
            return Err(Error::corruption("block without trailer").at(self.path(), handle.offset));
        };
        let compression = *compression;
        let content = match checked {
            Ok((stored, _)) => self.expand(stored, compression, max),
            Err(e) => Err(Error::corruption(e.what)),
        };
        Ok(StoredBlock {
            checksum_holds: checked.is_ok(),
            content: content.map_err(|e| e.at(self.path(), handle.offset)),
            compression,
            with_trailer,
        })
    }

    /// Whether the checksum of the block at `handle` holds. Does not decompress the block.
    ///
    /// # Errors
    /// As [`Anatomy::block`].
    pub fn checksum_holds(&self, handle: BlockHandle) -> Result<bool> {
        Ok(self.footer.checksum.verify(handle.offset, &self.stored(handle)?).is_ok())
    }

    /// The block at `handle` as it is stored, with its trailer.
    fn stored(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let len = handle
            .len_with_trailer(self.footer_start)
            .map_err(|e| Error::corruption(e.what).at(self.path(), handle.offset))?;
        let mut with_trailer = zeroed(len)?;
        self.file.read_exact_at(&mut with_trailer, handle.offset)?;
        Ok(with_trailer)
    }

    fn expand(&self, stored: &[u8], compression: u8, max: usize) -> Result<Vec<u8>> {
        match codec(self.footer.kind, compression) {
            Some(kind) => {
                decompress_with(kind, stored, self.dictionary.as_ref(), max).map_err(Unreadable::into_error)
            }
            None => Err(Error::not_supported(format!("compression type {compression:#04x}"))),
        }
    }
}

fn codec(kind: TableKind, byte: u8) -> Option<Compression> {
    match kind {
        TableKind::BlockBased => Compression::from_byte(byte),
        TableKind::LevelDb => Compression::from_leveldb_byte(byte),
    }
}

//! Blocks out of a file: read, checked, uncompressed.

use ashlar_base::{Error, Malformed, Result};
use ashlar_env::ReadFile;
use ashlar_format::compress::{Compression, decompress};
use ashlar_format::table::{BlockChecksum, BlockHandle, TableKind};
use std::path::Path;
use std::sync::Arc;

/// No block may grow past this when it is uncompressed: RocksDB keeps raw lengths in 32 bits.
const MAX_BLOCK: usize = u32::MAX as usize;

/// A table's file with what its footer says about its blocks.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: Arc<dyn ReadFile>,
    /// Where the footer starts: no block reaches past it.
    limit: u64,
    checksum: BlockChecksum,
    kind: TableKind,
    verify: bool,
}

impl BlockFile {
    pub(crate) fn new(
        file: Arc<dyn ReadFile>,
        limit: u64,
        checksum: BlockChecksum,
        kind: TableKind,
        verify: bool,
    ) -> Self {
        BlockFile { file, limit, checksum, kind, verify }
    }

    /// Bytes before the footer.
    pub(crate) fn size(&self) -> u64 {
        self.limit
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the block as stored, trailer included.
    ///
    /// # Errors
    /// `Corruption`: it would reach into the footer.
    pub(crate) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        handle.len_with_trailer(self.limit).map_err(|e| e.in_file(self.path(), handle.offset))
    }

    /// Fills `out` from `offset` on.
    pub(crate) fn read_raw(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(out, offset)
    }

    /// Reads one block; its checksum is compared as the options say.
    pub(crate) fn read(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let stored = self.read_stored(handle)?;
        self.unpack_owned(stored, handle, self.verify)
    }

    /// Reads one block and compares its checksum in any case.
    pub(crate) fn read_verified(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let stored = self.read_stored(handle)?;
        self.unpack_owned(stored, handle, true)
    }

    /// Block and trailer as they stand in the file.
    pub(crate) fn read_stored(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut stored = vec![0; self.stored_len(handle)?];
        self.read_raw(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Checks a stored block and uncompresses it.
    pub(crate) fn unpack(&self, stored: &[u8], handle: BlockHandle) -> Result<Vec<u8>> {
        let (block, compression) = self.check(stored, handle, self.verify)?;
        match compression {
            0 => Ok(block.to_vec()),
            _ => self.expand(block, compression, handle),
        }
    }

    fn unpack_owned(&self, mut stored: Vec<u8>, handle: BlockHandle, verify: bool) -> Result<Vec<u8>> {
        let (block, compression) = self.check(&stored, handle, verify)?;
        if compression != 0 {
            return self.expand(block, compression, handle);
        }
        let len = block.len();
        stored.truncate(len);
        Ok(stored)
    }

    fn check<'a>(&self, stored: &'a [u8], handle: BlockHandle, verify: bool) -> Result<(&'a [u8], u8)> {
        let checked = match verify {
            true => self.checksum.verify(handle.offset, stored),
            false => BlockChecksum::split(stored),
        };
        checked.map_err(|e| self.misread(e, handle))
    }

    fn misread(&self, e: Malformed, handle: BlockHandle) -> Error {
        Error::corruption(format!("{} in {} of {} bytes", e.what, e.field, handle.size))
            .at(self.path(), handle.offset)
            .hint("Restore the file from a backup")
    }

    fn expand(&self, block: &[u8], compression: u8, handle: BlockHandle) -> Result<Vec<u8>> {
        let kind = match self.kind {
            TableKind::BlockBased => Compression::from_byte(compression),
            TableKind::LevelDb => Compression::from_leveldb_byte(compression),
        };
        let Some(kind) = kind else {
            let text = format!("compression type {compression:#04x}");
            return Err(Error::not_supported(text).at(self.path(), handle.offset));
        };
        decompress(kind, block, MAX_BLOCK).map_err(|e| e.in_file(self.path(), handle.offset))
    }
}

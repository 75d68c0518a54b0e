//! Blocks into a file: compressed, checksummed, written in large pieces.

use ashlar_base::Result;
use ashlar_env::WriteFile;
use ashlar_format::compress::{Compression, Compressor};
use ashlar_format::table::{BlockChecksum, BlockHandle};
use std::sync::Arc;

/// Bytes gathered before they are written.
const PIECE: usize = 256 << 10;

/// The writing end of a table's file.
#[derive(Debug)]
pub(super) struct BlockSink {
    file: Arc<dyn WriteFile>,
    pending: Vec<u8>,
    written: u64,
    checksum: BlockChecksum,
    compressor: Compressor,
    stored: Vec<u8>,
    /// Blocks that did not shrink enough.
    rejected: u64,
    /// Some block is stored compressed.
    compressed: bool,
}

impl BlockSink {
    pub(super) fn new(file: Arc<dyn WriteFile>, checksum: BlockChecksum, compressor: Compressor) -> Self {
        BlockSink {
            file,
            pending: Vec::new(),
            written: 0,
            checksum,
            compressor,
            stored: Vec::new(),
            rejected: 0,
            compressed: false,
        }
    }

    /// Where the next block will stand.
    pub(super) fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Blocks stored raw although compression was asked for.
    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }

    /// True when some block is stored compressed.
    pub(super) fn compressed(&self) -> bool {
        self.compressed
    }

    /// Appends a block, compressed if that saves at least an eighth.
    pub(super) fn put_compressed(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        if self.compressor.kind() == Compression::None {
            return self.put_raw(raw);
        }
        let mut stored = std::mem::take(&mut self.stored);
        let form = self.compressor.compress(raw, &mut stored);
        match form {
            Compression::None => self.rejected += 1,
            _ => self.compressed = true,
        }
        let handle = self.put(&stored, form);
        self.stored = stored;
        handle
    }

    /// Appends a block as it is.
    pub(super) fn put_raw(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        self.put(raw, Compression::None)
    }

    fn put(&mut self, stored: &[u8], form: Compression) -> Result<BlockHandle> {
        let handle = BlockHandle { offset: self.offset(), size: stored.len() as u64 };
        let trailer = self.checksum.trailer(handle.offset, stored, form.byte());
        self.pending.extend_from_slice(stored);
        self.pending.extend_from_slice(&trailer);
        if self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(handle)
    }

    /// Appends the footer and hands everything to the file. Returns the file's length.
    pub(super) fn finish(&mut self, footer: &[u8]) -> Result<u64> {
        self.pending.extend_from_slice(footer);
        self.flush()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.pending, self.written)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

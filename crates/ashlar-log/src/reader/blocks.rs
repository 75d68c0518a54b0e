//! Reads the file block by block, with one block in memory.

use ashlar_base::Result;
use ashlar_env::ReadFile;
use ashlar_format::log_record::BLOCK_SIZE;
use std::ops::Range;
use std::sync::Arc;

/// One block of the file and a position in it.
pub(super) struct Blocks {
    file: Arc<dyn ReadFile>,
    bytes: Vec<u8>,
    /// File offset of `bytes`.
    start: u64,
    at: usize,
    /// The last read was short: no block follows. A file of whole blocks shows its end only by an empty read.
    pub(super) ended: bool,
}

impl Blocks {
    pub(super) fn new(file: Arc<dyn ReadFile>) -> Self {
        Blocks { file, bytes: Vec::new(), start: 0, at: 0, ended: false }
    }

    /// A reader that starts at the block of `offset`.
    pub(super) fn at(file: Arc<dyn ReadFile>, offset: u64) -> Self {
        let start = offset - offset % BLOCK_SIZE as u64;
        Blocks { start, ..Blocks::new(file) }
    }

    /// The file.
    pub(super) fn file(&self) -> Arc<dyn ReadFile> {
        Arc::clone(&self.file)
    }

    /// True when the block in memory is not cut short by the end of the file.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() == BLOCK_SIZE
    }

    /// True when the file ends with the block in memory. Reads a byte to find out.
    pub(super) fn is_last(&self) -> Result<bool> {
        Ok(self.ended || self.file.read_at(&mut [0], self.start + self.bytes.len() as u64)? == 0)
    }

    /// Replaces the block in memory with the next one.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.start += self.bytes.len() as u64;
        self.at = 0;
        self.bytes.resize(BLOCK_SIZE, 0);
        let mut got = 0;
        while let Some(rest) = self.bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, self.start + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) => {
                    self.bytes.clear();
                    return Err(e);
                }
            }
        }
        self.ended = got < BLOCK_SIZE;
        self.bytes.truncate(got);
        Ok(())
    }

    /// The rest of the block.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The file offset of [`Blocks::rest`].
    pub(super) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Skips `len` bytes and returns their range in the block.
    pub(super) fn take(&mut self, len: usize) -> Range<usize> {
        let from = self.at;
        self.at = self.bytes.len().min(from.saturating_add(len));
        from..self.at
    }

    /// Skips the rest of the block and returns its length.
    pub(super) fn take_rest(&mut self) -> u64 {
        let left = self.bytes.len() - self.at;
        self.at = self.bytes.len();
        left as u64
    }

    /// The bytes of a range that [`Blocks::take`] returned.
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }
}

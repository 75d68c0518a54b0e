//! Writes blocks to a file: compressed, with checksums, in large pieces.

use crate::reader::MAX_META_BLOCK;
use ashlar_base::Result;
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_env::WriteFile;
use ashlar_format::Unreadable;
use ashlar_format::block::BlockBuilder;
use ashlar_format::compress::{Compression, Compressor};
use ashlar_format::table::{BlockChecksum, BlockHandle};
use std::sync::Arc;

/// Bytes gathered before they are written.
const PIECE: usize = 256 << 10;
/// Written bytes that the device gets at once, while later blocks are made.
const WRITEBACK: u64 = 4 << 20;

/// The writing end of a table's file.
#[derive(Debug)]
pub(super) struct BlockSink {
    file: Arc<dyn WriteFile>,
    pending: Vec<u8>,
    written: u64,
    /// The end of the bytes that the device was given.
    given: u64,
    checksum: BlockChecksum,
    compressor: Compressor,
    /// For blocks that take no dictionary, once there is one.
    plain: Option<Compressor>,
    stored: Vec<u8>,
    /// Data blocks that did not shrink enough.
    rejected: u64,
    /// Some block is stored compressed.
    compressed: bool,
    /// What compressions are counted into.
    statistics: Option<Arc<Statistics>>,
}

impl BlockSink {
    pub(super) fn new(file: Arc<dyn WriteFile>, checksum: BlockChecksum, compressor: Compressor) -> Self {
        BlockSink {
            file,
            pending: Vec::new(),
            written: 0,
            given: 0,
            checksum,
            compressor,
            plain: None,
            stored: Vec::new(),
            rejected: 0,
            compressed: false,
            statistics: None,
        }
    }

    /// Compressions from here on are counted, and above the usual level timed.
    pub(super) fn count_into(&mut self, statistics: Option<Arc<Statistics>>) {
        self.statistics = statistics;
    }

    /// Bytes of memory its buffers take.
    pub(super) fn memory(&self) -> usize {
        self.pending.capacity() + self.stored.capacity()
    }

    /// Where the next block will stand.
    pub(super) fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Data blocks stored raw although compression was asked for.
    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }

    /// True when some block is stored compressed.
    pub(super) fn compressed(&self) -> bool {
        self.compressed
    }

    /// The algorithm blocks are tried with.
    pub(super) fn compression(&self) -> Compression {
        self.compressor.kind()
    }

    /// Lets the data blocks from here on refer to a dictionary.
    pub(super) fn set_dictionary(&mut self, dictionary: &[u8], level: i32) -> Result<(), Unreadable> {
        self.plain = Some(Compressor::new(self.compressor.kind(), level)?);
        Ok(self.compressor.set_dictionary(dictionary)?)
    }

    /// Appends a data block, compressed if that saves at least an eighth.
    pub(super) fn put_data(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        let (handle, form) = self.put_smaller(raw, true)?;
        if form == Compression::None && self.compression() != Compression::None {
            self.rejected += 1;
        }
        Ok(handle)
    }

    /// Appends an index block: as a data block, but never with a dictionary, and a very long one as it is. Readers refuse blocks that
    /// would grow beyond [`MAX_META_BLOCK`] in a short file, as an index of long keys that begin alike does.
    pub(super) fn put_index(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        if raw.len() as u64 > MAX_META_BLOCK {
            return self.put_raw(raw);
        }
        self.put_smaller(raw, false).map(|(handle, _)| handle)
    }

    fn put_smaller(&mut self, raw: &[u8], data: bool) -> Result<(BlockHandle, Compression)> {
        if self.compression() == Compression::None {
            if let Some(statistics) = &self.statistics {
                statistics.tick(Ticker::NumberBlockCompressionBypassed);
                statistics.add(Ticker::BytesCompressionBypassed, raw.len() as u64);
            }
            return Ok((self.put_raw(raw)?, Compression::None));
        }
        let mut stored = std::mem::take(&mut self.stored);
        let statistics = self.statistics.as_deref();
        let time = statistics.and_then(|s| s.time_in_detail(Distribution::CompressionTimesNanos));
        let form = match &mut self.plain {
            Some(plain) if !data => plain.compress(raw, &mut stored),
            _ => self.compressor.compress(raw, &mut stored),
        };
        drop(time);
        if let Some(statistics) = statistics {
            count(statistics, raw.len(), stored.len(), form);
        }
        self.compressed |= form != Compression::None;
        let handle = self.put(&stored, form);
        if stored.capacity() <= BlockBuilder::ROOM_KEPT {
            self.stored = stored;
        }
        Ok((handle?, form))
    }

    /// Appends a block as it is.
    pub(super) fn put_raw(&mut self, raw: &[u8]) -> Result<BlockHandle> {
        self.put(raw, Compression::None)
    }

    fn put(&mut self, stored: &[u8], form: Compression) -> Result<BlockHandle> {
        let handle = BlockHandle { offset: self.offset(), size: stored.len() as u64 };
        let trailer = self.checksum.trailer(handle.offset, stored, form.byte());
        if stored.len() < PIECE {
            self.pending.extend_from_slice(stored);
        } else {
            self.flush()?;
            self.file.write_at(stored, self.written)?;
            self.written += stored.len() as u64;
        }
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
        if self.pending.is_empty() {
            return Ok(());
        }
        self.file.write_at(&self.pending, self.written)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        let unwritten = self.written - self.given;
        if unwritten >= WRITEBACK {
            self.file.begin_writeback(self.given, unwritten);
            self.given = self.written;
        }
        Ok(())
    }
}

/// A block of `raw` bytes was tried, and is stored in `stored` bytes.
fn count(statistics: &Statistics, raw: usize, stored: usize, form: Compression) {
    if form == Compression::None {
        statistics.tick(Ticker::NumberBlockCompressionRejected);
        statistics.add(Ticker::BytesCompressionRejected, raw as u64);
    } else {
        statistics.tick(Ticker::NumberBlockCompressed);
        statistics.add(Ticker::BytesCompressedFrom, raw as u64);
        statistics.add(Ticker::BytesCompressedTo, stored as u64);
    }
}

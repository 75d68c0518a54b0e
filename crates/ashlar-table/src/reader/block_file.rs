//! Reads blocks of a file: verifies and decompresses them, and converts data blocks to the plain form.
//!
//! Cursors know only the plain form of a data block: whole keys, each with its value. Other forms are converted when
//! the block is loaded: separated keys and values are joined, stripped timestamps are added, blobs of the same file are
//! read. For files without these features this costs a check of one byte per load.

use crate::read_how::ReadHow;
use crate::reader::scratch::Scratch;
use ashlar_base::bytes::{resize, zeroed};
use ashlar_base::error::BusyKind;
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{Error, ErrorKind, Malformed, Result};
use ashlar_env::{ReadFile, uncompressed_max};
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, is_separated, join_separated, rewrite_block};
use ashlar_format::compress::{Compression, Dictionary, decompress_into, raw_len};
use ashlar_format::table::{BlockChecksum, BlockHandle, TableKind};
use std::borrow::Cow;
use std::mem;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// The greatest length of a decompressed block: RocksDB keeps these lengths in 32 bits. A data block may hold one value
/// of that size, so a smaller bound would refuse valid tables.
pub(crate) const MAX_BLOCK: usize = u32::MAX as usize;
/// The greatest length of a decompressed block other than a data block (index, filter, dictionary, properties, range
/// deletions). A long file may have longer ones: see [`META_RATIO`].
pub(crate) const MAX_META_BLOCK: u64 = 64 << 20;
/// Such a block may have this many times the length of its file, because separators and tombstones describe the file's
/// contents.
const META_RATIO: u64 = 64;

/// The most uncompressed bytes of a block that is no data block, in a file of `len` bytes.
pub(crate) fn meta_block_max(len: u64) -> u64 {
    len.saturating_mul(META_RATIO).clamp(MAX_META_BLOCK, MAX_BLOCK as u64)
}
/// Smaller blocks are not charged while they are decompressed.
const CHARGED: u64 = 1 << 20;

/// A table's file, with the footer's data about its blocks.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: Arc<dyn ReadFile>,
    /// The offset of the footer: no block reaches past it.
    limit: u64,
    checksum: BlockChecksum,
    kind: TableKind,
    verify: bool,
    data: DataForm,
    statistics: Option<Arc<Statistics>>,
    budget: Option<Arc<MemoryBudget>>,
}

/// The properties of a table's data blocks.
#[derive(Debug, Default)]
pub(crate) struct DataForm {
    /// The dictionary of compressed blocks.
    pub(crate) dictionary: Option<Dictionary>,
    /// The length of the timestamp that was stripped from every user key.
    pub(crate) stripped: usize,
    /// Values of the blob-index type are in this file.
    pub(crate) embedded_blobs: bool,
}

impl BlockFile {
    /// A file that is read at random: what is read in order asks for itself ([`BlockFile::will_read`]).
    pub(crate) fn new(
        file: Arc<dyn ReadFile>,
        limit: u64,
        checksum: BlockChecksum,
        kind: TableKind,
        verify: bool,
    ) -> Self {
        file.expect_random();
        let (data, statistics, budget) = (DataForm::default(), None, None);
        BlockFile { file, limit, checksum, kind, verify, data, statistics, budget }
    }

    /// Sets the charge for blocks while they are decompressed.
    pub(crate) fn charge_to(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.budget = budget;
    }

    /// Sets the statistics of reads.
    pub(crate) fn count_into(&mut self, statistics: Option<Arc<Statistics>>) {
        self.statistics = statistics;
    }

    /// The statistics of reads.
    #[inline]
    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        self.statistics.as_deref()
    }

    /// Sets the form of the data blocks for later reads.
    pub(crate) fn set_data_form(&mut self, data: DataForm) {
        self.data = data;
    }

    /// The memory of this value in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.data.dictionary.as_ref().map_or(0, Dictionary::memory)
    }

    /// Bytes before the footer.
    pub(crate) fn size(&self) -> u64 {
        self.limit
    }

    /// Asks the system to read this place in the background.
    pub(crate) fn will_read(&self, place: Range<u64>) {
        self.file.will_read(place.start, place.end.saturating_sub(place.start));
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the block as stored, trailer included.
    ///
    /// # Errors
    /// `Corruption`: the block would reach into the footer.
    pub(crate) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        handle.len_with_trailer(self.limit).map_err(|e| e.in_file(self.path(), handle.offset))
    }

    /// The file for a read that is done so.
    #[inline]
    pub(crate) fn reading<'a>(&'a self, how: &'a ReadHow) -> Reading<'a> {
        Reading { file: self, how }
    }

    /// The file for the engine's own reads.
    #[inline]
    pub(crate) fn plainly(&self) -> Reading<'_> {
        self.reading(ReadHow::plain())
    }

    /// Whether checksums of data blocks are compared.
    pub(crate) fn verifies(&self) -> bool {
        self.verify
    }
}

/// A table's file during one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    file: &'a BlockFile,
    how: &'a ReadHow,
}

impl Deref for Reading<'_> {
    type Target = BlockFile;

    #[inline]
    fn deref(&self) -> &BlockFile {
        self.file
    }
}

impl Reading<'_> {
    /// Fills `out` from `offset` on. Every read of a block goes through here.
    ///
    /// # Errors
    /// `Io`. `Busy(NotCached)`, `TimedOut`: the limits of the read.
    pub(crate) fn read_raw(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.how.in_file(|| self.path(), || self.read_now(out, offset))
    }

    fn read_now(&self, out: &mut [u8], offset: u64) -> Result<()> {
        let _time = self.statistics().and_then(|s| s.time(Distribution::SstReadMicros));
        let _step = perf::time(Metric::BlockReadTime);
        perf::add(Metric::BlockReadCount, 1);
        perf::add(Metric::BlockReadByte, out.len() as u64);
        self.file.file.read_exact_at(out, offset)
    }

    /// Whether this read compares checksums of data blocks.
    #[inline]
    fn checks(&self) -> bool {
        self.verify && self.how.verify
    }

    /// Reads one data block and converts it to the plain form. Verifies its checksum if the options say so.
    pub(crate) fn read_data(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut own = Scratch::default();
        self.read_into(&mut own, handle)?;
        Ok(own.into_block())
    }

    /// [`Reading::read_data`] into `scratch`. After an error the bytes there have no meaning.
    ///
    /// # Cost
    /// Neither allocates nor zeroes memory for a block that is no longer than the preceding ones.
    pub(super) fn read_into(&self, scratch: &mut Scratch, handle: BlockHandle) -> Result<()> {
        scratch.keep(None);
        resize(&mut scratch.stored, self.stored_len(handle)?)?;
        self.read_raw(&mut scratch.stored, handle.offset)?;
        let (block, compression) = self.check(&scratch.stored, handle, self.checks())?;
        if compression == 0 && self.is_plain(block) {
            scratch.as_stored = Some(block.len());
            return Ok(());
        }
        scratch.as_stored = None;
        self.unpack_into(&mut scratch.raw, block, compression, handle)
    }

    /// Reads one block of another kind. Always verifies its checksum.
    pub(crate) fn read_verified(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut stored = self.read_stored(handle)?;
        let (block, compression) = self.check(&stored, handle, true)?;
        if compression != 0 {
            let mut raw = Vec::new();
            self.expand(&mut raw, block, compression, handle, (None, meta_block_max(self.limit)))?;
            return Ok(raw);
        }
        let len = block.len();
        stored.truncate(len);
        Ok(stored)
    }

    /// The stored bytes of block and trailer.
    pub(crate) fn read_stored(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let mut stored = zeroed(self.stored_len(handle)?)?;
        self.read_raw(&mut stored, handle.offset)?;
        Ok(stored)
    }

    /// Verifies a stored data block, decompresses it and converts it to the plain form. A block that is stored in the plain
    /// form is lent: it is the first part of `stored`.
    pub(crate) fn unpack_data<'a>(&self, stored: &'a [u8], handle: BlockHandle) -> Result<Cow<'a, [u8]>> {
        let (block, compression) = self.check(stored, handle, self.checks())?;
        if compression == 0 && self.is_plain(block) {
            return Ok(Cow::Borrowed(block));
        }
        let mut raw = Vec::new();
        self.unpack_into(&mut raw, block, compression, handle)?;
        Ok(Cow::Owned(raw))
    }

    /// Decompresses a verified data block into `raw` and converts it to the plain form.
    fn unpack_into(
        &self,
        raw: &mut Vec<u8>,
        block: &[u8],
        compression: u8,
        handle: BlockHandle,
    ) -> Result<()> {
        if compression == 0 {
            resize(raw, block.len())?;
            raw.copy_from_slice(block);
        } else {
            let how = (self.data.dictionary.as_ref(), MAX_BLOCK as u64);
            self.expand(raw, block, compression, handle, how)?;
        }
        if !self.is_plain(raw) {
            *raw = self.make_plain(mem::take(raw), handle)?;
        }
        Ok(())
    }

    #[inline]
    fn is_plain(&self, raw: &[u8]) -> bool {
        !is_separated(raw) && self.data.stripped == 0 && !self.data.embedded_blobs
    }

    #[cold]
    fn make_plain(&self, mut raw: Vec<u8>, handle: BlockHandle) -> Result<Vec<u8>> {
        let in_block = |e: Malformed| e.in_file(self.path(), handle.offset);
        if is_separated(&raw) {
            raw = join_separated(&raw).map_err(in_block)?;
        }
        if self.data.stripped > 0 {
            let zeros = vec![0; self.data.stripped];
            let padded =
                rewrite_block::<Malformed>(&self.parse(&raw, handle)?, |key, value, new_key, new_value| {
                    let (user_key, trailer) =
                        key.split_at_checked(key.len().saturating_sub(8)).unwrap_or_default();
                    for part in [user_key, &zeros, trailer] {
                        new_key.extend_from_slice(part);
                    }
                    new_value.extend_from_slice(value);
                    Ok(())
                });
            raw = padded.map_err(in_block)?;
        }
        if self.data.embedded_blobs {
            raw = self.with_blobs(&self.parse(&raw, handle)?, handle)?;
        }
        Ok(raw)
    }

    fn parse<'a>(&self, raw: &'a [u8], handle: BlockHandle) -> Result<DataBlock<'a>> {
        DataBlock::parse(raw).map_err(|e: Unreadable| e.in_file(self.path(), handle.offset))
    }

    /// Verifies the checksum of a blob record, which is stored as an uncompressed block is.
    pub(super) fn check_blob(&self, stored: &[u8], record: BlockHandle) -> Result<()> {
        match self.check(stored, record, self.checks())? {
            (_, 0) => Ok(()),
            (_, other) => {
                let text = format!("embedded blobs with compression type {other:#04x}");
                Err(Error::not_supported(text).at(self.path(), record.offset))
            }
        }
    }

    fn check<'a>(&self, stored: &'a [u8], handle: BlockHandle, verify: bool) -> Result<(&'a [u8], u8)> {
        if !verify || planted(Bug::BlockChecksumIgnored) {
            return BlockChecksum::split(stored).map_err(|e| self.misread(e, handle));
        }
        let _step = perf::time(Metric::BlockChecksumTime);
        let checked = self.checksum.verify(handle.offset, stored);
        if let Some(statistics) = self.statistics() {
            statistics.tick(Ticker::BlockChecksumComputeCount);
            if checked.is_err() {
                statistics.tick(Ticker::BlockChecksumMismatchCount);
            }
        }
        checked.map_err(|e| self.misread(e, handle))
    }

    fn misread(&self, e: Malformed, handle: BlockHandle) -> Error {
        Error::corruption(format!("{} in {} of {} bytes", e.what, e.field, handle.size))
            .at(self.path(), handle.offset)
            .damaged_file_hint()
    }

    /// Refuses a block whose length, uncompressed, is more than `max` or than the process should take at once. Charges it while
    /// the result is held.
    fn charge(&self, len: u64, handle: BlockHandle, max: u64) -> Result<Option<MemoryCharge>> {
        let at = |e: Error| Err(e.at(self.path(), handle.offset));
        if len > max {
            return at(Error::corruption(format!(
                "block of {} bytes says that it has {len} bytes uncompressed; its kind may have {max} in this file",
                handle.size
            )));
        }
        let machine = uncompressed_max();
        let Some(bytes) = usize::try_from(len).ok().filter(|bytes| *bytes <= machine) else {
            let text = format!(
                "block of {len} bytes uncompressed, more than half of the memory of this process ({machine} bytes)"
            );
            return at(
                Error::new(ErrorKind::Busy(BusyKind::Memory), text).hint("Give the process more memory")
            );
        };
        Ok(self.charge_made(bytes))
    }

    /// Charges what is made of a block of `bytes`, if that is much, while the result is held.
    pub(crate) fn charge_made(&self, bytes: usize) -> Option<MemoryCharge> {
        let budget = self.budget.as_ref().filter(|_| bytes as u64 >= CHARGED);
        budget.map(|budget| budget.charge(MemoryUse::Buffers, bytes))
    }

    fn expand(
        &self,
        raw: &mut Vec<u8>,
        block: &[u8],
        compression: u8,
        handle: BlockHandle,
        (dictionary, max): (Option<&Dictionary>, u64),
    ) -> Result<()> {
        let kind = match self.kind {
            TableKind::BlockBased => Compression::from_byte(compression),
            TableKind::LevelDb => Compression::from_leveldb_byte(compression),
        };
        let Some(kind) = kind else {
            let text = format!("compression type {compression:#04x}");
            return Err(Error::not_supported(text).at(self.path(), handle.offset));
        };
        let time = self.statistics().and_then(|s| s.time_in_detail(Distribution::DecompressionTimesNanos));
        let step = perf::time(Metric::BlockDecompressTime);
        // A block without a length fails when it is decompressed.
        let charge = raw_len(kind, block).map(|len| self.charge(len, handle, max)).transpose()?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        decompress_into(kind, block, dictionary, max, raw)
            .map_err(|e| e.in_file(self.path(), handle.offset))?;
        drop((time, step, charge));
        perf::add(Metric::BlockDecompressCount, 1);
        if let Some(statistics) = self.statistics() {
            statistics.tick(Ticker::NumberBlockDecompressed);
            statistics.add(Ticker::BytesDecompressedFrom, block.len() as u64);
            statistics.add(Ticker::BytesDecompressedTo, raw.len() as u64);
        }
        Ok(())
    }
}

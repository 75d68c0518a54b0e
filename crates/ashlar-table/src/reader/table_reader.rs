//! An open table: its parts, and the blocks that lookups (`lookup`) and cursors (`iter`) read.

use crate::filter::{TableFilter, filter_hash};
use crate::read_how::ReadHow;
use crate::reader::table_index::{Partition, TableIndex};
use crate::reader::{BlockAt, BlockFile, Reading};
use ashlar_base::kept::with_kept;
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::stats::Ticker;
use ashlar_base::{
    Error, FileNumber, InternalKey, InternalKeyBuf, LookupKey, Order, Result, SeqNum, Trailer,
};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock};
use ashlar_format::table::{BlockHandle, Properties};
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

thread_local! {
    /// The cursor of point lookups. It keeps its key buffer from one lookup to the next.
    static LOOKUP: RefCell<BlockCursor> = RefCell::default();
}

/// The result of a point lookup: an entry and its value.
#[derive(Clone, Debug)]
pub struct TableFound {
    /// Sequence number and type of the entry.
    pub trailer: Trailer,
    /// The bytes of the value.
    pub home: FoundIn,
    /// The range of the value in its block.
    pub(super) value: Range<usize>,
    /// The block's place.
    pub(super) at: BlockAt,
}

/// The bytes of a value that was found.
#[derive(Clone, Debug)]
pub enum FoundIn {
    /// A range of a pinned block.
    Block(FramePin, Range<usize>),
    /// A copy: the block was read and did not enter the cache.
    Copy(Box<[u8]>),
}

/// Looks at the sequence number and type of an entry, its block, and the place of its value there; answers whether to go on.
pub type ShowEntry<'s> = dyn FnMut(Trailer, &FramePin, Range<usize>) -> Result<bool> + 's;

/// Runs a lookup with the thread's cursor.
pub(super) fn with_cursor<T>(lookup: impl FnOnce(&mut BlockCursor) -> T) -> T {
    with_kept(&LOOKUP, lookup)
}

impl TableFound {
    /// The value as stored; its meaning depends on the entry's type.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.home {
            FoundIn::Block(pin, value) => pin.get(value.clone()).unwrap_or_default(),
            FoundIn::Copy(bytes) => bytes,
        }
    }
}

/// An open table. Index, filter and range tombstones are in memory, data blocks in the pool.
#[derive(Debug)]
pub struct TableReader {
    pub(super) file: BlockFile,
    pub(super) index: TableIndex,
    pub(super) filter: TableFilter,
    /// The error because of which the table works without its filter. Reads are slower and still correct; only `verify`
    /// reports it.
    pub(super) filter_error: Option<Error>,
    /// Blocks that no read needs. Only `verify` reads them, because RocksDB may.
    pub(super) unread: Box<[BlockHandle]>,
    pub(super) properties: Properties,
    pub(super) order: Order,
    pub(super) number: FileNumber,
    /// The one sequence number of all entries, for tables made outside and ingested.
    pub(super) global_seq: Option<SeqNum>,
    pub(super) tombstones: Arc<FragmentedTombstones>,
    /// The end of the data blocks in the file.
    pub(super) data_end: u64,
    /// Bytes of the file.
    pub(super) size: u64,
    /// [`TableReader::memory`] as it was at the open.
    pub(super) charge: MemoryCharge,
}

impl TableReader {
    /// Shows the older entries of `user_key`, newest first, until `show` answers false. `found` is an entry of that key in
    /// this table.
    ///
    /// # Errors
    /// As [`TableReader::get`], and those of `show`.
    /// # Cost
    /// One step in the block for each entry.
    pub fn older(
        &self,
        user_key: &[u8],
        found: TableFound,
        how: &ReadHow,
        show: &mut ShowEntry<'_>,
    ) -> Result<()> {
        // A table whose entries have one sequence number has one entry of a key.
        if self.global_seq.is_some() {
            return Ok(());
        }
        with_cursor(|cursor| {
            let TableFound { trailer, home, value, mut at } = found;
            let mut pin = match home {
                FoundIn::Block(pin, _) => pin,
                FoundIn::Copy(_) => self.pin_again(at, how)?,
            };
            let block = DataBlock::reopen(&pin).map_err(|e| self.misread(at, e))?;
            let mut moved = cursor.seek_behind(&block, user_key, trailer, value.end);
            loop {
                moved.map_err(|e| self.misread(at, e.into()))?;
                if let Some(key) = cursor.internal_key() {
                    let (found_key, trailer) = key.split();
                    let value = cursor.value_range();
                    if found_key != user_key || !show(trailer, &pin, value.start..value.end)? {
                        return Ok(());
                    }
                    let block = DataBlock::reopen(&pin).map_err(|e| self.misread(at, e))?;
                    moved = cursor.next(&block);
                } else {
                    // The next block can hold the key only if the separator is that key.
                    if self.partition(at, how)?.index.user_key(at.block()) != user_key {
                        return Ok(());
                    }
                    let Some(next) = self.after(at, how)? else { return Ok(()) };
                    (at, pin) = (next, self.block(next, how, None)?);
                    let block = DataBlock::reopen(&pin).map_err(|e| self.misread(at, e))?;
                    moved = cursor.first(&block);
                }
            }
        })
    }

    #[inline]
    pub(super) fn count(&self, ticker: Ticker) {
        if let Some(statistics) = self.file.statistics() {
            statistics.tick(ticker);
        }
    }

    /// False when the table has no point entry of the key, as its filter knows. No data block is read.
    pub fn may_contain(&self, key: &LookupKey<'_>, how: &ReadHow) -> bool {
        self.filter.may_contain(
            self.file.reading(how),
            key.user_key,
            key.trailer(),
            filter_hash(key.user_key),
        )
    }

    /// False when the table has no point entry in the range, as the prefixes in its filter show. `closed`: the range includes
    /// `upper`. Only for keys in ascending order of bytes. No data block is read.
    pub fn may_meet(&self, lower: &[u8], upper: &[u8], closed: bool, how: &ReadHow) -> bool {
        self.filter.may_meet(self.file.reading(how), lower, upper, closed)
    }

    /// A stored trailer as readers see it.
    #[inline]
    pub(crate) fn present(&self, stored: Trailer) -> Trailer {
        match self.global_seq {
            None => stored,
            Some(seq) => Trailer::from_raw(seq.get() << 8 | u64::from(stored.type_byte())),
        }
    }

    /// The properties of the file; defaults for a LevelDB table, which has none.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The range tombstones, as stored. [`TableReader::get`] and cursors ignore them, so the caller must apply them.
    /// They apply only within the bounds that the MANIFEST gives the file.
    #[inline]
    pub fn range_tombstones(&self) -> &Arc<FragmentedTombstones> {
        &self.tombstones
    }

    /// An estimate of the bytes of the file before `key`, exact to a block. An unreadable partition of the index counts
    /// as the end of the data.
    pub fn approximate_offset(&self, key: InternalKey<'_>) -> u64 {
        let (user_key, trailer) = key.split();
        let trailer = if self.global_seq.is_some() { Trailer::FIRST } else { trailer };
        let found = self.find(user_key, trailer, ReadHow::plain()).ok().flatten();
        found.and_then(|at| self.handle(at)).map_or(self.data_end, |h| h.offset)
    }

    /// An estimate of the bytes of the file for the user keys in `from..to`: their data by
    /// [`TableReader::approximate_offset`], and index, filter and the rest in proportion.
    pub fn approximate_size(&self, from: &[u8], to: &[u8]) -> u64 {
        let offset = |key| self.approximate_offset(InternalKeyBuf::new(key, Trailer::FIRST).as_key());
        let data = u128::from(offset(to).saturating_sub(offset(from)));
        let share = data * u128::from(self.size) / u128::from(self.data_end.max(1));
        u64::try_from(share).unwrap_or(self.size).min(self.size)
    }

    /// Up to `most` user keys that cut the table into parts of about the same size, each with the bytes of its part.
    /// They are separators of the index (of a partitioned one, of its top level), so nothing is read, and a separator
    /// need not be a key of the table.
    pub fn anchors(&self, most: u32) -> Vec<(Vec<u8>, u64)> {
        self.index.anchors(most, self.data_end)
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A charge for a buffer with which this table is read.
    pub(crate) fn charge_buffer(&self) -> MemoryCharge {
        let budget = self.charge.budget();
        budget.map_or_else(MemoryCharge::none, |budget| budget.charge(MemoryUse::Buffers, 0))
    }

    /// The memory of index, block slots, filter, dictionary and range tombstones now, in bytes. Data blocks are charged
    /// to the pool.
    pub fn memory(&self) -> usize {
        self.index.memory() + self.filter.memory() + self.file.memory() + self.tombstones.memory()
    }

    /// Number of data blocks; of a table with a partitioned index as its properties say.
    pub fn blocks(&self) -> u32 {
        self.index.blocks()
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file, for the engine's own reads.
    pub(crate) fn file(&self) -> Reading<'_> {
        self.file.plainly()
    }

    /// The first data block that may hold an entry at or after the key; `None` when none may.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8], trailer: Trailer, how: &ReadHow) -> Result<Option<BlockAt>> {
        self.index.find(user_key, trailer, self.file.reading(how))
    }

    /// The data block behind `at`.
    #[inline]
    pub(crate) fn after(&self, at: BlockAt, how: &ReadHow) -> Result<Option<BlockAt>> {
        self.index.after(at, self.file.reading(how))
    }

    /// The data block before `at`.
    #[inline]
    pub(crate) fn before(&self, at: BlockAt, how: &ReadHow) -> Result<Option<BlockAt>> {
        self.index.before(at, self.file.reading(how))
    }

    /// The first data block.
    pub(crate) fn first_block(&self, how: &ReadHow) -> Result<Option<BlockAt>> {
        self.index.first(self.file.reading(how))
    }

    /// The last data block.
    pub(crate) fn last_block(&self, how: &ReadHow) -> Result<Option<BlockAt>> {
        self.index.last(self.file.reading(how))
    }

    /// Number of partitions of the index.
    pub(crate) fn partitions(&self) -> u32 {
        self.index.partitions()
    }

    /// Data blocks in a partition.
    pub(crate) fn blocks_of(&self, partition: u32) -> Result<u32> {
        Ok(self.index.partition(partition, self.file())?.map_or(0, |part| part.index.len()))
    }

    /// The handle of a partition's block, and the separator after its last key; `None` for a whole index.
    pub(crate) fn partition_end(&self, partition: u32) -> Option<(u64, &[u8])> {
        self.index.partition_end(partition)
    }

    /// The user key of the separator behind a data block whose partition has been read.
    pub(crate) fn separator(&self, at: BlockAt) -> &[u8] {
        self.index.loaded(at.partition()).map_or(&[], |part| part.index.user_key(at.block()))
    }

    /// The handle of a data block whose partition has been read.
    pub(crate) fn handle(&self, at: BlockAt) -> Option<BlockHandle> {
        self.index.loaded(at.partition())?.index.handle(at.block())
    }

    #[inline]
    pub(super) fn partition(&self, at: BlockAt, how: &ReadHow) -> Result<&Partition> {
        let part = self.index.partition(at.partition(), self.file.reading(how))?;
        part.ok_or_else(|| Error::corruption("the index has no such partition").at_path(self.path()))
    }

    pub(crate) fn filter(&self) -> &TableFilter {
        &self.filter
    }

    pub(crate) fn filter_error(&self) -> Option<&Error> {
        self.filter_error.as_ref()
    }

    pub(crate) fn unread(&self) -> &[BlockHandle] {
        &self.unread
    }

    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    pub(crate) fn global_seq(&self) -> Option<SeqNum> {
        self.global_seq
    }

    /// The error of a block whose content does not decode.
    #[cold]
    pub(crate) fn misread(&self, at: BlockAt, e: Unreadable) -> Error {
        e.in_file(self.path(), self.handle(at).map_or(0, |h| h.offset))
    }
}

//! An open table: point lookups, and the blocks that its cursors (`iter`) read.

use crate::filter::TableFilter;
use crate::read_how::ReadHow;
use crate::reader::table_index::{Partition, TableIndex};
use crate::reader::{BlockAt, BlockFile, Readahead, Reading};
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::stats::Ticker;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{
    Error, FileNumber, InternalKey, InternalKeyBuf, LookupKey, Order, Result, SeqNum, Trailer,
};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock, HashIndex};
use ashlar_format::table::{BlockHandle, Properties};
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

thread_local! {
    /// The cursor of point lookups. It keeps its key buffer from one lookup to the next.
    static LOOKUP: RefCell<BlockCursor> = RefCell::default();
}

/// The result of a point lookup: the entry's value lies in the pinned block.
#[derive(Clone, Debug)]
pub struct TableFound {
    /// Sequence number and type of the entry.
    pub trailer: Trailer,
    /// The block.
    pub pin: FramePin,
    /// The range of the value in the block.
    pub value: Range<usize>,
    /// The block's place.
    at: BlockAt,
}

/// Looks at the sequence number and type of an entry, its block, and the place of its value there; answers whether to go on.
pub type ShowEntry<'s> = dyn FnMut(Trailer, &FramePin, Range<usize>) -> Result<bool> + 's;

/// Runs a lookup with the thread's cursor.
fn with_cursor<T>(lookup: impl FnOnce(&mut BlockCursor) -> T) -> T {
    LOOKUP.with(|cursor| match cursor.try_borrow_mut() {
        Ok(mut cursor) => lookup(&mut cursor),
        // Only a comparator that reads tables itself reaches this.
        Err(_) => lookup(&mut BlockCursor::default()),
    })
}

impl TableFound {
    /// The value as stored; its meaning depends on the entry's type.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.pin.get(self.value.clone()).unwrap_or_default()
    }
}

/// The place where the preceding lookup ended, in a series of lookups with ascending keys. The next one often ends in
/// the same block.
#[derive(Debug, Default)]
pub struct NearBlock(Option<(BlockAt, FramePin)>);

/// An open table. Index, filter and range tombstones are in memory, data blocks in the pool.
#[derive(Debug)]
pub struct TableReader {
    pub(super) file: BlockFile,
    pub(super) index: TableIndex,
    pub(super) filter: TableFilter,
    /// The error because of which the table works without its filter. Reads are slower and still correct; only `verify`
    /// reports it.
    pub(super) filter_error: Option<Error>,
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
    /// The newest point entry of `key.user_key` at or below `key.seq`, of whatever type; `None` when the table has none.
    ///
    /// # Errors
    /// `Corruption`: the block is damaged. `Io`: the read failed. `NotSupported`: the block needs a feature that is not
    /// built.
    /// # Cost
    /// With the block in the pool: filter probe, search in the index, one slot, search in the block; no allocation. A
    /// partition of index or filter not yet in memory costs one read more.
    pub fn get(&self, key: &LookupKey<'_>) -> Result<Option<TableFound>> {
        self.get_near(key, ReadHow::plain(), None)
    }

    /// [`TableReader::get`] with options. With `near`, it is one of a series of lookups with ascending user keys, which
    /// all use the same `near`.
    ///
    /// # Errors
    /// As [`TableReader::get`].
    /// # Cost
    /// For a key in the block of the one before: filter probe and search in that block, nothing else.
    pub fn get_near(
        &self,
        key: &LookupKey<'_>,
        how: &ReadHow,
        near: Option<&mut NearBlock>,
    ) -> Result<Option<TableFound>> {
        let trailer = match self.global_seq {
            None => key.trailer(),
            Some(seq) if seq > key.seq => return Ok(None),
            Some(_) => Trailer::FIRST,
        };
        if !self.filter.may_contain(self.file.reading(how), key.user_key, trailer) {
            self.count(Ticker::BloomFilterUseful);
            perf::add(Metric::BloomSstMissCount, 1);
            return Ok(None);
        }
        let found = with_cursor(|cursor| self.look(cursor, key.user_key, trailer, how, near))?;
        if self.filter.is_there() {
            perf::add(Metric::BloomSstHitCount, 1);
            if let Some(statistics) = self.file.statistics() {
                let true_positive = u64::from(found.is_some());
                statistics.add_all([
                    (Ticker::BloomFilterFullPositive, 1),
                    (Ticker::BloomFilterFullTruePositive, true_positive),
                ]);
            }
        }
        Ok(found)
    }

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
            let TableFound { trailer, mut pin, value, mut at } = found;
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

    /// The entry under the cursor, if it is one of the key.
    #[inline]
    fn found_at(
        &self,
        cursor: &BlockCursor,
        user_key: &[u8],
        at: BlockAt,
        pin: FramePin,
    ) -> Option<TableFound> {
        let (found_key, stored) = cursor.internal_key()?.split();
        let value = cursor.value_range();
        let trailer = self.present(stored);
        (found_key == user_key).then(|| TableFound { trailer, pin, value: value.start..value.end, at })
    }

    #[inline]
    fn count(&self, ticker: Ticker) {
        if let Some(statistics) = self.file.statistics() {
            statistics.tick(ticker);
        }
    }

    fn look(
        &self,
        cursor: &mut BlockCursor,
        user_key: &[u8],
        trailer: Trailer,
        how: &ReadHow,
        mut near: Option<&mut NearBlock>,
    ) -> Result<Option<TableFound>> {
        let known = near.as_ref().and_then(|near| self.still_in(near, user_key));
        let mut next = match known {
            Some(at) => Some(at),
            None => self.find(user_key, trailer, how)?,
        };
        while let Some(at) = next {
            let part = self.partition(at, how)?;
            let handle = part.index.handle(at.block()).unwrap_or_default();
            if !self.filter.block_may_contain(handle.offset, user_key) {
                self.count(Ticker::BloomFilterUseful);
                if part.index.user_key(at.block()) != user_key {
                    return Ok(None);
                }
                next = self.after(at, how)?;
                continue;
            }
            let pin = match near.as_ref().and_then(|near| near.0.as_ref()).filter(|(last, _)| *last == at) {
                Some((_, pin)) => pin.clone(),
                None => self.block_of(part, at, how, None)?,
            };
            if let Some(near) = &mut near {
                near.0 = Some((at, pin.clone()));
            }
            pin.prefetch();
            let block = DataBlock::reopen(&pin).map_err(|e| self.misread(at, e))?;
            let sought = match HashIndex::of(&pin) {
                Some(index) if !matches!(self.order, Order::Custom(_)) => {
                    cursor.seek_key_hashed(&block, index, &self.order, user_key, trailer)
                }
                _ => cursor.seek_key(&block, &self.order, user_key, trailer),
            };
            sought.map_err(|e| self.misread(at, e.into()))?;
            if cursor.is_on_entry() {
                return Ok(self.found_at(cursor, user_key, at, pin));
            }
            // Past the block's last entry. The next block can hold the key only if the separator is that key.
            if part.index.user_key(at.block()) != user_key {
                return Ok(None);
            }
            next = self.after(at, how)?;
        }
        Ok(None)
    }

    /// The block of the preceding lookup, if only that block can hold the key: its separator is greater.
    fn still_in(&self, near: &NearBlock, user_key: &[u8]) -> Option<BlockAt> {
        let (at, _) = near.0.as_ref()?;
        let separator = self.index.loaded(at.partition())?.index.user_key(at.block());
        self.order.compare(user_key, separator).is_lt().then_some(*at)
    }

    /// False when the table has no point entry of the key, as its filter knows. No data block is read.
    pub fn may_contain(&self, key: &LookupKey<'_>, how: &ReadHow) -> bool {
        self.filter.may_contain(self.file.reading(how), key.user_key, key.trailer())
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
    fn partition(&self, at: BlockAt, how: &ReadHow) -> Result<&Partition> {
        let part = self.index.partition(at.partition(), self.file.reading(how))?;
        part.ok_or_else(|| Error::corruption("the index has no such partition").at_path(self.path()))
    }

    pub(crate) fn filter(&self) -> &TableFilter {
        &self.filter
    }

    pub(crate) fn filter_error(&self) -> Option<&Error> {
        self.filter_error.as_ref()
    }

    pub(crate) fn order(&self) -> &Order {
        &self.order
    }

    pub(crate) fn global_seq(&self) -> Option<SeqNum> {
        self.global_seq
    }

    /// The data block, from the pool or the file.
    #[inline]
    pub(crate) fn block(
        &self,
        at: BlockAt,
        how: &ReadHow,
        readahead: Option<&mut Readahead>,
    ) -> Result<FramePin> {
        self.block_of(self.partition(at, how)?, at, how, readahead)
    }

    #[inline]
    fn block_of(
        &self,
        part: &Partition,
        at: BlockAt,
        how: &ReadHow,
        readahead: Option<&mut Readahead>,
    ) -> Result<FramePin> {
        match part.slots.hit(at.block()) {
            Some(pin) => {
                perf::add(Metric::BlockCacheHitCount, 1);
                if let Some(statistics) = self.file.statistics() {
                    statistics.add_all([
                        (Ticker::BlockCacheHit, 1),
                        (Ticker::BlockCacheDataHit, 1),
                        (Ticker::BlockCacheBytesRead, pin.len() as u64),
                    ]);
                }
                Ok(pin)
            }
            None => self.load(part, at.block(), how, readahead),
        }
    }

    #[cold]
    fn load(
        &self,
        part: &Partition,
        block: u32,
        how: &ReadHow,
        readahead: Option<&mut Readahead>,
    ) -> Result<FramePin> {
        let Some(handle) = part.index.handle(block) else {
            return Err(Error::corruption(format!("the table has no block {block}")).at_path(self.path()));
        };
        perf::add(Metric::BlockCacheMissCount, 1);
        self.count(Ticker::BlockCacheMiss);
        self.count(Ticker::BlockCacheDataMiss);
        let file = self.file.reading(how);
        let bytes = match readahead {
            Some(window) => window.read(file, handle)?,
            None => file.read_data(handle)?,
        };
        DataBlock::parse(&bytes).map_err(|e| e.in_file(self.path(), handle.offset))?;
        if !how.fill_cache || !how.verify && self.file.verifies() {
            return Ok(FramePin::unpooled(bytes));
        }
        let pin = part.slots.insert(block, bytes);
        if !pin.is_charged() {
            self.count(Ticker::BlockCacheAddFailures);
        } else if let Some(statistics) = self.file.statistics() {
            statistics.tick(Ticker::BlockCacheAdd);
            statistics.tick(Ticker::BlockCacheDataAdd);
            statistics.add(Ticker::BlockCacheDataBytesInsert, pin.len() as u64);
            statistics.add(Ticker::BlockCacheBytesWrite, pin.len() as u64);
        }
        Ok(pin)
    }

    /// The error of a block whose content does not decode.
    #[cold]
    pub(crate) fn misread(&self, at: BlockAt, e: Unreadable) -> Error {
        e.in_file(self.path(), self.handle(at).map_or(0, |h| h.offset))
    }
}

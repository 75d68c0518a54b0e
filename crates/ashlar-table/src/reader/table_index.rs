//! The index of an open table: whole in memory, or its top level in memory and its partitions read when they are
//! needed.
//!
//! ```text
//! whole:        separators of all data blocks
//! partitioned:  separators of partitions  ->  partition (read once, on the first need)  ->  data blocks
//! ```
//! 1. A data block has the name (partition, position in it); a whole index is partition 0.
//! 2. A partition must not be empty, and must lie between its separators in the top level. So a partition that occurs
//!    twice is detected, and the file's length bounds the memory of the partitions.
//! 3. The blocks that an index block names follow one another in the file. So one scan reads no block twice, and ends.
//! 4. A partition that was read stays in memory, and charged, until the table is closed. An unreadable partition is
//!    read again at the next need.
//!
//! Source: RocksDB `table/block_based/partitioned_index_reader.cc`.

use super::Reading;
use crate::index::{FlatIndex, IndexParts};
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Error, InternalKey, Order, Result, Trailer};
use ashlar_cache::{FramePool, SlotArray};
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, IndexCursor, IndexEntries};
use ashlar_format::table::BlockHandle;
use std::sync::{Arc, OnceLock};

/// The position of a data block in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockAt {
    partition: u32,
    block: u32,
}

/// A charge for memory that an open table keeps.
pub(crate) fn charge_table(budget: Option<&Arc<MemoryBudget>>) -> MemoryCharge {
    budget.map_or_else(MemoryCharge::none, |budget| budget.charge(MemoryUse::Tables, 0))
}

/// The data blocks under one index block.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) index: FlatIndex,
    pub(crate) slots: SlotArray,
}

/// Reads the index blocks of a table.
#[derive(Clone, Debug)]
pub(super) struct IndexShape {
    pub(super) format: IndexEntries,
    pub(super) order: Order,
    /// The length of the timestamp that was stripped from every user key.
    pub(super) stripped: usize,
}

impl IndexShape {
    /// Reads one index block whole.
    pub(super) fn read(&self, file: Reading<'_>, block: BlockHandle) -> Result<FlatIndex> {
        let misread = |e: Unreadable| e.in_file(file.path(), block.offset);
        let bytes = file.read_verified(block)?;
        // The block and its keys, or the keys and their pages.
        let _made = file.charge_made(2 * bytes.len());
        let parsed = DataBlock::parse(&bytes).map_err(misread)?;
        let mut cursor = IndexCursor::new(self.format);
        let mut parts = IndexParts::default();
        let mut padded = Vec::new();
        let mut end = 0;
        cursor.first(&parsed).map_err(|e| misread(e.into()))?;
        while let Some(value) = cursor.index_value() {
            let len = file.stored_len(value.handle)?;
            if value.handle.offset < end {
                let text = format!(
                    "entry {} of the index names a block at offset {}, before the end of the block ahead of it",
                    parts.len(),
                    value.handle.offset
                );
                return Err(Error::corruption(text).at(file.path(), block.offset));
            }
            end = value.handle.offset + len as u64;
            let (mut user_key, trailer) = match InternalKey::decode(cursor.key()) {
                _ if self.format.user_keys => (cursor.key(), None),
                Ok(key) => (key.user_key(), Some(key.trailer())),
                // The cursor gives no key without a trailer.
                Err(e) => return Err(misread(e.into())),
            };
            if self.stripped > 0 {
                padded.clear();
                padded.extend_from_slice(user_key);
                padded.resize(user_key.len() + self.stripped, 0);
                user_key = &padded;
            }
            if !parts.push(user_key, trailer, value.handle) {
                return Err(Error::corruption("index is too large").at(file.path(), block.offset));
            }
            cursor.next(&parsed).map_err(|e| misread(e.into()))?;
        }
        drop(bytes);
        parts.finish(self.order.clone(), !self.format.user_keys).map_err(|at| {
            let text = format!("separator {at} of the index is out of order");
            Error::corruption(text).at(file.path(), block.offset)
        })
    }
}

/// See the module.
#[derive(Debug)]
pub(super) enum TableIndex {
    Whole(Partition),
    Partitioned(PartitionedIndex),
}

#[derive(Debug)]
pub(super) struct PartitionedIndex {
    top: FlatIndex,
    partitions: Box<[OnceLock<Box<Partition>>]>,
    shape: IndexShape,
    pool: Arc<FramePool>,
    /// For the partitions that have been read.
    charge: MemoryCharge,
    /// Data blocks in all partitions, as the properties have it.
    blocks: u32,
}

impl TableIndex {
    /// All separators of the table.
    pub(super) fn whole(index: FlatIndex, pool: Arc<FramePool>) -> Self {
        let slots = SlotArray::new(pool, index.len());
        TableIndex::Whole(Partition { index, slots })
    }

    /// The top level of a partitioned index.
    pub(super) fn partitioned(
        top: FlatIndex,
        shape: IndexShape,
        pool: Arc<FramePool>,
        blocks: Option<u64>,
    ) -> Self {
        let partitions = (0..top.len()).map(|_| OnceLock::new()).collect();
        let blocks = u32::try_from(blocks.unwrap_or(0)).unwrap_or(u32::MAX);
        let charge = charge_table(pool.budget());
        TableIndex::Partitioned(PartitionedIndex { top, partitions, shape, pool, charge, blocks })
    }

    /// The partition, read from the file if necessary; `None` past the last.
    #[inline]
    pub(super) fn partition(&self, at: u32, file: Reading<'_>) -> Result<Option<&Partition>> {
        match self {
            TableIndex::Whole(whole) => Ok((at == 0).then_some(whole)),
            TableIndex::Partitioned(parts) => parts.partition(at, file),
        }
    }

    /// The partition if it is in memory.
    pub(super) fn loaded(&self, at: u32) -> Option<&Partition> {
        match self {
            TableIndex::Whole(whole) => (at == 0).then_some(whole),
            TableIndex::Partitioned(parts) => parts.partitions.get(at as usize)?.get().map(|part| &**part),
        }
    }

    /// The first block that may hold an entry at or after the key.
    #[inline]
    pub(super) fn find(
        &self,
        user_key: &[u8],
        trailer: Trailer,
        file: Reading<'_>,
    ) -> Result<Option<BlockAt>> {
        match self {
            TableIndex::Whole(whole) => {
                let block = whole.index.find(user_key, trailer);
                Ok((block < whole.index.len()).then_some(BlockAt { partition: 0, block }))
            }
            TableIndex::Partitioned(parts) => {
                let partition = parts.top.find(user_key, trailer);
                let Some(part) = parts.partition(partition, file)? else { return Ok(None) };
                let block = part.index.find(user_key, trailer);
                if block < part.index.len() {
                    return Ok(Some(BlockAt { partition, block }));
                }
                self.first_from(partition.saturating_add(1), file)
            }
        }
    }

    /// The block after `at`.
    #[inline]
    pub(super) fn after(&self, at: BlockAt, file: Reading<'_>) -> Result<Option<BlockAt>> {
        let next = BlockAt { block: at.block.saturating_add(1), ..at };
        match self.partition(at.partition, file)? {
            Some(part) if next.block < part.index.len() => Ok(Some(next)),
            _ => self.first_from(at.partition.saturating_add(1), file),
        }
    }

    /// The block before `at`.
    #[inline]
    pub(super) fn before(&self, at: BlockAt, file: Reading<'_>) -> Result<Option<BlockAt>> {
        match at.block.checked_sub(1) {
            Some(block) => Ok(Some(BlockAt { block, ..at })),
            None => self.last_of(at.partition, file),
        }
    }

    /// The first block.
    pub(super) fn first(&self, file: Reading<'_>) -> Result<Option<BlockAt>> {
        self.first_from(0, file)
    }

    /// Number of partitions.
    pub(super) fn partitions(&self) -> u32 {
        match self {
            TableIndex::Whole(_) => 1,
            TableIndex::Partitioned(parts) => parts.top.len(),
        }
    }

    /// The separator behind a partition, its block's offset before it; `None` for a whole index, which has none.
    pub(super) fn partition_end(&self, at: u32) -> Option<(u64, &[u8])> {
        match self {
            TableIndex::Whole(_) => None,
            TableIndex::Partitioned(parts) => Some((parts.top.handle(at)?.offset, parts.top.user_key(at))),
        }
    }

    /// The last block.
    pub(super) fn last(&self, file: Reading<'_>) -> Result<Option<BlockAt>> {
        self.last_of(self.partitions(), file)
    }

    /// See `TableReader::anchors`.
    pub(super) fn anchors(&self, most: u32, data_end: u64) -> Vec<(Vec<u8>, u64)> {
        let index = match self {
            TableIndex::Whole(whole) => &whole.index,
            TableIndex::Partitioned(parts) => &parts.top,
        };
        let each = index.len().div_ceil(most.max(1)).max(1);
        // The handles of a top level say nothing about the data: its partitions count alike.
        let end_of = |at: u32| match self {
            TableIndex::Whole(_) => index.handle(at).and_then(|h| h.end_with_trailer()).unwrap_or(0),
            TableIndex::Partitioned(_) => data_end / u64::from(index.len().max(1)) * u64::from(at + 1),
        };
        let mut before = 0;
        let mut anchors = Vec::new();
        for at in (0..index.len()).filter(|at| (at + 1).is_multiple_of(each)) {
            let end = end_of(at);
            anchors.push((index.user_key(at).to_vec(), end.saturating_sub(before)));
            before = end;
        }
        anchors
    }

    fn first_from(&self, partition: u32, file: Reading<'_>) -> Result<Option<BlockAt>> {
        let part = self.partition(partition, file)?;
        Ok(part.filter(|part| part.index.len() > 0).map(|_| BlockAt { partition, block: 0 }))
    }

    /// The last block of the partitions before `end`.
    fn last_of(&self, end: u32, file: Reading<'_>) -> Result<Option<BlockAt>> {
        let Some(partition) = end.checked_sub(1) else { return Ok(None) };
        let last = self.partition(partition, file)?.and_then(|part| part.index.len().checked_sub(1));
        Ok(last.map(|block| BlockAt { partition, block }))
    }

    /// Number of data blocks; for a partitioned index what the properties say.
    pub(super) fn blocks(&self) -> u32 {
        match self {
            TableIndex::Whole(whole) => whole.index.len(),
            TableIndex::Partitioned(parts) => parts.blocks,
        }
    }

    /// The memory of the index now, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            TableIndex::Whole(whole) => whole.memory(),
            TableIndex::Partitioned(parts) => {
                let loaded = parts.partitions.iter().filter_map(OnceLock::get);
                parts.top.memory() + loaded.map(|part| part.memory()).sum::<usize>()
            }
        }
    }
}

impl Partition {
    fn memory(&self) -> usize {
        self.index.memory() + self.slots.memory()
    }
}

impl PartitionedIndex {
    #[inline]
    fn partition(&self, at: u32, file: Reading<'_>) -> Result<Option<&Partition>> {
        let Some(cell) = self.partitions.get(at as usize) else { return Ok(None) };
        match cell.get() {
            Some(part) => Ok(Some(part)),
            None => self.load(at, cell, file).map(Some),
        }
    }

    #[cold]
    fn load<'a>(
        &self,
        at: u32,
        cell: &'a OnceLock<Box<Partition>>,
        file: Reading<'_>,
    ) -> Result<&'a Partition> {
        let handle = self.top.handle(at).unwrap_or_default();
        perf::add(Metric::IndexBlockReadCount, 1);
        let index = self.shape.read(file, handle)?;
        if let Some(what) = self.misplaced(at, &index) {
            return Err(Error::corruption(what).at(file.path(), handle.offset));
        }
        let slots = SlotArray::new(self.pool.clone(), index.len());
        let part = Partition { index, slots };
        let memory = part.memory();
        // Two threads may read it at once; one of the two stays.
        if cell.set(Box::new(part)).is_ok() {
            self.charge.grow(memory);
        }
        let kept = cell.get();
        kept.map(|part| &**part).ok_or_else(|| Error::corruption("a partition that is gone"))
    }

    /// Checks a partition against its place in the top level.
    fn misplaced(&self, at: u32, index: &FlatIndex) -> Option<&'static str> {
        let Some(last) = index.len().checked_sub(1) else { return Some("index partition is empty") };
        if !index.separator_is_at_most(last, &self.top, at) {
            return Some("index partition reaches above its separator");
        }
        let before = at.checked_sub(1);
        if before.is_some_and(|before| index.separator_is_at_most(0, &self.top, before)) {
            return Some("index partition reaches below its place");
        }
        // A neighbour that is not in memory yet is compared when it is read.
        let neighbour = |at: u32| self.partitions.get(at as usize).and_then(OnceLock::get);
        let overlaps = before.and_then(neighbour).is_some_and(|part| !part.index.ends_before(index))
            || neighbour(at.saturating_add(1)).is_some_and(|part| !index.ends_before(&part.index));
        overlaps.then_some("index partition names blocks of another partition")
    }
}

impl BlockAt {
    /// A block by its position.
    pub(crate) fn new(partition: u32, block: u32) -> BlockAt {
        BlockAt { partition, block }
    }

    /// The number of its partition.
    #[inline]
    pub(crate) fn partition(self) -> u32 {
        self.partition
    }

    /// Its number in the partition.
    #[inline]
    pub(crate) fn block(self) -> u32 {
        self.block
    }
}

//! The builder of a table: takes entries and writes the file.

use super::block_sink::BlockSink;
use super::collectors::{CollectorFailure, Collectors};
use super::filter_keys::FilterKeys;
use super::separators::Separators;
use super::tombstone_block::TombstoneBlock;
use super::waiting::WaitingBlocks;
use crate::options::{MAX_BLOCK_SIZE, TableIdentity, TableOptions};
use crate::reader::MAX_BLOCK;
use ashlar_base::bytes::common_prefix;
use ashlar_base::checksum::xxh3_64;
use ashlar_base::ext::table_properties_collector::CollectedEntry;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Order, Result, SeqNum, Trailer, ValueType};
use ashlar_env::WriteFile;
use ashlar_format::block::BlockBuilder;
use ashlar_format::compress::{Compression, Compressor};
use ashlar_format::table::{BlockChecksum, IndexKind};
use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

/// The largest user key: 8 MiB. Larger ones would make every index block and table bound of the tree too large.
pub const MAX_KEY_BYTES: usize = 8 << 20;

/// An internal key and its value have this many bytes at most in a table that is written here. With the largest block size
/// before them, a block then stays below 4 GiB.
pub const MAX_ENTRY_BYTES: usize = (1 << 31) - 1;

// What is written, readers take: the entries of a full block, a restart point of four bytes for each of them (they have 11
// bytes or more), and one entry more.
const _: () = assert!(MAX_BLOCK_SIZE + MAX_BLOCK_SIZE / 11 * 4 + MAX_ENTRY_BYTES + 64 < MAX_BLOCK);

/// A block that is fuller than this share of its size is closed rather than made larger than its size.
const FULL_ENOUGH_PERCENT: usize = 90;

/// The charge of a builder follows its memory to within this.
const CHARGE_STEP: usize = 64 << 10;

/// What was written: what the MANIFEST and statistics need to know.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// Bytes of the file.
    pub size: u64,
    /// The first key, range tombstones included.
    pub smallest: InternalKeyBuf,
    /// The last key, range tombstones included: where one of them reaches furthest, its end with the trailer
    /// [`Trailer::RANGE_END`], which is not inside any more.
    pub largest: InternalKeyBuf,
    /// Smallest sequence number.
    pub smallest_seq: SeqNum,
    /// Largest sequence number.
    pub largest_seq: SeqNum,
    /// Largest sequence number of an entry that is no deletion; 0 if all are deletions.
    pub newest_value: SeqNum,
    /// Number of entries, range tombstones included.
    pub entries: u64,
    /// Those of them that are deletions of any kind, range tombstones included.
    pub deletions: u64,
    /// Those of them that are range tombstones.
    pub range_deletions: u64,
    /// Bytes behind the last data block.
    pub tail_size: u64,
    /// Bytes of all internal keys.
    pub raw_key_bytes: u64,
    /// Bytes of all values.
    pub raw_value_bytes: u64,
    /// What the MANIFEST may record as the file's unique id.
    pub unique_id: [u64; 2],
    /// A collector asks for a compaction of the table.
    pub needs_compaction: bool,
    /// Properties that collectors did not give.
    pub collector_failures: Vec<CollectorFailure>,
}

#[derive(Debug)]
pub(super) struct Counts {
    /// Point entries and range tombstones.
    pub(super) entries: u64,
    pub(super) deletions: u64,
    pub(super) merge_operands: u64,
    pub(super) raw_key_bytes: u64,
    pub(super) raw_value_bytes: u64,
    pub(super) smallest_seq: SeqNum,
    pub(super) largest_seq: SeqNum,
    pub(super) newest_value: SeqNum,
}

/// Writes one table. Point entries come in strictly ascending order, so do range tombstones, and either may come between
/// the others; nothing is durable before the caller syncs the file.
#[derive(Debug)]
pub struct TableBuilder {
    pub(super) options: TableOptions,
    pub(super) identity: TableIdentity,
    pub(super) path: PathBuf,
    pub(super) sink: BlockSink,
    pub(super) checksum: BlockChecksum,
    /// The open block; also holds the last point entry's key.
    block: BlockBuilder,
    /// A block of more bytes is closed rather than made larger than its size.
    full_enough: usize,
    /// First key of the open block, for an index that holds it.
    first_key: Vec<u8>,
    pub(super) separators: Separators,
    pub(super) filter: Option<FilterKeys>,
    /// The first point entry; `None` before it.
    smallest: Option<InternalKeyBuf>,
    pub(super) tombstones: TombstoneBlock,
    pub(super) counts: Counts,
    /// `None`: nothing is collected.
    pub(super) collectors: Option<Box<Collectors>>,
    waiting: Option<WaitingBlocks>,
    pub(super) dictionary: Vec<u8>,
    pub(super) charge: MemoryCharge,
    /// Bytes charged.
    charged: usize,
    /// What [`TableBuilder::file_size_estimate`] counts without the open block and the filter.
    closed_bytes: u64,
}

/// The relation of an entry to the one before it.
struct Step {
    /// The bytes that both internal keys start with.
    common: usize,
    /// The user keys differ.
    first: bool,
}

impl TableBuilder {
    /// A builder on an empty file.
    ///
    /// # Errors
    /// `InvalidArgument`: options no table can have. `NotSupported`: a codec that is not written.
    pub fn new(file: Arc<dyn WriteFile>, options: TableOptions, identity: TableIdentity) -> Result<Self> {
        options.validate()?;
        let level = options.compression_level.unwrap_or(Compressor::DEFAULT);
        let compressor = Compressor::new(options.compression, level).map_err(|e| e.into_error())?;
        let checksum = BlockChecksum {
            kind: options.checksum,
            base_context: if options.format_version >= 6 { base_context(&identity) } else { 0 },
        };
        let hashes = options.data_block_hash_ratio.filter(|_| !matches!(options.order, Order::Custom(_)));
        Ok(TableBuilder {
            path: file.path().to_path_buf(),
            sink: BlockSink::new(file, checksum, compressor),
            checksum,
            block: match hashes {
                None => BlockBuilder::new(options.block_restart_interval),
                Some(ratio) => BlockBuilder::with_hash_index(options.block_restart_interval, ratio),
            },
            full_enough: (options.block_size * FULL_ENOUGH_PERCENT).div_ceil(100),
            first_key: Vec::new(),
            separators: Separators::default(),
            filter: FilterKeys::new(&options),
            smallest: None,
            tombstones: TombstoneBlock::new(),
            counts: Counts {
                entries: 0,
                deletions: 0,
                merge_operands: 0,
                raw_key_bytes: 0,
                raw_value_bytes: 0,
                smallest_seq: SeqNum::MAX,
                largest_seq: SeqNum::ZERO,
                newest_value: SeqNum::ZERO,
            },
            collectors: Collectors::new(&options, &identity),
            waiting: WaitingBlocks::new(&options),
            dictionary: Vec::new(),
            charge: MemoryCharge::none(),
            charged: 0,
            closed_bytes: 0,
            options,
            identity,
        })
    }

    /// The memory it takes from here on goes to `charge`: keys and bits of the filter, the index, blocks that wait for a
    /// dictionary or to be written.
    #[must_use]
    pub fn charged_to(mut self, charge: MemoryCharge) -> Self {
        self.charge = charge;
        self
    }

    /// Counts how blocks are compressed.
    #[must_use]
    pub fn counted_into(mut self, statistics: Option<Arc<Statistics>>) -> Self {
        self.sink.count_into(statistics);
        self
    }

    /// Brings the charge up to date, in steps that are worth it.
    fn settle_charge(&mut self) {
        let filter = self.filter.as_ref().map_or(0, FilterKeys::memory);
        let waiting = self.waiting.as_ref().map_or(0, WaitingBlocks::bytes);
        let now = self.sink.memory()
            + self.block.memory()
            + self.separators.memory()
            + self.tombstones.size_estimate()
            + self.dictionary.len()
            + waiting
            + filter;
        if now.abs_diff(self.charged) >= CHARGE_STEP {
            self.charge.set(now);
            self.charged = now;
        }
    }

    /// Appends a point entry.
    ///
    /// # Errors
    /// `InvalidArgument`: not above the entry before, 2 GiB and more of key and value, or a range tombstone, which goes
    /// to [`TableBuilder::add_range_tombstone`]. `NotSupported`: a type not known. `Io`: writing. After an error the
    /// file is to be given up.
    pub fn add(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let (user_key, trailer) = key.split();
        let value_type = self.check(key, trailer, value)?;
        let step = self.step(key)?;
        if self.block_is_full(key.encoded().len(), value.len()) {
            self.close_block(Some(key))?;
        }
        if self.collectors.is_some() {
            self.collect(user_key, value, (value_type, trailer.seq()));
        }
        if let Some(filter) = &mut self.filter {
            filter.add(user_key, step.first);
        }
        if self.block.is_empty() && self.options.index == IndexKind::BinarySearchWithFirstKey {
            self.first_key.clear();
            self.first_key.extend_from_slice(key.encoded());
        }
        self.block.add_sharing(step.common, key.encoded(), value);
        if self.smallest.is_none() {
            self.smallest = Some(key.to_buf());
        }
        self.count(value_type, trailer.seq(), key.encoded().len(), value.len());
        if key.encoded().len() + value.len() >= CHARGE_STEP {
            self.settle_charge();
        }
        Ok(())
    }

    /// Shows an entry to the collectors. Out of line, because few tables have any.
    #[cold]
    #[inline(never)]
    fn collect(&mut self, key: &[u8], value: &[u8], (kind, seq): (ValueType, SeqNum)) {
        if let Some(collectors) = &mut self.collectors {
            collectors.add(&CollectedEntry::new(key, value, kind, seq, self.sink.offset()));
        }
    }

    /// Appends a range tombstone: keys from `begin` on, `end` excluded, are deleted as of `seq`. They come by begin,
    /// newest first, and are kept in memory until [`TableBuilder::finish`].
    ///
    /// # Errors
    /// `InvalidArgument`: it covers nothing, is not above the tombstone before, or has 2 GiB and more of keys.
    pub fn add_range_tombstone(&mut self, begin: &[u8], end: &[u8], seq: SeqNum) -> Result<()> {
        let size = begin.len().saturating_add(end.len()).saturating_add(self.tombstones.size_estimate());
        if size >= 1 << 31 {
            return Err(Error::invalid("range tombstones of 2 GiB or more").at_path(&self.path));
        }
        let added = self.tombstones.add(&self.options.order, begin, end, seq);
        let key = added.map_err(|what| {
            let range = format!("{}..{} at {seq}", begin.escape_ascii(), end.escape_ascii());
            Error::invalid(format!("range tombstone {range} {what}")).at_path(&self.path)
        })?;
        self.count(ValueType::RangeDelete, seq, key.as_key().encoded().len(), end.len());
        self.collect(begin, end, (ValueType::RangeDelete, seq));
        self.settle_size();
        Ok(())
    }

    /// Number of entries so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        self.counts.entries
    }

    /// About the bytes the file would have if it were finished now.
    #[inline]
    pub fn file_size_estimate(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterKeys::size_estimate);
        self.closed_bytes + (self.block.size_estimate() + filter) as u64
    }

    /// About the bytes of the keys in the index so far.
    #[inline]
    pub fn index_bytes(&self) -> usize {
        self.separators.size_estimate()
    }

    /// Brings `closed_bytes` up to date, after a block was closed or a range tombstone was added.
    fn settle_size(&mut self) {
        let waiting = self.waiting.as_ref().map_or(0, WaitingBlocks::bytes);
        let kept = self.separators.size_estimate() + self.tombstones.size_estimate() + waiting;
        self.closed_bytes = self.sink.offset() + kept as u64;
    }

    /// The key of the last point entry; `None` before the first.
    fn last(&self) -> Option<InternalKey<'_>> {
        InternalKey::decode(self.block.last_key()).ok()
    }

    /// Compares a key with the last one: once for the order, for the filter and for the prefix that blocks do not repeat.
    #[inline]
    fn step(&self, key: InternalKey<'_>) -> Result<Step> {
        let Some(last) = self.last() else { return Ok(Step { common: 0, first: true }) };
        let common = common_prefix(last.encoded(), key.encoded());
        let ((last_user, last_trailer), (user_key, trailer)) = (last.split(), key.split());
        let ascends = match self.options.order.compare_sharing(common, last_user, user_key) {
            Ordering::Less => true,
            Ordering::Equal => trailer < last_trailer,
            Ordering::Greater => false,
        };
        if !ascends {
            let text = format!("entry {key:?} is not above {last:?}");
            return Err(Error::invalid(text).at_path(&self.path));
        }
        let first = common < user_key.len() || user_key.len() != last_user.len();
        Ok(Step { common, first })
    }

    #[inline]
    fn check(&self, key: InternalKey<'_>, trailer: Trailer, value: &[u8]) -> Result<ValueType> {
        if key.encoded().len().saturating_add(value.len()) > MAX_ENTRY_BYTES {
            return Err(Error::invalid("key and value of 2 GiB or more").at_path(&self.path));
        }
        match trailer.value_type() {
            Some(ValueType::RangeDelete) => {
                Err(Error::invalid(format!("range tombstone {key:?} among the point entries")))
            }
            Some(value_type) => Ok(value_type),
            None => Err(Error::not_supported(format!("entries of type {:#04x}", trailer.type_byte()))),
        }
    }

    #[inline]
    fn block_is_full(&self, key_len: usize, value_len: usize) -> bool {
        if self.block.is_empty() {
            return false;
        }
        let (size, now) = (self.options.block_size, self.block.size_estimate());
        now >= size || (now > self.full_enough && self.block.size_estimate_after(key_len, value_len) > size)
    }

    #[inline]
    fn count(&mut self, value_type: ValueType, seq: SeqNum, key_len: usize, value_len: usize) {
        let counts = &mut self.counts;
        counts.entries += 1;
        counts.raw_key_bytes += key_len as u64;
        counts.raw_value_bytes += value_len as u64;
        counts.smallest_seq = counts.smallest_seq.min(seq);
        counts.largest_seq = counts.largest_seq.max(seq);
        if value_type.deletes() {
            counts.deletions += 1;
        } else {
            counts.merge_operands += u64::from(value_type == ValueType::Merge);
            counts.newest_value = counts.newest_value.max(seq);
        }
    }

    /// Writes the open block; `next` will be the first key of the next one.
    fn close_block(&mut self, next: Option<InternalKey<'_>>) -> Result<()> {
        let Some(last) = InternalKey::decode(self.block.last_key()).ok().filter(|_| !self.block.is_empty())
        else {
            return Ok(());
        };
        self.separators.push(&self.options.order, &self.first_key, last, next);
        if let Some(filter) = &mut self.filter {
            filter.close_block(self.separators.len());
        }
        let raw = self.block.finish();
        if let Some(collectors) = &mut self.collectors {
            collectors.close_block(raw.len());
        }
        let enough = match &mut self.waiting {
            Some(waiting) => !waiting.push(raw),
            None => {
                // The compressed form, until the charge is brought up to date.
                let more = raw.len().saturating_sub(self.sink.memory());
                if more >= CHARGE_STEP && self.sink.compression() != Compression::None {
                    self.charge.grow(more);
                    self.charged += more;
                }
                self.separators.place(self.sink.put_data(raw)?);
                false
            }
        };
        self.block.reset();
        let released = if enough { self.release() } else { Ok(()) };
        self.settle_size();
        self.settle_charge();
        released
    }

    /// Writes the blocks that wait, with the dictionary made of them.
    fn release(&mut self) -> Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let (dictionary, blocks) = waiting.finish();
        if !dictionary.is_empty() {
            let level = self.options.compression_level.unwrap_or(Compressor::DEFAULT);
            let set = self.sink.set_dictionary(&dictionary, level);
            set.map_err(|e| e.into_error().at_path(&self.path))?;
        }
        for block in blocks {
            self.separators.place(self.sink.put_data(&block)?);
        }
        self.dictionary = dictionary;
        Ok(())
    }

    /// Writes what is left and the tail. The file is not synced.
    ///
    /// # Errors
    /// `InvalidArgument`: no entry was added. `Io`: writing.
    pub fn finish(mut self) -> Result<TableSummary> {
        let points = self.smallest.take().zip(self.last().map(InternalKey::to_buf));
        let Some(bounds) = self.tombstones.widen(&self.options.order, points) else {
            return Err(Error::invalid("a table needs an entry").at_path(&self.path));
        };
        self.close_block(None)?;
        self.release()?;
        self.write_tail(bounds)
    }
}

/// A number that differs from file to file and is not zero: blocks of one file are refused in another.
fn base_context(identity: &TableIdentity) -> u32 {
    let mut text = [identity.db_id.as_bytes(), identity.session_id.as_bytes()].join(&0);
    text.extend_from_slice(&identity.number.0.to_le_bytes());
    let hash = xxh3_64(&text);
    ((hash >> 32) as u32).max(1)
}

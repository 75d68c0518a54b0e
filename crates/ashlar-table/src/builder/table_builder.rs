//! The builder of a table: entries in, file out.

use super::block_sink::BlockSink;
use super::separators::Separators;
use super::tombstone_block::TombstoneBlock;
use crate::options::{TableIdentity, TableOptions};
use crate::unique_id::unique_id;
use ashlar_base::checksum::xxh3_64;
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Result, SeqNum, Trailer, ValueType};
use ashlar_env::WriteFile;
use ashlar_format::block::BlockBuilder;
use ashlar_format::compress::Compressor;
use ashlar_format::filter::BloomBuilder;
use ashlar_format::table::{
    BlockChecksum, CompressionProperty, Footer, IndexKind, MetaIndex, Properties, TableKind,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A block that is fuller than this share of its size is closed rather than made larger than its size.
const FULL_ENOUGH_PERCENT: usize = 90;

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
}

#[derive(Debug)]
struct Counts {
    /// Point entries and range tombstones.
    entries: u64,
    deletions: u64,
    merge_operands: u64,
    raw_key_bytes: u64,
    raw_value_bytes: u64,
    smallest_seq: SeqNum,
    largest_seq: SeqNum,
}

/// Writes one table. Point entries come in strictly ascending order, so do range tombstones, and either may come between
/// the others; nothing is durable before the caller syncs the file.
#[derive(Debug)]
pub struct TableBuilder {
    options: TableOptions,
    identity: TableIdentity,
    path: PathBuf,
    sink: BlockSink,
    checksum: BlockChecksum,
    block: BlockBuilder,
    separators: Separators,
    filter: Option<BloomBuilder>,
    /// The first point entry; `None` before it.
    smallest: Option<InternalKeyBuf>,
    /// The last point entry.
    last: InternalKeyBuf,
    tombstones: TombstoneBlock,
    counts: Counts,
    data_blocks: u64,
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
        let bits = options.bloom_bits_per_key.filter(|_| options.format_version >= 5);
        Ok(TableBuilder {
            path: file.path().to_path_buf(),
            sink: BlockSink::new(file, checksum, compressor),
            checksum,
            block: BlockBuilder::new(options.block_restart_interval),
            separators: Separators::default(),
            filter: bits.and_then(BloomBuilder::new),
            smallest: None,
            last: InternalKeyBuf::new(&[], Trailer::FIRST),
            tombstones: TombstoneBlock::new(),
            counts: Counts {
                entries: 0,
                deletions: 0,
                merge_operands: 0,
                raw_key_bytes: 0,
                raw_value_bytes: 0,
                smallest_seq: SeqNum::MAX,
                largest_seq: SeqNum::ZERO,
            },
            data_blocks: 0,
            options,
            identity,
        })
    }

    /// Appends a point entry.
    ///
    /// # Errors
    /// `InvalidArgument`: not above the entry before, 2 GiB and more of key and value, or a range tombstone, which goes
    /// to [`TableBuilder::add_range_tombstone`]. `NotSupported`: a type not known. `Io`: writing. After an error the
    /// file is to be given up.
    pub fn add(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let value_type = self.check(key, value)?;
        let (user_key, trailer) = key.split();
        if self.block_is_full(key.encoded().len(), value.len()) {
            self.close_block(Some(key))?;
        }
        if let Some(filter) = &mut self.filter
            && (self.smallest.is_none() || self.last.as_key().user_key() != user_key)
        {
            filter.add(user_key);
        }
        self.block.add(key.encoded(), value);
        self.last.set(user_key, trailer);
        if self.smallest.is_none() {
            self.smallest = Some(key.to_buf());
        }
        self.count(value_type, key, value);
        Ok(())
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
        self.count(ValueType::RangeDelete, key.as_key(), end);
        Ok(())
    }

    /// Number of entries so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        self.counts.entries
    }

    /// About the bytes the file would have if it were finished now.
    pub fn file_size_estimate(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, BloomBuilder::size_estimate);
        self.sink.offset()
            + (self.block.size_estimate()
                + self.separators.size_estimate()
                + self.tombstones.size_estimate()
                + filter) as u64
    }

    fn check(&self, key: InternalKey<'_>, value: &[u8]) -> Result<ValueType> {
        // With the largest block size before it, a block then stays below 4 GiB.
        if key.encoded().len().saturating_add(value.len()) >= 1 << 31 {
            return Err(Error::invalid("key and value of 2 GiB or more").at_path(&self.path));
        }
        let ascends = || self.options.order.compare_internal(self.last.as_key(), key).is_lt();
        if self.smallest.is_some() && !ascends() {
            let text = format!("entry {key:?} is not above {:?}", self.last);
            return Err(Error::invalid(text).at_path(&self.path));
        }
        match key.trailer().value_type() {
            Some(ValueType::RangeDelete) => {
                Err(Error::invalid(format!("range tombstone {key:?} among the point entries")))
            }
            Some(value_type) => Ok(value_type),
            None => Err(Error::not_supported(format!("entries of type {:#04x}", key.trailer().type_byte()))),
        }
    }

    fn block_is_full(&self, key_len: usize, value_len: usize) -> bool {
        if self.block.is_empty() {
            return false;
        }
        let (size, now) = (self.options.block_size, self.block.size_estimate());
        now >= size
            || (now > (size * FULL_ENOUGH_PERCENT).div_ceil(100)
                && self.block.size_estimate_after(key_len, value_len) > size)
    }

    fn count(&mut self, value_type: ValueType, key: InternalKey<'_>, value: &[u8]) {
        let counts = &mut self.counts;
        counts.entries += 1;
        counts.raw_key_bytes += key.encoded().len() as u64;
        counts.raw_value_bytes += value.len() as u64;
        counts.smallest_seq = counts.smallest_seq.min(key.seq());
        counts.largest_seq = counts.largest_seq.max(key.seq());
        match value_type {
            ValueType::Delete
            | ValueType::SingleDelete
            | ValueType::DeleteWithTimestamp
            | ValueType::RangeDelete => counts.deletions += 1,
            ValueType::Merge => counts.merge_operands += 1,
            _ => {}
        }
    }

    /// Writes the open block; `next` will be the first key of the next one.
    fn close_block(&mut self, next: Option<InternalKey<'_>>) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let handle = self.sink.put_compressed(self.block.finish())?;
        self.block.reset();
        self.data_blocks += 1;
        self.separators.push(&self.options.order, self.last.as_key(), next, handle);
        Ok(())
    }

    /// Writes what is left and the tail. The file is not synced.
    ///
    /// # Errors
    /// `InvalidArgument`: no entry was added. `Io`: writing.
    pub fn finish(mut self) -> Result<TableSummary> {
        let points = self.smallest.take().map(|smallest| (smallest, self.last.clone()));
        let Some((smallest, largest)) = self.tombstones.widen(&self.options.order, points) else {
            return Err(Error::invalid("a table needs an entry").at_path(&self.path));
        };
        self.close_block(None)?;
        let data_size = self.sink.offset();
        let version = self.options.format_version;
        let mut meta = MetaIndex::default();
        let mut properties = self.properties(data_size);
        if let Some(filter) = self.filter.as_ref().filter(|filter| filter.keys() > 0) {
            let bytes = filter.finish();
            properties.filter_size = Some(bytes.len() as u64);
            properties.num_filter_entries = Some(filter.keys() as u64);
            meta.set(MetaIndex::FULL_FILTER, self.sink.put_raw(&bytes)?);
        }
        let (index_block, user_keys) =
            self.separators.finish(version >= 3, version >= 4, self.options.index_restart_interval);
        let index = self.sink.put_compressed(&index_block)?;
        if version >= 6 {
            meta.set(MetaIndex::INDEX, index);
        }
        if !self.tombstones.is_empty() {
            meta.set(MetaIndex::RANGE_DELETIONS, self.sink.put_raw(self.tombstones.finish())?);
        }
        properties.index_size = Some(index.size + 5);
        properties.index_key_is_user_key = Some(u64::from(user_keys));
        properties.compression = Some(self.compression_property());
        meta.set(MetaIndex::PROPERTIES, self.sink.put_raw(&properties.encode())?);
        let metaindex = self.sink.put_raw(&meta.encode())?;
        let footer = Footer {
            kind: TableKind::BlockBased,
            version,
            checksum: self.checksum,
            metaindex,
            index: (version < 6).then_some(index),
        };
        let footer = footer.encode(self.sink.offset()).map_err(|e| e.into_error().at_path(&self.path))?;
        let size = self.sink.finish(&footer)?;
        Ok(TableSummary {
            size,
            smallest,
            largest,
            smallest_seq: self.counts.smallest_seq,
            largest_seq: self.counts.largest_seq,
            entries: self.counts.entries,
            deletions: self.counts.deletions,
            range_deletions: self.tombstones.len(),
            tail_size: size - data_size,
            raw_key_bytes: self.counts.raw_key_bytes,
            raw_value_bytes: self.counts.raw_value_bytes,
            unique_id: unique_id(&self.identity.db_id, &self.identity.session_id, self.identity.number.0),
        })
    }

    fn compression_property(&self) -> String {
        let kind = self.options.compression;
        let used = if self.sink.compressed() { vec![kind.byte()] } else { Vec::new() };
        CompressionProperty::for_table(self.options.format_version, kind, &used).print()
    }

    /// Everything that is known once the data blocks are written.
    fn properties(&self, data_size: u64) -> Properties {
        let (options, identity, counts) = (&self.options, &self.identity, &self.counts);
        let text = |s: &str| Some(s.to_owned());
        let rejected = self.sink.rejected();
        Properties {
            data_size: Some(data_size),
            tail_start_offset: Some(data_size),
            index_value_is_delta_encoded: Some(u64::from(options.format_version >= 4)),
            index_kind: Some(IndexKind::BinarySearch as u32),
            filter_size: Some(0),
            num_filter_entries: Some(0),
            filter_policy: self.filter.as_ref().and_then(|_| text("rocksdb.BuiltinBloomFilter")),
            whole_key_filtering: text("1"),
            prefix_filtering: text("0"),
            raw_key_size: Some(counts.raw_key_bytes),
            raw_value_size: Some(counts.raw_value_bytes),
            num_data_blocks: Some(self.data_blocks),
            num_data_blocks_compression_rejected: (rejected > 0).then_some(rejected),
            num_entries: Some(counts.entries),
            num_deletions: Some(counts.deletions),
            num_merge_operands: Some(counts.merge_operands),
            num_range_deletions: Some(self.tombstones.len()),
            format_version: Some(u64::from(options.format_version)),
            fixed_key_len: Some(0),
            column_family_id: Some(u64::from(identity.family_id.0)),
            column_family_name: text(&identity.family_name),
            comparator: text(options.order.name()),
            merge_operator: text(options.merge_operator.as_deref().unwrap_or("nullptr")),
            prefix_extractor_name: text("nullptr"),
            property_collectors: text("[]"),
            creation_time: Some(identity.creation_time),
            oldest_key_time: Some(identity.oldest_key_time),
            newest_key_time: Some(identity.newest_key_time),
            file_creation_time: Some(identity.file_creation_time),
            key_smallest_seqno: Some(counts.smallest_seq.get()),
            key_largest_seqno: Some(counts.largest_seq.get()),
            data_block_restart_interval: Some(options.block_restart_interval as u64),
            index_block_restart_interval: Some(options.index_restart_interval as u64),
            db_id: text(&identity.db_id),
            db_session_id: text(&identity.session_id),
            db_host_id: Some(identity.host_id.clone()).filter(|host| !host.is_empty()),
            original_file_number: Some(identity.number.0),
            ..Properties::default()
        }
    }
}

/// A number that differs from file to file and is not zero: blocks of one file are refused in another.
fn base_context(identity: &TableIdentity) -> u32 {
    let mut text = [identity.db_id.as_bytes(), identity.session_id.as_bytes()].join(&0);
    text.extend_from_slice(&identity.number.0.to_le_bytes());
    let hash = xxh3_64(&text);
    ((hash >> 32) as u32).max(1)
}

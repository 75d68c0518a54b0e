//! The parts of a table after its data blocks.
//!
//! ```text
//! | filter, or its partitions and their index | index, or its partitions and their index | dictionary |
//! | range tombstones | properties | metaindex | footer |
//! ```
//! 1. Partitions are adjacent, so that handles of their index can be delta-coded.
//! 2. Filters, dictionary, tombstones, properties and metaindex are stored uncompressed; index blocks are compressed if
//!    that makes them smaller.
//!
//! Source: RocksDB `table/block_based/block_based_table_builder.cc` (`Finish`).

use super::collectors::{Collected, Collectors};
use super::table_builder::{TableBuilder, TableSummary};
use crate::options::TableOptions;
use crate::unique_id::unique_id;
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::ext::table_properties_collector::TablePropertiesCollectorFactory;
use ashlar_base::panics::contained;
use ashlar_base::{InternalKeyBuf, Result};
use ashlar_format::block::{IndexBlockBuilder, IndexEntries};
use ashlar_format::table::{
    BLOCK_TRAILER_LEN, BlockHandle, CompressionProperty, Footer, IndexKind, MetaIndex, Properties, TableKind,
};
use std::sync::Arc;

/// The version of the rules for tables made outside a database: a sequence number for all entries can be assigned.
const EXTERNAL_VERSION: u32 = 2;

impl TableBuilder {
    /// Writes everything behind the data blocks; `bounds` are the table's first and last key.
    pub(super) fn write_tail(mut self, bounds: (InternalKeyBuf, InternalKeyBuf)) -> Result<TableSummary> {
        let data_size = self.sink.offset();
        let version = self.options.format_version;
        let mut meta = MetaIndex::default();
        let mut properties = self.properties(data_size);
        let first_keys = self.options.index == IndexKind::BinarySearchWithFirstKey;
        let format = self.separators.format(version >= 3, version >= 4, first_keys);
        self.write_filter(format, &mut meta, &mut properties)?;
        let index = self.write_index(format, &mut properties)?;
        if version >= 6 {
            meta.set(MetaIndex::INDEX, index);
        }
        if !self.dictionary.is_empty() {
            meta.set(MetaIndex::DICTIONARY, self.sink.put_raw(&self.dictionary)?);
        }
        if !self.tombstones.is_empty() {
            meta.set(MetaIndex::RANGE_DELETIONS, self.sink.put_raw(self.tombstones.finish())?);
        }
        properties.compression = Some(self.compression_property());
        let collected = self.collectors.take().map(|all| Collectors::finish(*all)).unwrap_or_default();
        let Collected { properties: own, needs_compaction, failures } = collected;
        properties.other.extend(own);
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
        let summary = self.summary(size, data_size, bounds);
        Ok(TableSummary { needs_compaction, collector_failures: failures, ..summary })
    }

    fn summary(self, size: u64, data_size: u64, bounds: (InternalKeyBuf, InternalKeyBuf)) -> TableSummary {
        let (smallest, largest) = bounds;
        TableSummary {
            size,
            smallest,
            largest,
            smallest_seq: self.counts.smallest_seq,
            largest_seq: self.counts.largest_seq,
            newest_value: self.counts.newest_value,
            entries: self.counts.entries,
            deletions: self.counts.deletions,
            range_deletions: self.tombstones.len(),
            tail_size: size - data_size,
            raw_key_bytes: self.counts.raw_key_bytes,
            raw_value_bytes: self.counts.raw_value_bytes,
            unique_id: unique_id(&self.identity.db_id, &self.identity.session_id, self.identity.number.0),
            needs_compaction: false,
            collector_failures: Vec::new(),
        }
    }

    fn write_filter(
        &mut self,
        format: IndexEntries,
        meta: &mut MetaIndex,
        properties: &mut Properties,
    ) -> Result<()> {
        let Some(filter) = self.filter.as_mut().filter(|filter| filter.keys() > 0 && filter.is_complete())
        else {
            return Ok(());
        };
        properties.num_filter_entries = Some(filter.keys() as u64);
        if !filter.is_partitioned() {
            let bytes = filter.whole();
            properties.filter_size = Some(bytes.len() as u64);
            meta.set(MetaIndex::FULL_FILTER, self.sink.put_raw(&bytes)?);
            return Ok(());
        }
        let format = IndexEntries { first_keys: false, ..format };
        let mut top = IndexBlockBuilder::new(format, self.options.index_restart_interval);
        let (mut key, mut size) = (Vec::new(), 0);
        for part in filter.partitions(self.separators.len()) {
            self.separators.encode_key(part.end.saturating_sub(1), format.user_keys, &mut key);
            top.add(&key, self.sink.put_raw(&part.bytes)?, &[]);
            size += part.bytes.len() as u64;
        }
        let top = top.finish();
        properties.filter_size = Some(size + top.len() as u64);
        meta.set(MetaIndex::PARTITIONED_FILTER, self.sink.put_raw(&top)?);
        Ok(())
    }

    fn write_index(&mut self, format: IndexEntries, properties: &mut Properties) -> Result<BlockHandle> {
        let interval = self.options.index_restart_interval;
        properties.index_key_is_user_key = Some(u64::from(format.user_keys));
        if self.options.index != IndexKind::TwoLevel {
            // The separators go before the index is compressed, so there are never more than two copies.
            self.charge.grow(self.separators.size_estimate());
            let index = std::mem::take(&mut self.separators).whole(format, interval);
            let index = self.sink.put_index(&index)?;
            properties.index_size = Some(index.size + BLOCK_TRAILER_LEN as u64);
            return Ok(index);
        }
        let mut top = IndexBlockBuilder::new(format, interval);
        let (mut key, mut next, mut partitions, mut size) = (Vec::new(), 0, 0, 0);
        let target = self.options.metadata_block_size;
        while let Some((block, end)) = self.separators.partition(next, target, format, interval) {
            let handle = self.sink.put_index(&block)?;
            self.separators.encode_key(end.saturating_sub(1), format.user_keys, &mut key);
            top.add(&key, handle, &[]);
            (next, partitions, size) = (end, partitions + 1, size + handle.size);
        }
        let top = self.sink.put_index(&top.finish())?;
        properties.index_partitions = Some(partitions);
        properties.top_level_index_size = Some(top.size);
        properties.index_size = Some(size + top.size + BLOCK_TRAILER_LEN as u64);
        Ok(top)
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
        let extractor = match &self.filter {
            Some(filter) => filter.prefixes().cloned(),
            None => options.filtered_prefixes(),
        };
        Properties {
            data_size: Some(data_size),
            tail_start_offset: Some(data_size),
            index_value_is_delta_encoded: Some(u64::from(options.format_version >= 4)),
            index_kind: Some(options.index as u32),
            filter_size: Some(0),
            num_filter_entries: Some(0),
            filter_policy: self.filter.as_ref().and_then(|_| text("rocksdb.BuiltinBloomFilter")),
            whole_key_filtering: text(if options.whole_key_filtering { "1" } else { "0" }),
            prefix_filtering: text(if extractor.is_some() { "1" } else { "0" }),
            raw_key_size: Some(counts.raw_key_bytes),
            raw_value_size: Some(counts.raw_value_bytes),
            num_data_blocks: Some(self.separators.len() as u64),
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
            prefix_extractor_name: extractor.as_ref().map(PrefixExtractor::name).or_else(|| text("nullptr")),
            property_collectors: Some(collector_names(options)),
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
            external_version: identity.external.then_some(EXTERNAL_VERSION),
            global_seqno: identity.external.then_some(0),
            ..Properties::default()
        }
    }
}

/// The names of all factories, those included that made no collector for the table.
fn collector_names(options: &TableOptions) -> String {
    let name = |factory: &Arc<dyn TablePropertiesCollectorFactory>| contained(|| factory.name().to_owned());
    let names: Vec<_> = options.collectors.iter().filter_map(name).collect();
    format!("[{}]", names.join(","))
}

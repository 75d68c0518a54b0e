//! Table properties, typed. Every field is optional: absence means unknown, or the default the reader assumes.
//!
//! Properties that are not known here, and known ones whose bytes do not decode, are kept in `other` as they are.
//! Source: RocksDB `table/table_properties.cc`, `include/rocksdb/table_properties.h`.

use super::properties_codec::{Codec, Fixed32, Fixed64, Raw, Text, Varint};
use crate::block::{BlockBuilder, DataBlock, IndexEntries, PlainCursor, PlainEntries, PlainTarget};
use crate::unreadable::Unreadable;
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::ext::table_properties_collector::{RESERVED, UserProperties};
use ashlar_base::{FamilyId, Malformed};
use std::collections::BTreeMap;
use std::ops::Range;

/// The form of a table's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexKind {
    /// One block with binary search.
    BinarySearch = 0,
    /// One block, with a hash table over key prefixes beside it. It can be read as [`IndexKind::BinarySearch`].
    HashSearch = 1,
    /// Two levels: an index block over index blocks (partitions).
    TwoLevel = 2,
    /// One block whose entries also hold each block's first key.
    BinarySearchWithFirstKey = 3,
}

impl IndexKind {
    /// `None` for a number that is no kind.
    pub fn from_u32(value: u32) -> Option<IndexKind> {
        Some(match value {
            0 => IndexKind::BinarySearch,
            1 => IndexKind::HashSearch,
            2 => IndexKind::TwoLevel,
            3 => IndexKind::BinarySearchWithFirstKey,
            _ => return None,
        })
    }
}

/// The type a codec decodes to, by name: the public struct shows plain types.
macro_rules! value_of {
    (Varint) => { u64 };
    (Fixed32) => { u32 };
    (Fixed64) => { u64 };
    (Text) => { String };
    (Raw) => { Vec<u8> };
}

macro_rules! properties {
    ($($(#[$doc:meta])* $field:ident: $codec:tt = $name:literal,)*) => {
        /// The properties of a table.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Properties {
            $($(#[$doc])* pub $field: Option<value_of!($codec)>,)*
            /// Properties without a field here, by their full name.
            pub other: BTreeMap<Vec<u8>, Vec<u8>>,
        }

        impl Properties {
            /// Takes one property; unknown ones and those that do not decode go to `other`.
            fn take(&mut self, name: &[u8], value: &[u8]) {
                $(if name == concat!("rocksdb.", $name).as_bytes() {
                    self.$field = $codec::decode(value);
                    if self.$field.is_some() {
                        return;
                    }
                })*
                self.other.insert(name.to_vec(), value.to_vec());
            }

            /// All properties as stored.
            fn to_map(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
                let mut map = self.other.clone();
                $(if let Some(value) = &self.$field {
                    map.insert(concat!("rocksdb.", $name).as_bytes().to_vec(), $codec::encode(value));
                })*
                map
            }
        }
    };
}

properties! {
    /// Bytes of data blocks with trailers.
    data_size: Varint = "data.size",
    /// Bytes of index blocks.
    index_size: Varint = "index.size",
    /// Number of index partitions.
    index_partitions: Varint = "index.partitions",
    /// Bytes of the index over index partitions.
    top_level_index_size: Varint = "top-level.index.size",
    /// 1: index keys are user keys.
    index_key_is_user_key: Varint = "index.key.is.user.key",
    /// 1: index handles are delta-coded.
    index_value_is_delta_encoded: Varint = "index.value.is.delta.encoded",
    /// 1: a user-defined index is the primary one.
    udi_is_primary_index: Varint = "udi.is.primary.index",
    /// Bytes of filter blocks.
    filter_size: Varint = "filter.size",
    /// Bytes of all internal keys before compression.
    raw_key_size: Varint = "raw.key.size",
    /// Bytes of all values before compression.
    raw_value_size: Varint = "raw.value.size",
    /// Number of data blocks.
    num_data_blocks: Varint = "num.data.blocks",
    /// Data blocks stored raw because compression did not pay.
    num_data_blocks_compression_rejected: Varint = "num.data.blocks.compression.rejected",
    /// Data blocks stored raw without trying.
    num_data_blocks_compression_bypassed: Varint = "num.data.blocks.compression.bypassed",
    /// Index blocks whose keys lie evenly.
    num_uniform_blocks: Varint = "num.uniform.blocks",
    /// Number of entries, range tombstones included.
    num_entries: Varint = "num.entries",
    /// Number of keys put into the filter.
    num_filter_entries: Varint = "num.filter_entries",
    /// Number of deletions of all kinds.
    num_deletions: Varint = "deleted.keys",
    /// Number of merge operands.
    num_merge_operands: Varint = "merge.operands",
    /// Number of range tombstones.
    num_range_deletions: Varint = "num.range-deletions",
    /// Format version, as in the footer; 0 in tables of old releases.
    format_version: Varint = "format.version",
    /// Length of all keys, 0 when it varies.
    fixed_key_len: Varint = "fixed.key.length",
    /// Column family id; 0x7fff_ffff = unknown.
    column_family_id: Varint = "column.family.id",
    /// Column family name.
    column_family_name: Text = "column.family.name",
    /// Name of the comparator of user keys.
    comparator: Text = "comparator",
    /// Name of the merge operator, or `nullptr`.
    merge_operator: Text = "merge.operator",
    /// Identity of the prefix extractor, or `nullptr`.
    prefix_extractor_name: Text = "prefix.extractor.name",
    /// Names of the property collectors.
    property_collectors: Text = "property.collectors",
    /// Name of the filter policy.
    filter_policy: Text = "filter.policy",
    /// Algorithms in use: see [`super::CompressionProperty`].
    compression: Text = "compression",
    /// Compression options, for people.
    compression_options: Text = "compression_options",
    /// Unix seconds: creation time of the oldest ancestor.
    creation_time: Varint = "creation.time",
    /// Unix seconds: oldest key.
    oldest_key_time: Varint = "oldest.key.time",
    /// Unix seconds: newest key.
    newest_key_time: Varint = "newest.key.time",
    /// Unix seconds: creation of this file.
    file_creation_time: Varint = "file.creation.time",
    /// Estimated data size with a slow algorithm.
    slow_compression_estimated_data_size: Varint = "sample_for_compression.slow.data.size",
    /// Estimated data size with a fast algorithm.
    fast_compression_estimated_data_size: Varint = "sample_for_compression.fast.data.size",
    /// Offset of the first block that is no data block.
    tail_start_offset: Varint = "tail.start.offset",
    /// 0: user-defined timestamps were stripped from the keys; absent = 1.
    user_defined_timestamps_persisted: Varint = "user.defined.timestamps.persisted",
    /// Largest sequence number of the entries.
    key_largest_seqno: Varint = "key.largest.seqno",
    /// Smallest sequence number of the entries.
    key_smallest_seqno: Varint = "key.smallest.seqno",
    /// Restart interval of data blocks.
    data_block_restart_interval: Varint = "data.block.restart.interval",
    /// Restart interval of index blocks.
    index_block_restart_interval: Varint = "index.block.restart.interval",
    /// 1: data blocks keep keys and values apart.
    separate_key_value_in_data_block: Varint = "separate.key.value.in.data.block",
    /// Identity of the database that wrote the file.
    db_id: Text = "creating.db.identity",
    /// Session that wrote the file.
    db_session_id: Text = "creating.session.identity",
    /// Host that wrote the file.
    db_host_id: Text = "creating.host.identity",
    /// Number of the file when it was written.
    original_file_number: Varint = "original.file.number",
    /// Samples of sequence number against time.
    seqno_time_map: Raw = "seqno.time.map",
    /// [`IndexKind`]; every table has it.
    index_kind: Fixed32 = "block.based.table.index.type",
    /// `1`: the filter holds whole keys; absent = `1`.
    whole_key_filtering: Text = "block.based.table.whole.key.filtering",
    /// `1`: the filter holds prefixes.
    prefix_filtering: Text = "block.based.table.prefix.filtering",
    /// `1`: filter partitions are cut on their own.
    decoupled_partitioned_filters: Text = "block.based.table.decoupled.partitioned.filters",
    /// Smallest user-defined timestamp.
    timestamp_min: Raw = "timestamp_min",
    /// Largest user-defined timestamp.
    timestamp_max: Raw = "timestamp_max",
    /// Version of the rules for ingested files.
    external_version: Fixed32 = "external_sst_file.version",
    /// The sequence number of all entries of an ingested file; 0 = as the MANIFEST says.
    global_seqno: Fixed64 = "external_sst_file.global_seqno",
    /// Count and bytes of blobs inside the file.
    embedded_blob_stats: Raw = "embedded.blob.stats",
}

/// How the names begin that RocksDB writes through collectors of its own.
const LISTED: [&[u8]; 2] = [b"rocksdb.block.based.table.", b"rocksdb.external_sst_file."];

const GLOBAL_SEQNO: &[u8] = b"rocksdb.external_sst_file.global_seqno";

impl Properties {
    /// Column family id of files that belong to none.
    pub const UNKNOWN_FAMILY: FamilyId = FamilyId(0x7fff_ffff);

    /// The id of the family for which the table was written; `None`: it is not known.
    pub fn known_family(&self) -> Option<u64> {
        self.column_family_id.filter(|id| *id != u64::from(Self::UNKNOWN_FAMILY.0))
    }

    /// The properties that collectors of users gave.
    pub fn collected(&self) -> UserProperties {
        let own = |(name, _): &(&Vec<u8>, &Vec<u8>)| !name.starts_with(RESERVED.as_bytes());
        self.other.iter().filter(own).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The properties that RocksDB lists as those of collectors, as stored: those of users, and a few of its own.
    pub fn collected_as_listed(&self) -> UserProperties {
        let mut listed = self.to_map();
        let is_listed = |name: &[u8]| LISTED.iter().any(|prefix| name.starts_with(prefix));
        listed.retain(|name, _| !name.starts_with(RESERVED.as_bytes()) || is_listed(name));
        listed
    }

    /// Decodes an uncompressed properties block. Names must ascend strictly.
    pub fn decode(block: &[u8]) -> Result<Self, Unreadable> {
        let block = DataBlock::parse(block)?;
        let mut cursor = PlainCursor::new(PlainEntries);
        let mut properties = Properties::default();
        let mut last: Option<Vec<u8>> = None;
        cursor.first(&block)?;
        while cursor.is_on_entry() {
            if last.as_deref().is_some_and(|last| last >= cursor.key()) {
                let at = cursor.offset();
                return Err(Malformed { field: "properties", at, what: "names out of order" }.into());
            }
            properties.take(cursor.key(), cursor.value(&block));
            last = Some(cursor.key().to_vec());
            cursor.next(&block)?;
        }
        Ok(properties)
    }

    /// The block, uncompressed: names ascending, one restart point.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(BlockBuilder::ONE_RESTART);
        for (name, value) in self.to_map() {
            block.add(&name, &value);
        }
        block.finish().to_vec()
    }

    /// How the index is organised.
    ///
    /// # Errors
    /// `Malformed` when the property is missing or unknown: RocksDB refuses such a table.
    pub fn index_kind(&self) -> Result<IndexKind, Malformed> {
        let bad = |what| Malformed { field: "rocksdb.block.based.table.index.type", at: 0, what };
        let value = self.index_kind.ok_or(bad("missing"))?;
        IndexKind::from_u32(value).ok_or(bad("unknown kind"))
    }

    /// The form of all index entries of the table.
    pub fn index_entries(&self) -> Result<IndexEntries, Malformed> {
        Ok(IndexEntries {
            user_keys: self.index_key_is_user_key.unwrap_or(0) != 0,
            delta_values: self.index_value_is_delta_encoded.unwrap_or(0) != 0,
            first_keys: self.index_kind()? == IndexKind::BinarySearchWithFirstKey,
        })
    }

    /// True when the filter answers for whole user keys.
    pub fn filters_whole_keys(&self) -> bool {
        self.whole_key_filtering.as_deref() != Some("0")
    }

    /// The extractor of the prefixes that the filter holds; `None`: the filter holds none, or the extractor is not known. `own`:
    /// the extractor of the reader, which counts if it has the name.
    pub fn filtered_prefixes(&self, own: Option<&PrefixExtractor>) -> Option<PrefixExtractor> {
        let name = self.prefix_extractor_name.as_deref().filter(|name| !name.is_empty())?;
        if self.prefix_filtering.as_deref() != Some("1") {
            return None;
        }
        PrefixExtractor::parse(name).or_else(|| own.filter(|own| own.name() == name).cloned())
    }

    /// The place of the eight bytes of the global sequence number in a properties block. Old ingestion patches them
    /// without a new checksum: on a mismatch the block is verified once more with these bytes zeroed.
    pub fn global_seqno_place(block: &[u8]) -> Option<Range<usize>> {
        let block = DataBlock::parse(block).ok()?;
        let mut cursor = PlainCursor::new(PlainEntries);
        cursor.seek(&block, &PlainTarget(GLOBAL_SEQNO)).ok()?;
        let place = cursor.value_range();
        (cursor.key() == GLOBAL_SEQNO && place.end - place.start == 8).then_some(place.start..place.end)
    }
}

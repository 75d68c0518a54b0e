//! The settings for building and reading a table.

use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::ext::table_properties_collector::TablePropertiesCollectorFactory;
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The largest block size: 256 MiB.
pub(crate) const MAX_BLOCK_SIZE: usize = 1 << 28;

/// The footer versions the builder writes and the reader reads (besides LevelDB's).
pub const FORMAT_VERSIONS: RangeInclusive<u32> = 2..=7;

/// Settings of the tables to write. Each field begins with RocksDB's name of the option and ends with the default.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// `block_size`: uncompressed bytes at which a data block ends. 4096.
    pub block_size: usize,
    /// `block_restart_interval`: entries from one restart point of a data block to the next; 1 to 65535. 16.
    pub block_restart_interval: usize,
    /// `index_block_restart_interval`: the same for index blocks. 1, which stores every separator whole.
    pub index_restart_interval: usize,
    /// `index_type`: the form of the index. `HashSearch` is read, not written. `BinarySearch`.
    pub index: IndexKind,
    /// `metadata_block_size`: uncompressed bytes at which a partition of the index or of the filter ends. 4096.
    pub metadata_block_size: usize,
    /// `partition_filters`: whether the filter is in partitions. Without a partitioned index it stays whole. Off.
    pub partition_filters: bool,
    /// `data_block_index_type = kDataBlockBinaryAndHash` with this `data_block_hash_table_util_ratio`: the keys per
    /// bucket of a hash index in every data block. `None`, the default: binary search only. A user's comparator gets no
    /// hash index.
    pub data_block_hash_ratio: Option<f64>,
    /// `format_version`: one of [`FORMAT_VERSIONS`]. RocksDB reads version 6 from 8.6 on, version 7 from 10.4 on. 6.
    pub format_version: u32,
    /// `checksum`: the checksum of blocks. RocksDB reads XXH3 from 6.27 on. XXH3.
    pub checksum: ChecksumKind,
    /// `compression`: the compression of data and index blocks. A block that hardly shrinks is stored uncompressed.
    /// LZ4.
    pub compression: Compression,
    /// `compression_opts.level`: the level of the codec. `None`, the default: the codec's default level.
    pub compression_level: Option<i32>,
    /// `compression_per_level`: the compression of level 0, then of the base level and each level below it; the last
    /// entry applies to all further levels. Empty, the default: `compression` everywhere.
    pub compression_per_level: Vec<Compression>,
    /// `bottommost_compression`: the compression of tables with no data below them. `None`, the default: as other
    /// tables.
    pub bottommost_compression: Option<Compression>,
    /// `compression_opts.max_dict_bytes`: the most bytes of a table's dictionary. Data blocks wait in memory until
    /// there are enough samples. Only zlib, LZ4 and zstd use a dictionary. 0, the default: no dictionary.
    pub max_dict_bytes: usize,
    /// `compression_opts.zstd_max_train_bytes`: the bytes of samples from which zstd trains a dictionary. 0, the
    /// default: the samples themselves are the dictionary, as for the other codecs.
    pub zstd_max_train_bytes: usize,
    /// `compression_opts.max_dict_buffer_bytes`: the most bytes of data that wait for the dictionary. 0, the default:
    /// the whole table.
    pub max_dict_buffer_bytes: usize,
    /// `filter_policy`: the filter; `None` for no filter. A Bloom filter with 10 bits per key.
    pub filter: Option<FilterPolicy>,
    /// `prefix_extractor`: the rule for the prefixes that filters hold beside keys. Not for keys in a user's order. `None`, the
    /// default: no prefixes.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// `whole_key_filtering`: whether filters hold whole keys. Without them, a get asks the filter for the prefix of the key.
    /// On.
    pub whole_key_filtering: bool,
    /// `table_properties_collectors`: what collects properties of each table, in order; no two have one name. Empty.
    pub collectors: Vec<Arc<dyn TablePropertiesCollectorFactory>>,
    /// The order of keys. The family's; ascending bytes.
    pub order: Order,
    /// The name of the family's merge operator, which the table properties record. `None`.
    pub merge_operator: Option<String>,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            block_size: 4096,
            block_restart_interval: 16,
            index_restart_interval: 1,
            index: IndexKind::BinarySearch,
            metadata_block_size: 4096,
            partition_filters: false,
            data_block_hash_ratio: None,
            format_version: 6,
            checksum: ChecksumKind::Xxh3,
            compression: Compression::Lz4,
            compression_level: None,
            compression_per_level: Vec::new(),
            bottommost_compression: None,
            max_dict_bytes: 0,
            zstd_max_train_bytes: 0,
            max_dict_buffer_bytes: 0,
            filter: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
            prefix_extractor: None,
            whole_key_filtering: true,
            collectors: Vec::new(),
            order: Order::Bytewise,
            merge_operator: None,
        }
    }
}

impl TableOptions {
    /// The length of the largest dictionary. zstd refuses a frame of the next power of two.
    const MAX_DICTIONARY: usize = 1 << 30;

    /// The settings of a table for `level` in a tree whose base level is `base_level`, with the compression and the
    /// filter of that level. A flush counts as level -1. `bottommost`: there is no data below the table.
    ///
    /// # Source
    /// RocksDB `db/compaction/compaction_picker.cc` (`GetCompressionType`).
    #[must_use]
    pub fn for_level(&self, level: i32, base_level: i32, bottommost: bool) -> TableOptions {
        let at = if level <= 0 { 0 } else { usize::try_from(level - base_level + 1).unwrap_or(0) };
        let by_level = self.compression_per_level.get(at).or(self.compression_per_level.last());
        let bottom = self.bottommost_compression.filter(|_| bottommost && level >= 0);
        TableOptions {
            compression: bottom.or(by_level.copied()).unwrap_or(self.compression),
            filter: self.filter.map(|policy| policy.for_level(level)),
            ..self.clone()
        }
    }

    /// The settings with the index and the filter in partitions, unless the index holds first keys.
    #[must_use]
    pub fn in_partitions(mut self) -> TableOptions {
        if self.index == IndexKind::BinarySearch {
            (self.index, self.partition_filters) = (IndexKind::TwoLevel, true);
        }
        self
    }

    /// Adds a collector, in place of the one with its name.
    pub fn add_collector(&mut self, factory: Arc<dyn TablePropertiesCollectorFactory>) {
        match self.collectors.iter_mut().find(|known| known.name() == factory.name()) {
            Some(known) => *known = factory,
            None => self.collectors.push(factory),
        }
    }

    /// The extractor of the prefixes that filters hold. A user's order gives no meaning to the first bytes of a key.
    pub(crate) fn filtered_prefixes(&self) -> Option<PrefixExtractor> {
        let extractor = self.prefix_extractor.as_ref();
        extractor.filter(|_| matches!(self.order, Order::Bytewise | Order::ReverseBytewise)).cloned()
    }

    /// `InvalidArgument`: a value that no table can have. `NotSupported`: an index that is not written.
    pub fn validate(&self) -> Result<()> {
        if !FORMAT_VERSIONS.contains(&self.format_version) {
            return Err(Error::invalid(format!(
                "table format version {} is not 2 to 7",
                self.format_version
            )));
        }
        if self.index == IndexKind::HashSearch {
            return Err(Error::not_supported("writing hash-search indexes (index_type kHashSearch)"));
        }
        for (name, interval) in [
            ("block_restart_interval", self.block_restart_interval),
            ("index_block_restart_interval", self.index_restart_interval),
        ] {
            if !(1..=65535).contains(&interval) {
                return Err(Error::invalid(format!("{name} {interval} is not 1 to 65535")));
            }
        }
        for (name, size) in
            [("block_size", self.block_size), ("metadata_block_size", self.metadata_block_size)]
        {
            if !(1..=MAX_BLOCK_SIZE).contains(&size) {
                return Err(Error::invalid(format!("{name} {size} is not 1 to 2^28")));
            }
        }
        for (name, size) in
            [("max_dict_bytes", self.max_dict_bytes), ("zstd_max_train_bytes", self.zstd_max_train_bytes)]
        {
            if size > Self::MAX_DICTIONARY {
                return Err(Error::invalid(format!("{name} {size} is above 2^30")));
            }
        }
        if let Some(ratio) = self.data_block_hash_ratio.filter(|ratio| !(0.01..=100.0).contains(ratio)) {
            let text = format!("data_block_hash_table_util_ratio {ratio} is not 0.01 to 100");
            return Err(Error::invalid(text));
        }
        match self.filter {
            Some(
                FilterPolicy::Bloom { bits_per_key: bits }
                | FilterPolicy::Ribbon { bloom_bits_per_key: bits, .. },
            ) if !(0.1..=100.0).contains(&bits) => {
                Err(Error::invalid(format!("{bits} bits of filter per key are not 0.1 to 100")))
            }
            _ => Ok(()),
        }
    }
}

/// The writer of a table, its family, level and times: recorded in its properties except the level, the first three also in its
/// unique id.
#[derive(Clone, Debug, Default)]
pub struct TableIdentity {
    /// The database's id: the content of its IDENTITY file.
    pub db_id: String,
    /// The id of this opening of the database: 20 digits in base 36.
    pub session_id: String,
    /// The file's number.
    pub number: FileNumber,
    /// The family's id.
    pub family_id: FamilyId,
    /// The family's name.
    pub family_name: String,
    /// The level for which the table is written; `None`: unknown.
    pub level: Option<Level>,
    /// The machine's name; not recorded when empty.
    pub host_id: String,
    /// The oldest creation time of the input tables, in seconds since 1970. 0, here and below: unknown.
    pub creation_time: u64,
    /// The write time of the oldest key.
    pub oldest_key_time: u64,
    /// The write time of the newest key.
    pub newest_key_time: u64,
    /// The creation time of this file.
    pub file_creation_time: u64,
    /// The table is made outside a database, to be ingested: its properties say so, and every entry has sequence number 0.
    pub external: bool,
}

/// Settings for opening a table.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The order of keys; a table that names another order is refused.
    pub order: Order,
    /// The pool that caches its blocks.
    pub pool: Arc<FramePool>,
    /// Whether block checksums are verified. Those of the footer and the properties always are.
    pub verify_checksums: bool,
    /// The file's number, for messages.
    pub number: FileNumber,
    /// The largest sequence number of the file in the MANIFEST. Tables made outside a database carry zeros, and get
    /// their sequence number there. `None`: unknown; such a table is used as it is.
    pub largest_seq: Option<SeqNum>,
    /// The statistics of reads, if there are any.
    pub statistics: Option<Arc<Statistics>>,
    /// The family's extractor of prefixes. A table that names a user's extractor is asked for prefixes if this one has the name.
    pub prefix_extractor: Option<PrefixExtractor>,
}

impl ReaderOptions {
    /// Verifies checksums, and knows no sequence number from a MANIFEST.
    pub fn new(order: Order, pool: Arc<FramePool>, number: FileNumber) -> Self {
        ReaderOptions {
            order,
            pool,
            verify_checksums: true,
            number,
            largest_seq: None,
            statistics: None,
            prefix_extractor: None,
        }
    }
}

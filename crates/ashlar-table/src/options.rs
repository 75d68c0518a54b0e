//! The settings for building and reading a table.

use ashlar_base::stats::Statistics;
use ashlar_base::{Error, FamilyId, FileNumber, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The largest block size that may be asked for: 256 MiB.
pub(crate) const MAX_BLOCK_SIZE: usize = 1 << 28;

/// The footer versions the builder writes and the reader reads (besides LevelDB's).
pub const FORMAT_VERSIONS: RangeInclusive<u32> = 2..=7;

/// The shape of the tables to write. Each field names the option of RocksDB it is.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// `block_size`: uncompressed bytes at which a data block is closed.
    pub block_size: usize,
    /// `block_restart_interval`: entries from one restart point of a data block to the next; 1 to 65535.
    pub block_restart_interval: usize,
    /// `index_block_restart_interval`: the same for index blocks. 1 keeps every separator whole.
    pub index_restart_interval: usize,
    /// `index_type`: how the index is organised. `HashSearch` is read, not written.
    pub index: IndexKind,
    /// `metadata_block_size`: uncompressed bytes at which a partition of the index or of the filter is closed.
    pub metadata_block_size: usize,
    /// `partition_filters`: the filter in partitions. Without a partitioned index it stays whole.
    pub partition_filters: bool,
    /// `data_block_index_type = kDataBlockBinaryAndHash` with this `data_block_hash_table_util_ratio`: keys per bucket of
    /// a hash index in every data block; `None` for bisection alone. Orders of the user's get none.
    pub data_block_hash_ratio: Option<f64>,
    /// `format_version`: one of [`FORMAT_VERSIONS`]. 6 needs RocksDB 8.6 to be read, 7 needs 10.4.
    pub format_version: u32,
    /// `checksum`: how blocks are checked. XXH3 needs RocksDB 6.27 to be read.
    pub checksum: ChecksumKind,
    /// `compression`: how data and index blocks are stored. A block that hardly shrinks is stored raw.
    pub compression: Compression,
    /// `compression_opts.level`: the codec's level; `None` for its default.
    pub compression_level: Option<i32>,
    /// `compression_per_level`: for level 0, then for the base level and each one below it; the last stands for all
    /// further ones. Empty: `compression` everywhere.
    pub compression_per_level: Vec<Compression>,
    /// `bottommost_compression`: for tables with no data below them; `None` as elsewhere.
    pub bottommost_compression: Option<Compression>,
    /// `compression_opts.max_dict_bytes`: at most the bytes of a dictionary per table; 0 for none. Data blocks wait in
    /// memory until there are samples enough. Only zlib, LZ4 and zstd take one.
    pub max_dict_bytes: usize,
    /// `compression_opts.zstd_max_train_bytes`: the bytes of samples zstd trains a dictionary on; 0: samples as they are
    /// make the dictionary, as they do for the other algorithms.
    pub zstd_max_train_bytes: usize,
    /// `compression_opts.max_dict_buffer_bytes`: the most of data that waits for its dictionary; 0: the whole table.
    pub max_dict_buffer_bytes: usize,
    /// `filter_policy`: `None` for no filter.
    pub filter: Option<FilterPolicy>,
    /// The order of keys.
    pub order: Order,
    /// The name of the family's merge operator, as recorded in the properties.
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
            order: Order::Bytewise,
            merge_operator: None,
        }
    }
}

impl TableOptions {
    /// The largest dictionary: the next power of two is a frame that zstd refuses.
    const MAX_DICTIONARY: usize = 1 << 30;

    /// The shape of a table for `level` of a tree whose data below level 0 begins at `base_level`: compression and
    /// filter as they are chosen per level. A flush counts as level -1. `bottommost`: there is no data below the table.
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

    /// `InvalidArgument` for values no table can have, `NotSupported` for an index that is not written.
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

/// The writer of a table, its family and its times: recorded in its properties, the first three also in its unique id.
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
    /// The machine's name; not recorded when empty.
    pub host_id: String,
    /// Oldest creation time of the tables this one was made from, in seconds since 1970. 0 = unknown, as below.
    pub creation_time: u64,
    /// Write time of the oldest key.
    pub oldest_key_time: u64,
    /// Write time of the newest key.
    pub newest_key_time: u64,
    /// When this file was made.
    pub file_creation_time: u64,
}

/// How a table is opened.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The order of keys; a table that names another one is refused.
    pub order: Order,
    /// Where its blocks are kept.
    pub pool: Arc<FramePool>,
    /// Whether block checksums are compared. The footer's and the properties' always are.
    pub verify_checksums: bool,
    /// The file's number, for messages.
    pub number: FileNumber,
    /// The largest sequence number the MANIFEST knows for the file: tables made outside a database carry zeros, and
    /// get their number there. `None` = not known: such a table is taken as it stands.
    pub largest_seq: Option<SeqNum>,
    /// What reads are counted into, if anything.
    pub statistics: Option<Arc<Statistics>>,
}

impl ReaderOptions {
    /// Checksums verified, nothing known from a MANIFEST.
    pub fn new(order: Order, pool: Arc<FramePool>, number: FileNumber) -> Self {
        ReaderOptions { order, pool, verify_checksums: true, number, largest_seq: None, statistics: None }
    }
}

/// How an iterator reads blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadHow {
    /// Whether blocks read from the file are kept in the pool.
    pub fill_cache: bool,
    /// Bytes to read ahead once blocks are read in order; 0 = none.
    pub readahead: usize,
}

impl Default for ReadHow {
    fn default() -> Self {
        ReadHow { fill_cache: true, readahead: 0 }
    }
}

//! What a table is made of, and how it is read.

use ashlar_base::{Error, FamilyId, FileNumber, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_format::compress::Compression;
use ashlar_format::table::ChecksumKind;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The footer versions the builder writes and the reader reads (besides LevelDB's).
pub const FORMAT_VERSIONS: RangeInclusive<u32> = 2..=7;

/// The shape of the tables to write.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// Uncompressed bytes at which a data block is closed.
    pub block_size: usize,
    /// Entries from one restart point of a data block to the next; 1 to 65535.
    pub block_restart_interval: usize,
    /// The same for the index block. 1 keeps every separator whole.
    pub index_restart_interval: usize,
    /// The footer version: one of [`FORMAT_VERSIONS`]. 6 needs RocksDB 8.6 to be read, 7 needs 10.4.
    pub format_version: u32,
    /// How blocks are checked. XXH3 needs RocksDB 6.27 to be read.
    pub checksum: ChecksumKind,
    /// How data and index blocks are stored. A block that hardly shrinks is stored raw.
    pub compression: Compression,
    /// The codec's level; `None` for its default.
    pub compression_level: Option<i32>,
    /// Bits of filter per key; `None` for no filter. Needs version 5; tables of older ones get none.
    pub bloom_bits_per_key: Option<f64>,
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
            format_version: 6,
            checksum: ChecksumKind::Xxh3,
            compression: Compression::Lz4,
            compression_level: None,
            bloom_bits_per_key: Some(10.0),
            order: Order::Bytewise,
            merge_operator: None,
        }
    }
}

impl TableOptions {
    /// `InvalidArgument` for values no table can have.
    pub fn validate(&self) -> Result<()> {
        if !FORMAT_VERSIONS.contains(&self.format_version) {
            return Err(Error::invalid(format!(
                "table format version {} is not 2 to 7",
                self.format_version
            )));
        }
        for (name, interval) in [
            ("block_restart_interval", self.block_restart_interval),
            ("index_restart_interval", self.index_restart_interval),
        ] {
            if !(1..=65535).contains(&interval) {
                return Err(Error::invalid(format!("{name} {interval} is not 1 to 65535")));
            }
        }
        if !(1..=1 << 28).contains(&self.block_size) {
            return Err(Error::invalid(format!("block_size {} is not 1 to 2^28", self.block_size)));
        }
        match self.bloom_bits_per_key {
            Some(bits) if !(0.1..=100.0).contains(&bits) => {
                Err(Error::invalid(format!("bloom_bits_per_key {bits} is not 0.1 to 100")))
            }
            _ => Ok(()),
        }
    }
}

/// Who wrote a table, for whom and when: recorded in its properties, the first three also in its unique id.
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
}

impl ReaderOptions {
    /// Checksums verified, nothing known from a MANIFEST.
    pub fn new(order: Order, pool: Arc<FramePool>, number: FileNumber) -> Self {
        ReaderOptions { order, pool, verify_checksums: true, number, largest_seq: None }
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

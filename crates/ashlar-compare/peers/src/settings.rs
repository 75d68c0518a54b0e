//! The settings that all engines share.

use ashlar_bench::{KeyMaker, KeyShape};
pub use ashlar_report::record::Class;
use ashlar_report::record::Params;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of the transactions of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transactions {
    /// They lock their keys.
    Pessimistic,
    /// Their commit fails if one of their keys was written meanwhile.
    Optimistic,
}

/// Settings that every engine is opened with, in the same sense.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// With [`Class::Own`], only keys, values and durability count; the engine chooses the rest.
    pub class: Class,
    /// The shape of the keys.
    pub key_shape: KeyShape,
    /// Bytes of a key: the fixed length of the shape, if it has one.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The part of its size to which a codec compresses a value.
    pub compress_ratio: f64,
    /// `none`, `snappy`, `lz4`, `zlib`, `zstd`.
    pub codec: String,
    /// About how many bytes will be written, for engines that must know beforehand.
    pub data_bytes: u64,
    /// Bytes of a table file; `None`: as the engine likes.
    pub file_bytes: Option<u64>,
    /// Bytes of level 1; `None`: as the engine likes.
    pub base_bytes: Option<u64>,
    /// Tables of level 0 that start a compaction, slow writers, stop them; `None`: as the engine likes.
    pub l0_triggers: Option<[u32; 3]>,
    /// Whether compactions wait for the end of the load, and then compact everything at once.
    pub bulk: bool,
    /// Whether keys hold sums that merges add to: unsigned, 8 bytes, little-endian.
    pub merges: bool,
    /// The kind of the transactions, if there are any.
    pub transactions: Option<Transactions>,
    /// Whether the tree is compacted in the universal style.
    pub universal: bool,
    /// Bytes of the prefix of a key that filters hold too; 0 for none.
    pub prefix_bytes: usize,
    /// Whether a compaction filter removes one value of ten ([`crate::operations::is_removed`]).
    pub filters: bool,
    /// Whether reads and writes of tables bypass the page cache.
    pub direct_io: bool,
    /// Memory for caches of every kind, the operating system's among them; `None`: as much as there is.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Memtables at most.
    pub write_buffers: u32,
    /// Bytes of an uncompressed block.
    pub block_bytes: u64,
    /// Bits per key of the filters; 0 for none.
    pub filter_bits: u32,
    /// Each write waits for the device.
    pub sync: bool,
    /// Writes skip the WAL.
    pub no_log: bool,
    /// Seed of the random streams and the values.
    pub seed: u64,
    /// Threads that read and write at the same time, each through a [`crate::client::Client`].
    pub clients: u32,
}

impl Settings {
    /// Makes the keys that every engine gets.
    pub fn keys(&self) -> KeyMaker {
        KeyMaker::shaped(self.key_shape, self.key_bytes)
    }

    /// The name of the durability class in reports.
    pub fn durability(&self) -> &'static str {
        match (self.no_log, self.sync) {
            (true, _) => "nolog",
            (false, true) => "sync",
            (false, false) => "async",
        }
    }

    /// Memory that they give an engine: its cache and its memtables.
    pub fn memory_bytes(&self) -> u64 {
        self.cache_bytes.saturating_add(self.write_buffer_bytes.saturating_mul(self.write_buffers.into()))
    }

    /// The names and values of the settings that few experiments have.
    fn special(&self) -> BTreeMap<String, String> {
        let shape = (self.key_shape != KeyShape::default()).then(|| self.key_shape.to_string());
        let kind = self.transactions.map(|kind| format!("{kind:?}").to_lowercase());
        let prefix = (self.prefix_bytes > 0).then(|| format!("fixed:{}", self.prefix_bytes));
        let all = [
            ("key_shape", shape),
            ("transactions", kind),
            ("compaction_style", self.universal.then(|| "universal".to_owned())),
            ("prefix_extractor", prefix),
            ("compaction_filter", self.filters.then(|| "one of ten".to_owned())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// As a record has them, for `keys` keys and one thread.
    pub fn params(&self, keys: u64) -> Params {
        Params {
            options: self.special(),
            keys,
            key_bytes: self.key_bytes as u64,
            value_bytes: self.value_bytes as u64,
            compress_ratio: Some(self.compress_ratio),
            threads: 1,
            codec: Some(self.codec.clone()),
            durability: self.durability().to_owned(),
            cache_bytes: Some(self.cache_bytes),
            write_buffer_bytes: Some(self.write_buffer_bytes),
            write_buffers: Some(self.write_buffers),
            block_bytes: Some(self.block_bytes),
            filter_bits: Some(self.filter_bits),
            batch: 1,
            seed: self.seed,
            memory_limit_bytes: self.memory_limit_bytes,
            ..Params::default()
        }
    }
}

impl Default for Settings {
    /// A small database of short entries, without special settings.
    fn default() -> Settings {
        Settings {
            class: Class::Matched,
            key_shape: KeyShape::default(),
            key_bytes: 16,
            value_bytes: 100,
            compress_ratio: 0.5,
            codec: "snappy".into(),
            data_bytes: 1 << 20,
            file_bytes: None,
            base_bytes: None,
            l0_triggers: None,
            bulk: false,
            merges: false,
            transactions: None,
            universal: false,
            prefix_bytes: 0,
            filters: false,
            direct_io: false,
            memory_limit_bytes: None,
            cache_bytes: 4 << 20,
            write_buffer_bytes: 1 << 20,
            write_buffers: 2,
            block_bytes: 4096,
            filter_bits: 10,
            sync: false,
            no_log: false,
            seed: 1,
            clients: 1,
        }
    }
}

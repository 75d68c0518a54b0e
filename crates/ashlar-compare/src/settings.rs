//! What is asked of every engine alike.

use ashlar_report::record::Params;
use serde::{Deserialize, Serialize};

/// Settings that every engine is opened with, in the same sense.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// What part of its size a codec brings a value down to.
    pub compress_ratio: f64,
    /// `none`, `snappy`, `lz4`, `zstd`.
    pub codec: String,
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
    /// Writes go without the log.
    pub no_log: bool,
    /// Of the random streams and the values.
    pub seed: u64,
}

impl Settings {
    /// The durability class as reports name it.
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

    /// As a record has them, for `keys` keys and one thread.
    pub fn params(&self, keys: u64) -> Params {
        Params {
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
            ..Params::default()
        }
    }
}

/// The engines that can be driven.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// This project.
    Ashlardb,
    /// RocksDB 11.8.1.
    Rocksdb,
}

impl EngineName {
    /// As tables print it.
    pub fn text(self) -> &'static str {
        match self {
            EngineName::Ashlardb => "ashlardb",
            EngineName::Rocksdb => "rocksdb",
        }
    }
}

/// What is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Puts in key order into an empty database.
    Fillseq,
    /// Puts of keys drawn with replacement into an empty database.
    Fillrandom,
    /// Gets of drawn keys; the data was loaded at random, settled and brought into the cache.
    Readrandom,
    /// A cursor to a drawn key and ten steps; a new cursor each time.
    Seekrandom,
    /// All entries in order.
    Readseq,
    /// Puts of drawn keys over the loaded data.
    Overwrite,
    /// Puts at a fixed rate, whatever the engine does meanwhile.
    Openloop,
}

impl Workload {
    /// All of them, in the order in which a table lists them.
    pub const ALL: [Workload; 7] = [
        Workload::Fillseq,
        Workload::Fillrandom,
        Workload::Overwrite,
        Workload::Readrandom,
        Workload::Readseq,
        Workload::Seekrandom,
        Workload::Openloop,
    ];

    /// As command lines and tables print it.
    pub fn text(self) -> &'static str {
        match self {
            Workload::Fillseq => "fillseq",
            Workload::Fillrandom => "fillrandom",
            Workload::Readrandom => "readrandom",
            Workload::Seekrandom => "seekrandom",
            Workload::Readseq => "readseq",
            Workload::Overwrite => "overwrite",
            Workload::Openloop => "openloop",
        }
    }

    /// True for the ones that write.
    pub fn writes(self) -> bool {
        matches!(self, Workload::Fillseq | Workload::Fillrandom | Workload::Overwrite | Workload::Openloop)
    }
}

/// What one process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// On which engine.
    pub engine: EngineName,
    /// RocksDB's shared object, when the engine needs it.
    pub library: Option<String>,
    /// An empty directory for the database.
    pub dir: String,
    /// How it is opened.
    pub settings: Settings,
    /// The workloads, in this order, on one database. Loading is done first when the first of them needs data.
    pub workloads: Vec<Workload>,
    /// Keys.
    pub keys: u64,
    /// Operations of the random reads.
    pub reads: u64,
    /// Writes per second of [`Workload::Openloop`].
    pub rate: f64,
}

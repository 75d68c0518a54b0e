//! The command line.

use crate::command::{Command, Shown};
use crate::drive::Matrix;
use crate::engine::EngineName;
use crate::settings::{Class, Settings};
use crate::task::Workload;
use clap::Parser;
use std::path::PathBuf;

/// AshlarDB beside RocksDB 11.8.1: the same work, a process for each run, in turns.
///
/// RocksDB is the shared object inside the Maven artifact org.rocksdb:rocksdbjni:11.8.1; `cargo xtask setup` fetches it.
/// Figures of both engines come from the same loop in the same run; ratios above 1 mean that AshlarDB is faster.
#[derive(Debug, Parser)]
#[command(name = "ashlar-compare", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Engines, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "ashlardb,rocksdb")]
    engines: Vec<EngineName>,
    /// Workloads, separated by commas [default: all but openloop]
    #[arg(long, value_enum, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Keys
    #[arg(long, default_value_t = 1_000_000)]
    num: u64,
    /// Operations of readrandom and seekrandom [default: as many as keys, a million at most]
    #[arg(long)]
    reads: Option<u64>,
    /// Repetitions
    #[arg(long, default_value_t = 3)]
    reps: u32,
    /// Bytes of a key
    #[arg(long, default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// What part of its size a codec brings a value down to
    #[arg(long, default_value_t = 0.5)]
    compression_ratio: f64,
    /// none, snappy, lz4 or zstd
    #[arg(long, default_value = "none")]
    compression: String,
    /// Bytes of the block cache [default: twice the data, 64 MiB at least]
    #[arg(long)]
    cache_size: Option<u64>,
    /// Bytes of a memtable
    #[arg(long, default_value_t = 64 << 20)]
    write_buffer_size: u64,
    /// Memtables at most
    #[arg(long, default_value_t = 3)]
    max_write_buffer_number: u32,
    /// Bytes of an uncompressed block
    #[arg(long, default_value_t = 4096)]
    block_size: u64,
    /// Bits per key of the filters; 0 for none
    #[arg(long, default_value_t = 10)]
    bloom_bits: u32,
    /// Every write waits for the device
    #[arg(long)]
    sync: bool,
    /// Writes go without the log
    #[arg(long, conflicts_with = "sync")]
    disable_wal: bool,
    /// Of the random streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// openloop: arrivals per second [default: --load percent of the engine's own fillrandom in this run]
    #[arg(long)]
    rate: Option<f64>,
    /// openloop: percent of the engine's own peak
    #[arg(long, default_value_t = 60.0)]
    load: f64,
    /// Where databases are made, and removed [default: the folder for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Appends the records, a line of JSON each
    #[arg(long)]
    json: Option<PathBuf>,
    /// Where the page goes
    #[command(flatten)]
    shown: Shown,
    /// RocksDB's shared object [default: where `cargo xtask setup` noted it]
    #[arg(long)]
    rocksdb: Option<PathBuf>,
    /// RocksDB without jemalloc, even where it is installed
    #[arg(long)]
    no_jemalloc: bool,
    /// A run that takes longer, in seconds, is ended and marked
    #[arg(long, default_value_t = 1800)]
    timeout: u64,
    /// One run: what the driver calls itself with
    #[arg(long, hide = true)]
    pub child: Option<String>,
    /// Something else than a run
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// What is to be run.
    ///
    /// # Errors
    /// A count of 0.
    pub fn matrix(&self) -> Result<Matrix, String> {
        if self.num == 0 || self.reps == 0 || self.key_size == 0 {
            return Err("--num, --reps and --key-size are at least 1".into());
        }
        let raw = self.num * (self.key_size + self.value_size) as u64;
        let mut workloads = self.workloads.clone();
        if workloads.is_empty() {
            workloads = Workload::ALL.into_iter().filter(|&w| w != Workload::Openloop).collect();
        }
        Ok(Matrix {
            engines: self.engines.clone(),
            workloads,
            keys: self.num,
            reads: self.reads.unwrap_or(self.num.min(1_000_000)),
            reps: self.reps,
            rate: self.rate,
            load: self.load / 100.0,
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            json: self.json.clone(),
            shown: self.shown.clone(),
            rocksdb: self.rocksdb.clone(),
            jemalloc: !self.no_jemalloc,
            timeout: std::time::Duration::from_secs(self.timeout),
            settings: Settings {
                class: Class::Matched,
                data_bytes: raw,
                key_bytes: self.key_size,
                value_bytes: self.value_size,
                compress_ratio: self.compression_ratio,
                codec: self.compression.clone(),
                cache_bytes: self.cache_size.unwrap_or((raw * 2).max(64 << 20)),
                write_buffer_bytes: self.write_buffer_size,
                write_buffers: self.max_write_buffer_number,
                block_bytes: self.block_size,
                filter_bits: self.bloom_bits,
                sync: self.sync,
                no_log: self.disable_wal,
                seed: self.seed,
            },
        })
    }
}

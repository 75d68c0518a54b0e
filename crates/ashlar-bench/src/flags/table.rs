//! The flags: one table that makes the struct, the defaults, the setters and the help.

use super::value::{TreeState, Value};
use crate::keys::KeyShape;

/// A flag, by what the parser and the help need.
pub(super) struct Flag {
    pub name: &'static str,
    pub help: &'static [&'static str],
    pub is_switch: bool,
    pub set: fn(&mut Flags, &str) -> Result<(), String>,
    pub show: fn(&Flags) -> String,
}

macro_rules! flags {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ty = $default:expr;)+) => {
        /// What a run is asked to do. Names, defaults and meaning are db_bench's, except where the text says so.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Flags {
            $($(#[doc = $help])+ pub $name: $kind,)+
        }

        impl Default for Flags {
            fn default() -> Self {
                Flags { $($name: $default,)+ }
            }
        }

        pub(super) const FLAGS: &[Flag] = &[$(Flag {
            name: stringify!($name),
            help: &[$($help),+],
            is_switch: <$kind as Value>::IS_SWITCH,
            set: |flags, text| {
                flags.$name = <$kind as Value>::parse(text)?;
                Ok(())
            },
            show: |flags| flags.$name.show(),
        },)+];
    };
}

flags! {
    /// Comma-separated names of the benchmarks, run in this order. Without it: the LevelDB page's list, as a table.
    benchmarks: String = String::new();
    /// The database's directory. Without it: a temporary one, removed at the end.
    db: Option<String> = None;
    /// The directory of the write-ahead logs; empty: where the database has them, which is --db for a new one.
    wal_dir: String = String::new();
    /// Keep the database that is there. Benchmarks that need a fresh one are skipped.
    use_existing_db: bool = false;
    /// Keys of the key space, and operations per thread unless said otherwise.
    num: u64 = 1_000_000;
    /// Reads per thread; -1: as many as --num.
    reads: i64 = -1;
    /// Writes per thread; -1: as many as --num.
    writes: i64 = -1;
    /// Deletes per thread; -1: as many as --num.
    deletes: i64 = -1;
    /// Client threads.
    threads: u64 = 1;
    /// Seconds a random benchmark runs; counts do not matter then. 0: counts decide.
    duration: u64 = 0;
    /// How often the clock is looked at when --duration is given, in operations.
    ops_between_duration_checks: u64 = 1000;
    /// Seed of all random streams. 0: from the clock; the seed used is printed.
    seed: u64 = 0;
    /// What keys look like: integer (db_bench's), be8 (8 bytes, big-endian), decimal, uuid (16 bytes), url (55 bytes),
    /// prefix:N (N bytes, N from 17; all but the last 16 are the same in every key). Ours.
    key_shape: KeyShape = KeyShape::Integer;
    /// The tree that benchmarks that read find: loaded (as the writes before left it) or settled (compacted whole before the
    /// first that reads behind writes; that is not measured). Ours.
    tree_state: TreeState = TreeState::Loaded;
    /// How random keys are drawn: uniform, zipfian. Ours.
    key_distribution: String = "uniform".to_owned();
    /// The exponent of zipfian. Ours.
    zipfian_theta: f64 = 0.99;
    /// Draws random keys exponentially over this many e-foldings. 0: by --key_distribution.
    read_random_exp_range: f64 = 0.0;
    /// Bytes of a prefix that --keys_per_prefix keys share.
    prefix_size: u64 = 0;
    /// Keys that share a prefix. 0: keys have none.
    keys_per_prefix: u64 = 0;
    /// Bytes of a key, for integer and decimal; the other shapes have a length of their own.
    key_size: u64 = 16;
    /// Bytes of a value.
    value_size: u64 = 100;
    /// Lengths of values: fixed (--value_size), uniform or normal (between the two flags that follow).
    value_size_distribution_type: String = "fixed".to_owned();
    /// The shortest value of uniform and normal.
    value_size_min: u64 = 100;
    /// The longest value of uniform and normal.
    value_size_max: u64 = 102_400;
    /// To what part of its size a value compresses.
    compression_ratio: f64 = 0.5;
    /// How blocks are compressed: none, snappy, zlib, lz4, zstd.
    compression_type: String = "snappy".to_owned();
    /// The codec's level. Without it: the codec's default.
    compression_level: Option<i32> = None;
    /// Bytes of a dictionary per table. 0: none.
    compression_max_dict_bytes: u64 = 0;
    /// Bytes of samples that zstd trains the dictionary on. 0: samples as they are.
    compression_zstd_max_train_bytes: u64 = 0;
    /// Levels above this one are not compressed. -1: all are.
    min_level_to_compress: i64 = -1;
    /// Entries per write batch.
    batch_size: u64 = 1;
    /// Steps after every seek.
    seek_nexts: u64 = 0;
    /// The keys of a batch of multireadrandom stand so far apart. 0: each is drawn.
    multiread_stride: u64 = 0;
    /// Cursors of seekrandom are bounded this many numbers behind the key that is sought. 0: no bound.
    max_scan_distance: u64 = 0;
    /// Percent of gets in readrandomwriterandom.
    readwritepercent: u64 = 90;
    /// Percent of merges in readrandommergerandom.
    mergereadpercent: u64 = 70;
    /// What merges are folded with: put, uint64add, max, stringappend, stringappendtest, bytesxor, sortlist. Without it: merges are refused.
    merge_operator: String = String::new();
    /// Key space of merges. -1: as many as --num.
    merge_keys: i64 = -1;
    /// Step backward after a seek, not forward.
    reverse_iterator: bool = false;
    /// Every write waits for the device.
    sync: bool = false;
    /// Writes leave out the log.
    disable_wal: bool = false;
    /// Records of the log stay in the process until it holds 1 MiB of them, or a memtable is full.
    manual_wal_flush: bool = false;
    /// How records of the log are compressed: none, zstd.
    wal_compression: String = "none".to_owned();
    /// Families; a key belongs to one of them, by its hash. Cursors walk over the first one.
    num_column_families: u64 = 1;
    /// Bytes per second that the writers may write together. 0: no limit.
    benchmark_write_rate_limit: u64 = 0;
    /// Gets or seeks per second of all threads together. 0: no limit.
    benchmark_read_rate_limit: u64 = 0;
    /// The writer beside readers ends after --writes operations, not with the readers.
    finish_after_writes: bool = false;
    /// LevelDB's: --compression_type, 0 none, 1 snappy.
    compression: Option<u64> = None;
    /// LevelDB's: --compression_level.
    zstd_compression_level: Option<i32> = None;
    /// LevelDB's: --target_file_size_base.
    max_file_size: Option<u64> = None;
    /// Retired: --benchmark_write_rate_limit in writes.
    writes_per_second: Option<u64> = None;
    /// Retired: --max_compaction_bytes in tables.
    max_grandparent_overlap_factor: Option<u64> = None;
    /// Key space of the writer in readwhilewriting; 0: --num.
    bgwriter_num: u64 = 0;
    /// Bytes of a memtable. Without it: the engine's own.
    write_buffer_size: Option<u64> = None;
    /// Memtables of a family at most. Without it: the engine's own.
    max_write_buffer_number: Option<u64> = None;
    /// Bytes of the block cache. Without it: the engine's own.
    cache_size: Option<u64> = None;
    /// Files of tables open at once; -1: all stay open.
    open_files: Option<i64> = None;
    /// Bytes of a data block. Without it: the engine's own.
    block_size: Option<u64> = None;
    /// Entries between restart points of a data block. Without it: the engine's own.
    block_restart_interval: Option<u64> = None;
    /// Bits of filter per key; 0: no filter; negative: the engine's own.
    bloom_bits: f64 = -1.0;
    /// How blocks are checked: 0 not, 1 CRC32c, 2 xxHash, 3 xxHash64, 4 XXH3. Without it: the engine's own.
    checksum_type: Option<u64> = None;
    /// Filters are Ribbon filters of --bloom_bits.
    use_ribbon_filter: bool = false;
    /// Indexes and filters are written in partitions.
    partition_index_and_filters: bool = false;
    /// Indexes are written in partitions.
    partition_index: bool = false;
    /// Version of the table format. Without it: the newest of --level.
    format_version: Option<u32> = None;
    /// Levels of the tree. Without it: the engine's own.
    num_levels: Option<u64> = None;
    /// Bytes of a table. Without it: the engine's own.
    target_file_size_base: Option<u64> = None;
    /// Bytes of the base level. Without it: the engine's own.
    max_bytes_for_level_base: Option<u64> = None;
    /// How many times larger a level is than the one above. Without it: the engine's own.
    max_bytes_for_level_multiplier: Option<f64> = None;
    /// Level-0 tables that start a compaction. Without it: the engine's own.
    level0_file_num_compaction_trigger: Option<u64> = None;
    /// Level-0 tables from which writers are slowed. Without it: the engine's own.
    level0_slowdown_writes_trigger: Option<u64> = None;
    /// Level-0 tables at which writers wait. Without it: the engine's own.
    level0_stop_writes_trigger: Option<u64> = None;
    /// Bytes of debt from which writers are slowed. Without it: the engine's own.
    soft_pending_compaction_bytes_limit: Option<u64> = None;
    /// Bytes of debt at which writers wait. Without it: the engine's own.
    hard_pending_compaction_bytes_limit: Option<u64> = None;
    /// Jobs in the background. Without it: the engine's own.
    max_background_jobs: Option<u64> = None;
    /// Parts that one compaction is split into at most. Without it: the engine's own.
    subcompactions: Option<u64> = None;
    /// Large values go into files of their own.
    enable_blob_files: bool = false;
    /// The shortest value that does.
    min_blob_size: Option<u64> = None;
    /// Bytes of a blob file.
    blob_file_size: Option<u64> = None;
    /// How blobs are compressed. Without it: not at all.
    blob_compression_type: String = "none".to_owned();
    /// Compactions move what lives in the oldest blob files.
    enable_blob_garbage_collection: bool = false;
    /// Which part of the blob files counts as the oldest.
    blob_garbage_collection_age_cutoff: Option<f64> = None;
    /// The part of garbage in them that makes compactions happen.
    blob_garbage_collection_force_threshold: Option<f64> = None;
    /// No compaction but on request.
    disable_auto_compactions: bool = false;
    /// Open to read only; needs --use_existing_db.
    readonly: bool = false;
    /// Settings from an OPTIONS file; flags that are given count more.
    options_file: Option<String> = None;
    /// Settings by RocksDB's names: name=value;… Ours.
    options: String = String::new();
    /// The format level: the RocksDB release that can open the directory afterwards (rocksdb-7.8, rocksdb-9.11, …). Ours.
    level: String = String::new();
    /// Print a histogram of latencies after each line.
    histogram: bool = false;
    /// Count everything, times included, and print tickers and distributions at the end.
    statistics: bool = false;
    /// How much these statistics hold, 0 (nothing) to 5 (all times).
    stats_level: u64 = 3;
    /// What operations cost, by layer, behind their line: 1 (nothing) to 6 (all times).
    perf_level: u64 = 1;
    /// Of repeated benchmarks print the 95 % interval only, not average and median.
    confidence_interval_only: bool = false;
    /// A line per thread on standard error every so many operations. 0: none.
    stats_interval: u64 = 0;
    /// The same, every so many seconds. 0: none.
    stats_interval_seconds: u64 = 0;
    /// With each of these lines, and at the end of a benchmark, the engine's statistics. 1: on.
    stats_per_interval: u64 = 0;
    /// A row of --report_file every so many seconds. 0: none.
    report_interval_seconds: u64 = 0;
    /// Where the operations of each interval are told; one file per benchmark, the last one stays.
    report_file: String = "report.csv".to_owned();
    /// Appends a line of JSON per benchmark to this file. Ours.
    json: Option<String> = None;
    /// Writes a page about the run: one HTML file that needs nothing else; latencies with --histogram. Ours.
    report: Option<String> = None;
}

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
        /// The settings of a run. Names, defaults and meaning are those of db_bench, unless the text says otherwise.
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
    /// Comma-separated names of the benchmarks, in this order. Without the flag: the list of LevelDB's page, as a table.
    benchmarks: String = String::new();
    /// Directory of the database. Without the flag: a temporary one, removed at the end.
    db: Option<String> = None;
    /// Directory of the WAL files. Empty: where the database has them, which is --db for a new one.
    wal_dir: String = String::new();
    /// Use the existing database; skip benchmarks that need an empty one.
    use_existing_db: bool = false;
    /// Keys of the key space, and operations per thread unless another flag sets them.
    num: u64 = 1_000_000;
    /// Reads per thread; -1: as many as --num.
    reads: i64 = -1;
    /// Writes per thread; -1: as many as --num.
    writes: i64 = -1;
    /// Deletes per thread; -1: as many as --num.
    deletes: i64 = -1;
    /// Client threads.
    threads: u64 = 1;
    /// Seconds that a random benchmark runs; overrides the counts. 0: the counts decide.
    duration: u64 = 0;
    /// With --duration: operations from one check of the clock to the next.
    ops_between_duration_checks: u64 = 1000;
    /// Seed of all random streams. 0: from the clock; the seed used is printed.
    seed: u64 = 0;
    /// Shape of the keys: integer (as in db_bench), be8 (8 bytes, big-endian), decimal, uuid (16 bytes), url (55 bytes),
    /// prefix:N (N bytes, N from 17; all but the last 16 are the same in every key). Not a flag of db_bench.
    key_shape: KeyShape = KeyShape::Integer;
    /// State of the tree for benchmarks that read: loaded (as the preceding writes left it) or settled (compacted completely,
        /// unmeasured, before the first benchmark that reads after writes). Not a flag of db_bench.
    tree_state: TreeState = TreeState::Loaded;
    /// Distribution of random keys: uniform, zipfian. Not a flag of db_bench.
    key_distribution: String = "uniform".to_owned();
    /// The exponent of zipfian. Not a flag of db_bench.
    zipfian_theta: f64 = 0.99;
    /// Draws random keys exponentially over this many e-foldings. 0: by --key_distribution.
    read_random_exp_range: f64 = 0.0;
    /// Bytes of the prefix that --keys_per_prefix keys share.
    prefix_size: u64 = 0;
    /// Keys that share a prefix. 0: keys have no prefix.
    keys_per_prefix: u64 = 0;
    /// Bytes of a key, for integer and decimal. The other shapes have a fixed length.
    key_size: u64 = 16;
    /// Bytes of a value.
    value_size: u64 = 100;
    /// Lengths of values: fixed (--value_size), or uniform or normal from --value_size_min to --value_size_max.
    value_size_distribution_type: String = "fixed".to_owned();
    /// The shortest value of uniform and normal.
    value_size_min: u64 = 100;
    /// The longest value of uniform and normal.
    value_size_max: u64 = 102_400;
    /// The part of its size to which a value compresses.
    compression_ratio: f64 = 0.5;
    /// Compression of blocks: none, snappy, zlib, lz4, zstd.
    compression_type: String = "snappy".to_owned();
    /// The codec's level. Without the flag: the codec's default.
    compression_level: Option<i32> = None;
    /// Bytes of the compression dictionary of a table. 0: no dictionary.
    compression_max_dict_bytes: u64 = 0;
    /// Bytes of samples that zstd trains the dictionary on. 0: the samples themselves are the dictionary.
    compression_zstd_max_train_bytes: u64 = 0;
    /// Levels above this one are not compressed. -1: all are.
    min_level_to_compress: i64 = -1;
    /// Entries per write batch.
    batch_size: u64 = 1;
    /// Steps after every seek.
    seek_nexts: u64 = 0;
    /// Distance of the keys in a batch of multireadrandom. 0: each key is drawn.
    multiread_stride: u64 = 0;
    /// Cursors of seekrandom are bounded this many numbers after the sought key. 0: no bound.
    max_scan_distance: u64 = 0;
    /// Percent of gets in readrandomwriterandom.
    readwritepercent: u64 = 90;
    /// Percent of merges in readrandommergerandom.
    mergereadpercent: u64 = 70;
    /// Merge operator: put, uint64add, max, stringappend, stringappendtest, bytesxor, sortlist. Without the flag, merges fail.
    merge_operator: String = String::new();
    /// Key space of merges. -1: as many as --num.
    merge_keys: i64 = -1;
    /// Puts before range tombstones begin, per thread.
    writes_before_delete_range: u64 = 0;
    /// Puts from one range tombstone to the next. 0: no range tombstones.
    writes_per_range_tombstone: u64 = 0;
    /// Numbers of keys that a range tombstone covers, from a key of the benchmark's order on.
    range_tombstone_width: u64 = 100;
    /// Range tombstones of a thread, at most. 0: no range tombstones.
    max_num_range_tombstones: u64 = 0;
    /// Delete each key of the range by itself instead.
    expand_range_tombstones: bool = false;
    /// Transactions of randomtransaction lock their keys. Without this and the next flag, they are plain batches.
    transaction_db: bool = false;
    /// Transactions of randomtransaction check their keys at the commit.
    optimistic_transaction_db: bool = false;
    /// Keys that a transaction changes, 1 to 9999.
    transaction_sets: u64 = 2;
    /// Milliseconds that a transaction waits for a lock.
    transaction_lock_timeout: u64 = 100;
    /// Step backward after a seek instead of forward.
    reverse_iterator: bool = false;
    /// Every write waits for the device.
    sync: bool = false;
    /// Writes skip the WAL.
    disable_wal: bool = false;
    /// Up to 1 MiB of WAL records stay in the process, until a memtable is full.
    manual_wal_flush: bool = false;
    /// Small WAL records are stored into a mapping of the WAL file, where the system has it.
    mapped_wal: bool = true;
    /// Compression of WAL records: none, zstd.
    wal_compression: String = "none".to_owned();
    /// Column families. The hash of a key chooses its family. Cursors scan the first one.
    num_column_families: u64 = 1;
    /// Bytes per second of all writers together. 0: no limit.
    benchmark_write_rate_limit: u64 = 0;
    /// Gets or seeks per second of all threads together. 0: no limit.
    benchmark_read_rate_limit: u64 = 0;
    /// The writer beside readers ends after --writes operations instead of with the readers.
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
    /// Bytes of a memtable. Without the flag: the engine's default.
    write_buffer_size: Option<u64> = None;
    /// Upper bound on the memtables of a family. Without the flag: the engine's default.
    max_write_buffer_number: Option<u64> = None;
    /// Bytes of the block cache. Without the flag: the engine's default.
    cache_size: Option<u64> = None;
    /// Table files open at once. -1: all stay open.
    open_files: Option<i64> = None;
    /// Bytes of a data block. Without the flag: the engine's default.
    block_size: Option<u64> = None;
    /// Entries between restart points of a data block. Without the flag: the engine's default.
    block_restart_interval: Option<u64> = None;
    /// Filter bits per key. 0: no filter. Negative: the engine's default.
    bloom_bits: f64 = -1.0;
    /// Checksum of blocks: 0 none, 1 CRC32c, 2 xxHash, 3 xxHash64, 4 XXH3. Without the flag: the engine's default.
    checksum_type: Option<u64> = None;
    /// Filters are Ribbon filters with --bloom_bits bits per key.
    use_ribbon_filter: bool = false;
    /// Indexes and filters are written in partitions.
    partition_index_and_filters: bool = false;
    /// Indexes are written in partitions.
    partition_index: bool = false;
    /// Version of the table format. Without the flag: the newest that --level allows.
    format_version: Option<u32> = None;
    /// Levels of the tree. Without the flag: the engine's default.
    num_levels: Option<u64> = None;
    /// Bytes of a table. Without the flag: the engine's default.
    target_file_size_base: Option<u64> = None;
    /// Bytes of the base level. Without the flag: the engine's default.
    max_bytes_for_level_base: Option<u64> = None;
    /// How many times larger a level is than the one above. Without the flag: the engine's default.
    max_bytes_for_level_multiplier: Option<f64> = None;
    /// Level-0 tables that start a compaction. Without the flag: the engine's default.
    level0_file_num_compaction_trigger: Option<u64> = None;
    /// Level-0 tables at which writers are slowed. Without the flag: the engine's default.
    level0_slowdown_writes_trigger: Option<u64> = None;
    /// Level-0 tables at which writers wait. Without the flag: the engine's default.
    level0_stop_writes_trigger: Option<u64> = None;
    /// Bytes of compaction debt at which writers are slowed. Without the flag: the engine's default.
    soft_pending_compaction_bytes_limit: Option<u64> = None;
    /// Bytes of compaction debt at which writers wait. Without the flag: the engine's default.
    hard_pending_compaction_bytes_limit: Option<u64> = None;
    /// Background jobs. Without the flag: the engine's default.
    max_background_jobs: Option<u64> = None;
    /// Upper bound on the parts of one compaction. Without the flag: the engine's default.
    subcompactions: Option<u64> = None;
    /// Store large values in blob files.
    enable_blob_files: bool = false;
    /// The shortest value that goes to a blob file.
    min_blob_size: Option<u64> = None;
    /// Bytes of a blob file.
    blob_file_size: Option<u64> = None;
    /// Compression of values in blob files. Without the flag: none.
    blob_compression_type: String = "none".to_owned();
    /// Compactions move live values out of the oldest blob files.
    enable_blob_garbage_collection: bool = false;
    /// The share of the blob files that counts as the oldest.
    blob_garbage_collection_age_cutoff: Option<f64> = None;
    /// The share of garbage in the oldest blob files that starts compactions.
    blob_garbage_collection_force_threshold: Option<f64> = None;
    /// Compact only on request.
    disable_auto_compactions: bool = false;
    /// Open the database read-only; needs --use_existing_db.
    readonly: bool = false;
    /// Settings from an OPTIONS file; given flags override them.
    options_file: Option<String> = None;
    /// Settings by RocksDB's names: name=value;… Not a flag of db_bench.
    options: String = String::new();
    /// The format level: the RocksDB release that can open the directory afterwards (rocksdb-7.8, rocksdb-9.11, …). Not a flag of db_bench.
    level: String = String::new();
    /// Print a histogram of latencies after each line.
    histogram: bool = false;
    /// Count everything, times included, and print tickers and histograms at the end.
    statistics: bool = false;
    /// The detail of --statistics, 0 (nothing) to 5 (all times).
    stats_level: u64 = 3;
    /// Print the costs of operations, by layer, after their line: 1 (nothing) to 6 (all times).
    perf_level: u64 = 1;
    /// For repeated benchmarks, print only the 95 % confidence interval.
    confidence_interval_only: bool = false;
    /// Operations after which each thread prints a line on standard error. 0: no lines.
    stats_interval: u64 = 0;
    /// Seconds after which each thread prints a line on standard error. 0: no lines.
    stats_interval_seconds: u64 = 0;
    /// Print the engine's statistics with each of these lines and at the end of a benchmark. 1: on.
    stats_per_interval: u64 = 0;
    /// Seconds from one row of --report_file to the next. 0: no file.
    report_interval_seconds: u64 = 0;
    /// File for the operations per interval. Each benchmark replaces the file.
    report_file: String = "report.csv".to_owned();
    /// Append a line of JSON per benchmark to this file. Not a flag of db_bench.
    json: Option<String> = None;
    /// Write a page about the run, as one self-contained HTML file; latencies with --histogram. Not a flag of db_bench.
    report: Option<String> = None;
}

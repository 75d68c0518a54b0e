//! The record of one workload on one engine in one repetition.
//!
//! Unknown values are `null`, never 0. A missing engine, or a run that ended early, has a [`Status`] with the reason and no
//! figures. Names contain the units: `_s` seconds, `_us` microseconds, `_bytes` bytes.

mod file;

pub use file::{Header, Line, Run, parse};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form of these lines.
pub const SCHEMA: u32 = 1;

/// The option of a run whose database was checked after the last row: how many link lists the check compared.
pub const CHECKED: &str = "link lists checked at the end";

/// One workload, one engine, one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `s0`, `s2`, `s3`, `ycsb`; `free` for a custom selection.
    pub experiment: String,
    /// The experiment's name for this row, as `1A` of `s3`; the workload's name in a free run.
    pub row: String,
    /// A short description: "sequential reads".
    pub title: String,
    /// The workload: `readseq`.
    pub workload: String,
    /// Same settings for all, or each engine's own.
    pub class: Class,
    /// `smoke`, `standard`, `large`; `None` in a free run.
    pub size: Option<String>,
    /// Repetition, from 1.
    pub rep: u32,
    /// Place in the order of all processes of the run, from 1.
    pub order: u32,
    /// The outcome.
    pub status: Status,
    /// The engine.
    pub engine: Engine,
    /// The settings of the open, and the size.
    pub params: Params,
    /// The amount of work, and its speed.
    pub ops: Option<Ops>,
    /// Wall times.
    pub phase: Option<Phase>,
    /// Per kind of operation: `read`, `write`, `scan`, ….
    pub latency_us: BTreeMap<String, Latency>,
    /// The course over time.
    pub series: Option<Series>,
    /// Processor, context switches and page faults, settling included.
    pub cpu: Cpu,
    /// I/O of the operating system until the end of the last operation.
    pub io_end: Io,
    /// I/O of the operating system until background work was idle.
    pub io: Io,
    /// Memory.
    pub mem: Memory,
    /// The directory.
    pub space: Space,
    /// The engine's own counters, settling included.
    pub engine_counters: Counters,
    /// The costs per byte or operation of the user.
    pub amp: Amplification,
    /// Sums that must agree between engines.
    pub hash: Hashes,
    /// The figure of the document that this row repeats.
    pub published: Option<Published>,
}

/// The class of the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Same cache, codec, filter and durability for every engine.
    #[default]
    Matched,
    /// Each engine's defaults.
    Own,
}

impl Class {
    /// The name in files and tables.
    pub fn text(self) -> &'static str {
        match self {
            Class::Matched => "matched",
            Class::Own => "own",
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    /// The run ended, and its figures count.
    #[default]
    Ok,
    /// The engine is missing, or lacks the feature.
    NotHere {
        /// Why.
        why: String,
    },
    /// The process ended with an error.
    Failed {
        /// Its status, or the engine's message.
        why: String,
        /// The end of what it said.
        last_output: String,
    },
    /// The run took too long and was ended.
    Timeout {
        /// The time after which the run was ended.
        why: String,
        /// The end of what it said.
        last_output: String,
    },
    /// The run ended, but its figures do not count.
    Void {
        /// Why.
        why: String,
    },
}

impl Status {
    /// The text for a table; empty for a good run.
    pub fn text(&self) -> String {
        let said = |last: &str| if last.is_empty() { String::new() } else { format!(" ({last})") };
        match self {
            Status::Ok => String::new(),
            Status::NotHere { why } => format!("not here: {why}"),
            Status::Failed { why, last_output } => format!("failed: {why}{}", said(last_output)),
            Status::Timeout { why, last_output } => format!("timeout: {why}{}", said(last_output)),
            Status::Void { why } => format!("void: {why}"),
        }
    }
}

/// An engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Engine {
    /// The name, in lower case.
    pub name: String,
    /// The version, and the way the driver calls the engine; empty for a missing engine.
    pub version: String,
}

/// Settings and size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// Keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// The part of its size to which a codec compresses a value.
    pub compress_ratio: Option<f64>,
    /// Client threads.
    pub threads: u32,
    /// `none`, `snappy`, `lz4`, `zlib`, `zstd`, `lzo`.
    pub codec: Option<String>,
    /// `nolog`, `async`, `group`, `sync`.
    pub durability: String,
    /// Bytes of the engine's cache.
    pub cache_bytes: Option<u64>,
    /// Bytes of a memtable.
    pub write_buffer_bytes: Option<u64>,
    /// Upper bound on the number of memtables.
    pub write_buffers: Option<u32>,
    /// Bytes of an uncompressed block or of a page.
    pub block_bytes: Option<u64>,
    /// Filter bits per key; 0: no filter.
    pub filter_bits: Option<u32>,
    /// Entries per write.
    pub batch: u64,
    /// Seed of the random streams.
    pub seed: u64,
    /// The end of the run: a count or a time.
    pub limit: Limit,
    /// The memory limit of the process.
    pub memory_limit_bytes: Option<u64>,
    /// The kind of the limit: `cgroup`, `mlock`, `direct`, `none`.
    pub limit_method: Option<String>,
    /// `mem`, `os`, `io`: the data fits the cache, memory, or neither.
    pub regime: Option<String>,
    /// Bytes on disk over bytes of memory that can cache them.
    pub rho: Option<f64>,
    /// Other settings, in the engine's words.
    pub options: BTreeMap<String, String>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The number of operations.
    #[default]
    Count,
    /// The clock.
    Time,
}

/// Operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ops {
    /// The number of operations; an entry of a batch counts as one.
    pub total: u64,
    /// Operations per second of wall time.
    pub per_sec: f64,
    /// Reads that found an entry; `None` for writes.
    pub found: Option<u64>,
    /// Operations that failed.
    pub errors: u64,
    /// Bytes of keys and values, written or found.
    pub user_bytes: u64,
    /// Microseconds of the wall per operation, all threads together.
    pub us_wall_op: f64,
    /// The sum of the threads' times divided by the operations.
    pub us_thread_op: Option<f64>,
    /// Microseconds of processor per operation, all threads; for writes with the settling.
    pub us_cpu_op: Option<f64>,
    /// Microseconds of processor per operation, of the calling thread only.
    pub us_cpu_thread_op: Option<f64>,
    /// The driver's own cost per operation, measured with an engine that does nothing.
    pub driver_overhead_us: Option<f64>,
    /// Instructions per operation, all threads, counted by callgrind on a small run.
    pub instructions_op: Option<f64>,
}

/// Times on the wall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Seconds of the workload.
    pub seconds: f64,
    /// Seconds from the end of the workload until memtables were flushed and background work was idle.
    pub settle_seconds: Option<f64>,
    /// Seconds of the load before the workload.
    pub load_seconds: Option<f64>,
}

/// Latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The start of the latencies.
    pub from: From,
    /// Arrivals per second of an open loop.
    pub rate: Option<f64>,
    /// The number of operations.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 75 %.
    pub p75: f64,
    /// 90 %.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// 99.99 %.
    pub p9999: f64,
    /// The greatest.
    pub max: f64,
}

/// The operations that must take longer than a percentile. With fewer the percentile is one of the longest waits.
const BEYOND: f64 = 10.0;

impl Latency {
    /// The value of a percentile, which the part `beyond` of the operations exceeds. `None`: these are too few.
    pub fn percentile(&self, beyond: f64, value: f64) -> Option<f64> {
        (self.count as f64 * beyond >= BEYOND).then_some(value)
    }
}

/// The start of a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// The call: a closed loop, which hides queues.
    #[default]
    Start,
    /// The due time of the operation: an open loop.
    Intended,
}

/// Figures of each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval.
    pub interval_s: f64,
    /// Operations done.
    pub ops: Vec<u64>,
    /// Microseconds of the longest operation that ended in the interval; 0 if no operation did.
    pub longest_us: Vec<u64>,
    /// Bytes given to write calls, if sampled.
    pub write_bytes: Vec<u64>,
    /// Resident bytes of memory, if sampled.
    pub rss: Vec<u64>,
    /// Bytes of the directory, if sampled.
    pub du: Vec<u64>,
}

/// Processor time, context switches and page faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// All threads.
    pub process_s: Option<f64>,
    /// The calling thread during the workload.
    pub thread_s: Option<f64>,
    /// Processor seconds of all threads, in user mode.
    pub user_s: Option<f64>,
    /// Processor seconds of all threads, in the kernel.
    pub sys_s: Option<f64>,
    /// Page faults that needed no storage, of all threads; `None` in files of before they were counted.
    pub minor_faults: Option<u64>,
    /// Page faults that read from storage.
    pub major_faults: Option<u64>,
    /// Context switches for waiting, of all threads.
    pub vol_cs: Option<u64>,
    /// Involuntary context switches.
    pub invol_cs: Option<u64>,
    /// Context switches of the whole machine.
    pub machine_cs: Option<u64>,
}

/// I/O of the process, from `/proc/PID/io`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes given to write calls.
    pub proc_wchar: Option<u64>,
    /// Bytes taken from read calls.
    pub proc_rchar: Option<u64>,
    /// Bytes of dirtied pages, less those that were dropped before they were written.
    pub proc_write: Option<u64>,
    /// Bytes fetched from storage.
    pub proc_read: Option<u64>,
    /// Write calls.
    pub syscw: Option<u64>,
    /// Read calls.
    pub syscr: Option<u64>,
    /// Bytes written by the device behind the directory.
    pub dev_write_bytes: Option<u64>,
    /// Reads by the device.
    pub dev_reads: Option<u64>,
    /// Calls that waited for the device, from a trace of system calls.
    pub syncs: Option<u64>,
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The memory that the settings give the engine: cache and memtables.
    pub configured_bytes: Option<u64>,
    /// The peak of resident bytes, settling included.
    pub rss_peak: Option<u64>,
    /// Resident bytes at the end.
    pub rss: Option<u64>,
    /// Bytes of mapped files among the resident bytes.
    pub file: Option<u64>,
}

/// The directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// Allocated bytes of all files.
    pub du: Option<u64>,
    /// Sum of the lengths.
    pub apparent: Option<u64>,
    /// The largest sample of `du`.
    pub peak: Option<u64>,
    /// Bytes of the keys and values that are visible.
    pub logical_live: Option<u64>,
    /// `du` after everything was compacted.
    pub after_compact: Option<u64>,
}

/// The engine's own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Written to logs.
    pub wal_bytes: Option<u64>,
    /// Written by flushes, or pages written.
    pub flush_bytes: Option<u64>,
    /// Written by compactions.
    pub compact_write_bytes: Option<u64>,
    /// Read by compactions.
    pub compact_read_bytes: Option<u64>,
    /// Block lookups.
    pub blocks: Option<u64>,
    /// Seconds that writers waited.
    pub stall_s: Option<f64>,
    /// Tables per level at the end; empty for engines without levels.
    pub levels: Vec<u64>,
}

/// Costs per byte or operation of the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amplification {
    /// Bytes written by the device per user byte.
    pub wa_dev: Option<f64>,
    /// Bytes that the process gave to storage per user byte.
    pub wa_proc: Option<f64>,
    /// Bytes of WAL, flush and compaction, by the engine's count, per user byte.
    pub wa_eng: Option<f64>,
    /// Bytes of flush and compaction over bytes of flush.
    pub wa_tree: Option<f64>,
    /// Bytes allocated per live user byte.
    pub sa_du: Option<f64>,
    /// Lengths of files per live user byte.
    pub sa_app: Option<f64>,
    /// The largest `sa_du` during the run.
    pub sa_peak: Option<f64>,
    /// Device reads per operation.
    pub ra_io: Option<f64>,
    /// KiB taken from read calls per operation.
    pub ra_kb: Option<f64>,
    /// Block lookups per operation.
    pub ra_blk: Option<f64>,
    /// Read calls per operation.
    pub ra_sys: Option<f64>,
    /// Key comparisons per operation.
    pub ra_cmp: Option<f64>,
}

/// Sums in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashes {
    /// Sum of the requested operations.
    pub ops: Option<String>,
    /// Sum of all read entries.
    pub reads: Option<String>,
    /// Sum of all entries after the load.
    pub data: Option<String>,
}

/// A figure of the document that a row repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The figure as printed.
    pub text: String,
    /// Operations per second.
    pub per_sec: Option<f64>,
    /// Year and machine.
    pub machine: String,
}

/// Engines that write through mapped pages.
const MAPS_WRITES: [&str; 1] = ["treedb"];

impl Record {
    /// A record with the reason why there are no figures.
    pub fn without_figures(engine: &str, status: Status) -> Record {
        let engine = Engine { name: engine.to_owned(), version: String::new() };
        Record { schema: SCHEMA, engine, status, ..Record::default() }
    }

    /// Bytes that the process gave to write calls, per user byte. `None` for engines that write through mapped pages, which are no calls.
    pub fn written(&self) -> Option<f64> {
        self.amp.wa_proc.filter(|_| !MAPS_WRITES.contains(&self.engine.name.as_str()))
    }

    /// Read calls per read: as measured, or from what the operating system counted.
    pub fn read_calls(&self) -> Option<f64> {
        self.amp.ra_sys.or_else(|| self.per_read(self.io_end.syscr?))
    }

    /// KiB taken from read calls per read.
    pub fn read_kib(&self) -> Option<f64> {
        self.amp.ra_kb.or_else(|| Some(self.per_read(self.io_end.proc_rchar?)? / 1024.0))
    }

    /// `None` for writes.
    fn per_read(&self, count: u64) -> Option<f64> {
        let ops = self.ops.as_ref().filter(|ops| ops.found.is_some() && ops.total > 0)?;
        Some(count as f64 / ops.total as f64)
    }

    /// True if the figures count.
    pub fn counts(&self) -> bool {
        self.status == Status::Ok && self.ops.is_some()
    }
}

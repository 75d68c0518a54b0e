//! The record of one workload on one engine: a line of JSON. Names follow the suite's schema 1; what is not known is
//! `null`, never 0.

use crate::measure::Passed;
use crate::settings::{EngineName, Settings, Workload};
use crate::work::Done;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One workload, one engine, one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// 1.
    pub schema: u32,
    /// What was measured.
    pub workload: Workload,
    /// Repetition, from 1.
    pub rep: u32,
    /// Place in the order of all processes of the run, from 1.
    pub order: u32,
    /// On what.
    pub engine: Engine,
    /// How it was opened.
    pub params: Params,
    /// How much was done, how fast.
    pub ops: Ops,
    /// Seconds.
    pub phase: Phase,
    /// Processor seconds.
    pub cpu: Cpu,
    /// Bytes that went to storage, the settling included.
    pub io: Io,
    /// Memory.
    pub mem: Memory,
    /// What the engine says it wrote, the settling included.
    pub engine_counters: Counters,
    /// Bytes written for each byte of the user's.
    pub amp: Amplification,
    /// Of the open loop only.
    pub latency_us: Option<Latency>,
    /// Tables per level at the end.
    pub levels: Vec<u64>,
    /// Sum of what was read.
    pub hash: String,
}

/// An engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Engine {
    /// Its name.
    pub name: EngineName,
    /// Its version, and how it was reached.
    pub version: String,
}

/// Settings and size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Params {
    /// Keys.
    pub keys: u64,
    /// The durability class.
    pub durability: String,
    /// The rest.
    #[serde(flatten)]
    pub settings: Settings,
}

/// Operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ops {
    /// How many.
    pub total: u64,
    /// Reads that found something.
    pub found: u64,
    /// Per second of the wall.
    pub per_sec: f64,
    /// Bytes of keys and values, written or found.
    pub user_bytes: u64,
    /// Microseconds of the wall per operation.
    pub us_wall_op: f64,
    /// Microseconds of processor per operation, all threads; for writes with the settling.
    pub us_cpu_op: f64,
    /// Microseconds of processor per operation, the calling thread only.
    pub us_cpu_thread_op: f64,
}

/// Times on the wall.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// Of the workload.
    pub seconds: f64,
    /// Until memory was flushed and background work idle.
    pub settle_seconds: f64,
}

/// Processor time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cpu {
    /// All threads, settling included.
    pub process_s: f64,
    /// The calling thread during the workload.
    pub thread_s: f64,
}

/// Bytes by the operating system's count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Io {
    /// Given to write calls.
    pub proc_wchar: Option<u64>,
    /// Pages dirtied, less those that were thrown away before they were written.
    pub proc_write: Option<u64>,
}

/// Memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Resident at most, settling included.
    pub rss_peak: Option<u64>,
}

/// Bytes by the engine's count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// By flushes.
    pub flush_bytes: Option<u64>,
    /// By compactions.
    pub compact_write_bytes: Option<u64>,
}

/// Write amplification after the settling; `None` for reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Amplification {
    /// Bytes given to write calls per user byte.
    pub wa_proc: Option<f64>,
    /// Bytes of flush and compaction, by the engine's count, per user byte.
    pub wa_eng: Option<f64>,
}

/// Latencies from the moment an operation was due, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Arrivals per second.
    pub rate: f64,
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// 99.99 %.
    pub p9999: f64,
    /// The longest stall.
    pub max: f64,
}

impl Latency {
    /// Of nanoseconds.
    pub fn of(seen: &Histogram<u64>, rate: f64) -> Latency {
        let at = |part| seen.value_at_quantile(part) as f64 / 1000.0;
        Latency {
            rate,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: seen.max() as f64 / 1000.0,
        }
    }
}

impl Ops {
    /// What `done` cost; `all` is the processor time that counts for it.
    pub fn of(done: &Done, passed: &Passed, all: f64) -> Ops {
        let each = |seconds: f64| seconds * 1e6 / done.ops.max(1) as f64;
        Ops {
            total: done.ops,
            found: done.found,
            per_sec: done.ops as f64 / passed.seconds.max(1e-9),
            user_bytes: done.bytes,
            us_wall_op: each(passed.seconds),
            us_cpu_op: each(all),
            us_cpu_thread_op: each(passed.cpu_thread),
        }
    }
}

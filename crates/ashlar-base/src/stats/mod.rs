//! Counts and times of the engine: tickers and histograms of a database, and the cost of one operation.
//!
//! | part | what it counts | cost per read or write |
//! |---|---|---|
//! | [`Ticker`] | sums since open | a load and a store of a line the thread owns |
//! | [`Distribution`] | times and sizes since open | nothing below its level; else two clock reads |
//! | [`perf`] | one thread's operations, by layer | a load of a thread-local byte; nothing more while it is off |
//!
//! Names, levels and texts are RocksDB's, so that dashboards, scripts and bindings keep working.
//! Source: RocksDB `include/rocksdb/{statistics,perf_context,perf_level}.h`.

mod counters;
mod histogram;
mod names;
pub mod perf;
mod statistics;
mod ticks;

pub use counters::Counters;
pub use histogram::{AtomicHistogram, Histogram};
pub use names::{Distribution, Ticker};
pub use statistics::{Statistics, StatsLevel, Timed};
pub use ticks::Ticks;

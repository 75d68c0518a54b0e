//! What the engine tells about itself in numbers: tickers and histograms of a database, and what one operation cost.
//!
//! | part | of what | cost on the way of a read or write |
//! |---|---|---|
//! | [`Ticker`] | sums since open | a load and a store of a line the thread owns |
//! | [`Distribution`] | times and sizes since open | nothing below its level; else two looks at the clock |
//! | [`perf`] | one thread's operations, by layer | a thread-local byte is looked at; nothing more while it is off |
//!
//! Names, levels and texts are RocksDB's, so that dashboards, scripts and bindings go on to work.
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

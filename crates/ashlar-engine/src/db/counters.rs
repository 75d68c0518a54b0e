//! What background work has done since the open.

use crate::compaction::CompactionCounters;
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums; each is a plain count that orders nothing.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) flushes: AtomicU64,
    pub(super) flush_bytes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) compaction_bytes_read: AtomicU64,
    pub(super) compaction_bytes_written: AtomicU64,
}

impl Counters {
    pub(super) fn flushed(&self, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a compaction that was carried out, and adds it to the statistics.
    pub(super) fn compacted(&self, c: &CompactionCounters, statistics: &Statistics) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compaction_bytes_read.fetch_add(c.bytes_read, Ordering::Relaxed);
        self.compaction_bytes_written.fetch_add(c.bytes_written, Ordering::Relaxed);
        for (ticker, n) in [
            (Ticker::CompactReadBytes, c.bytes_read),
            (Ticker::CompactWriteBytes, c.bytes_written),
            (Ticker::CompactionKeyDropNew, c.entries.dropped_hidden),
            (Ticker::CompactionKeyDropObsolete, c.entries.dropped_tombstones),
        ] {
            statistics.add(ticker, n);
        }
        statistics.measure(Distribution::NumfilesInSinglecompaction, c.tables_read);
    }
}

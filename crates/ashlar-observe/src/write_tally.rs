//! The counts of the write path, for the database's own totals and for its statistics.

use ashlar_base::stats::{Counters, Distribution, Statistics, Ticker};
use std::sync::Arc;

/// The counts of one group of writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupSize {
    /// Batches.
    pub writes: u64,
    /// Operations in those batches.
    pub keys: u64,
    /// Bytes of the batches.
    pub bytes: u64,
    /// Batches written to the WAL.
    pub logged: u64,
    /// Bytes by which the WAL grew.
    pub wal_bytes: u64,
}

/// Sums since the open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteTotals {
    /// Committed groups: each has one batch of its leader.
    pub groups: u64,
    /// Batches, including those of leaders.
    pub writes: u64,
    /// Operations.
    pub keys: u64,
    /// Bytes of the batches.
    pub bytes: u64,
    /// Batches written to WAL files.
    pub logged: u64,
    /// Bytes of WAL files.
    pub wal_bytes: u64,
    /// Syncs of WAL files.
    pub wal_syncs: u64,
}

/// The indexes of the fields of [`WriteTotals`] among the counters.
const GROUPS: usize = 0;
const WRITES: usize = 1;
const KEYS: usize = 2;
const BYTES: usize = 3;
const LOGGED: usize = 4;
const WAL_BYTES: usize = 5;
const WAL_SYNCS: usize = 6;

/// The counts of the write path. Statistics may be shared by several databases or switched off; `own` counts this
/// database alone and always.
#[derive(Debug)]
pub struct WriteTally {
    own: Counters<7>,
    statistics: Arc<Statistics>,
}

impl WriteTally {
    /// Counts of 0.
    pub fn new(statistics: Arc<Statistics>) -> Self {
        WriteTally { own: Counters::new(), statistics }
    }

    /// The statistics that count beside the own sums.
    #[inline]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Counts a committed group.
    #[inline]
    pub fn group(&self, size: GroupSize) {
        self.own.add_all([
            (GROUPS, 1),
            (WRITES, size.writes),
            (KEYS, size.keys),
            (BYTES, size.bytes),
            (LOGGED, size.logged),
            (WAL_BYTES, size.wal_bytes),
        ]);
        self.statistics.add_all([
            (Ticker::WriteSelf, 1),
            (Ticker::WriteOther, size.writes.saturating_sub(1)),
            (Ticker::NumberKeysWritten, size.keys),
            (Ticker::BytesWritten, size.bytes),
            (Ticker::WriteWal, size.logged),
            (Ticker::WalBytes, size.wal_bytes),
        ]);
        self.statistics.measure(Distribution::BytesPerWrite, size.bytes);
    }

    /// Counts syncs of WAL files.
    pub fn synced(&self, times: u64) {
        self.own.add(WAL_SYNCS, times);
        self.statistics.add(Ticker::WalSynced, times);
    }

    /// The sums since the open.
    pub fn totals(&self) -> WriteTotals {
        let of = |at| self.own.sum(at);
        WriteTotals {
            groups: of(GROUPS),
            writes: of(WRITES),
            keys: of(KEYS),
            bytes: of(BYTES),
            logged: of(LOGGED),
            wal_bytes: of(WAL_BYTES),
            wal_syncs: of(WAL_SYNCS),
        }
    }
}

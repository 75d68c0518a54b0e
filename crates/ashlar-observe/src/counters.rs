//! What the database did since it was opened, by family and level, and how often and how long writers were held.

use crate::stats_text::{DbWrites, StallCounts};
use crate::work::{FamilyWork, LevelWork};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{FamilyId, Level};
use ashlar_compaction::flush::FlushOutcome;
use ashlar_compaction::rewrite::BlobCounters;
use ashlar_compaction::{Compaction, CompactionCounters};
use ashlar_sync::{Mutex, Rank};
use ashlar_tree::check::Damage;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a writer was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// Slowed: level 0 has many tables.
    Level0Slow,
    /// Stopped: level 0 has too many tables.
    Level0Stop,
    /// Slowed: compaction is behind.
    DebtSlow,
    /// Stopped: compaction is too far behind.
    DebtStop,
    /// Stopped: memtables wait for their flush.
    Memtables,
}

/// The sums, and their values when a statistics text was last requested.
pub struct Counters {
    /// When the database was opened, by the monotonic clock.
    opened: Duration,
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    families: BTreeMap<FamilyId, FamilyWork>,
    stalls: StallCounts,
    /// By family: the time, the work and the stalls that its last text reported.
    told: BTreeMap<FamilyId, (f64, FamilyWork, StallCounts)>,
    told_writes: DbWrites,
}

impl Counters {
    /// Counters of a database that opens at `now`, by the monotonic clock.
    pub fn new(now: Duration) -> Counters {
        Counters { opened: now, sums: Mutex::new(Rank::Leaf, Sums::default()) }
    }

    /// Seconds since the open.
    pub fn uptime(&self, now: Duration) -> f64 {
        now.saturating_sub(self.opened).as_secs_f64()
    }

    /// Counts a flush, and adds it to the statistics.
    pub fn flushed(&self, did: &FlushOutcome, took: Duration, statistics: &Statistics) {
        statistics.add(Ticker::FlushWriteBytes, did.bytes_written);
        statistics.measure(Distribution::DbFlushMicros, micros(took));
        count_blobs(&did.blobs, statistics);
        let work = LevelWork {
            count: 1,
            micros: micros(took),
            written: did.bytes_written.saturating_sub(did.blobs.bytes_written),
            blob_written: did.blobs.bytes_written,
            entries_in: did.counters.entries_in,
            entries_dropped: did.counters.entries_in.saturating_sub(did.counters.entries_out),
            ..LevelWork::default()
        };
        let mut sums = self.sums.lock();
        let family = sums.families.entry(did.edit.family).or_default();
        family.add(0, work);
        family.flushed = family.flushed.saturating_add(did.bytes_written);
    }

    /// Counts a compaction, and adds it to the statistics.
    pub fn compacted(
        &self,
        (family, plan): (FamilyId, &Compaction),
        c: &CompactionCounters,
        took: Duration,
        statistics: &Statistics,
    ) {
        for (ticker, n) in [
            (Ticker::CompactReadBytes, c.bytes_read),
            (Ticker::CompactWriteBytes, c.bytes_written),
            (Ticker::CompactionKeyDropNew, c.entries.dropped_hidden),
            (Ticker::CompactionKeyDropObsolete, c.entries.dropped_tombstones),
            (Ticker::CompactionKeyDropUser, c.entries.filtered),
        ] {
            statistics.add(ticker, n);
        }
        count_blobs(&c.blobs, statistics);
        statistics.measure(Distribution::NumfilesInSinglecompaction, c.tables_read);
        statistics.measure(Distribution::CompactionTimesMicros, micros(took));
        let (read_above, read_here) = bytes_read(plan);
        let work = LevelWork {
            count: 1,
            micros: micros(took),
            read_above,
            read_here,
            written: c.bytes_written.saturating_sub(c.blobs.bytes_written),
            blob_written: c.blobs.bytes_written,
            entries_in: c.entries.entries_in,
            entries_dropped: c.entries.entries_in.saturating_sub(c.entries.entries_out),
            ..LevelWork::default()
        };
        self.sums.lock().families.entry(family).or_default().add(plan.output_level.index(), work);
    }

    /// Counts tables that a compaction moved to another level without rewriting them.
    pub fn moved(&self, family: FamilyId, plan: &Compaction) {
        let work = LevelWork { moved: plan.input_bytes(), ..LevelWork::default() };
        self.sums.lock().families.entry(family).or_default().add(plan.output_level.index(), work);
    }

    /// Counts that a writer was held.
    pub fn held(&self, why: StallCause, time: Duration, statistics: &Statistics) {
        statistics.add(Ticker::StallMicros, micros(time));
        statistics.measure(Distribution::DbWriteStall, micros(time));
        let mut sums = self.sums.lock();
        let stalls = &mut sums.stalls;
        *match why {
            StallCause::Level0Slow => &mut stalls.level0_slowdowns,
            StallCause::Level0Stop => &mut stalls.level0_stops,
            StallCause::DebtSlow => &mut stalls.debt_slowdowns,
            StallCause::DebtStop => &mut stalls.debt_stops,
            StallCause::Memtables => &mut stalls.memtable_stops,
        } += 1;
    }

    /// How writers were held since the open.
    pub fn stalls(&self) -> StallCounts {
        self.sums.lock().stalls
    }

    /// Bytes flushed, and bytes that compactions read or moved, since the open.
    pub fn carried(&self) -> (u64, u64) {
        let sums = self.sums.lock();
        sums.families.values().fold((0, 0), |(flushed, drained), family| {
            let all = family.sum();
            let moved = all.read_above.saturating_add(all.read_here).saturating_add(all.moved);
            (family.flushed.saturating_add(flushed), moved.saturating_add(drained))
        })
    }

    /// The background work of a family since the open.
    pub fn work(&self, family: FamilyId) -> FamilyWork {
        self.sums.lock().families.get(&family).cloned().unwrap_or_default()
    }

    /// Records that a text reports a family's work up to now. Returns what the previous text reported, and its time.
    pub fn tell(
        &self,
        family: FamilyId,
        now: (f64, FamilyWork, StallCounts),
    ) -> (f64, FamilyWork, StallCounts) {
        self.sums.lock().told.insert(family, now).unwrap_or_default()
    }

    /// Does the same for the counts of writes.
    pub fn report_writes(&self, now: DbWrites) -> DbWrites {
        std::mem::replace(&mut self.sums.lock().told_writes, now)
    }
}

/// Bytes of the inputs above the output level, and of the inputs in it.
fn bytes_read(plan: &Compaction) -> (u64, u64) {
    let of = |here: bool| {
        let files = plan.files().filter(|(level, _): &(Level, _)| (*level == plan.output_level) == here);
        files.map(|(_, file)| file.size()).sum()
    };
    (of(false), of(true))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn count_blobs(did: &BlobCounters, statistics: &Statistics) {
    for (ticker, n) in [
        (Ticker::BlobdbBlobFileBytesWritten, did.bytes_written),
        (Ticker::BlobdbBlobFileSynced, did.files),
        (Ticker::BlobdbGcNumKeysRelocated, did.moved),
        (Ticker::BlobdbGcBytesRelocated, did.bytes_moved),
    ] {
        statistics.add(ticker, n);
    }
}

/// What the scrubber has done since the open.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scrubbed {
    /// How often the scrubber has reached the last file. Its first round may begin at any file.
    pub rounds: u64,
    /// Files read.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Every damage found, each file once, with the keys at risk.
    pub damages: Vec<Damage>,
}

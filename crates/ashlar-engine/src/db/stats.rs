//! The data for the texts of `rocksdb.stats`.

use super::core::Core;
use super::properties::Look;
use super::schedule::gauges_of;
use crate::pressure::Pace;
use ashlar_observe::{DbWrites, FamilyStats, LevelNow, StallCause, db_text, family_text};
use std::sync::Arc;
use std::time::Duration;

impl Core {
    /// The text of `rocksdb.cfstats`.
    pub(super) fn family_text(&self, look: &Look<'_>) -> String {
        let mut stats = self.family_stats(look);
        let now = (stats.seconds.0, stats.work.clone(), stats.stalls);
        let (then, before, stalls_before) = self.counters.tell(look.family.id(), now);
        stats.seconds.1 = stats.seconds.0 - then;
        (stats.before, stats.stalls_before) = (before, stalls_before);
        family_text(&stats)
    }

    /// The statistics of a family; the interval reaches back to the open.
    pub(super) fn family_stats(&self, look: &Look<'_>) -> FamilyStats {
        let version = &look.sv.version;
        let seconds = self.counters.uptime(self.env.clock.now());
        let levels = version.levels.iter().zip(look.scores()).map(|(files, score)| LevelNow {
            files: files.len(),
            compacting: files.iter().filter(|f| f.is_compacting()).count(),
            bytes: files.iter().map(|f| f.size()).sum(),
            score,
        });
        FamilyStats {
            name: look.family.name().to_owned(),
            levels: levels.collect(),
            work: self.counters.work(look.family.id()),
            blobs: look.blobs(),
            seconds: (seconds, seconds),
            debt: gauges_of(version, look.family).debt_bytes,
            stalls: self.counters.stalls(),
            ..FamilyStats::default()
        }
    }

    /// The text of `rocksdb.dbstats`.
    pub(super) fn db_text(&self) -> String {
        let now = self.db_writes();
        let writes = db_text(&now, &self.counters.report_writes(now));
        let (memory, pins, disk) = (self.memory_report(), self.pins(), self.disk_use());
        format!("{writes}Memory: {memory}\nPins: {pins}\nDisk: {disk}\n")
    }

    /// Writes the texts of all families and the statistics to the info log.
    pub(super) fn dump_statistics(&self) {
        let families: Vec<_> = self.state().families.iter().map(|f| Arc::clone(&f.family)).collect();
        let mut text = format!("------- DUMPING STATS -------\n{}", self.db_text());
        for family in families {
            text.push_str(&self.family_text(&Look::new(self, &family)));
        }
        text.push_str(&format!("STATISTICS:\n{}", self.statistics));
        self.events.note(text.trim_end());
    }

    /// The writes since the open.
    pub(super) fn db_writes(&self) -> DbWrites {
        let w = self.committer.tally().totals();
        let (_, stopped, slowed) = self.pressure.totals();
        DbWrites {
            writes: w.writes,
            groups: w.groups,
            keys: w.keys,
            bytes: w.bytes,
            logged: w.logged,
            wal_syncs: w.wal_syncs,
            wal_bytes: w.wal_bytes,
            stall_micros: u64::try_from((stopped + slowed).as_micros()).unwrap_or(u64::MAX),
            seconds: self.counters.uptime(self.env.clock.now()),
        }
    }

    /// Records that a writer was held since `start`: by memtables that wait for their flush, or by the pace.
    pub(super) fn held(&self, by_memtables: bool, how: Pace, start: Duration) {
        let time = self.env.clock.now().saturating_sub(start);
        let level0 = || {
            let state = self.state();
            state.families.iter().any(|f| {
                let options = f.family.options();
                gauges_of(&f.version, &f.family).l0_tables > options.compaction.l0_slowdown
            })
        };
        let why = match (by_memtables, how == Pace::Stop) {
            (true, _) => StallCause::Memtables,
            (false, true) if level0() => StallCause::Level0Stop,
            (false, true) => StallCause::DebtStop,
            (false, false) if level0() => StallCause::Level0Slow,
            (false, false) => StallCause::DebtSlow,
        };
        self.pressure.held(how, time);
        self.counters.held(why, time, &self.statistics);
    }
}

//! Properties of an open database.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use crate::inspect::{FamilyShape, levelstats};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

impl Db {
    /// Tables and bytes per level of a family.
    pub fn shape(&self, family: &Family) -> FamilyShape {
        FamilyShape::of(&family.super_version.get().version)
    }

    /// A property by RocksDB's name; `None` for a name that is not known.
    pub fn property(&self, family: &Family, name: &str) -> Option<String> {
        let core = self.core();
        let sv = family.super_version.get();
        let level = |n: &str| {
            FamilyShape::of(&sv.version).levels.get(n.parse::<usize>().ok()?).map(|l| l.0.to_string())
        };
        Some(match name.strip_prefix("rocksdb.")? {
            "levelstats" => levelstats(&FamilyShape::of(&sv.version)),
            "stats" | "dbstats" | "cfstats" => core.stats_text(family),
            "num-immutable-mem-table" => sv.imm.len().to_string(),
            "mem-table-flush-pending" => u8::from(!sv.imm.is_empty()).to_string(),
            "cur-size-active-mem-table" => sv.mem.memory().to_string(),
            "cur-size-all-mem-tables" | "size-all-mem-tables" => {
                (sv.mem.memory() + sv.imm.iter().map(|m| m.memory()).sum::<usize>()).to_string()
            }
            "num-entries-active-mem-table" => sv.mem.len().to_string(),
            "num-snapshots" => core.snapshots.all().len().to_string(),
            "total-sst-files-size" | "live-sst-files-size" => {
                FamilyShape::of(&sv.version).bytes().to_string()
            }
            "num-running-compactions" => {
                core.state().running.values().map(Vec::len).sum::<usize>().to_string()
            }
            "num-running-flushes" => core.state().families.iter().filter(|f| f.flushing).count().to_string(),
            "block-cache-usage" => core.pool.usage().used.to_string(),
            "block-cache-capacity" => core.pool.usage().capacity.to_string(),
            "background-errors" => core.health.failures().to_string(),
            "is-write-stopped" => u8::from(core.pressure.pace() == crate::pressure::Pace::Stop).to_string(),
            other => level(other.strip_prefix("num-files-at-level")?)?,
        })
    }
}

impl Core {
    /// The text of `rocksdb.stats`: the tree, what background work did, and how writers were held.
    fn stats_text(&self, family: &Family) -> String {
        let mut out = String::new();
        let shape = FamilyShape::of(&family.super_version.get().version);
        let c = &self.counters;
        let mb = |bytes: u64| bytes as f64 / 1_048_576.0;
        let (flushed, written) = (c.flush_bytes.load(Relaxed), c.compaction_bytes_written.load(Relaxed));
        let amplification = if flushed == 0 { 0.0 } else { (flushed + written) as f64 / flushed as f64 };
        let (stops, stopped, slowed) = self.pressure.totals();
        let cache = self.pool.usage();
        // Writing to a String cannot fail.
        let _ = write!(out, "** Compaction Stats [{}] **\n{}", family.name(), levelstats(&shape));
        let _ = writeln!(
            out,
            "Flush: {} tables, {:.1} MB\nCompaction: {} done, {:.1} MB read, {:.1} MB written, W-Amp {amplification:.2}",
            c.flushes.load(Relaxed),
            mb(flushed),
            c.compactions.load(Relaxed),
            mb(c.compaction_bytes_read.load(Relaxed)),
            mb(written),
        );
        let w = self.committer.tally().totals();
        let _ = writeln!(
            out,
            "Writes: {} in {} groups, {} keys, {:.1} MB; WAL: {} writes, {} syncs, {:.1} MB",
            w.writes,
            w.groups,
            w.keys,
            mb(w.bytes),
            w.logged,
            w.wal_syncs,
            mb(w.wal_bytes)
        );
        let _ = writeln!(
            out,
            "Stalls: {stops} stops, {:.3} s stopped, {:.3} s slowed",
            stopped.as_secs_f64(),
            slowed.as_secs_f64()
        );
        let _ = writeln!(
            out,
            "Block cache: {:.1} of {:.1} MB used, {} hits, {} misses",
            mb(cache.used as u64),
            mb(cache.capacity as u64),
            cache.hits,
            cache.misses
        );
        out
    }
}

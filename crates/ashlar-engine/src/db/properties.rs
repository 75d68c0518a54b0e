//! Properties of an open database: the values for the names of [`ashlar_observe::PROPERTIES`].

use super::Db;
use super::core::Core;
use super::schedule::gauges_of;
use crate::column_family::Family;
use crate::pressure::Pace;
use ashlar_base::memory::MemoryUse;
use ashlar_base::{Error, Result};
use ashlar_compaction::picker::{Shape, Targets, scores};
use ashlar_env::FsEntry;
use ashlar_format::blob::{BlobFooter, BlobHeader};
use ashlar_format::filename::FileKind;
use ashlar_observe::{
    Answer, BlobNow, CacheRoles, FamilyShape, TableSums, find_property, levelstats, live_data_bytes,
    tables_text,
};
use ashlar_read::super_version::SuperVersion;
use ashlar_sync::atomic::Ordering;
use ashlar_tree::files::{Live, Spared, find_obsolete};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tables that are opened to estimate all tables of a level; tables that are already open count too.
const SAMPLE: usize = 20;

impl Db {
    /// Tables and bytes per level of a family.
    pub fn shape(&self, family: &Family) -> FamilyShape {
        FamilyShape::of(&family.super_version.get().version)
    }

    /// A property by RocksDB's name, e.g. `rocksdb.stats`; `None` for a name that is unknown or not supported, and for
    /// a family of another database. [`Db::check_property`] tells which, and why.
    pub fn property(&self, family: &Family, name: &str) -> Option<String> {
        self.core().check_own(family).ok()?;
        let (property, number) = find_property(name)?;
        let look = Look::new(self.core(), family);
        match property.answer {
            Answer::Number => look.number(property.name).map(|n| n.to_string()),
            Answer::Text | Answer::Map => look.text(property.name, number),
            Answer::Refused(_) => None,
        }
    }

    /// A property whose value is a number.
    pub fn property_int(&self, family: &Family, name: &str) -> Option<u64> {
        self.core().check_own(family).ok()?;
        let (property, _) = find_property(name).filter(|(p, _)| p.answer == Answer::Number)?;
        Look::new(self.core(), family).number(property.name)
    }

    /// A number summed over all families.
    pub fn property_int_sum(&self, name: &str) -> Option<u64> {
        self.check_process().ok()?;
        let families = self.families();
        families
            .iter()
            .map(|f| self.property_int(f, name))
            .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
    }

    /// A property as names and values.
    pub fn property_map(&self, family: &Family, name: &str) -> Option<BTreeMap<String, String>> {
        self.core().check_own(family).ok()?;
        let (property, number) = find_property(name).filter(|(p, _)| p.answer == Answer::Map)?;
        Look::new(self.core(), family).map(property.name, number)
    }

    /// # Errors
    /// `InvalidArgument`: no property has that name. `NotSupported`: the property is not supported, with the reason.
    pub fn check_property(name: &str) -> Result<()> {
        match find_property(name).map(|(property, _)| property.answer) {
            None => Err(Error::invalid(format!("there is no property {name:?}"))),
            Some(Answer::Refused(why)) => Err(Error::not_supported(format!("property {name}: {why}"))),
            Some(_) => Ok(()),
        }
    }
}

/// A family at the moment of a property request.
pub(super) struct Look<'a> {
    pub(super) core: &'a Core,
    pub(super) family: &'a Family,
    pub(super) sv: Arc<SuperVersion>,
}

impl<'a> Look<'a> {
    pub(super) fn new(core: &'a Core, family: &'a Family) -> Self {
        Look { core, family, sv: family.super_version.get() }
    }

    fn number(&self, name: &str) -> Option<u64> {
        let (core, sv) = (self.core, &self.sv);
        let (usage, common) = (core.tables.pool().usage(), core.tables.pool().common());
        Some(match name {
            "num-immutable-mem-table" => sv.imm.len() as u64,
            "num-immutable-mem-table-flushed" | "num-unscheduled-compactions" => 0,
            "mem-table-flush-pending" => u64::from(!sv.imm.is_empty()),
            "compaction-pending" => u64::from(self.scores().iter().any(|score| *score >= 1.0)),
            "background-errors" => core.health.failures(),
            "cur-size-active-mem-table" => sv.mem.size(),
            "cur-size-all-mem-tables" | "size-all-mem-tables" => {
                sv.imm.iter().chain([&sv.mem]).map(|mem| mem.size()).sum()
            }
            "num-entries-active-mem-table" => sv.mem.len(),
            "num-entries-imm-mem-tables" => sv.imm.iter().map(|m| m.len()).sum(),
            "num-deletes-active-mem-table" => sv.mem.deletions(),
            "num-deletes-imm-mem-tables" => sv.imm.iter().map(|m| m.deletions()).sum(),
            "estimate-num-keys" => self.estimated_keys(),
            "estimate-table-readers-mem" => {
                let open = sv.version.files().filter_map(|(_, f)| f.table.get());
                open.map(|table| table.memory() as u64).sum()
            }
            "is-file-deletions-enabled" => 1,
            "num-snapshots" => core.snapshots.count() as u64,
            "oldest-snapshot-time" => core.snapshots.oldest_time().unwrap_or(0),
            "oldest-snapshot-sequence" => core.snapshots.oldest().map_or(0, |seq| seq.get()),
            "current-super-version-number" => sv.number,
            "num-running-compactions" => core.state().running.values().map(Vec::len).sum::<usize>() as u64,
            "num-running-compaction-sorted-runs" => {
                core.state().running.values().flatten().map(|running| running.runs as u64).sum()
            }
            "compaction-abort-count" => core.aborts.load(Ordering::Relaxed) as u64,
            "num-running-flushes" => {
                core.state().families.iter().filter(|f| f.flushing.is_some()).count() as u64
            }
            "actual-delayed-write-rate" => match core.pressure.pace() {
                Pace::Slow { nanos_per_byte } if nanos_per_byte > 0.0 => whole(1e9 / nanos_per_byte),
                _ => 0,
            },
            "is-write-stopped" => u64::from(core.is_stopped(&core.state())),
            "block-cache-capacity" => common.map_or(usage.capacity, |cache| cache.capacity()) as u64,
            "block-cache-usage" => common.map_or(usage.used, |cache| cache.used()) as u64,
            "block-cache-pinned-usage" => common
                .map_or_else(|| core.tables.pool().held_in_cache(), |cache| cache.held_in_cache())
                as u64,
            other => return self.number_of_files(other),
        })
    }

    fn number_of_files(&self, name: &str) -> Option<u64> {
        let (versions, version) = (&self.core.versions, &self.sv.version);
        Some(match name {
            "num-live-versions" => versions.live_versions(version.tables()).len() as u64,
            "estimate-live-data-size" => live_data_bytes(version),
            "min-log-number-to-keep" => versions.min_wal().0,
            "min-obsolete-sst-number-to-keep" => self.core.pending.smallest().map_or(u64::MAX, |n| n.0),
            "base-level" => self.targets().base as u64,
            "total-sst-files-size" => {
                let live = versions.live_versions(version.tables());
                let files = live.iter().flat_map(|v| v.files());
                let sizes: BTreeMap<_, _> = files.map(|(_, f)| (f.number(), f.size())).collect();
                sizes.values().sum()
            }
            "obsolete-sst-files-size" => self.obsolete_table_bytes()?,
            "live-sst-files-size" => FamilyShape::of(version).bytes(),
            "estimate-pending-compaction-bytes" => gauges_of(version, self.family).debt_bytes,
            "num-blob-files" => self.blobs().files as u64,
            "total-blob-file-size" | "live-blob-file-size" => self.blobs().bytes,
            "live-blob-file-garbage-size" => self.blobs().garbage,
            _ => return None,
        })
    }

    fn text(&self, name: &str, number: usize) -> Option<String> {
        let version = &self.sv.version;
        let level = version.levels.get(number);
        Some(match name {
            "num-files-at-level" => level?.len().to_string(),
            "compression-ratio-at-level" => format!("{:.6}", self.sums(Some(number))?.compression_ratio()),
            "stats" => self.core.family_text(self) + &self.core.db_text(),
            "sstables" => tables_text(version),
            "cfstats" | "cfstats-no-file-histogram" => self.core.family_text(self),
            "cf-write-stall-stats" => self.core.counters.stalls().line() + "\n",
            "db-write-stall-stats" => "Write Stall (count): write-buffer-manager-limit-stops: 0\n".to_owned(),
            "dbstats" => self.core.db_text(),
            "space-amplification" => {
                let blobs = self.blobs();
                let all = FamilyShape::of(version).bytes().saturating_add(blobs.bytes);
                let live = live_data_bytes(version).saturating_add(blobs.bytes.saturating_sub(blobs.garbage));
                format!("{:.3}", all.max(1) as f64 / live.max(1) as f64)
            }
            "memory-report" => self.core.memory_report().text(),
            "disk-use" => format!("{}\n", self.core.disk_use()),
            "levelstats" => levelstats(&FamilyShape::of(version)),
            "live-sst-files-size-at-temperature" => {
                let of = version.files().filter(|(_, f)| usize::from(f.file.temperature) == number);
                of.map(|(_, f)| f.size()).sum::<u64>().to_string()
            }
            "aggregated-table-properties" => self.sums(None)?.text(),
            "aggregated-table-properties-at-level" => self.sums(Some(number))?.text(),
            "options-statistics" => self.core.statistics.to_string(),
            "blob-stats" => self.blobs().text(),
            "block-cache-entry-stats" | "fast-block-cache-entry-stats" => self.cache_roles().text(),
            _ => return None,
        })
    }

    fn map(&self, name: &str, number: usize) -> Option<BTreeMap<String, String>> {
        let named = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, n)| ((*name).to_owned(), n.to_string())).collect::<BTreeMap<_, _>>()
        };
        Some(match name {
            "aggregated-table-properties" => self.sums(None)?.map(),
            "aggregated-table-properties-at-level" => self.sums(Some(number))?.map(),
            "cf-write-stall-stats" => named(&self.core.counters.stalls().by_name()),
            "db-write-stall-stats" => named(&[("write-buffer-manager-limit-stops", 0)]),
            "dbstats" => {
                let w = self.core.db_writes();
                named(&[
                    ("db.uptime", whole(w.seconds)),
                    ("db.user_bytes_written", w.bytes),
                    ("db.user_keys_written", w.keys),
                    ("db.user_writes_by_other", w.writes.saturating_sub(w.groups)),
                    ("db.user_writes_by_self", w.groups),
                    ("db.user_writes_with_wal", w.logged),
                    ("db.user_write_stall_micros", w.stall_micros),
                    ("db.wal_bytes_written", w.wal_bytes),
                    ("db.wal_syncs", w.wal_syncs),
                ])
            }
            "cfstats" => self.core.family_stats(self).map(),
            "memory-report" => self.core.memory_report().map(),
            "disk-use" => named(&self.core.disk_use().named()),
            "block-cache-entry-stats" | "fast-block-cache-entry-stats" => self.cache_roles().map(),
            _ => return None,
        })
    }

    /// The sums of table properties in a level, or of all levels, over the tables that can be opened. `None`: no such
    /// level.
    fn sums(&self, level: Option<usize>) -> Option<TableSums> {
        let mut sums = TableSums::default();
        let levels = match level {
            Some(level) => std::slice::from_ref(self.sv.version.levels.get(level)?),
            None => &self.sv.version.levels[..],
        };
        for file in levels.iter().flatten() {
            if let Ok(table) = self.sv.version.table_for_pass(file) {
                sums.add(table.properties());
            }
        }
        Some(sums)
    }

    /// Estimated number of keys: entries minus twice the deletions. The counts of a sample of tables are scaled to the
    /// bytes of all.
    fn estimated_keys(&self) -> u64 {
        let version = &self.sv.version;
        let (mut sums, mut sampled, mut opened) = (TableSums::default(), 0u64, 0);
        for (_, file) in version.files() {
            if file.table.get().is_none() {
                if opened == SAMPLE {
                    continue;
                }
                opened += 1;
            }
            let Ok(table) = version.table_for_pass(file) else { continue };
            sums.add(table.properties());
            sampled = sampled.saturating_add(file.size());
        }
        let in_tables = sums.entries.saturating_sub(sums.deletions.saturating_mul(2));
        let all = FamilyShape::of(version).bytes();
        let in_tables = if sampled == 0 { 0.0 } else { in_tables as f64 * (all as f64 / sampled as f64) };
        let memtables = || self.sv.imm.iter().chain([&self.sv.mem]);
        let entries: u64 = memtables().map(|mem| mem.len()).sum();
        let deletions: u64 = memtables().map(|mem| mem.deletions()).sum();
        whole(in_tables.round()).saturating_add(entries).saturating_sub(deletions.saturating_mul(2))
    }

    pub(super) fn blobs(&self) -> BlobNow {
        let mut now = BlobNow::default();
        // The MANIFEST counts the records alone.
        let around = (BlobHeader::LEN + BlobFooter::LEN) as u64;
        for file in self.sv.version.blobs().files().values() {
            let live = file.live();
            now.files += 1;
            now.bytes = now.bytes.saturating_add(live.total.bytes).saturating_add(around);
            now.garbage = now.garbage.saturating_add(live.garbage.bytes);
        }
        now
    }

    /// The memory by use, for all families together.
    fn cache_roles(&self) -> CacheRoles {
        let (budget, pool) = (self.core.memory.budget(), self.core.tables.pool());
        let held = |what| budget.held(what) as u64;
        CacheRoles {
            cap: budget.cap() as u64,
            blocks: pool.frames() as u64,
            block_bytes: pool.usage().used as u64,
            memtable_bytes: held(MemoryUse::Memtables),
            table_bytes: held(MemoryUse::Tables),
            other_bytes: (budget.total() as u64)
                .saturating_sub(held(MemoryUse::Memtables) + held(MemoryUse::Tables)),
        }
    }

    /// Bytes of the tables in the directory that the next purge removes; `None` when the directory cannot be listed.
    fn obsolete_table_bytes(&self) -> Option<u64> {
        let core = self.core;
        // The live files are read before the directory: a file created in between is then not counted as obsolete.
        let live = Live::now(&core.versions, &core.pending, Spared::Nothing);
        let entries = core.env.fs.files(&core.dir).ok()?;
        let is_table = |kind| matches!(kind, FileKind::Table(_) | FileKind::LevelDbTable(_));
        let of = |entry: &&FsEntry| {
            find_obsolete([entry.name.as_str()], &live).iter().any(|obsolete| is_table(obsolete.kind))
        };
        Some(entries.iter().filter(of).map(|entry| entry.len).sum())
    }

    fn targets(&self) -> Targets {
        let options = self.family.options();
        Shape::within(&self.sv.version, &options.compaction).targets(&options.compaction)
    }

    /// The compaction score of each level; 0 for the last level.
    pub(super) fn scores(&self) -> Vec<f64> {
        let version = &self.sv.version;
        let options = self.family.options();
        let shape = Shape::within(version, &options.compaction);
        let mut by_level = vec![0.0; version.levels.len()];
        for score in scores(&shape, &self.targets(), &options.compaction) {
            if let Some(place) = by_level.get_mut(score.level) {
                *place = score.score;
            }
        }
        by_level
    }
}

/// Rounds towards zero, and clamps to the range of the type.
#[expect(clippy::cast_possible_truncation, reason = "saturating is what is meant")]
#[expect(clippy::cast_sign_loss, reason = "nothing here is negative")]
fn whole(value: f64) -> u64 {
    value as u64
}

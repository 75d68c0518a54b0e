//! What readers keep alive: memory and files that exist only for iterators and snapshots.

use super::Db;
use super::core::Core;
use crate::column_family::LiveFamily;
use ashlar_base::memory::MemoryUse;
use ashlar_base::{Result, SeqNum};
use ashlar_memtable::MemtableRep;
use ashlar_observe::{MemoryClass, MemoryReport, Pins, SnapshotPins};
use ashlar_read::iter::{FileBytes, cursor_bytes, files_of, memtables_of};
use ashlar_read::snapshot::Snapshot;
use ashlar_read::super_version::SuperVersion;
use ashlar_sync::ReadPin;
use ashlar_tree::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl Db {
    /// What iterators and snapshots keep alive together. Call this first when memory or disk space is not freed.
    ///
    /// # Errors
    /// `Shutdown`.
    /// # Cost
    /// Proportional to the files of all versions that readers hold, and to the blocks in the cache.
    pub fn pins(&self) -> Result<Pins> {
        self.core().check_open()?;
        Ok(self.core().pins())
    }

    /// The memory under the cap by class, each with its owner. If databases share the cap, the memory of all of them;
    /// memtables of the others count as held, and cursors of the others are left out.
    ///
    /// # Cost
    /// A look at every family, at every block in the cache, and at what the allocator keeps.
    pub fn memory_report(&self) -> MemoryReport {
        self.core().memory_report()
    }

    /// What one snapshot keeps alive.
    ///
    /// # Errors
    /// `InvalidArgument`: the snapshot belongs to another database. `Shutdown`.
    /// # Cost
    /// One look at the metadata of every table.
    pub fn snapshot_pins(&self, snapshot: &Snapshot) -> Result<SnapshotPins> {
        self.check_snapshot(snapshot)?;
        Ok(self.core().snapshot_pins(snapshot.seq()))
    }
}

/// A replaced super version. The state's list and its copies share this value, so that [`Retired::readers`] counts no copy.
pub(crate) struct Retired(Arc<SuperVersion>);

impl Retired {
    pub(super) fn new(replaced: Arc<SuperVersion>) -> Arc<Retired> {
        Arc::new(Retired(replaced))
    }

    /// How many cursors, views and running reads hold the super version.
    pub(super) fn readers(&self) -> usize {
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}

/// Flushed memtables that only readers hold, each once.
pub(super) struct OldMemtables {
    each: Vec<Arc<dyn MemtableRep>>,
    /// How many cursors, views and running reads hold any of them.
    pub(super) readers: usize,
}

impl OldMemtables {
    /// The reserved bytes, as they are charged.
    pub(super) fn held_bytes(&self) -> usize {
        self.each.iter().map(|memtable| memtable.held()).sum()
    }

    /// The bytes in use.
    fn used_bytes(&self) -> u64 {
        self.each.iter().map(|memtable| memtable.memory() as u64).sum()
    }
}

impl Core {
    /// Replaced super versions that readers still hold. The caller drops the list outside every lock, because it may have the
    /// last reference.
    fn held_versions(&self) -> Vec<Arc<Retired>> {
        self.let_go();
        self.state().retired.clone()
    }

    /// The flushed memtables that readers hold.
    pub(super) fn held_memtables(&self) -> OldMemtables {
        self.old_memtables(&self.held_versions())
    }

    fn old_memtables(&self, retired: &[Arc<Retired>]) -> OldMemtables {
        let at = |memtable: &Arc<dyn MemtableRep>| Arc::as_ptr(memtable).addr();
        let live: BTreeSet<_> = {
            let state = self.state();
            let of = |family: &LiveFamily| {
                let immutable = family.memtables.immutable_newest_first().into_iter();
                immutable
                    .chain([Arc::clone(&family.memtables.current().rep)])
                    .map(|m| at(&m))
                    .collect::<Vec<_>>()
            };
            state.families.iter().flat_map(of).collect()
        };
        let (mut old, mut readers) = (BTreeMap::new(), 0);
        for held in retired {
            let of: Vec<_> = memtables_of(&held.0).filter(|m| !live.contains(&at(m))).collect();
            readers += if of.is_empty() { 0 } else { held.readers() };
            old.extend(of.into_iter().map(|memtable| (at(memtable), Arc::clone(memtable))));
        }
        OldMemtables { each: old.into_values().collect(), readers }
    }

    pub(super) fn pins(&self) -> Pins {
        let retired = self.held_versions();
        let present: BTreeSet<_> =
            self.versions_now().iter().flat_map(|now| files_of(now)).map(|(number, _)| number).collect();
        let mut obsolete = FileBytes::new();
        for held in &retired {
            obsolete.extend(files_of(&held.0.version).filter(|(number, _)| !present.contains(number)));
        }
        let values = self.memory.budget().held(MemoryUse::Values);
        let mut pins = Pins::default();
        pins.snapshots = self.snapshots.count();
        pins.oldest_snapshot = self.snapshots.oldest().map(|seq| self.snapshot_pins(seq));
        pins.memtable_bytes = self.old_memtables(&retired).used_bytes();
        (pins.obsolete_files, pins.obsolete_bytes) = (obsolete.len() as u64, obsolete.values().sum());
        pins.block_bytes = (self.tables.pool().held_by_readers() + values) as u64;
        pins
    }

    pub(super) fn memory_report(&self) -> MemoryReport {
        let (budget, pool) = (self.memory.budget(), self.tables.pool());
        let (mut writable, mut immutable, mut used) = (0, 0, 0);
        for family in self.state().families.iter() {
            let current = family.memtables.current().rep.held();
            writable += current;
            immutable += family.memtables.held() - current;
            used += family.memtables.used();
        }
        let (of, blocks) = (|what| budget.held(what), pool.held_by_readers());
        let usage = pool.usage();
        let held = [
            (MemoryClass::CachedBlocks, (usage.used + usage.beyond).saturating_sub(blocks)),
            (MemoryClass::HeldBlocks, blocks),
            (MemoryClass::HeldValues, of(MemoryUse::Values)),
            (MemoryClass::Cursors, self.bytes_of_cursors()),
            (MemoryClass::WritableMemtables, writable),
            (MemoryClass::ImmutableMemtables, immutable),
            (MemoryClass::HeldMemtables, of(MemoryUse::Memtables).saturating_sub(writable + immutable)),
            (MemoryClass::Tables, of(MemoryUse::Tables)),
            (MemoryClass::Files, of(MemoryUse::Files)),
            (MemoryClass::Wal, of(MemoryUse::Wal)),
            (MemoryClass::Batches, of(MemoryUse::Batches)),
            (MemoryClass::Buffers, of(MemoryUse::Buffers)),
            (MemoryClass::Operands, of(MemoryUse::Operands)),
            (MemoryClass::Prepared, of(MemoryUse::Prepared)),
        ];
        let held = held.map(|(class, bytes)| (class, bytes as u64));
        let mut report = MemoryReport::new(budget.cap() as u64, used as u64, held);
        report.kept_by_allocator = ashlar_env::kept_by_allocator();
        report
    }

    /// About the bytes that cursors have for themselves. Snapshots with a filter count as cursors.
    fn bytes_of_cursors(&self) -> usize {
        let old = self.held_versions();
        let old: usize = old.iter().map(|held| held.readers() * cursor_bytes(&held.0)).sum();
        let state = self.state();
        // Without a copy, which would count as a reader.
        let pin = ReadPin::enter();
        let present = state.families.iter().map(|live| {
            let now = live.family.super_version.load(&pin);
            (Arc::strong_count(now) - 1) * cursor_bytes(now)
        });
        old + present.sum::<usize>()
    }

    /// The present versions of all families. A copy of a super version would count as a reader once it is replaced.
    fn versions_now(&self) -> Vec<Arc<Version>> {
        self.state().families.iter().map(|f| Arc::clone(&f.version)).collect()
    }

    fn snapshot_pins(&self, sequence: SeqNum) -> SnapshotPins {
        let taken = self.snapshots.taken_at(sequence);
        let now = self.env.clock.unix_micros() / 1_000_000;
        let mut pins = SnapshotPins::at(sequence);
        pins.age = Duration::from_secs(taken.map_or(0, |taken| now.saturating_sub(taken)));
        pins.changes_since = self.visible().get().saturating_sub(sequence.get());
        pins.older_bytes = self.versions_now().iter().map(|version| older_bytes(version, sequence)).sum();
        pins
    }
}

/// Estimated bytes of entries with newer versions, in tables with entries at or below `sequence`.
fn older_bytes(version: &Version, sequence: SeqNum) -> u64 {
    let older = version.files().filter(|(_, f)| f.file.smallest_seq <= sequence).filter_map(|(_, f)| {
        let counts = f.counts.get().filter(|counts| counts.entries > 0)?;
        let bytes = u128::from(f.size()) * u128::from(counts.older) / u128::from(counts.entries);
        u64::try_from(bytes).ok()
    });
    older.sum()
}

#[cfg(test)]
mod tests {
    use super::super::Db;
    use super::*;
    use crate::batch::WriteBatch;
    use ashlar_base::FamilyId;
    use ashlar_env::sim::SimEnv;
    use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
    use ashlar_read::iter::KeyBounds;
    use std::path::Path;

    /// Regression: a thread in `pins()` counted as a reader, for which writes were refused.
    #[test]
    fn a_copy_of_the_list_is_no_reader() {
        let sim = SimEnv::new(5);
        let options = (DbOptions::default(), FamilyOptions::default());
        let db = Db::open(sim.env(), Path::new("/db"), options.0, Vec::new(), options.1).unwrap();
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"key", &[7; 1000]).unwrap();
        db.write(&mut batch, WriteOptions::default()).unwrap();
        let family = db.family("default").unwrap();
        let cursor = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
        db.flush(&[Arc::clone(&family)]).unwrap();
        let core = db.core();
        let readers = |expected: usize| {
            // What other threads of this process have just freed counts until the epoch has passed.
            let mut looks = (0..100_000).map(|_| core.held_memtables());
            let old = looks.find(|old| old.readers == expected);
            old.unwrap_or_else(|| panic!("{} readers, not {expected}", core.held_memtables().readers))
        };
        assert!(readers(1).held_bytes() > 1000);
        let copy = core.held_versions();
        assert_eq!(copy.len(), 1);
        assert!(readers(1).held_bytes() > 1000);
        drop(cursor);
        assert_eq!(copy.len(), 1, "the copy keeps the memory");
        assert_eq!(readers(0).held_bytes(), 0);
    }
}

//! What readers keep alive: memory and files that exist only for iterators and snapshots.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use ashlar_base::memory::MemoryUse;
use ashlar_base::{Result, SeqNum};
use ashlar_observe::{MemoryClass, MemoryReport, Pins, SnapshotPins};
use ashlar_read::iter::{FileBytes, files_of, memtables_of};
use ashlar_read::snapshot::Snapshot;
use ashlar_read::super_version::SuperVersion;
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
    /// memtables of the others count as held.
    ///
    /// # Cost
    /// A look at every family, and at every block in the cache.
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

impl Core {
    /// Replaced super versions that readers still hold. The caller drops the clones outside every lock, because a clone may be
    /// the last reference.
    fn held_versions(&self) -> Vec<Arc<SuperVersion>> {
        self.let_go();
        self.state().retired.clone()
    }

    /// Bytes of flushed memtables that readers hold, and how many cursors and views hold any.
    pub(super) fn held_memtables(&self) -> (usize, usize) {
        let (mut old, mut readers) = (BTreeMap::new(), 0);
        let held = self.held_versions();
        let now: Vec<_> = self.families_now().iter().map(|family| family.super_version.get()).collect();
        let live: BTreeSet<_> =
            now.iter().flat_map(|sv| memtables_of(sv)).map(|m| Arc::as_ptr(m).addr()).collect();
        for sv in &held {
            let of = memtables_of(sv).map(|m| (Arc::as_ptr(m).addr(), m.held()));
            let of: Vec<_> = of.filter(|(at, _)| !live.contains(at)).collect();
            // One reference is the list's, one is this copy's.
            readers += if of.is_empty() { 0 } else { Arc::strong_count(sv).saturating_sub(2) };
            old.extend(of);
        }
        (old.values().sum(), readers)
    }

    pub(super) fn pins(&self) -> Pins {
        let retired = self.held_versions();
        let now: Vec<_> = self.families_now().iter().map(|family| family.super_version.get()).collect();
        let present: BTreeSet<_> =
            now.iter().flat_map(|sv| files_of(&sv.version)).map(|(number, _)| number).collect();
        let (mut obsolete, mut old) = (FileBytes::new(), BTreeMap::new());
        for held in &retired {
            obsolete.extend(files_of(&held.version).filter(|(number, _)| !present.contains(number)));
            old.extend(memtables_of(held).map(|m| (Arc::as_ptr(m).addr(), m.memory() as u64)));
        }
        for live in now.iter().flat_map(|sv| memtables_of(sv)) {
            old.remove(&Arc::as_ptr(live).addr());
        }
        let mut pins = Pins::default();
        pins.snapshots = self.snapshots.count();
        pins.oldest_snapshot = self.snapshots.oldest().map(|seq| self.snapshot_pins(seq));
        pins.memtable_bytes = old.values().sum();
        (pins.obsolete_files, pins.obsolete_bytes) = (obsolete.len() as u64, obsolete.values().sum());
        let values = self.memory.budget().held(MemoryUse::Values);
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
            used += family.memtables.current().rep.memory();
        }
        let (of, blocks) = (|what| budget.held(what), pool.held_by_readers());
        let usage = pool.usage();
        let held = [
            (MemoryClass::CachedBlocks, (usage.used + usage.beyond).saturating_sub(blocks)),
            (MemoryClass::HeldBlocks, blocks),
            (MemoryClass::HeldValues, of(MemoryUse::Values)),
            (MemoryClass::WritableMemtables, writable),
            (MemoryClass::ImmutableMemtables, immutable),
            (MemoryClass::HeldMemtables, of(MemoryUse::Memtables).saturating_sub(writable + immutable)),
            (MemoryClass::Tables, of(MemoryUse::Tables)),
            (MemoryClass::Wal, of(MemoryUse::Wal)),
            (MemoryClass::Batches, of(MemoryUse::Batches)),
            (MemoryClass::Buffers, of(MemoryUse::Buffers)),
            (MemoryClass::Operands, of(MemoryUse::Operands)),
            (MemoryClass::Families, of(MemoryUse::Families)),
        ];
        MemoryReport::new(budget.cap() as u64, used as u64, held.map(|(class, bytes)| (class, bytes as u64)))
    }

    fn families_now(&self) -> Vec<Arc<Family>> {
        self.state().families.iter().map(|f| Arc::clone(&f.family)).collect()
    }

    fn snapshot_pins(&self, sequence: SeqNum) -> SnapshotPins {
        let taken = self.snapshots.taken_at(sequence);
        let now = self.env.clock.unix_micros() / 1_000_000;
        let families = self.families_now();
        let older = families.iter().map(|f| older_bytes(&f.super_version.get().version, sequence));
        let mut pins = SnapshotPins::at(sequence);
        pins.age = Duration::from_secs(taken.map_or(0, |taken| now.saturating_sub(taken)));
        pins.changes_since = self.visible().get().saturating_sub(sequence.get());
        pins.older_bytes = older.sum();
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

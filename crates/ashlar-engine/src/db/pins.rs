//! What readers keep alive: memory and files that exist only for iterators and snapshots.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use ashlar_base::{Result, SeqNum};
use ashlar_observe::human_bytes;
use ashlar_read::iter::{FileBytes, files_of, memtables_of};
use ashlar_read::snapshot::Snapshot;
use ashlar_tree::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a snapshot keeps alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotPins {
    /// The sequence of the snapshot.
    pub sequence: SeqNum,
    /// The age of the first snapshot at that sequence.
    pub age: Duration,
    /// The number of changes since that sequence.
    pub changes_since: u64,
    /// Estimated bytes of entries with newer versions, in tables with data at or below the sequence: an upper bound of
    /// what the snapshot keeps from compaction. Known only for tables written since the open.
    pub older_bytes: u64,
}

/// What all iterators and snapshots of a database keep alive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pins {
    /// The number of live snapshots.
    pub snapshots: usize,
    /// The oldest of them.
    pub oldest_snapshot: Option<SnapshotPins>,
    /// Bytes of memtables whose data is already in tables.
    pub memtable_bytes: u64,
    /// Tables and blob files that are in no current version but in use by a reader; they stay on disk.
    pub obsolete_files: u64,
    /// Bytes of those files.
    pub obsolete_bytes: u64,
    /// Bytes of blocks that left the cache but are still in use.
    pub block_bytes: u64,
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "readers hold {} of old memtables, ", human_bytes(self.memtable_bytes))?;
        write!(f, "{} obsolete files of {}, ", self.obsolete_files, human_bytes(self.obsolete_bytes))?;
        write!(f, "{} of blocks; {} snapshots", human_bytes(self.block_bytes), self.snapshots)?;
        match &self.oldest_snapshot {
            None => Ok(()),
            Some(oldest) => write!(
                f,
                ", the oldest at {} for {} s, {} changes ago, with up to {} of older entries",
                oldest.sequence,
                oldest.age.as_secs(),
                oldest.changes_since,
                human_bytes(oldest.older_bytes)
            ),
        }
    }
}

impl Db {
    /// What iterators and snapshots keep alive together. Call this first when memory or disk space is not freed.
    ///
    /// # Errors
    /// `Shutdown`.
    /// # Cost
    /// Proportional to the files of all versions that readers hold.
    pub fn pins(&self) -> Result<Pins> {
        self.core().check_open()?;
        Ok(self.core().pins())
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
    pub(super) fn pins(&self) -> Pins {
        self.let_go();
        // Replaced super versions that readers still hold. The clones are dropped here, outside every lock, because a
        // clone may be the last reference.
        let retired = self.state().retired.clone();
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
        Pins {
            snapshots: self.snapshots.count(),
            oldest_snapshot: self.snapshots.oldest().map(|seq| self.snapshot_pins(seq)),
            memtable_bytes: old.values().sum(),
            obsolete_files: obsolete.len() as u64,
            obsolete_bytes: obsolete.values().sum(),
            block_bytes: self.tables.pool().usage().pinned as u64,
        }
    }

    fn families_now(&self) -> Vec<Arc<Family>> {
        self.state().families.iter().map(|f| Arc::clone(&f.family)).collect()
    }

    fn snapshot_pins(&self, sequence: SeqNum) -> SnapshotPins {
        let taken = self.snapshots.taken_at(sequence);
        let now = self.env.clock.unix_micros() / 1_000_000;
        let families = self.families_now();
        let older = families.iter().map(|f| older_bytes(&f.super_version.get().version, sequence));
        SnapshotPins {
            sequence,
            age: Duration::from_secs(taken.map_or(0, |taken| now.saturating_sub(taken))),
            changes_since: self.visible().get().saturating_sub(sequence.get()),
            older_bytes: older.sum(),
        }
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

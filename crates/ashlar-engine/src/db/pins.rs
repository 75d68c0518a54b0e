//! What readers keep alive: the memory and the files that are there for cursors and snapshots only.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use crate::inspect::human_bytes;
use crate::snapshot::Snapshot;
use ashlar_base::{Result, SeqNum};
use ashlar_read::iter::{FileBytes, files_of, memtables_of};
use ashlar_tree::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a snapshot keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotPins {
    /// The sequence it reads at.
    pub sequence: SeqNum,
    /// How long ago the first snapshot of that sequence was taken.
    pub age: Duration,
    /// Changes that were made since.
    pub changes_since: u64,
    /// About the bytes of tables that are entries behind newer ones of their keys, in tables that reach back to the sequence:
    /// what snapshots keep from compaction at most. Known of tables written since the open.
    pub older_bytes: u64,
}

/// What all cursors and snapshots of a database keep together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pins {
    /// Snapshots alive.
    pub snapshots: usize,
    /// The oldest of them.
    pub oldest_snapshot: Option<SnapshotPins>,
    /// Bytes of memtables that are in tables by now.
    pub memtable_bytes: u64,
    /// Tables and blob files that no present version has, and some reader still does; they stay on disk.
    pub obsolete_files: u64,
    /// Their bytes.
    pub obsolete_bytes: u64,
    /// Bytes of blocks that are out of the cache and held.
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
    /// What cursors and snapshots keep alive together: the first thing to ask when memory or disk does not come free.
    ///
    /// # Errors
    /// `Shutdown`.
    /// # Cost
    /// Proportional to the files of all versions that readers hold.
    pub fn pins(&self) -> Result<Pins> {
        self.core().check_open()?;
        Ok(self.core().pins())
    }

    /// What a snapshot keeps.
    ///
    /// # Errors
    /// `InvalidArgument`: the snapshot is of another database. `Shutdown`.
    /// # Cost
    /// A look at every table.
    pub fn snapshot_pins(&self, snapshot: &Snapshot) -> Result<SnapshotPins> {
        self.check_snapshot(snapshot)?;
        Ok(self.core().snapshot_pins(snapshot.seq()))
    }
}

impl Core {
    pub(super) fn pins(&self) -> Pins {
        self.let_go();
        // What was replaced and is held still. Clones: the last reference may end here, outside of every lock.
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

/// About the bytes of entries behind newer ones of their keys, in tables with entries at or below `sequence`.
fn older_bytes(version: &Version, sequence: SeqNum) -> u64 {
    let older = version.files().filter(|(_, f)| f.file.smallest_seq <= sequence).filter_map(|(_, f)| {
        let counts = f.counts.get().filter(|counts| counts.entries > 0)?;
        let bytes = u128::from(f.size()) * u128::from(counts.older) / u128::from(counts.entries);
        u64::try_from(bytes).ok()
    });
    older.sum()
}

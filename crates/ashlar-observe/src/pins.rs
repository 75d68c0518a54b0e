//! What iterators and snapshots keep alive, as figures.

use crate::human::bytes as human_bytes;
use ashlar_base::SeqNum;
use std::fmt;
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

impl SnapshotPins {
    /// The pins of a snapshot at `sequence`, without an age and without changes since.
    pub fn at(sequence: SeqNum) -> SnapshotPins {
        SnapshotPins { sequence, age: Duration::ZERO, changes_since: 0, older_bytes: 0 }
    }
}

/// What all iterators and snapshots of a database keep alive together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Bytes of all blocks that cursors and views hold, in the cache or outside it, and of their copies of 16 KiB and more: values of
    /// memtables and blob files, folded values, keys. If databases share the cap on memory, those of all of them.
    pub block_bytes: u64,
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "readers hold {} of old memtables, ", human_bytes(self.memtable_bytes))?;
        write!(f, "{} obsolete files of {}, ", self.obsolete_files, human_bytes(self.obsolete_bytes))?;
        write!(f, "{} of blocks and copies; {} snapshots", human_bytes(self.block_bytes), self.snapshots)?;
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

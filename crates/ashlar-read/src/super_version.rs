//! The memtables and tables of a family, as one immutable value that a reader loads.
//!
//! 1. A `SuperVersion` never changes. A switch of the memtable, a flush or a compaction installs a new one.
//! 2. A reader loads the `SuperVersion` first and the visible sequence number second. In the reverse order the reader
//!    could miss a version that a flush dropped in between. The reader reads at no more than the sequence number at
//!    which its memtable became immutable.

use crate::merge::Merger;
use ashlar_base::SeqNum;
use ashlar_memtable::MemtableRep;
use ashlar_tree::version::Version;
use std::sync::Arc;

/// The memtables and tables of one family at one moment.
pub struct SuperVersion {
    /// The memtable that takes writes.
    pub mem: Arc<dyn MemtableRep>,
    /// Immutable memtables that no table holds yet, newest first.
    pub imm: Box<[Arc<dyn MemtableRep>]>,
    /// The tables.
    pub version: Arc<Version>,
    /// What makes values of merge operands.
    pub merger: Arc<Merger>,
    /// Grows with every installation in the family.
    pub number: u64,
}

impl SuperVersion {
    /// The sequence a reader of this value may use when `visible` is what the database shows: never one that the
    /// memtables here cannot hold.
    pub fn read_seq(&self, visible: SeqNum) -> SeqNum {
        self.mem.sealed_at().map_or(visible, |sealed| sealed.min(visible))
    }
}

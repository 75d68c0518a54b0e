//! What a reader sees: the memtables and the tables of a family, as one immutable value.
//!
//! 1. A `SuperVersion` never changes; a switch, flush or compaction installs a new one.
//! 2. A reader loads the `SuperVersion` first and the visible sequence second (the reverse order could miss a version
//!    that a flush dropped in between), and reads at no more than the sequence at which its memtable was sealed.

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

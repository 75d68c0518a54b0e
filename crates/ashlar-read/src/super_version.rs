//! The memtables and tables of a family, as one immutable value that a reader loads.
//!
//! 1. A `SuperVersion` never changes. A switch of the memtable, a flush or a compaction installs a new one.
//! 2. A reader loads the `SuperVersion` first and the visible sequence number second. In the reverse order the reader
//!    could miss a version that a flush dropped in between. The reader reads at no more than the sequence number at
//!    which its memtable became immutable.

use crate::expiry::Expiry;
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
    /// Combines merge operands with values.
    pub merger: Arc<Merger>,
    /// The expiry of the values; `None`: they have no times.
    pub expiry: Option<Expiry>,
    /// The number of installations in the family so far.
    pub number: u64,
    /// The last installation with which reads may see something else. A flush, and a compaction without a filter, keep what reads see.
    pub contents: u64,
}

impl SuperVersion {
    /// The sequence number at which a reader of this value may read, when the database shows `visible`. It is never
    /// above the last write that these memtables can hold.
    pub fn read_seq(&self, visible: SeqNum) -> SeqNum {
        self.mem.sealed_at().map_or(visible, |sealed| sealed.min(visible))
    }
}

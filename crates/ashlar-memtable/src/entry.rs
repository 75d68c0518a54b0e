//! What goes into a memtable, and why it may be refused.

use ashlar_base::error::BusyKind;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Error, ErrorKind, ValueType};
use std::fmt;
use std::sync::Arc;

/// One entry to be written.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// The user key. For a range tombstone: the first deleted key.
    pub key: &'a [u8],
    /// The value as stored; its meaning depends on the type. For a range tombstone: the first key that is not deleted.
    pub value: &'a [u8],
    /// The type of the entry.
    pub value_type: ValueType,
    /// The difference between the entry's sequence number and the first one of the insert.
    pub seq_delta: u32,
}

/// The memtable cannot take the entry: its address space (16 GiB) is used up, a key or value is 4 GiB or longer, or
/// the system has no memory left. Nothing was inserted. A new memtable helps in all cases but the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit;

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memtable cannot hold the entry")
    }
}

impl std::error::Error for MemoryLimit {}

impl From<MemoryLimit> for Error {
    fn from(limit: MemoryLimit) -> Error {
        Error::new(ErrorKind::Busy(BusyKind::Memory), limit.to_string())
    }
}

/// The range tombstones of a memtable, in parts that overlap.
pub type TombstoneParts = Arc<[Arc<FragmentedTombstones>]>;

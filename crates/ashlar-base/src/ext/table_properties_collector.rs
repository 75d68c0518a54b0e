//! Collectors of table properties: a user's facts about the entries of a table, stored in the table beside the engine's own.
//!
//! 1. A table has a collector of its own from each factory of its family. One thread calls it, once per entry in the order in
//!    which the table takes them: point entries ascending, then range deletions ascending.
//! 2. A collector that fails or panics is called no more. The table goes without its properties, and is written as without
//!    it. Events and `LOG` name the collector, the table and the cause.
//! 3. The names that begin with [`RESERVED`] are the engine's. A collected property of such a name, or of the name that an
//!    earlier collector of the table gave, is left out and reported; the other properties stay.
//!
//! Source: RocksDB `include/rocksdb/table_properties.h` (behaviour).

use super::compact_on_deletion::CompactOnDeletion;
use crate::error::Result;
use crate::ids::{FamilyId, Level};
use crate::key::{SeqNum, ValueType};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

/// How the names of the engine's own properties begin.
pub const RESERVED: &str = "rocksdb.";

/// Collected properties: names and values, both free bytes.
pub type UserProperties = BTreeMap<Vec<u8>, Vec<u8>>;

/// An entry that a table takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CollectedEntry<'a> {
    /// The user key; of a range deletion, the first key of the range.
    pub key: &'a [u8],
    /// The value as the table stores it: that of a blob is a reference, that of a range deletion the end of the range.
    pub value: &'a [u8],
    /// The kind of the entry.
    pub kind: ValueType,
    /// The sequence number; 0 in a table that is written to be ingested.
    pub sequence: SeqNum,
    /// Bytes of the data blocks written so far, without the unfinished one.
    pub file_bytes: u64,
}

impl<'a> CollectedEntry<'a> {
    /// An entry of a table with `file_bytes` bytes of data blocks.
    pub fn new(key: &'a [u8], value: &'a [u8], kind: ValueType, sequence: SeqNum, file_bytes: u64) -> Self {
        CollectedEntry { key, value, kind, sequence, file_bytes }
    }
}

/// Collects properties of one table. It must call no database.
pub trait TablePropertiesCollector: Send + fmt::Debug {
    /// Takes note of an entry.
    ///
    /// # Errors
    /// The collector gives up; see the module.
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()>;

    /// Takes note of the end of a data block, of `raw_bytes` bytes before compression.
    fn close_block(&mut self, raw_bytes: u64) {
        let _ = raw_bytes;
    }

    /// The properties of the table, which has all its entries.
    ///
    /// # Errors
    /// The table gets none of the properties.
    fn finish(&mut self) -> Result<UserProperties>;

    /// Whether the table is to be compacted soon, although its level is within its limits. Asked after
    /// [`TablePropertiesCollector::finish`].
    fn needs_compaction(&self) -> bool {
        false
    }
}

/// A table that asks for a collector.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CollectorContext<'a> {
    /// The family's id; `None`: the table is written to be ingested, into any family.
    pub family: Option<FamilyId>,
    /// The family's name; empty if there is no family.
    pub family_name: &'a str,
    /// The level for which the table is written; `None`: unknown.
    pub level: Option<Level>,
}

impl<'a> CollectorContext<'a> {
    /// A table of a family.
    pub fn new(family: Option<FamilyId>, family_name: &'a str, level: Option<Level>) -> Self {
        CollectorContext { family, family_name, level }
    }
}

/// Makes a collector for each table of a family. Several threads may call one factory at the same time. It must call no
/// database, and neither must its `Drop`, which any thread of the process may run.
pub trait TablePropertiesCollectorFactory: Any + Send + Sync + fmt::Debug {
    /// The name, which OPTIONS files and tables store. It must not be empty, have one of the characters `:;{}=,`, or equal the
    /// name of a built-in factory.
    fn name(&self) -> &str;

    /// The collector for a table; `None`: nothing is collected from this one.
    fn create(&self, context: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>>;
}

/// The built-in factory behind this one; `None`: it is a user's.
pub fn built_in(factory: &dyn TablePropertiesCollectorFactory) -> Option<&CompactOnDeletion> {
    let any: &dyn Any = factory;
    any.downcast_ref()
}

/// Whether this is a user's factory with the name of a built-in one.
pub fn borrows_built_in_name(factory: &dyn TablePropertiesCollectorFactory) -> bool {
    factory.name() == CompactOnDeletion::NAME && built_in(factory).is_none()
}

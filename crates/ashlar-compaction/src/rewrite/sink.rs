//! The receiver of the entries that survive a rewrite, and the counts of a rewrite.

use ashlar_base::memory::MemoryBudget;
use ashlar_base::{InternalKey, Result};
use std::sync::Arc;

/// The receiver of survivors.
pub trait EntrySink: Send {
    /// Takes the next survivor. `first`: no version of this user key was added before.
    ///
    /// # Errors
    /// Those of writing; the sink must not be used afterwards.
    fn add(&mut self, key: InternalKey<'_>, value: &[u8], first: bool) -> Result<()>;
    /// Reads an input entry that may refer to blobs, whether the entry survives or not. A duplicate entry is passed
    /// only once: dropping the duplicate makes no garbage.
    ///
    /// # Errors
    /// `Corruption`: the entry does not decode.
    fn note_read(&mut self, _key: InternalKey<'_>, _value: &[u8]) -> Result<()> {
        Ok(())
    }
    /// The budget to which the memory of a rewrite is charged.
    fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        None
    }
    /// Finishes the sink after the last survivor.
    ///
    /// # Errors
    /// As [`EntrySink::add`].
    fn finish(&mut self) -> Result<()>;
}

/// The counts of a rewrite. Bytes are those of encoded keys and values, uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteCounters {
    /// Entries read.
    pub entries_in: u64,
    /// Entries passed to the sink.
    pub entries_out: u64,
    /// Entries dropped because a newer version or a range tombstone hides them.
    pub dropped_hidden: u64,
    /// The number of entries saved by folding merge operands, and the values they apply to, into one value.
    pub folded: u64,
    /// Tombstones dropped because no older version is left.
    pub dropped_tombstones: u64,
    /// Values and merge operands that a compaction filter removed. The tombstone in place of a value counts in
    /// `entries_out` or in `dropped_tombstones` too.
    pub filtered: u64,
    /// Values and merge operands that a compaction filter changed.
    pub filter_changed: u64,
    /// Bytes of the entries read.
    pub bytes_in: u64,
}

impl std::ops::AddAssign for RewriteCounters {
    fn add_assign(&mut self, other: Self) {
        self.entries_in += other.entries_in;
        self.entries_out += other.entries_out;
        self.dropped_hidden += other.dropped_hidden;
        self.folded += other.folded;
        self.dropped_tombstones += other.dropped_tombstones;
        self.filtered += other.filtered;
        self.filter_changed += other.filter_changed;
        self.bytes_in += other.bytes_in;
    }
}

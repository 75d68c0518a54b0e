//! One operation on a store with families of keys.

/// The id of the operator that every family of a list is opened with, in RocksDB's words and in ours.
pub const MERGE_OPERATOR: &str = "stringappend";

/// One change to a family. Merges are those of [`MERGE_OPERATOR`]: the old value, a comma, the operand; the
/// operand alone where there was nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Put {
        /// Name of the family.
        family: String,
        /// The key, may be empty.
        key: Vec<u8>,
        /// The value, may be empty.
        value: Vec<u8>,
    },
    /// Removes a key, there or not.
    Delete {
        /// Name of the family.
        family: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Removes a key that was put once at most since it was last removed, and never merged.
    SingleDelete {
        /// Name of the family.
        family: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Adds an operand to a key, there or not.
    Merge {
        /// Name of the family.
        family: String,
        /// The key.
        key: Vec<u8>,
        /// What is appended.
        operand: Vec<u8>,
    },
    /// Removes all keys with `from <= key < to`.
    DeleteRange {
        /// Name of the family.
        family: String,
        /// First key removed.
        from: Vec<u8>,
        /// The end of the range, itself not removed; after `from`.
        to: Vec<u8>,
    },
}

impl Change {
    /// Name of the family changed.
    pub fn family(&self) -> &str {
        match self {
            Change::Put { family, .. }
            | Change::Delete { family, .. }
            | Change::SingleDelete { family, .. }
            | Change::Merge { family, .. }
            | Change::DeleteRange { family, .. } => family,
        }
    }

    /// The key changed; the first one of a range.
    pub fn key(&self) -> &[u8] {
        match self {
            Change::Put { key, .. }
            | Change::Delete { key, .. }
            | Change::SingleDelete { key, .. }
            | Change::Merge { key, .. } => key,
            Change::DeleteRange { from, .. } => from,
        }
    }

    /// The same change, of another family.
    pub fn in_family(&self, name: String) -> Change {
        let mut change = self.clone();
        match &mut change {
            Change::Put { family, .. }
            | Change::Delete { family, .. }
            | Change::SingleDelete { family, .. }
            | Change::Merge { family, .. }
            | Change::DeleteRange { family, .. } => *family = name,
        }
        change
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// An atomic write; one change is a plain write, none is an empty batch.
    Write {
        /// The changes, in order; a later one wins over an earlier one of the same key.
        changes: Vec<Change>,
        /// Wait for the device.
        sync: bool,
    },
    /// Writes a family's memtable to a table.
    Flush {
        /// Name of the family.
        family: String,
    },
    /// Compacts the whole key range of a family.
    Compact {
        /// Name of the family.
        family: String,
    },
    /// Closes the store in order and opens it again; snapshots end.
    Reopen,
    /// Takes snapshot number `id`.
    Snapshot {
        /// Its number, unique among the live ones.
        id: u32,
    },
    /// Gives snapshot number `id` back.
    Release {
        /// Its number.
        id: u32,
    },
    /// Reads one key, now or at a snapshot.
    Get {
        /// Name of the family.
        family: String,
        /// The key.
        key: Vec<u8>,
        /// Snapshot to read at.
        at: Option<u32>,
    },
    /// Reads all entries with `from <= key < to`, now or at a snapshot.
    Scan {
        /// Name of the family.
        family: String,
        /// First key wanted.
        from: Vec<u8>,
        /// First key no longer wanted.
        to: Vec<u8>,
        /// From the end to the start.
        reverse: bool,
        /// Snapshot to read at.
        at: Option<u32>,
    },
}

//! One operation on a store with families of keys.

/// One change to one key of a family.
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
}

impl Change {
    /// Name of the family changed.
    pub fn family(&self) -> &str {
        match self {
            Change::Put { family, .. } | Change::Delete { family, .. } => family,
        }
    }

    /// The key changed.
    pub fn key(&self) -> &[u8] {
        match self {
            Change::Put { key, .. } | Change::Delete { key, .. } => key,
        }
    }

    /// The value it leaves: `None` for a delete.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Change::Put { value, .. } => Some(value),
            Change::Delete { .. } => None,
        }
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// An atomic write; one change is a plain put or delete, none is an empty batch.
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

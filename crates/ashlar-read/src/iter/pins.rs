//! The files and memtables that a cursor keeps alive: those that were current when it was opened, even after their
//! replacement.

use crate::super_version::SuperVersion;
use ashlar_base::{FileNumber, Level, SeqNum};
use ashlar_memtable::MemtableRep;
use ashlar_tree::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a cursor keeps alive that its family no longer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CursorPins {
    /// The sequence number at which the cursor reads.
    pub sequence: SeqNum,
    /// Bytes of memtables that have been flushed since.
    pub memtable_bytes: u64,
    /// Tables and blob files that a compaction has replaced since; they stay on disk.
    pub obsolete_files: u64,
    /// The bytes of those files.
    pub obsolete_bytes: u64,
    /// Bytes of the cursor's current blocks, and of its own copies of keys and of a value from a blob file or from merges.
    pub block_bytes: u64,
}

/// Bytes of a cursor as it is made, and more for each table of level 0 and each deeper level. Measured over 1, 4 and 12 tables.
const CURSOR_BYTES: usize = 4 << 10;
const RUN_BYTES: usize = 416;

/// About the bytes that a cursor over `of` has for itself, beside blocks and long copies of keys and values.
pub fn cursor_bytes(of: &SuperVersion) -> usize {
    let deeper = of.version.levels.iter().skip(1).filter(|files| !files.is_empty()).count();
    CURSOR_BYTES + RUN_BYTES * (of.version.level(Level::ZERO).len() + deeper)
}

/// Files by number, with their bytes.
pub type FileBytes = BTreeMap<FileNumber, u64>;

/// The tables and blob files of a version.
pub fn files_of(version: &Version) -> impl Iterator<Item = (FileNumber, u64)> {
    let tables = version.files().map(|(_, f)| (f.number(), f.size()));
    tables.chain(version.blobs().files().iter().map(|(number, blob)| (*number, blob.added.bytes)))
}

/// The memtables of a super version, newest first.
pub fn memtables_of(of: &SuperVersion) -> impl Iterator<Item = &Arc<dyn MemtableRep>> {
    std::iter::once(&of.mem).chain(&of.imm)
}

impl CursorPins {
    pub(super) fn new(held: &SuperVersion, sequence: SeqNum, block_bytes: usize, now: &SuperVersion) -> Self {
        let live = |m: &Arc<dyn MemtableRep>| memtables_of(now).any(|n| Arc::ptr_eq(n, m));
        let old = memtables_of(held).filter(|m| !live(m));
        let present: BTreeSet<FileNumber> = files_of(&now.version).map(|(number, _)| number).collect();
        let obsolete: FileBytes =
            files_of(&held.version).filter(|(number, _)| !present.contains(number)).collect();
        CursorPins {
            sequence,
            memtable_bytes: old.map(|m| m.memory() as u64).sum(),
            obsolete_files: obsolete.len() as u64,
            obsolete_bytes: obsolete.values().sum(),
            block_bytes: block_bytes as u64,
        }
    }
}

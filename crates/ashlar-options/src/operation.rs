//! Settings of one call.

use ashlar_base::{Level, SeqNum};
use ashlar_table::ReadHow;

/// Options of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Return only after the write has been synced. Off: the write survives a killed process, but not a power cut.
    pub sync: bool,
    /// Write to the memtable only, not to the WAL. A crash loses the write unless its memtable was flushed.
    pub disable_wal: bool,
    /// Fail with `Busy(Stalled)` instead of waiting for background work.
    pub no_slowdown: bool,
    /// While compactions are behind, wait for a separate rate limit, longer than other writes.
    pub low_priority: bool,
}

/// Options of a read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Read at this sequence number instead of the newest visible one. The caller must keep its snapshot alive.
    pub at: Option<SeqNum>,
    /// The lower end of a cursor, in the family's order. The key itself is included unless `lower_open`.
    pub lower: Option<Vec<u8>>,
    /// Excludes the key `lower`.
    pub lower_open: bool,
    /// The upper end of a cursor, in the family's order. The key itself is excluded unless `upper_closed`.
    pub upper: Option<Vec<u8>>,
    /// Includes the key `upper`.
    pub upper_closed: bool,
    /// Whether data blocks read from files enter the block cache.
    pub fill_cache: bool,
}

impl ReadOptions {
    /// The settings for reading blocks in this call.
    pub fn how(&self) -> ReadHow {
        ReadHow { fill_cache: self.fill_cache, ..ReadHow::default() }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            at: None,
            lower: None,
            lower_open: false,
            upper: None,
            upper_closed: false,
            fill_cache: true,
        }
    }
}

/// Options of a requested compaction.
#[derive(Clone, Copy, Debug)]
pub struct CompactRangeOptions {
    /// Also rewrite the tables of the deepest level that no other table is merged into (RocksDB's
    /// `bottommost_level_compaction`), so that no deleted entry is left. On.
    pub rewrite_deepest: bool,
    /// After the compaction, move all tables of the deepest level to this level without rewriting them (RocksDB's
    /// `change_level`). The levels between must be empty. `None`: do not move them.
    pub target_level: Option<Level>,
    /// Run no other compaction at the same time. Off.
    pub exclusive: bool,
    /// The greatest number of jobs that share the work. 0: the database's setting.
    pub max_subcompactions: usize,
}

impl Default for CompactRangeOptions {
    fn default() -> Self {
        CompactRangeOptions {
            rewrite_deepest: true,
            target_level: None,
            exclusive: false,
            max_subcompactions: 0,
        }
    }
}

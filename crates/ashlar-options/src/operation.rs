//! Settings of one call.

use ashlar_base::{Level, SeqNum};
use ashlar_table::ReadHow;

/// How a write is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Return only when the write is on the device. Off: it survives a killed process, not a power cut.
    pub sync: bool,
    /// Leave the write out of the log: it is lost unless its memtable was flushed.
    pub disable_wal: bool,
    /// Fail with `Busy(Stalled)` where the write would have to wait for background work.
    pub no_slowdown: bool,
    /// While compaction has work to do, wait longer than other writes, and apart from them.
    pub low_priority: bool,
}

/// How a read is done.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Read at this sequence instead of the newest visible one. The caller holds the snapshot.
    pub at: Option<SeqNum>,
    /// The key at which a cursor begins, in the family's order. It is shown, unless `lower_open`.
    pub lower: Option<Vec<u8>>,
    /// The cursor begins behind `lower`.
    pub lower_open: bool,
    /// The key at which a cursor ends, in the family's order. It is not shown, unless `upper_closed`.
    pub upper: Option<Vec<u8>>,
    /// `upper` is the last key that is shown.
    pub upper_closed: bool,
    /// Keep data blocks that are read from files in the block cache.
    pub fill_cache: bool,
}

impl ReadOptions {
    /// How tables read blocks for the call.
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

/// How a compaction on request is done.
#[derive(Clone, Copy, Debug)]
pub struct CompactRangeOptions {
    /// Rewrite the tables of the deepest level that has the range even where nothing comes down into them (RocksDB's
    /// `bottommost_level_compaction`), so that nothing deleted is left. On.
    pub rewrite_deepest: bool,
    /// Behind the compaction, take all tables of the deepest level to this one (RocksDB's `change_level`), as they are.
    /// The levels on the way must be empty.
    pub target_level: Option<Level>,
    /// No other compaction runs meanwhile. Off.
    pub exclusive: bool,
    /// Jobs that share the work at most. 0: as the database has it.
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

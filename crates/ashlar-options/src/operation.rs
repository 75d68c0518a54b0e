//! Settings of one call.

use ashlar_base::{Level, Result, SeqNum};
use ashlar_env::Clock;
use ashlar_format::compress::Compression;
use ashlar_table::{ReadHow, ReadLimit};
use std::sync::Arc;
use std::time::Duration;

/// Options of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Return only after the write has been synced. Off: the write survives a killed process, but not a power cut.
    pub sync: bool,
    /// Write to the memtable only, not to the WAL. A crash loses the write unless its memtable was flushed.
    pub disable_wal: bool,
    /// Fail with `Busy(Stalled)` instead of waiting for background work.
    pub no_slowdown: bool,
    /// While there is compaction debt, wait for a separate rate limit, longer than other writes.
    pub low_priority: bool,
    /// Fail with `TimedOut` instead of waiting longer than this for background work. `None`: no limit. The clock of the
    /// environment measures it.
    pub timeout: Option<Duration>,
}

/// Where a read looks for its answer (RocksDB's `read_tier`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadTier {
    /// Memtables, the block cache and files.
    #[default]
    All,
    /// Memtables, open tables and the block cache. An answer that needs a file is `Busy(NotCached)` instead (RocksDB's
    /// `kBlockCacheTier` and `Incomplete`).
    BlockCache,
    /// What is in the WAL or in tables (RocksDB's `kPersistedTier`), and so survives a crash of the process, except records that
    /// `manual_wal_flush` still buffers. As long as every write since the open went to the WAL, this is the same as `All`. After the first write without the WAL, memtables are left out until the next open.
    Persisted,
    /// Memtables only (RocksDB's `kMemtableTier`). Keys that only tables hold do not exist for the read.
    Memtable,
}

impl ReadTier {
    /// Whether the read asks memtables. The engine replaces `Persisted` by `All` where memtables count as persisted.
    #[inline]
    pub fn asks_memtables(self) -> bool {
        self != ReadTier::Persisted
    }

    /// Whether the read asks tables.
    #[inline]
    pub fn asks_tables(self) -> bool {
        self != ReadTier::Memtable
    }
}

/// Options of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Read at this sequence number instead of the newest visible one. The caller must keep its snapshot alive.
    pub at: Option<SeqNum>,
    /// Whether data blocks read from files enter the block cache.
    pub fill_cache: bool,
    /// Whether checksums of blocks that are read from files are compared. A block that was read without does not enter the
    /// block cache.
    pub verify_checksums: bool,
    /// Where the read looks.
    pub tier: ReadTier,
    /// The time, since 1970, at which the read gives up.
    pub deadline: Option<Duration>,
    /// The longest time for one read of a file; not zero.
    pub io_timeout: Option<Duration>,
}

impl ReadOptions {
    /// How tables read blocks for the call, which begins now by `clock`.
    ///
    /// # Errors
    /// `InvalidArgument`: an `io_timeout` of zero.
    #[inline]
    pub fn how(&self, clock: &Arc<dyn Clock>) -> Result<ReadHow> {
        let limit = match (self.deadline, self.io_timeout) {
            (None, None) => None,
            (deadline, io_timeout) => Some(ReadLimit::new(clock, deadline, io_timeout)?),
        };
        Ok(ReadHow {
            fill_cache: self.fill_cache,
            verify: self.verify_checksums,
            cached_only: self.tier == ReadTier::BlockCache,
            limit,
        })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            at: None,
            fill_cache: true,
            verify_checksums: true,
            tier: ReadTier::All,
            deadline: None,
            io_timeout: None,
        }
    }
}

/// Options of a requested compaction.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct CompactRangeOptions {
    /// Also rewrite the tables of the deepest level that no other table is merged into (RocksDB's
    /// `bottommost_level_compaction`), so that no deleted entry is left. On. Exception: tables of a load in key order move
    /// down unchanged if a rewrite would remove nothing from them.
    pub rewrite_deepest: bool,
    /// Rewrite the tables of the deepest level if the family has a compaction filter, whatever
    /// [`CompactRangeOptions::rewrite_deepest`] says (RocksDB's `kIfHaveCompactionFilter`). Off.
    pub rewrite_deepest_if_filtered: bool,
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
            rewrite_deepest_if_filtered: false,
            target_level: None,
            exclusive: false,
            max_subcompactions: 0,
        }
    }
}

impl CompactRangeOptions {
    /// The defaults: the deepest level is rewritten, tables stay in their level, other compactions may run, and the
    /// database's setting says how many jobs share the work.
    pub fn new() -> Self {
        CompactRangeOptions::default()
    }

    /// Sets [`CompactRangeOptions::rewrite_deepest`].
    pub fn rewrite_deepest(self, rewrite_deepest: bool) -> Self {
        CompactRangeOptions { rewrite_deepest, ..self }
    }

    /// Sets [`CompactRangeOptions::rewrite_deepest_if_filtered`].
    pub fn rewrite_deepest_if_filtered(self, rewrite_deepest_if_filtered: bool) -> Self {
        CompactRangeOptions { rewrite_deepest_if_filtered, ..self }
    }

    /// Sets [`CompactRangeOptions::target_level`].
    pub fn target_level(self, level: Level) -> Self {
        CompactRangeOptions { target_level: Some(level), ..self }
    }

    /// Sets [`CompactRangeOptions::exclusive`].
    pub fn exclusive(self, exclusive: bool) -> Self {
        CompactRangeOptions { exclusive, ..self }
    }

    /// Sets [`CompactRangeOptions::max_subcompactions`].
    pub fn max_subcompactions(self, jobs: usize) -> Self {
        CompactRangeOptions { max_subcompactions: jobs, ..self }
    }
}

/// Options of a compaction of named tables.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
#[must_use]
pub struct CompactFilesOptions {
    /// The greatest number of jobs that share the work. 0: the database's setting.
    pub max_subcompactions: usize,
    /// An output of this many bytes is full. `None`: as the settings of the family say.
    pub file_bytes: Option<u64>,
    /// The compression of the outputs. `None`: as the settings of the family say.
    pub compression: Option<Compression>,
}

impl CompactFilesOptions {
    /// The defaults: the settings of the database and the family.
    pub fn new() -> Self {
        CompactFilesOptions::default()
    }

    /// Sets [`CompactFilesOptions::max_subcompactions`].
    pub fn max_subcompactions(self, jobs: usize) -> Self {
        CompactFilesOptions { max_subcompactions: jobs, ..self }
    }

    /// Sets [`CompactFilesOptions::file_bytes`].
    pub fn file_bytes(self, bytes: u64) -> Self {
        CompactFilesOptions { file_bytes: Some(bytes), ..self }
    }

    /// Sets [`CompactFilesOptions::compression`].
    pub fn compression(self, compression: Compression) -> Self {
        CompactFilesOptions { compression: Some(compression), ..self }
    }
}

//! Settings that shape the tree.

use crate::names::Value;
use ashlar_base::{Error, Result};
use std::fmt;

/// The greatest number of levels of a family.
pub const MOST_LEVELS: usize = 64;

/// Settings of compaction. In a leveled tree, level sizes are dynamic: the last level holds the data, and each level above
/// it has a tenth of the size of the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionOptions {
    /// The number of levels, level 0 included. 7.
    pub num_levels: usize,
    /// The number of level-0 tables that starts a compaction. 4.
    pub l0_trigger: usize,
    /// The number of level-0 tables from which writers are slowed. 20.
    pub l0_slowdown: usize,
    /// The number of level-0 tables at which writers wait. 36.
    pub l0_stop: usize,
    /// The size of a table that a compaction writes, in bytes. 64 MiB.
    pub target_file_bytes: u64,
    /// The least target size of the base level, in bytes. 256 MiB.
    pub base_level_bytes: u64,
    /// The ratio of a level's size to that of the level above it. 10.
    pub level_multiplier: f64,
    /// The greatest number of input bytes of one compaction. 0: 25 times `target_file_bytes`.
    pub max_compaction_bytes: u64,
    /// Debt in bytes from which writers are slowed; 0 for no bound, as in RocksDB. 64 GiB.
    pub soft_debt_bytes: u64,
    /// Debt in bytes at which writers wait; 0 for no bound, as in RocksDB. 256 GiB.
    pub hard_debt_bytes: u64,
    /// The age in seconds at which a table above the last level is compacted into the next level. No key expires. 0:
    /// off.
    pub ttl_secs: u64,
    /// The age in seconds at which a table is rewritten. 0: off.
    pub periodic_secs: u64,
    /// Whether compactions run in the background. On.
    pub automatic: bool,
    /// The style of the tree. [`CompactionStyle::Level`].
    pub style: CompactionStyle,
    /// The settings of [`CompactionStyle::Universal`].
    pub universal: UniversalOptions,
    /// The settings of [`CompactionStyle::Fifo`].
    pub fifo: FifoOptions,
    /// Keeps all tables in level 0. The open sets it for a directory whose OPTIONS file has `num_levels=1`: RocksDB would
    /// not open a deeper tree with these settings. Off.
    pub single_level: bool,
    /// Keeps the last level for tables that are ingested behind all others. The open sets it, by
    /// [`FamilyOptions::ingest_behind`](crate::FamilyOptions::ingest_behind). Off.
    pub keeps_last_level: bool,
}

/// How the tables of a family are compacted. (RocksDB: `compaction_style`.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionStyle {
    /// Levels that each hold a multiple of the level above: the least space, and few runs to read.
    #[default]
    Level,
    /// Few sorted runs of growing sizes, merged when their sizes are alike: the least writing, and up to twice the space.
    Universal,
    /// No merging: the oldest tables are deleted, with their entries, when all tables exceed a size or an age.
    Fifo,
    /// No compaction at all.
    None,
}

impl fmt::Display for CompactionStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

/// When a run is taken along by a universal compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopStyle {
    /// The next run is not much larger than all runs before it together. (RocksDB: `kCompactionStopStyleTotalSize`.)
    #[default]
    TotalSize,
    /// The next run is about as large as the run before it. (RocksDB: `kCompactionStopStyleSimilarSize`.)
    SimilarSize,
}

/// Settings of universal compaction. (RocksDB: `compaction_options_universal`.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniversalOptions {
    /// Percent by which a run may be larger than those before it and still be merged with them. 1.
    pub size_ratio: u32,
    /// The least number of runs that one compaction merges because of their sizes. 2.
    pub min_merge_width: u32,
    /// The greatest number of runs that one compaction merges because of their sizes. No bound.
    pub max_merge_width: u32,
    /// The bytes of all newer runs, in percent of the oldest run, from which all runs are merged. 200.
    pub max_size_amplification_percent: u32,
    /// Which runs are alike. [`StopStyle::TotalSize`].
    pub stop_style: StopStyle,
    /// Whether tables whose key ranges do not overlap are moved, not rewritten. Off.
    pub allow_trivial_move: bool,
    /// Whether a merge because of space amplification goes in parts of about half of `max_compaction_bytes`, so that no merge
    /// needs the size of the data once more. Off.
    pub incremental: bool,
}

impl Default for UniversalOptions {
    fn default() -> Self {
        UniversalOptions {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX,
            max_size_amplification_percent: 200,
            stop_style: StopStyle::TotalSize,
            allow_trivial_move: false,
            incremental: false,
        }
    }
}

/// Settings of FIFO compaction. (RocksDB: `compaction_options_fifo`.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoOptions {
    /// The bytes of all tables above which the oldest tables are deleted. 1 GiB.
    pub max_table_files_size: u64,
    /// Whether small tables are merged, so that reads search fewer. Off.
    pub allow_compaction: bool,
}

impl Default for FifoOptions {
    fn default() -> Self {
        FifoOptions { max_table_files_size: 1 << 30, allow_compaction: false }
    }
}

impl Default for CompactionOptions {
    fn default() -> Self {
        CompactionOptions {
            num_levels: 7,
            l0_trigger: 4,
            l0_slowdown: 20,
            l0_stop: 36,
            target_file_bytes: 64 << 20,
            base_level_bytes: 256 << 20,
            level_multiplier: 10.0,
            max_compaction_bytes: 0,
            soft_debt_bytes: 64 << 30,
            hard_debt_bytes: 256 << 30,
            ttl_secs: 0,
            periodic_secs: 0,
            automatic: true,
            style: CompactionStyle::Level,
            universal: UniversalOptions::default(),
            fifo: FifoOptions::default(),
            single_level: false,
            keeps_last_level: false,
        }
    }
}

impl CompactionOptions {
    /// Whether background compactions lower the number of runs, so that waiting for them helps a writer.
    pub fn works(&self) -> bool {
        self.automatic
            && match self.style {
                CompactionStyle::Level => !self.single_level,
                CompactionStyle::Universal => true,
                CompactionStyle::Fifo | CompactionStyle::None => false,
            }
    }

    /// Whether all tables stay in level 0.
    pub fn stays_in_level0(&self) -> bool {
        self.single_level || matches!(self.style, CompactionStyle::Fifo | CompactionStyle::None)
    }

    /// The bound on one compaction's input bytes.
    pub fn compaction_bytes(&self) -> u64 {
        if self.max_compaction_bytes == 0 {
            self.target_file_bytes.saturating_mul(25)
        } else {
            self.max_compaction_bytes
        }
    }

    /// The debts in bytes from which writers are slowed, and at which they wait.
    pub fn debt_bounds(&self) -> (u64, u64) {
        let bound = |bytes: u64| if bytes == 0 { u64::MAX } else { bytes };
        (bound(self.soft_debt_bytes), bound(self.hard_debt_bytes))
    }

    /// # Errors
    /// `InvalidArgument`, with the option and its range.
    pub fn validate(&self) -> Result<()> {
        if !(2..=MOST_LEVELS).contains(&self.num_levels) {
            let what = format!("num_levels is {}, the range is 2 to {MOST_LEVELS}", self.num_levels);
            return Err(Error::invalid(what));
        }
        if self.l0_trigger == 0 || self.l0_slowdown < self.l0_trigger || self.l0_stop < self.l0_slowdown {
            return Err(Error::invalid(format!(
                "level 0 starts compaction at {}, slows at {}, stops at {} tables; they must be at least 1 and ascend",
                self.l0_trigger, self.l0_slowdown, self.l0_stop
            )));
        }
        if self.target_file_bytes < 4096 || self.base_level_bytes < 4096 {
            return Err(Error::invalid(
                "target_file_size_base and max_bytes_for_level_base are at least 4096",
            ));
        }
        if self.level_multiplier.is_nan() || self.level_multiplier < 2.0 || self.level_multiplier > 1000.0 {
            return Err(Error::invalid(format!(
                "max_bytes_for_level_multiplier is {}, the range is 2 to 1000",
                self.level_multiplier
            )));
        }
        Ok(())
    }
}

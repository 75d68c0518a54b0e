//! Settings that shape the tree.

use ashlar_base::{Error, Result};

/// The greatest number of levels of a family.
pub const MOST_LEVELS: usize = 64;

/// Settings of leveled compaction. Level sizes are dynamic: the last level holds the data, and each level above it has a
/// tenth of the size of the next one.
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
    /// Keeps all tables in level 0: no compaction runs, neither in the background nor on request. The open sets it from the
    /// directory's OPTIONS file, for trees of the styles FIFO and None and for `num_levels=1`, which RocksDB would otherwise
    /// refuse to open. Off.
    pub level0_only: bool,
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
            level0_only: false,
        }
    }
}

impl CompactionOptions {
    /// Whether compactions run in the background.
    pub fn works(&self) -> bool {
        self.automatic && !self.level0_only
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

//! Settings that shape the tree.

use ashlar_base::{Error, Result};

/// How leveled compaction shapes the tree. Sizes of the levels are dynamic: the last level holds the data, each level
/// above it a tenth of the one below.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionOptions {
    /// Levels of the tree, level 0 included. 7.
    pub num_levels: usize,
    /// Level-0 tables that start a compaction. 4.
    pub l0_trigger: usize,
    /// Level-0 tables from which writers are slowed. 20.
    pub l0_slowdown: usize,
    /// Level-0 tables at which writers wait. 36.
    pub l0_stop: usize,
    /// Bytes of an output table. 64 MiB.
    pub target_file_bytes: u64,
    /// Bytes of the base level at least. 256 MiB.
    pub base_level_bytes: u64,
    /// How many times larger a level is than the one above it. 10.
    pub level_multiplier: f64,
    /// Bytes of a compaction at most. 0: 25 times `target_file_bytes`.
    pub max_compaction_bytes: u64,
    /// Debt in bytes from which writers are slowed; 0 for no bound, as in RocksDB. 64 GiB.
    pub soft_debt_bytes: u64,
    /// Debt in bytes at which writers wait; 0 for no bound, as in RocksDB. 256 GiB.
    pub hard_debt_bytes: u64,
    /// A table above the last level that holds data older than this goes down, level by level. 0: at no age.
    pub ttl_secs: u64,
    /// A table written longer ago than this is written anew. 0: at no age.
    pub periodic_secs: u64,
    /// Compact in the background. On.
    pub automatic: bool,
    /// Tables stay in level 0: nothing is compacted, by itself or on request. For a tree that RocksDB does not compact
    /// into levels (the styles FIFO and None), or keeps in one level (`num_levels=1`) and refuses to open with a table
    /// in another. Follows from the directory's OPTIONS file. Off.
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
    /// Whether anything is compacted in the background.
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

    /// From which debt writers are slowed, and at which they wait.
    pub fn debt_bounds(&self) -> (u64, u64) {
        let bound = |bytes: u64| if bytes == 0 { u64::MAX } else { bytes };
        (bound(self.soft_debt_bytes), bound(self.hard_debt_bytes))
    }

    /// # Errors
    /// `InvalidArgument` naming the option and its range.
    pub fn validate(&self) -> Result<()> {
        if !(2..=64).contains(&self.num_levels) {
            return Err(Error::invalid(format!("num_levels is {}, the range is 2 to 64", self.num_levels)));
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

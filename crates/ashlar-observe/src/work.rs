//! The flushes and compactions of one family, by the level they wrote to.

/// The work that ended in one level. Flushes end in level 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Flushes or compactions. A trivial move does not count.
    pub count: u64,
    /// The time from start to end.
    pub micros: u64,
    /// Bytes read from levels above.
    pub read_above: u64,
    /// Bytes read from the level itself.
    pub read_here: u64,
    /// Bytes written to tables.
    pub written: u64,
    /// Bytes of tables that were moved to the level without a rewrite.
    pub moved: u64,
    /// Bytes written to blob files.
    pub blob_written: u64,
    /// Entries read.
    pub entries_in: u64,
    /// Entries that were dropped.
    pub entries_dropped: u64,
}

impl LevelWork {
    /// Bytes read.
    pub fn read(&self) -> u64 {
        self.read_above + self.read_here
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: LevelWork) -> LevelWork {
        self.combine(other, u64::wrapping_add)
    }

    /// The work done since `earlier`.
    #[must_use]
    pub fn minus(self, earlier: LevelWork) -> LevelWork {
        self.combine(earlier, u64::saturating_sub)
    }

    fn combine(self, other: LevelWork, by: impl Fn(u64, u64) -> u64) -> LevelWork {
        LevelWork {
            count: by(self.count, other.count),
            micros: by(self.micros, other.micros),
            read_above: by(self.read_above, other.read_above),
            read_here: by(self.read_here, other.read_here),
            written: by(self.written, other.written),
            moved: by(self.moved, other.moved),
            blob_written: by(self.blob_written, other.blob_written),
            entries_in: by(self.entries_in, other.entries_in),
            entries_dropped: by(self.entries_dropped, other.entries_dropped),
        }
    }
}

/// All work of a family since the open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyWork {
    levels: Vec<LevelWork>,
    /// Bytes that flushes wrote, to tables and blob files.
    pub flushed: u64,
}

impl FamilyWork {
    /// Adds work that ended in `level`.
    pub fn add(&mut self, level: usize, work: LevelWork) {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelWork::default());
        }
        if let Some(sum) = self.levels.get_mut(level) {
            *sum = sum.plus(work);
        }
    }

    /// The work that ended in `level`.
    pub fn level(&self, level: usize) -> LevelWork {
        self.levels.get(level).copied().unwrap_or_default()
    }

    /// The work of all levels.
    pub fn sum(&self) -> LevelWork {
        self.levels.iter().fold(LevelWork::default(), |sum, level| sum.plus(*level))
    }
}

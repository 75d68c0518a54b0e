//! The style of a tree: which compactions it gets, how much work waits, and when to ask again.
//!
//! A style is one file with these answers, and one arm of each `match` here. Its pickers are pure functions of
//! [`PickInput`].

use super::aged::next_age;
use super::level0::waits_for_table;
use super::leveled;
use super::pick_input::PickInput;
use super::scores::debt;
use super::shape::Shape;
use super::tombstones::awaited_snapshot;
use crate::plan::Compaction;
use ashlar_base::SeqNum;
use ashlar_options::CompactionOptions;

/// How the tables of a family are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each level below level 0 holds a multiple of the level above it.
    Leveled,
    /// All tables stay in level 0, and no compaction runs: the tree is stored with the style FIFO or None, or with one
    /// level. RocksDB would not open such a tree with a table in another level.
    Level0Only,
}

impl Style {
    /// The style that the settings of a family ask for.
    pub fn of(options: &CompactionOptions) -> Style {
        if options.level0_only { Style::Level0Only } else { Style::Leveled }
    }

    /// The next compaction that the tree needs, if one can start now. The caller marks its files as compacting before
    /// anything else picks. Does not ask whether compactions are automatic.
    pub fn pick(self, input: &PickInput<'_>) -> Option<Compaction> {
        match self {
            Style::Leveled => leveled::pick(input),
            Style::Level0Only => None,
        }
    }

    /// Estimated bytes that compactions must rewrite until the tree is within its limits.
    pub fn debt(self, shape: &Shape<'_>, options: &CompactionOptions) -> u64 {
        match self {
            // A tree without compactions shows what a leveled tree would have to rewrite.
            Style::Leveled | Style::Level0Only => debt(shape, &shape.targets(options), options),
        }
    }

    /// The seconds until the clock alone may make a compaction due; `None`: never.
    pub fn next_look(self, shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> Option<u64> {
        match self {
            Style::Leveled => next_age(shape, options, now),
            Style::Level0Only => None,
        }
    }

    /// Whether a due compaction waits for a table that is expected in level 0.
    pub fn waits_for_table(self, shape: &Shape<'_>, options: &CompactionOptions) -> bool {
        match self {
            Style::Leveled => waits_for_table(shape, options),
            Style::Level0Only => false,
        }
    }

    /// The sequence that makes a compaction worthwhile, once every snapshot is at or above it. `oldest` is the oldest
    /// live snapshot.
    pub fn awaited_snapshot(self, shape: &Shape<'_>, oldest: Option<SeqNum>) -> Option<SeqNum> {
        match self {
            Style::Leveled => awaited_snapshot(shape, oldest),
            Style::Level0Only => None,
        }
    }

    /// Whether a caller may request compactions.
    pub fn allows_requests(self) -> bool {
        match self {
            Style::Leveled => true,
            Style::Level0Only => false,
        }
    }
}

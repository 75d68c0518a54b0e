//! The style of a tree: which compactions it gets, how much work waits, and when to ask again.
//!
//! A style is one file with these answers, and one arm of each `match` here. Its pickers are pure functions of
//! [`PickInput`].

use super::aged::next_age;
use super::level0::waits_for_table;
use super::manual::{ManualPick, ManualRange};
use super::pick_input::PickInput;
use super::scores::debt;
use super::shape::Shape;
use super::tombstones::awaited_snapshot;
use super::{fifo, leveled, universal};
use crate::plan::Compaction;
use ashlar_base::{FileNumber, SeqNum};
use ashlar_options::{CompactionOptions, CompactionStyle};

/// How the tables of a family are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each level below level 0 holds a multiple of the level above it.
    Leveled,
    /// Few sorted runs, merged when their sizes are alike.
    Universal,
    /// All tables stay in level 0, and the oldest are deleted.
    Fifo,
    /// All tables stay in level 0, and no compaction runs: the tree is stored with the style None, or as a leveled one with
    /// one level. RocksDB would not open such a tree with a table in another level.
    Level0Only,
}

impl Style {
    /// The style that the settings of a family ask for.
    pub fn of(options: &CompactionOptions) -> Style {
        match options.style {
            CompactionStyle::Level if options.single_level => Style::Level0Only,
            CompactionStyle::Level => Style::Leveled,
            CompactionStyle::Universal => Style::Universal,
            CompactionStyle::Fifo => Style::Fifo,
            CompactionStyle::None => Style::Level0Only,
        }
    }

    /// The next compaction that the tree needs, if one can start now. The caller marks its files as compacting before
    /// anything else picks. Does not ask whether compactions are automatic.
    pub fn pick(self, input: &PickInput<'_>) -> Option<Compaction> {
        match self {
            Style::Leveled => leveled::pick(input),
            Style::Universal => universal::pick(input),
            Style::Fifo => fifo::pick(input),
            Style::Level0Only => None,
        }
    }

    /// The next compaction of a request for the range `request`. `next_file`: the number of the next new file.
    pub fn pick_requested(
        self,
        request: &mut ManualRange,
        input: &PickInput<'_>,
        next_file: FileNumber,
    ) -> ManualPick {
        let PickInput { shape, options, running, .. } = input;
        match self {
            Style::Leveled => request.pick(shape, options, running, next_file),
            Style::Universal => {
                request.pick_whole(shape, running, universal::is_one_run(shape, options), || {
                    universal::pick_all(shape, options, running)
                })
            }
            Style::Fifo if running.is_empty() => {
                fifo::pick(input).map_or(ManualPick::Done, |plan| ManualPick::Run(Box::new(plan)))
            }
            Style::Fifo => ManualPick::Blocked,
            Style::Level0Only => ManualPick::Done,
        }
    }

    /// Estimated bytes that compactions must rewrite until the tree is within its limits.
    pub fn debt(self, shape: &Shape<'_>, options: &CompactionOptions) -> u64 {
        match self {
            // A tree without compactions shows what a leveled tree would have to rewrite.
            Style::Leveled | Style::Level0Only => debt(shape, &shape.targets(options), options),
            Style::Universal => universal::debt(shape, options),
            Style::Fifo => 0,
        }
    }

    /// The number of runs that slow and stop writers by the limits of level 0.
    pub fn counted_runs(self, shape: &Shape<'_>) -> usize {
        match self {
            Style::Leveled | Style::Level0Only | Style::Fifo => shape.level(0).len(),
            Style::Universal => universal::run_count(shape),
        }
    }

    /// The seconds until the clock alone may make a compaction due; `None`: never.
    pub fn next_look(self, shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> Option<u64> {
        match self {
            Style::Leveled => next_age(shape, options, now),
            Style::Universal => universal::next_age(shape, options, now),
            Style::Fifo => fifo::next_age(shape, options, now),
            Style::Level0Only => None,
        }
    }

    /// Whether a due compaction waits for a table that is expected in level 0.
    pub fn waits_for_table(self, shape: &Shape<'_>, options: &CompactionOptions) -> bool {
        match self {
            Style::Leveled => waits_for_table(shape, options),
            Style::Universal | Style::Fifo | Style::Level0Only => false,
        }
    }

    /// The sequence that makes a compaction worthwhile, once every snapshot is at or above it. `oldest` is the oldest
    /// live snapshot.
    pub fn awaited_snapshot(self, shape: &Shape<'_>, oldest: Option<SeqNum>) -> Option<SeqNum> {
        match self {
            Style::Leveled => awaited_snapshot(shape, oldest),
            Style::Universal | Style::Fifo | Style::Level0Only => None,
        }
    }

    /// Whether a caller may request the compaction of a range.
    pub fn allows_requests(self) -> bool {
        self != Style::Level0Only
    }

    /// Whether a caller may name tables to compact, and levels to compact into.
    pub fn allows_targets(self) -> bool {
        matches!(self, Style::Leveled | Style::Universal)
    }
}

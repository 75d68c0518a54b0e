//! Searches for several keys, each step for all of them before the next step.
//!
//! ```text
//! memtables -> each file of level 0 -> level 1: fences, then each file -> level 2 ...
//! in a file: all filters -> the index for each key -> all blocks -> the search in each block
//! ```
//! 1. A lane is one key and its search, which is the search of a single get. Only the steps of different lanes
//!    interleave, so each lane's answer is the answer of a get.
//! 2. The lanes are in key order, so lanes with the same file are neighbours.
//! 3. An error ends its own lane. If a table does not open, all lanes that need it end.

use super::get::{Search, Step};
use crate::point::View;
use crate::super_version::SuperVersion;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Level, Result};
use ashlar_options::ReadTier;
use ashlar_table::{Ask, ReadHow};
use ashlar_tree::version::{FileMeta, Version};
use std::ops::Range;
use std::sync::Arc;

/// The number of keys that are searched at once: about as many cache lines as a core can wait for.
pub(super) const STAGE: usize = 16;

/// One key.
struct Lane<'k> {
    /// The position of its value.
    at: usize,
    search: Search<'k>,
    /// How its search goes on.
    step: Result<Step>,
    /// The next file is asked for it.
    chosen: bool,
}

impl Lane<'_> {
    fn goes_on(&self) -> bool {
        matches!(self.step, Ok(Step::GoOn))
    }

    /// A range tombstone in the sources so far hides all older ones.
    fn end_if_covered(&mut self) {
        if self.goes_on() && self.search.covered_at.is_some() {
            self.step = Ok(Step::Ended);
        }
    }
}

/// Up to [`STAGE`] searches.
pub(super) struct Stage<'k> {
    lanes: Vec<Lane<'k>>,
    asks: Vec<Ask<'k>>,
    how: &'k ReadHow,
}

impl<'k> Stage<'k> {
    /// An empty stage, with room for `keys`.
    pub(super) fn new(how: &'k ReadHow, keys: usize) -> Stage<'k> {
        Stage { lanes: Vec::with_capacity(keys), asks: Vec::with_capacity(keys), how }
    }

    /// Adds a search whose key is after those before. Its value will be value `at`.
    pub(super) fn add(&mut self, at: usize, search: Search<'k>) {
        self.lanes.push(Lane { at, search, step: Ok(Step::GoOn), chosen: false });
    }

    /// Whether it must run before the next search is added.
    pub(super) fn is_full(&self) -> bool {
        self.lanes.len() >= STAGE
    }

    /// Runs the searches and sets their values. The stage is empty afterwards.
    pub(super) fn run(&mut self, from: &SuperVersion, tier: ReadTier, values: &mut [Result<Option<View>>]) {
        let time = perf::time(Metric::GetFromMemtableTime);
        for lane in &mut self.lanes {
            lane.step = lane.search.in_memtables(from);
        }
        drop(time);
        if tier.asks_tables() {
            let _time = perf::time(Metric::GetFromOutputFilesTime);
            self.in_tables(&from.version);
        }
        for mut lane in self.lanes.drain(..) {
            let found = lane.step.and_then(|_| lane.search.finish(from));
            if let Some(value) = values.get_mut(lane.at) {
                *value = found;
            }
        }
    }

    fn in_tables(&mut self, version: &Version) {
        for (number, file) in version.level(Level::ZERO).iter().enumerate() {
            for lane in &mut self.lanes {
                lane.chosen =
                    lane.goes_on() && version.level_zero_holds(number, file, lane.search.key.user_key);
            }
            self.in_table(version, Level::ZERO, file, 0..STAGE);
        }
        for (level, files) in (0u8..).zip(&version.levels).skip(1) {
            if !files.is_empty() && self.lanes.iter().any(Lane::goes_on) {
                self.in_level(version, Level(level));
            }
        }
    }

    fn in_level(&mut self, version: &Version, level: Level) {
        let mut files: [Option<&Arc<FileMeta>>; STAGE] = [None; STAGE];
        for (lane, file) in self.lanes.iter_mut().zip(&mut files) {
            if lane.goes_on() {
                *file = version.find_file(level, &lane.search.key);
            }
            lane.chosen = file.is_some();
        }
        let mut start = 0;
        while let Some((first, file)) =
            (start..).zip(files.get(start..).unwrap_or_default()).find_map(|(at, file)| Some((at, (*file)?)))
        {
            let others = files.get(first..).unwrap_or_default().iter();
            let same = others.take_while(|other| other.is_none_or(|other| Arc::ptr_eq(other, file))).count();
            start = first + same;
            self.in_table(version, level, file, first..start);
        }
    }

    /// Asks a file for the chosen lanes among `range`.
    fn in_table(&mut self, version: &Version, level: Level, file: &FileMeta, range: Range<usize>) {
        let end = range.end.min(self.lanes.len());
        let lanes = self.lanes.get_mut(range.start..end).unwrap_or_default();
        if !lanes.iter().any(|lane| lane.chosen) {
            return;
        }
        let open = match version.tables().lease(file, self.how) {
            Ok(open) => open,
            Err(e) => {
                lanes.iter_mut().filter(|lane| lane.chosen).for_each(|lane| lane.step = Err(e.clone()));
                return;
            }
        };
        for lane in lanes.iter_mut().filter(|lane| lane.chosen) {
            lane.chosen = !lane.search.is_hidden_in(&open, level, file);
            if lane.chosen {
                self.asks.push(Ask::new(lane.search.key, lane.search.hash));
            } else {
                lane.end_if_covered();
            }
        }
        open.get_many(&mut self.asks, self.how);
        for (lane, ask) in lanes.iter_mut().filter(|lane| lane.chosen).zip(self.asks.drain(..)) {
            let wanted = lane.search.key.seq;
            lane.step = match ask.found {
                Ok(Some(found)) => lane.search.settle(&open, level, found),
                Ok(None) => Ok(Step::GoOn),
                Err(e) => Err(e),
            };
            // After a merge operand the next older version may be in the next file.
            if level != Level::ZERO && lane.search.key.seq != wanted && lane.goes_on() {
                lane.step = lane.search.in_level(version, level, Some(file.number()));
            }
            lane.end_if_covered();
        }
    }
}

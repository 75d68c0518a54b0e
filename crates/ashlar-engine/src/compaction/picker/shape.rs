//! The shape of the tree, as pickers see it: levels of files with their ranges and sizes.
//!
//! 1. Level 0 stands newest first; deeper levels ascend and are disjoint by internal key, so two neighbours may share
//!    a user key at their border. Files that do must be compacted together (a *clean cut*): else an older version
//!    would stay above a newer one.
//! 2. Ranges are of user keys, both ends inclusive.

use crate::compaction::plan::{Running, user_range};
use crate::version::FileMeta;
use ashlar_base::{Level, Order};
use std::ops::Range;
use std::sync::Arc;

/// The levels of a version and their order.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// The order of the keys.
    pub order: &'a Order,
    /// The files: level 0 newest first, deeper levels ascending.
    pub levels: &'a [Vec<Arc<FileMeta>>],
}

impl<'a> Shape<'a> {
    /// The files of a level; nothing for one that does not exist.
    pub fn level(&self, level: usize) -> &'a [Arc<FileMeta>] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Bytes of a level.
    pub fn bytes(&self, level: usize) -> u64 {
        bytes(self.level(level))
    }

    /// The index of the last level.
    pub fn last_level(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// The files at `range` of a level.
    pub(super) fn slice(&self, level: usize, range: Range<usize>) -> &'a [Arc<FileMeta>] {
        self.level(level).get(range).unwrap_or(&[])
    }

    /// Where the files of a level below 0 stand that meet the user keys `smallest..=largest`. Two binary searches.
    pub(super) fn overlap(&self, level: usize, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        let files = self.level(level);
        let from = files.partition_point(|f| self.order.compare(f.largest().user_key(), smallest).is_lt());
        let to = files.partition_point(|f| self.order.compare(f.smallest().user_key(), largest).is_le());
        from..to.max(from)
    }

    /// Widens a range of a level below 0 until no file outside shares a user key with one inside.
    pub(super) fn clean_cut(&self, level: usize, range: Range<usize>) -> Range<usize> {
        let files = self.level(level);
        if range.is_empty() {
            return range;
        }
        let (mut from, mut to) = (range.start, range.end.min(files.len()));
        let meets = |left: Option<&Arc<FileMeta>>, right: Option<&Arc<FileMeta>>| match (left, right) {
            (Some(l), Some(r)) => self.order.compare(l.largest().user_key(), r.smallest().user_key()).is_ge(),
            _ => false,
        };
        while from > 0 && meets(files.get(from - 1), files.get(from)) {
            from -= 1;
        }
        while to < files.len() && meets(files.get(to - 1), files.get(to)) {
            to += 1;
        }
        from..to
    }

    /// The files of a level below 0 that meet the range of `files`, as a clean cut.
    pub(super) fn meeting(&self, level: usize, files: &[Arc<FileMeta>]) -> Range<usize> {
        match user_range(self.order, files.iter()) {
            Some((smallest, largest)) => self.clean_cut(level, self.overlap(level, smallest, largest)),
            None => 0..0,
        }
    }

    /// Whether two files share a user key, or one lies within the other.
    pub(super) fn overlaps(&self, a: &FileMeta, b: &FileMeta) -> bool {
        self.order.compare(a.smallest().user_key(), b.largest().user_key()).is_le()
            && self.order.compare(b.smallest().user_key(), a.largest().user_key()).is_le()
    }

    /// Whether a compaction in progress writes into `output` within the range of `files`.
    pub(super) fn claimed<'f>(
        &self,
        running: &[Running],
        output: usize,
        files: impl Iterator<Item = &'f Arc<FileMeta>>,
    ) -> bool {
        let Some((smallest, largest)) = user_range(self.order, files) else { return false };
        running.iter().any(|r| {
            r.output_level.index() == output
                && self.order.compare(&r.smallest, largest).is_le()
                && self.order.compare(smallest, &r.largest).is_le()
        })
    }

    /// The ranges in which levels below `output` have files that meet `smallest..=largest`: ascending, disjoint.
    pub(super) fn beneath(&self, output: usize, smallest: &[u8], largest: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut ranges: Vec<(&[u8], &[u8])> = (output + 1..self.levels.len())
            .flat_map(|level| self.slice(level, self.overlap(level, smallest, largest)))
            .map(|f| (f.smallest().user_key(), f.largest().user_key()))
            .collect();
        ranges.sort_by(|a, b| self.order.compare(a.0, b.0));
        let mut joined: Vec<(&[u8], &[u8])> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match joined.last_mut() {
                Some(last) if self.order.compare(from, last.1).is_le() => {
                    if self.order.compare(to, last.1).is_gt() {
                        last.1 = to;
                    }
                }
                _ => joined.push((from, to)),
            }
        }
        joined.into_iter().map(|(from, to)| (from.to_vec(), to.to_vec())).collect()
    }

    /// The files of the first level below `output` that meet `smallest..=largest`.
    pub(super) fn grandparents(&self, output: usize, smallest: &[u8], largest: &[u8]) -> &'a [Arc<FileMeta>] {
        (output + 1..self.levels.len())
            .map(|level| self.slice(level, self.overlap(level, smallest, largest)))
            .find(|files| !files.is_empty())
            .unwrap_or(&[])
    }
}

/// Bytes of some files.
pub(super) fn bytes(files: &[Arc<FileMeta>]) -> u64 {
    files.iter().map(|f| f.size()).fold(0, u64::saturating_add)
}

/// Whether a compaction has one of the files.
pub(super) fn any_busy(files: &[Arc<FileMeta>]) -> bool {
    files.iter().any(|f| f.is_compacting())
}

/// As a [`Level`]; trees have at most 64 levels.
pub(super) fn as_level(level: usize) -> Level {
    Level(u8::try_from(level).unwrap_or(u8::MAX))
}

//! The shape of the tree, as pickers see it: levels of files with their ranges and sizes.
//!
//! 1. Level 0 is sorted newest first. Deeper levels ascend and are disjoint by internal key, so two neighbours may
//!    share a user key at their border. Such files must be compacted together (a *clean cut*); otherwise an older
//!    version would stay above a newer one.
//! 2. A file whose largest key is the end of a range tombstone does not hold that key, so it shares no key with a
//!    neighbour that begins there.

use super::targets::Targets;
use crate::plan::{Running, UserRange, user_range};
use crate::rewrite::may_move;
use ashlar_base::ext::sst_partitioner::{PartitionerContext, SstPartitionerFactory};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Level, Order, SeqNum};
use ashlar_options::{CompactionOptions, DbPath, path_of_level};
use ashlar_table::TableOptions;
use ashlar_tree::version::{FileMeta, Version};
use std::ops::Range;
use std::sync::Arc;

/// The levels of a version and their order.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// The order of the keys.
    pub order: &'a Order,
    /// The files: level 0 newest first, deeper levels ascending.
    pub levels: &'a [Vec<Arc<FileMeta>>],
    /// How tables are written; `None`: the same on all levels.
    pub table: Option<&'a TableOptions>,
    /// The directories of the family's tables; empty: there is one.
    pub paths: &'a [DbPath],
    /// Says which tables may move; `None`: all.
    pub partitioner: Option<&'a dyn SstPartitionerFactory>,
    /// A new table is expected in level 0: a flush is running, or writers fill memtables quickly.
    pub arriving: bool,
    /// Entries that are not flushed are newer than this; `None`: every entry is in a table.
    pub unflushed_since: Option<SeqNum>,
    /// Tables may come in below `levels`, with any key: see [`Shape::within`].
    pub behind: bool,
}

impl<'a> Shape<'a> {
    /// The files of `version`.
    pub fn of(version: &'a Version) -> Self {
        Shape {
            order: &version.order,
            levels: &version.levels,
            table: None,
            paths: &[],
            partitioner: None,
            arriving: false,
            unflushed_since: None,
            behind: false,
        }
    }

    /// The files of `version` that compactions of these options see. A family that takes tables behind all others keeps its
    /// last level for them: no compaction reads or writes there, and none is bottommost.
    pub fn within(version: &'a Version, options: &CompactionOptions) -> Self {
        let all = Shape::of(version);
        match all.levels.split_last() {
            Some((_, above)) if options.keeps_last_level => Shape { levels: above, behind: true, ..all },
            _ => all,
        }
    }

    /// Whether a table of level `from` may move to level `to` unchanged, because the options want no other codec there.
    pub(super) fn keeps_codec(&self, from: usize, to: usize, bottommost: bool) -> bool {
        let Some(table) = self.table else { return true };
        let base = (1..to).find(|above| !self.level(*above).is_empty()).unwrap_or(to);
        let number = |level: usize| i32::try_from(level).unwrap_or(i32::MAX);
        let codec = |level, bottommost| table.for_level(number(level), number(base), bottommost).compression;
        codec(from, false) == codec(to, bottommost)
    }

    /// Whether the tables of level `to` are in the same directories as `files`.
    pub(super) fn keeps_place(
        &self,
        files: &[Arc<FileMeta>],
        to: usize,
        options: &CompactionOptions,
    ) -> bool {
        let place = path_of_level(self.paths, as_level(to).0, options);
        files.iter().all(|file| usize::from(file.file.path_id) == place)
    }

    /// Whether the user's partitioner lets each of `files` move unread to level `to`. `is_manual`: a caller requested it.
    pub(super) fn keeps_partitions(&self, files: &[Arc<FileMeta>], to: usize, is_manual: bool) -> bool {
        let Some(factory) = self.partitioner else { return true };
        let Some(range) = user_range(self.order, files.iter()) else { return true };
        let mut context = PartitionerContext::new(as_level(to), range.smallest, range.largest);
        context.is_full = files.len() == self.levels.iter().map(Vec::len).sum::<usize>();
        context.is_manual = is_manual;
        let asked = |f: &Arc<FileMeta>| {
            may_move(factory, &context, (f.smallest().user_key(), f.largest().user_key()))
        };
        files.iter().all(asked)
    }

    /// The files of a level; empty for a level that does not exist.
    pub fn level(&self, level: usize) -> &'a [Arc<FileMeta>] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Bytes of a level.
    pub fn bytes(&self, level: usize) -> u64 {
        bytes(self.level(level))
    }

    /// The base level and the target of each level.
    pub fn targets(&self, options: &CompactionOptions) -> Targets {
        let level_bytes: Vec<u64> = (0..self.levels.len()).map(|level| self.bytes(level)).collect();
        Targets::new(&level_bytes, options)
    }

    /// The index of the last level.
    pub fn last_level(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// The files at the indexes `range` of a level.
    pub(super) fn slice(&self, level: usize, range: Range<usize>) -> &'a [Arc<FileMeta>] {
        self.level(level).get(range).unwrap_or(&[])
    }

    /// The indexes of the files of a level below 0 that overlap `range`. Two binary searches.
    pub(super) fn overlap(&self, level: usize, range: &UserRange<'_>) -> Range<usize> {
        let files = self.level(level);
        let from = files.partition_point(|f| f.ends_before(self.order, range.smallest));
        let to = files.partition_point(|f| !range.ends_before(self.order, f.smallest().user_key()));
        from..to.max(from)
    }

    /// Widens a range of indexes of a level below 0 until no file outside shares a user key with a file inside.
    pub(super) fn clean_cut(&self, level: usize, range: Range<usize>) -> Range<usize> {
        let files = self.level(level);
        if range.is_empty() {
            return range;
        }
        let (mut from, mut to) = (range.start, range.end.min(files.len()));
        let meets = |left: Option<&Arc<FileMeta>>, right: Option<&Arc<FileMeta>>| match (left, right) {
            (Some(l), Some(r)) => !l.ends_before(self.order, r.smallest().user_key()),
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

    /// The indexes of the files of a level below 0 that overlap the range of `files`, as a clean cut.
    pub(super) fn meeting(&self, level: usize, files: &[Arc<FileMeta>]) -> Range<usize> {
        match user_range(self.order, files.iter()) {
            Some(range) => self.clean_cut(level, self.overlap(level, &range)),
            None => 0..0,
        }
    }

    /// Whether two files share a user key, or one lies within the other.
    pub(super) fn overlaps(&self, a: &FileMeta, b: &FileMeta) -> bool {
        UserRange::of(a).meets(self.order, &UserRange::of(b))
    }

    /// Whether a merge of files of level 0 may stay there: the sequence numbers of the result must not reach among those of
    /// another table, or of entries that are not flushed. Else RocksDB before 8.0, which orders level 0 by sequence numbers,
    /// does not open the tree. An ingested file has one sequence number, and may lie among the others.
    pub(super) fn stays_in_order(&self, merged: &[Arc<FileMeta>]) -> bool {
        let lowest = merged.iter().map(|f| f.file.smallest_seq).min().unwrap_or_default();
        let highest = merged.iter().map(|f| f.file.largest_seq).max().unwrap_or_default();
        let is_merged = |file: &Arc<FileMeta>| merged.iter().any(|m| m.number() == file.number());
        let reaches = |file: &FileMeta| {
            let (from, to) = (file.file.smallest_seq, file.file.largest_seq);
            from != to && from < highest && lowest < to
        };
        self.unflushed_since.is_none_or(|since| highest <= since)
            && !self.level(0).iter().any(|file| reaches(file) && !is_merged(file))
    }

    /// Whether the entries of a file of level 0 may have newer sequence numbers than entries that are not flushed: it was
    /// ingested beside a memtable.
    pub(super) fn is_among_unflushed(&self, file: &FileMeta) -> bool {
        self.unflushed_since.is_some_and(|since| file.file.largest_seq > since)
    }

    /// Whether no two of the files overlap.
    pub(super) fn are_disjoint(&self, files: &[Arc<FileMeta>]) -> bool {
        let mut ascending: Vec<&Arc<FileMeta>> = files.iter().collect();
        let compare =
            |a: &FileMeta, b: &FileMeta| self.order.compare(a.smallest().user_key(), b.smallest().user_key());
        self.order.sort_by(&mut ascending, |a, b| compare(a, b));
        !ascending.windows(2).any(|pair| matches!(pair, [a, b] if self.overlaps(a, b)))
    }

    /// Whether a running compaction claims `output` within the range of `files`.
    pub(super) fn claimed<'f>(
        &self,
        running: &[Running],
        output: usize,
        files: impl Iterator<Item = &'f Arc<FileMeta>>,
    ) -> bool {
        let Some(range) = user_range(self.order, files) else { return false };
        running.iter().any(|r| {
            let claim = UserRange { smallest: &r.smallest, largest: &r.largest, exclusive: false };
            r.claims(as_level(output)) && range.meets(self.order, &claim)
        })
    }

    /// The ranges in which levels below `output` have files that overlap `range`: ascending, disjoint, both ends
    /// inclusive. A range is slightly too large where a file's largest key is exclusive.
    pub(super) fn beneath(&self, output: usize, range: &UserRange<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
        if self.behind && !planted(Bug::BehindForgotten) {
            return vec![(range.smallest.to_vec(), range.largest.to_vec())];
        }
        let mut ranges: Vec<(&[u8], &[u8])> = (output + 1..self.levels.len())
            .flat_map(|level| self.slice(level, self.overlap(level, range)))
            .map(|f| (f.smallest().user_key(), f.largest().user_key()))
            .collect();
        self.order.sort_by(&mut ranges, |a, b| self.order.compare(a.0, b.0));
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

    /// The files of the first level below `output` that has any in `range`.
    pub(super) fn grandparents(&self, output: usize, range: &UserRange<'_>) -> &'a [Arc<FileMeta>] {
        (output + 1..self.levels.len())
            .map(|level| self.slice(level, self.overlap(level, range)))
            .find(|files| !files.is_empty())
            .unwrap_or(&[])
    }
}

/// The bytes of the files of a level before each index: sums of ranges in constant time.
pub(super) struct Sums(Vec<u64>);

impl Sums {
    /// The sums of `files`.
    pub(super) fn of(files: &[Arc<FileMeta>]) -> Sums {
        let mut sums = vec![0u64];
        for file in files {
            sums.push(sums.last().copied().unwrap_or(0).saturating_add(file.size()));
        }
        Sums(sums)
    }

    /// The bytes of the files at the indexes `range`.
    pub(super) fn bytes(&self, range: &Range<usize>) -> u64 {
        let before = |at: usize| self.0.get(at).copied().unwrap_or(0);
        before(range.end).saturating_sub(before(range.start))
    }
}

/// Bytes of some files.
pub(super) fn bytes(files: &[Arc<FileMeta>]) -> u64 {
    files.iter().map(|f| f.size()).fold(0, u64::saturating_add)
}

/// Whether any of the files is claimed by a compaction.
pub(super) fn any_busy(files: &[Arc<FileMeta>]) -> bool {
    files.iter().any(|f| f.is_compacting())
}

/// `level` as a [`Level`]; trees have at most 64 levels.
pub(super) fn as_level(level: usize) -> Level {
    Level(u8::try_from(level).unwrap_or(u8::MAX))
}

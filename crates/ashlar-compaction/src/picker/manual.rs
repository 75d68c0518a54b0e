//! Compaction of a range on request: level by level down to the deepest level with data in the range.
//!
//! Level 0 goes to the base level in one compaction; the request does not wait for files flushed after that. Each
//! deeper level goes to the next in pieces of at most `max_compaction_bytes`, from the smallest key up. If requested,
//! the tables of the deepest level that no compaction reached are rewritten in place, which drops data that only
//! deletions and released snapshots kept. Tables written since the request are not rewritten again.
//!
//! After a bulk load in key order, the tables of level 0 are disjoint and a rewrite would remove nothing. They move to
//! the base level unchanged, and are not rewritten in the deepest level either.
//!
//! Source: RocksDB `db/compaction/compaction_picker.cc` (`CompactRange`, `kForceOptimized`).

use super::finish::{complete, from_level};
use super::level0::level0_group;
use super::shape::{Shape, any_busy, bytes};
use crate::plan::{Action, Compaction, Reason, Running};
use ashlar_base::FileNumber;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::ops::Range;
use std::sync::Arc;

/// The next step of a manual compaction.
#[derive(Debug)]
pub enum ManualPick {
    /// Run this compaction; call again when it is installed.
    Run(Box<Compaction>),
    /// Nothing can start now: another compaction has claimed the files. Call again when one has ended.
    Blocked,
    /// The manual compaction is complete.
    Done,
}

/// A manual compaction in progress.
#[derive(Clone, Debug)]
pub struct ManualRange {
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    rewrite_deepest: bool,
    level: usize,
    /// User keys up to this one are done at `level`. The flag says that the key itself is not done.
    done_to: Option<(Vec<u8>, bool)>,
    deepest_done: bool,
    /// Tables from this number on were written since the request, and by none of `earlier`.
    made_since: FileNumber,
    /// Compactions that began before the request and may still run: they keep data for snapshots that were released
    /// since then. `None`: nothing was picked yet.
    earlier: Option<Vec<Running>>,
    /// The compaction that was picked last.
    started: Option<Running>,
    /// Tables of level 0 that moved down unchanged, ascending: a rewrite would remove nothing from them.
    moved: Vec<FileNumber>,
}

/// Tables that move have this share of the target size at least on average; smaller ones are merged. Tables of more than
/// twice the target size are cut.
const SMALLEST_SHARE: u64 = 4;

impl ManualRange {
    /// The user keys `begin..=end`; `None` = without bound. `rewrite_deepest`: rewrite the tables of the deepest level
    /// that has data in the range, even where no compaction comes down into them.
    pub fn new(begin: Option<&[u8]>, end: Option<&[u8]>, rewrite_deepest: bool) -> Self {
        ManualRange {
            begin: begin.map(<[u8]>::to_vec),
            end: end.map(<[u8]>::to_vec),
            rewrite_deepest,
            level: 0,
            done_to: None,
            deepest_done: false,
            made_since: FileNumber(0),
            earlier: None,
            started: None,
            moved: Vec::new(),
        }
    }

    /// The next compaction. The caller marks the files of a `Run` as compacting and lists its claim in `running`, under
    /// the same lock. While the claim is listed, the result is `Blocked`, because the outputs are not installed yet.
    /// `next_file`: the number of the next new file.
    pub fn pick(
        &mut self,
        shape: &Shape<'_>,
        options: &CompactionOptions,
        running: &[Running],
        next_file: FileNumber,
    ) -> ManualPick {
        if self.earlier.as_ref().is_none_or(|earlier| !earlier.is_empty()) {
            self.made_since = next_file;
            self.earlier.get_or_insert_with(|| running.to_vec()).retain(|one| running.contains(one));
        }
        if self.started.as_ref().is_some_and(|last| running.contains(last)) {
            return ManualPick::Blocked;
        }
        let pick = self.pick_next(shape, options, running);
        if let ManualPick::Run(plan) = &pick {
            self.started = plan.running(shape.order);
        }
        pick
    }

    /// The one compaction of a style that merges the whole tree, however small the requested range: `all` plans it. Nothing
    /// is done if no table is in the range, or if the tree is one run already (`is_one`) and need not be rewritten.
    pub(super) fn pick_whole(
        &mut self,
        shape: &Shape<'_>,
        running: &[Running],
        is_one: bool,
        all: impl FnOnce() -> Option<Compaction>,
    ) -> ManualPick {
        let in_range = shape.levels.iter().flatten().any(|file| self.meets(shape, file));
        if self.deepest_done || !in_range || is_one && !self.rewrite_deepest {
            return ManualPick::Done;
        }
        let Some(plan) = all() else {
            // Without a running compaction nothing can be merged: what is in level 0 waits for a flush.
            let busy = !running.is_empty() || shape.levels.iter().any(|files| any_busy(files));
            return if busy { ManualPick::Blocked } else { ManualPick::Done };
        };
        self.deepest_done = true;
        self.started = plan.running(shape.order);
        ManualPick::Run(Box::new(plan))
    }

    fn pick_next(
        &mut self,
        shape: &Shape<'_>,
        options: &CompactionOptions,
        running: &[Running],
    ) -> ManualPick {
        if self.level == 0
            && let Some(pick) = self.pick_level0(shape, options, running)
        {
            return pick;
        }
        let deepest = (1..shape.levels.len()).rev().find(|level| !self.in_range(shape, *level).is_empty());
        let Some(deepest) = deepest else { return ManualPick::Done };
        while self.level < deepest {
            let rest = self.rest(shape);
            if !rest.is_empty() {
                return self.pick_piece(shape, options, running, rest);
            }
            self.level += 1;
            self.done_to = None;
        }
        if !self.rewrite_deepest || self.deepest_done || self.level > deepest {
            return ManualPick::Done;
        }
        self.pick_deepest(shape, options, running)
    }

    /// Takes whole groups of overlapping files from level 0; `None` when level 0 has nothing in the range.
    fn pick_level0(
        &mut self,
        shape: &Shape<'_>,
        options: &CompactionOptions,
        running: &[Running],
    ) -> Option<ManualPick> {
        let seed = shape.level(0).iter().rev().find(|f| self.meets(shape, f));
        let base = shape.targets(options).base;
        let Some(seed) = seed else {
            self.level = 1;
            return None;
        };
        if any_busy(shape.level(0)) {
            return Some(ManualPick::Blocked);
        }
        let mut group = level0_group(shape, seed);
        for file in shape.level(0).iter().filter(|f| self.meets(shape, f)) {
            group.extend(level0_group(shape, file));
        }
        let taken = |f: &&Arc<FileMeta>| group.iter().any(|g| g.number() == f.number());
        let inputs: Vec<_> = shape.level(0).iter().filter(taken).cloned().collect();
        let below = shape.meeting(base, &inputs);
        let as_they_are = below.is_empty()
            && needs_no_rewrite(shape, options, &inputs)
            && shape.keeps_partitions(&inputs, base, true);
        let mut numbers: Vec<_> = inputs.iter().map(|f| f.number()).collect();
        let Some(mut plan) = complete(shape, options, running, (0, inputs), (base, below), Reason::Manual)
        else {
            return Some(ManualPick::Blocked);
        };
        if as_they_are && shape.keeps_codec(0, base, plan.is_bottommost()) {
            plan.action = Action::Move;
            numbers.sort_unstable();
            self.moved = numbers;
        }
        self.level = 1;
        Some(ManualPick::Run(Box::new(plan)))
    }

    /// Takes a piece of a level below 0 to the next level.
    fn pick_piece(
        &mut self,
        shape: &Shape<'_>,
        options: &CompactionOptions,
        running: &[Running],
        rest: Range<usize>,
    ) -> ManualPick {
        let piece = self.piece(shape, options, rest);
        let plan = from_level(shape, options, running, self.level, piece.clone(), Reason::Manual);
        self.started(shape, piece, plan)
    }

    fn pick_deepest(
        &mut self,
        shape: &Shape<'_>,
        options: &CompactionOptions,
        running: &[Running],
    ) -> ManualPick {
        let mut rest = self.rest(shape);
        let is_old = |at: &usize| {
            let number = shape.level(self.level)[*at].number();
            number < self.made_since && self.moved.binary_search(&number).is_err()
        };
        let Some(start) = rest.find(is_old) else {
            self.deepest_done = true;
            return ManualPick::Done;
        };
        let end = rest.find(|at| !is_old(at)).unwrap_or(rest.end);
        let piece = self.piece(shape, options, start..end);
        let files = shape.slice(self.level, piece.clone()).to_vec();
        if any_busy(&files) {
            return ManualPick::Blocked;
        }
        let plan = complete(shape, options, running, (self.level, files), (self.level, 0..0), Reason::Manual);
        self.started(shape, piece, plan)
    }

    fn started(&mut self, shape: &Shape<'_>, piece: Range<usize>, plan: Option<Compaction>) -> ManualPick {
        let Some(plan) = plan else { return ManualPick::Blocked };
        let last = shape.slice(self.level, piece).last();
        self.done_to = last.map(|f| (f.largest().user_key().to_vec(), f.ends_exclusive()));
        ManualPick::Run(Box::new(plan))
    }

    /// As many files from the start of `rest` as one compaction may take, as a clean cut.
    fn piece(&self, shape: &Shape<'_>, options: &CompactionOptions, rest: Range<usize>) -> Range<usize> {
        let mut end = rest.start + 1;
        while end < rest.end {
            let files = shape.slice(self.level, rest.start..end + 1);
            let below = shape.slice(self.level + 1, shape.meeting(self.level + 1, files));
            if bytes(files).saturating_add(bytes(below)) > options.compaction_bytes() {
                break;
            }
            end += 1;
        }
        shape.clean_cut(self.level, rest.start..end)
    }

    /// The files of the current level that are in the range and not done.
    fn rest(&self, shape: &Shape<'_>) -> Range<usize> {
        let range = self.in_range(shape, self.level);
        let files = shape.level(self.level);
        let done = self.done_to.as_ref().map_or(0, |(to, exclusive)| {
            files.partition_point(|f| {
                let by_key = shape.order.compare(f.smallest().user_key(), to);
                by_key.is_lt() || (by_key.is_eq() && !exclusive)
            })
        });
        let start = range.start.max(done);
        start..range.end.max(start)
    }

    fn in_range(&self, shape: &Shape<'_>, level: usize) -> Range<usize> {
        let files = shape.level(level);
        let from = self
            .begin
            .as_ref()
            .map_or(0, |begin| files.partition_point(|f| f.ends_before(shape.order, begin)));
        let to = self.end.as_ref().map_or(files.len(), |end| {
            files.partition_point(|f| shape.order.compare(f.smallest().user_key(), end).is_le())
        });
        from..to.max(from)
    }

    fn meets(&self, shape: &Shape<'_>, file: &FileMeta) -> bool {
        let after_begin = self.begin.as_ref().is_none_or(|b| !file.ends_before(shape.order, b));
        let before_end =
            self.end.as_ref().is_none_or(|e| shape.order.compare(file.smallest().user_key(), e).is_le());
        after_begin && before_end
    }
}

/// Whether a rewrite of these tables of level 0 would change nothing that matters: no two of them overlap, they were
/// written since the open, none has a deletion, a hidden version or a blob, and their sizes suit a deeper level.
fn needs_no_rewrite(shape: &Shape<'_>, options: &CompactionOptions, files: &[Arc<FileMeta>]) -> bool {
    let has_nothing_to_remove = |f: &Arc<FileMeta>| {
        let counts = f.counts.get().filter(|counts| counts.newest_value.is_some());
        counts.is_some_and(|c| c.deletions == 0 && c.older == 0) && f.file.oldest_blob_file == FileNumber(0)
    };
    let target = options.target_file_bytes;
    bytes(files) >= (target / SMALLEST_SHARE).saturating_mul(files.len() as u64)
        && files.iter().all(|f| f.size() <= target.saturating_mul(2))
        && files.iter().all(has_nothing_to_remove)
        && shape.are_disjoint(files)
}

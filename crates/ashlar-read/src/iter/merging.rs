//! Merges many runs: a binary heap of cursors with the smallest key on top (the largest when going backward).
//!
//! 1. `heap` holds the indexes of the runs that are on an entry, in heap order for the current direction. The merge
//!    stands on the entry of the root. An empty heap is off the end.
//! 2. Going forward, every run stands on its first entry at or after the root's entry. Going backward, it stands on its
//!    last entry at or before it. So a change of direction moves every run except the root to the other side of the
//!    root's key.
//! 3. When internal keys are equal, the run with the smaller index, which is newer, comes first in both directions.
//! 4. After an error the merge is off the end until it is positioned again.
//! 5. `second` is the place in the heap of the run that follows the root, 1 or 2, or 0 if it is not known. As long as the
//!    root stays before that run, a step costs one comparison.
//!
//! Source: RocksDB `table/merging_iterator.cc` (idea of the direction change).

use super::{ReadState, Run, RunContext};
use crate::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Direction, Entry, InternalKey, Order, Result, SeqNum};
use std::cmp::Ordering;
use std::path::PathBuf;

/// See the module.
pub struct MergingIter {
    order: Order,
    runs: Vec<Run>,
    heap: Vec<usize>,
    second: usize,
    direction: Direction,
}

/// The entry on which a run stands.
struct Head<'a> {
    run: usize,
    key: InternalKey<'a>,
}

impl Head<'_> {
    /// Whether this run comes before `other` in `direction`.
    #[inline]
    fn leads(&self, other: &Head<'_>, order: &Order, direction: Direction) -> bool {
        let by_key = order.compare_internal(self.key, other.key);
        let ahead = match direction {
            Direction::Forward => by_key,
            Direction::Backward => by_key.reverse(),
        };
        ahead.then(self.run.cmp(&other.run)) == Ordering::Less
    }
}

impl MergingIter {
    /// A merge of `runs`, the newest first. It starts off the end.
    pub(crate) fn new(order: Order, runs: Vec<Run>) -> Self {
        let heap = Vec::with_capacity(runs.len());
        MergingIter { order, runs, heap, second: 0, direction: Direction::Forward }
    }

    /// The direction of the last move.
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// The file of the current entry, if the entry is in a file.
    pub(crate) fn path(&self, state: &ReadState) -> Option<PathBuf> {
        self.root()?.path(state)
    }

    /// Gives up the runs without dropping them.
    pub(crate) fn forget(&mut self) {
        self.heap.clear();
        std::mem::forget(std::mem::take(&mut self.runs));
    }

    #[inline]
    fn root(&self) -> Option<&Run> {
        self.runs.get(*self.heap.first()?)
    }

    /// The entry under the cursor; `None` off the end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.root()?.entry()
    }

    /// The key of that entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<InternalKey<'_>> {
        self.root()?.key()
    }

    /// Bytes of the current blocks of all runs.
    pub(crate) fn block_bytes(&self) -> usize {
        self.runs.iter().map(Run::block_bytes).sum()
    }

    /// The value of that entry; empty off the end.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.root().map_or(&[], Run::value)
    }

    /// The entry of the run at a place in the heap.
    #[inline]
    fn head(&self, at: usize) -> Option<Head<'_>> {
        let run = *self.heap.get(at)?;
        Some(Head { run, key: self.runs.get(run)?.key()? })
    }

    /// Whether the run at `a` in the heap comes before the one at `b`. False if one of them has no entry.
    #[inline]
    fn leads(&self, a: usize, b: usize) -> bool {
        match (self.head(a), self.head(b)) {
            (Some(a), Some(b)) => a.leads(&b, &self.order, self.direction),
            _ => false,
        }
    }

    /// The child of `at` in the heap that comes first; `None`: no child.
    #[inline]
    fn first_child(&self, at: usize) -> Option<usize> {
        let left = 2 * at + 1;
        match self.heap.len() {
            len if len <= left => None,
            len if len == left + 1 => Some(left),
            _ => Some(if self.leads(left + 1, left) { left + 1 } else { left }),
        }
    }

    /// Moves the run at `at` down the heap to its place.
    fn sift_down(&mut self, mut at: usize) {
        while let Some(child) = self.first_child(at)
            && self.leads(child, at)
        {
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Restores the heap after a move of the root.
    #[inline]
    fn sift_root(&mut self) {
        if self.heap.len() > 1 {
            self.sift_second();
        }
    }

    #[inline(never)]
    fn sift_second(&mut self) {
        if self.second == 0 {
            let Some(second) = self.first_child(0) else { return };
            self.second = second;
        }
        let second = self.second;
        if self.leads(second, 0) {
            self.second = 0;
            self.heap.swap(0, second);
            self.sift_down(second);
        }
    }

    fn rebuild(&mut self) {
        let MergingIter { runs, heap, .. } = self;
        heap.clear();
        heap.extend((0..runs.len()).filter(|&i| runs.get(i).is_some_and(Run::is_on_entry)));
        self.second = 0;
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Positions every run by `place` and builds the heap.
    fn position(
        &mut self,
        direction: Direction,
        mut place: impl FnMut(&mut Run) -> Result<()>,
    ) -> Result<()> {
        self.heap.clear();
        self.direction = direction;
        for run in &mut self.runs {
            place(run)?;
        }
        self.rebuild();
        Ok(())
    }

    /// Moves to the first entry at or after `target`.
    ///
    /// # Errors
    /// As opening and reading a table; so every move.
    pub(crate) fn seek(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.heap.clear();
        // Each part in all runs, so that the runs wait for memory together.
        self.runs.iter_mut().try_for_each(|run| run.seek_begin(cx, target))?;
        self.runs.iter_mut().try_for_each(|run| run.seek_pin(cx))?;
        self.runs.iter_mut().for_each(|run| run.seek_start(cx, target));
        self.position(Direction::Forward, |run| run.seek_finish(cx, target))
    }

    /// Moves to the last entry at or before `target`.
    pub(crate) fn seek_for_prev(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.position(Direction::Backward, |run| run.seek_for_prev(cx, target))
    }

    /// Moves to the first entry.
    pub(crate) fn first(&mut self, cx: &mut RunContext) -> Result<()> {
        self.position(Direction::Forward, |run| run.first(cx))
    }

    /// Moves to the last entry.
    pub(crate) fn last(&mut self, cx: &mut RunContext) -> Result<()> {
        self.position(Direction::Backward, |run| run.last(cx))
    }

    /// Moves one entry on. Off the end it stays there.
    #[inline]
    pub(crate) fn next(&mut self, cx: &mut RunContext) -> Result<()> {
        match self.direction {
            Direction::Forward => self.advance(|run| run.next(cx)),
            Direction::Backward => self.turn(cx, Direction::Forward),
        }
    }

    /// Moves one entry back. Off the end it stays there.
    #[inline]
    pub(crate) fn prev(&mut self, cx: &mut RunContext) -> Result<()> {
        match self.direction {
            Direction::Backward => self.advance(|run| run.prev(cx)),
            Direction::Forward => self.turn(cx, Direction::Backward),
        }
    }

    /// Going backward: whether the next entry is known to be of an earlier user key, so that this entry is the newest one
    /// of its key.
    #[inline]
    pub(crate) fn is_newest(&self) -> bool {
        let (Some(root), Direction::Backward) = (self.root(), self.direction) else { return false };
        let (Some(key), Some(before)) = (root.key(), root.user_key_before()) else { return false };
        let user_key = key.user_key();
        self.order.compare(before, user_key).is_lt()
            && (self.heap.len() == 1 || self.others_are_before(user_key))
    }

    #[inline(never)]
    fn others_are_before(&self, user_key: &[u8]) -> bool {
        let second = if self.second > 0 { Some(self.second) } else { self.first_child(0) };
        let head = second.and_then(|second| self.head(second));
        head.is_some_and(|head| self.order.compare(head.key.user_key(), user_key).is_lt())
    }

    /// Moves every run except the root to the other side of the root's key, and the root past its key.
    #[cold]
    fn turn(&mut self, cx: &mut RunContext, direction: Direction) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        let turn = key.to_buf();
        let order = self.order.clone();
        let at = turn.as_key();
        self.position(direction, |run| {
            match direction {
                Direction::Forward => run.seek(cx, at)?,
                Direction::Backward => run.seek_for_prev(cx, at)?,
            }
            let is_root = run.key().is_some_and(|key| order.compare_internal(key, at) == Ordering::Equal);
            match direction {
                _ if !is_root => Ok(()),
                Direction::Forward => run.next(cx),
                Direction::Backward => run.prev(cx),
            }
        })
    }

    /// Going forward: moves each run older than `run` that is before `to` on to `to`. The root may be one of them.
    #[cold]
    pub(crate) fn pass_forward(
        &mut self,
        cx: &mut RunContext,
        run: usize,
        to: InternalKey<'_>,
    ) -> Result<()> {
        debug_assert_eq!(self.direction, Direction::Forward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Less => Some(run.seek(cx, to)),
            _ => None,
        })
    }

    /// Going backward: moves each run older than `run` that is after `to` back to `to`, or before it.
    #[cold]
    pub(crate) fn pass_backward(
        &mut self,
        cx: &mut RunContext,
        run: usize,
        to: InternalKey<'_>,
    ) -> Result<()> {
        debug_assert_eq!(self.direction, Direction::Backward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Greater => {
                Some(run.seek_for_prev(cx, to))
            }
            _ => None,
        })
    }

    /// Going forward, if the root is on a deletion that a read at `seq` sees: moves it to a later deletion, if all entries of
    /// the merge up to there are such deletions in the root's run, of user keys before `upper`. Returns the number of entries
    /// that it passed one by one. A key of another run ends the move, because the root may not pass it.
    #[cold]
    pub(crate) fn pass_deletions(
        &mut self,
        cx: &mut RunContext,
        seq: SeqNum,
        upper: Option<&[u8]>,
    ) -> Result<usize> {
        debug_assert_eq!(self.direction, Direction::Forward);
        let Some(&root) = self.heap.first() else { return Ok(0) };
        let deletes = |key: InternalKey<'_>| {
            let (user_key, trailer) = key.split();
            is_visible(trailer, seq) && matches!(entry_kind(trailer, user_key), Ok(EntryKind::Deleted))
        };
        if !self.key().is_some_and(deletes) {
            return Ok(0);
        }
        let order = &self.order;
        let mut pass = |root: &mut Run, limit: Option<&[u8]>| {
            let is_there = |limit| root.key().is_none_or(|key| order.compare(key.user_key(), limit).is_ge());
            if limit.is_some_and(is_there) { Ok(0) } else { root.pass_deletions(cx, seq, limit) }
        };
        let second = if self.second > 0 { Some(self.second) } else { self.first_child(0) };
        let passed = match second.and_then(|at| self.heap.get(at)) {
            None => self.runs.get_mut(root).map_or(Ok(0), |root| pass(root, upper)),
            Some(&second) => {
                let Ok([root, second]) = self.runs.get_disjoint_mut([root, second]) else { return Ok(0) };
                let Some(next) = second.key().map(InternalKey::user_key) else { return Ok(0) };
                pass(root, Some(upper.filter(|upper| order.compare(upper, next).is_lt()).unwrap_or(next)))
            }
        };
        if passed.is_err() {
            self.heap.clear();
        } else if self.root().is_some_and(|root| !root.is_on_entry()) {
            self.rebuild();
        }
        passed
    }

    /// Calls `step` for each run older than `run`. `step` returns `None` if it did not move the run.
    fn pass(
        &mut self,
        run: usize,
        mut step: impl FnMut(&Order, &mut Run) -> Option<Result<()>>,
    ) -> Result<()> {
        let mut moved = false;
        for run in self.runs.iter_mut().skip(run + 1) {
            match step(&self.order, run) {
                None => {}
                Some(Ok(())) => moved = true,
                Some(Err(e)) => {
                    self.heap.clear();
                    return Err(e);
                }
            }
        }
        if moved {
            self.rebuild();
        }
        Ok(())
    }

    /// Moves the root by `step` and restores the heap.
    #[inline]
    fn advance(&mut self, step: impl FnOnce(&mut Run) -> Result<()>) -> Result<()> {
        let Some(&root) = self.heap.first() else { return Ok(()) };
        let Some(run) = self.runs.get_mut(root) else { return Ok(()) };
        if let Err(e) = step(run) {
            self.heap.clear();
            return Err(e);
        }
        if !run.is_on_entry() {
            self.heap.swap_remove(0);
            self.second = 0;
            self.sift_down(0);
        } else {
            self.sift_root();
        }
        Ok(())
    }
}

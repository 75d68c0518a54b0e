//! Merges many runs: a binary heap of cursors with the smallest key on top (the largest when going backward).
//!
//! 1. `heap` holds the indexes of the runs that are on an entry, in heap order for the current direction. The merge
//!    stands on the entry of the root. An empty heap is off the end.
//! 2. Going forward, every run stands on its first entry at or after the root's entry. Going backward, it stands on its
//!    last entry at or before it. So a change of direction moves every run except the root to the other side of the
//!    root's key.
//! 3. When internal keys are equal, the run with the smaller index, which is newer, comes first in both directions.
//! 4. After an error the merge is off the end until it is positioned again.
//!
//! Source: RocksDB `table/merging_iterator.cc` (idea of the direction change).

use super::Run;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Direction, Entry, InternalIterator, InternalKey, Order, Result};
use std::cmp::Ordering;
use std::path::PathBuf;

/// See the module.
pub struct MergingIter {
    order: Order,
    runs: Vec<Run>,
    heap: Vec<usize>,
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
        MergingIter { order, runs, heap, direction: Direction::Forward }
    }

    /// The file of the current entry, if the entry is in a file.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.runs.get(*self.heap.first()?)?.path()
    }

    /// Bytes of the current blocks of all runs.
    pub(crate) fn block_bytes(&self) -> usize {
        self.runs.iter().map(Run::block_bytes).sum()
    }

    /// Moves the run at `at` down the heap to its place.
    fn sift_down(&mut self, mut at: usize) {
        let MergingIter { order, runs, heap, direction } = self;
        let head = |i: usize| runs.get(i).and_then(Run::key).map(|key| Head { run: i, key });
        if heap.len() <= 2 * at + 1 {
            return;
        }
        let Some(moved) = heap.get(at).and_then(|run| head(*run)) else { return };
        loop {
            let left = 2 * at + 1;
            let Some(mut first) = heap.get(left).and_then(|run| head(*run)) else { return };
            let mut child = left;
            if let Some(right) = heap.get(left + 1).and_then(|run| head(*run))
                && right.leads(&first, order, *direction)
            {
                (first, child) = (right, left + 1);
            }
            if !first.leads(&moved, order, *direction) {
                return;
            }
            heap.swap(at, child);
            at = child;
        }
    }

    fn rebuild(&mut self) {
        self.heap.clear();
        self.heap
            .extend((0..self.runs.len()).filter(|&i| self.runs.get(i).is_some_and(|r| r.key().is_some())));
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

    /// Moves every run except the root to the other side of the root's key, and the root past its key.
    #[cold]
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        let turn = key.to_buf();
        let order = self.order.clone();
        let at = turn.as_key();
        self.position(direction, |run| {
            match direction {
                Direction::Forward => run.seek(at)?,
                Direction::Backward => run.seek_for_prev(at)?,
            }
            let is_root = run.key().is_some_and(|key| order.compare_internal(key, at) == Ordering::Equal);
            match direction {
                _ if !is_root => Ok(()),
                Direction::Forward => run.next(),
                Direction::Backward => run.prev(),
            }
        })
    }

    /// Going forward: moves each run older than `run` that is before `to` on to `to`. The root may be one of them.
    #[cold]
    pub(crate) fn pass_forward(&mut self, run: usize, to: InternalKey<'_>) -> Result<()> {
        debug_assert_eq!(self.direction, Direction::Forward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Less => Some(run.seek(to)),
            _ => None,
        })
    }

    /// Going backward: moves each run older than `run` that is after `to` back to `to`, or before it.
    #[cold]
    pub(crate) fn pass_backward(&mut self, run: usize, to: InternalKey<'_>) -> Result<()> {
        debug_assert_eq!(self.direction, Direction::Backward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Greater => Some(run.seek_for_prev(to)),
            _ => None,
        })
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
        if run.key().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }
}

impl InternalIterator for MergingIter {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.heap.clear();
        // Starts the memory loads of all runs before any run searches its block, so that the loads overlap.
        self.runs.iter_mut().try_for_each(|run| run.seek_begin(target))?;
        self.position(Direction::Forward, |run| run.seek_finish(target))
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.position(Direction::Backward, |run| run.seek_for_prev(target))
    }

    fn first(&mut self) -> Result<()> {
        self.position(Direction::Forward, InternalIterator::first)
    }

    fn last(&mut self) -> Result<()> {
        self.position(Direction::Backward, InternalIterator::last)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self.direction {
            Direction::Forward => self.advance(InternalIterator::next),
            Direction::Backward => self.turn(Direction::Forward),
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        match self.direction {
            Direction::Backward => self.advance(InternalIterator::prev),
            Direction::Forward => self.turn(Direction::Backward),
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.runs.get(*self.heap.first()?)?.entry()
    }

    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        self.runs.get(*self.heap.first()?)?.key()
    }
}

//! A run of files: files of one level that are disjoint and in order. It is a level below 0, or one file of level 0. Each
//! file is opened when the run enters it.
//!
//! When the run enters a file, it adds the range tombstones of that file to the mask. This is early enough, because a merge
//! does not pass a key within a file's bounds before every run has been in its file for that key.
//!
//! A filter of tables is asked once for each file that the run enters. A file that is left out shows no entry; its range
//! tombstones count all the same, as in RocksDB.

use super::{ReadState, RunContext};
use crate::range_del::{Bounds, Mask};
use ashlar_base::key::Sharing;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Entry, InternalKey, InternalKeyBuf, Level, Result, SeqNum, Trailer};
use ashlar_format::table::Properties;
use ashlar_table::{Stepped, TableCursor};
use ashlar_tree::version::{FileMeta, OpenTable};
use std::cmp::Ordering;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// See the module.
pub struct FileRun {
    level: Level,
    /// The files of the level that belong to the run.
    files: Range<usize>,
    /// The index of this run in the merge.
    run: usize,
    /// The files whose range tombstones were added, in order.
    noted: Vec<usize>,
    /// What the filter of tables has answered, in the order of the files: whether a file is left out.
    left_out: Vec<(usize, bool)>,
    /// The file to which `cursor` belongs.
    at: usize,
    cursor: TableCursor,
    /// The user key from which the run has moved to another block.
    left: Vec<u8>,
}

impl FileRun {
    /// A run of some files of `level`, off the end. `run`: its index in the merge.
    pub(crate) fn new(level: Level, files: Range<usize>, run: usize) -> Self {
        let cursor = TableCursor::default();
        let (noted, left_out) = (Vec::new(), Vec::new());
        FileRun { level, at: usize::MAX, files, run, noted, left_out, cursor, left: Vec::new() }
    }

    /// The current file.
    pub(crate) fn path(&self, state: &ReadState) -> Option<PathBuf> {
        let file = self.files_in(state).get(self.at)?;
        Some(state.from.version.tables().path_of(file.number()))
    }

    fn files_in<'s>(&self, state: &'s ReadState) -> &'s [Arc<FileMeta>] {
        state.from.version.level(self.level).get(..self.files.end).unwrap_or_default()
    }

    /// Bytes of the current block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.cursor.block_bytes()
    }

    /// Bytes of its copies of keys.
    pub(crate) fn key_bytes(&self) -> usize {
        self.cursor.key_bytes() + self.left.capacity()
    }

    /// The entry under the cursor; `None` off the end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.cursor.entry()
    }

    /// The key of that entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<InternalKey<'_>> {
        self.cursor.key()
    }

    /// The cursor in the current file, for steps inside a block.
    #[inline]
    pub(crate) fn cursor(&self) -> &TableCursor {
        &self.cursor
    }

    #[inline]
    pub(crate) fn cursor_mut(&mut self) -> &mut TableCursor {
        &mut self.cursor
    }

    #[inline]
    fn go_to(&mut self, at: usize) {
        if at != self.at {
            self.cursor.leave_table();
            self.at = at;
        }
    }

    /// Opens file `at` for a move of the cursor. `None`: the run has no such file, and the cursor is off the end.
    fn enter<'s>(
        &mut self,
        state: &'s ReadState,
        mask: &mut Mask,
        at: usize,
    ) -> Result<Option<OpenTable<'s>>> {
        self.go_to(at);
        let Some(file) = self.files_in(state).get(at) else { return Ok(None) };
        let opened = state.from.version.tables().lease(file, &state.how);
        if opened.is_err() {
            self.cursor.leave_table();
        }
        let table = opened?;
        let tombstones = table.range_tombstones();
        if !tombstones.is_empty()
            && let Err(place) = self.noted.binary_search(&at)
        {
            self.noted.insert(place, at);
            mask.add(Arc::clone(tombstones), Some(Bounds::new(file.smallest(), file.largest())), self.run);
        }
        Ok(Some(table))
    }

    /// [`FileRun::enter`], for the entries of the file. `None` also for a file that the filter leaves out: see
    /// [`FileRun::is_left_out`].
    #[inline]
    fn enter_entries<'s>(
        &mut self,
        state: &'s ReadState,
        mask: &mut Mask,
        at: usize,
    ) -> Result<Option<OpenTable<'s>>> {
        match &state.filter {
            None => self.enter(state, mask, at),
            Some(filter) => self.enter_filtered(state, mask, at, &**filter),
        }
    }

    #[cold]
    fn enter_filtered<'s>(
        &mut self,
        state: &'s ReadState,
        mask: &mut Mask,
        at: usize,
        filter: &dyn Fn(&Properties) -> bool,
    ) -> Result<Option<OpenTable<'s>>> {
        if let Err(place) = self.left_out.binary_search_by_key(&at, |(file, _)| *file) {
            // Notes the range tombstones, which count also if the file is left out.
            let Some(table) = self.enter(state, mask, at)? else { return Ok(None) };
            // The function of the caller runs without the table.
            let properties = table.properties().clone();
            drop(table);
            self.left_out.insert(place, (at, !filter(&properties)));
        }
        self.go_to(at);
        if self.is_left_out() {
            self.cursor.leave_table();
            return Ok(None);
        }
        self.enter(state, mask, at)
    }

    /// Whether the filter leaves the current file out.
    #[inline]
    fn is_left_out(&self) -> bool {
        !self.left_out.is_empty()
            && self
                .left_out
                .binary_search_by_key(&self.at, |(file, _)| *file)
                .is_ok_and(|place| self.left_out.get(place).is_some_and(|(_, left_out)| *left_out))
    }

    /// If the file has ended, goes on to the first entry of a later file.
    fn skip_forward(&mut self, state: &ReadState, mask: &mut Mask) -> Result<()> {
        while !self.cursor.is_on_entry() {
            match self.enter_entries(state, mask, self.at.saturating_add(1))? {
                Some(table) => self.cursor.first(&table, &state.how)?,
                None if self.is_left_out() => {}
                None => break,
            }
        }
        Ok(())
    }

    /// If the file has ended at its front, goes back to the last entry of an earlier file.
    fn skip_backward(&mut self, state: &ReadState, mask: &mut Mask) -> Result<()> {
        while !self.cursor.is_on_entry() && self.at > self.files.start {
            match self.enter_entries(state, mask, self.at - 1)? {
                Some(table) => self.cursor.last(&table, &state.how)?,
                None if self.is_left_out() => {}
                None => break,
            }
        }
        if !self.cursor.is_on_entry() {
            self.cursor.leave_table();
        }
        Ok(())
    }

    /// The first part of a seek to the first entry at or after `target`; see [`TableCursor::seek_begin`].
    ///
    /// # Errors
    /// As opening and reading a table.
    pub(crate) fn seek_begin(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let RunContext { state, mask } = cx;
        let order = &state.from.version.order;
        let at = match self.level {
            Level::ZERO => self.files.start,
            // The first file that ends at or after `target`.
            _ => self
                .files_in(state)
                .partition_point(|f| order.compare_internal(f.largest(), target) == Ordering::Less),
        };
        let Some(table) = self.enter_entries(state, mask, at)? else { return Ok(()) };
        let begun = self.cursor.seek_begin(&table, &state.how, target);
        unless_planted(begun)
    }

    /// The second part: pins the block.
    ///
    /// # Errors
    /// As the first part.
    pub(crate) fn seek_pin(&mut self, cx: &mut RunContext) -> Result<()> {
        if self.is_left_out() {
            return Ok(());
        }
        let RunContext { state, mask } = cx;
        let Some(table) = self.enter(state, mask, self.at)? else { return Ok(()) };
        let pinned = self.cursor.seek_pin(&table, &state.how);
        unless_planted(pinned)
    }

    /// The third part: finds out where the search in the block begins.
    #[inline]
    pub(crate) fn seek_start(&mut self, cx: &RunContext, target: InternalKey<'_>) {
        self.cursor.seek_start(&cx.state.from.version.order, target);
    }

    /// The last part of the seek.
    ///
    /// # Errors
    /// As the first part.
    pub(crate) fn seek_finish(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        if self.is_left_out() {
            return self.skip_forward(&cx.state, &mut cx.mask);
        }
        match self.cursor.seek_finish(&cx.state.from.version.order, target) {
            Ok(true) => Ok(()),
            sought => self.seek_settle(cx, target, sought),
        }
    }

    #[cold]
    fn seek_settle(&mut self, cx: &mut RunContext, target: InternalKey<'_>, sought: Stepped) -> Result<()> {
        let RunContext { state, mask } = cx;
        if !self.cursor.is_off_the_end()
            && let Some(table) = self.enter(state, mask, self.at)?
        {
            self.cursor.seek_settle(&table, &state.how, target, sought)?;
        }
        self.skip_forward(state, mask)
    }

    /// Moves to the last entry at or before `target`.
    ///
    /// # Errors
    /// As opening and reading a table.
    pub(crate) fn seek_for_prev(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let RunContext { state, mask } = cx;
        let order = &state.from.version.order;
        let behind = match self.level {
            Level::ZERO => self.files.end,
            _ => self
                .files_in(state)
                .partition_point(|f| order.compare_internal(f.smallest(), target) != Ordering::Greater),
        };
        let Some(last) = behind.checked_sub(1) else {
            self.cursor.leave_table();
            return Ok(());
        };
        if let Some(table) = self.enter_entries(state, mask, last)? {
            self.cursor.seek_for_prev(&table, &state.how, target)?;
        }
        self.skip_backward(state, mask)
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// As opening and reading a table.
    pub(crate) fn first(&mut self, cx: &mut RunContext) -> Result<()> {
        let RunContext { state, mask } = cx;
        if let Some(table) = self.enter_entries(state, mask, self.files.start)? {
            self.cursor.first(&table, &state.how)?;
        }
        self.skip_forward(state, mask)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As opening and reading a table.
    pub(crate) fn last(&mut self, cx: &mut RunContext) -> Result<()> {
        let RunContext { state, mask } = cx;
        let Some(at) = self.files.end.checked_sub(1) else { return Ok(()) };
        if let Some(table) = self.enter_entries(state, mask, at)? {
            self.cursor.last(&table, &state.how)?;
        }
        self.skip_backward(state, mask)
    }

    /// Moves one entry on. Returns the new user key beside the old one; `None` off the end, where the run stays.
    ///
    /// # Errors
    /// As opening and reading a table.
    #[inline]
    pub(crate) fn next_sharing(&mut self, cx: &mut RunContext) -> Result<Option<Sharing>> {
        match self.cursor.step_sharing() {
            Ok(Some(sharing)) => Ok(Some(sharing)),
            stepped => self.leave_block(|run| run.next_block(cx, stepped.map(|_| false))),
        }
    }

    /// Moves one entry back. Returns the new user key beside the old one; `None` off the end, where the run stays.
    ///
    /// # Errors
    /// As opening and reading a table.
    #[inline]
    pub(crate) fn prev_sharing(&mut self, cx: &mut RunContext) -> Result<Option<Sharing>> {
        match self.cursor.step_back_sharing() {
            Some(sharing) => Ok(Some(sharing)),
            None => self.leave_block(|run| match run.cursor.step_back() {
                Ok(true) => Ok(()),
                stepped => run.prev_block(cx, stepped),
            }),
        }
    }

    /// Leaves the decoded entries by `step`. Compares the user keys before and after.
    #[inline(never)]
    fn leave_block(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<Option<Sharing>> {
        let mut left = std::mem::take(&mut self.left);
        left.clear();
        left.extend_from_slice(self.cursor.left_key());
        let moved = step(self);
        let sharing = self.key().map(|key| Sharing::of(&left, key.user_key()));
        self.left = left;
        moved.map(|()| sharing)
    }

    #[inline(never)]
    fn next_block(&mut self, cx: &mut RunContext, stepped: Stepped) -> Result<()> {
        let RunContext { state, mask } = cx;
        if self.cursor.is_off_the_end() {
            return Ok(());
        }
        if let Some(table) = self.enter(state, mask, self.at)? {
            self.cursor.next_block(&table, &state.how, stepped)?;
        }
        self.skip_forward(state, mask)
    }

    /// Going forward, on a deletion that a read at `seq` sees: moves to a later one, if all entries up to there are such
    /// deletions, of user keys before `limit` (`None`: no limit). Returns the number of entries that it passed one by one.
    ///
    /// # Errors
    /// As opening and reading a table.
    #[cold]
    pub(crate) fn pass_deletions(
        &mut self,
        cx: &mut RunContext,
        seq: SeqNum,
        limit: Option<&[u8]>,
    ) -> Result<usize> {
        let passed = match self.cursor.pass_deletions(&cx.state.from.version.order, seq, limit) {
            Ok(passed) => passed,
            Err(e) => return self.next_block(cx, Err(e)).map(|()| 0),
        };
        if passed.last_interval && self.holds_only_deletions(&cx.state, seq) {
            let RunContext { state, mask } = cx;
            let Some(table) = self.enter(state, mask, self.at)? else { return Ok(0) };
            match limit {
                None => self.cursor.last(&table, &state.how)?,
                Some(user_key) => {
                    let before = InternalKeyBuf::new(user_key, Trailer::FIRST);
                    self.cursor.seek_for_prev(&table, &state.how, before.as_key())?;
                }
            }
        }
        Ok(passed.entries)
    }

    /// Whether the current file has nothing but deletions that a read at `seq` sees. Believes the
    /// table's properties, which have a checksum; `verify` compares them with the entries.
    fn holds_only_deletions(&self, state: &ReadState, seq: SeqNum) -> bool {
        let Some(file) = self.files_in(state).get(self.at) else { return false };
        let only = file.counts.get().is_some_and(|counts| counts.are_point_deletions());
        let seen = !file.file.sequences_unknown && file.file.largest_seq <= seq;
        only && seen && !self.cursor.has_global_seq()
    }

    #[inline(never)]
    fn prev_block(&mut self, cx: &mut RunContext, stepped: Stepped) -> Result<()> {
        let RunContext { state, mask } = cx;
        if self.cursor.is_off_the_end() {
            return Ok(());
        }
        if let Some(table) = self.enter(state, mask, self.at)? {
            self.cursor.prev_block(&table, &state.how, stepped)?;
        }
        self.skip_backward(state, mask)
    }
}

fn unless_planted(read: Result<()>) -> Result<()> {
    read.or_else(|e| if planted(Bug::ReadErrorSkipsTable) { Ok(()) } else { Err(e) })
}

//! Tables as runs: one table, or all tables of one level in order.
//!
//! 1. A run has point entries only: the range tombstones of all inputs are read before the first run moves.
//! 2. A run has at most one table open at a time. When the run leaves a table that no other reader has open, the table
//!    is closed.

use crate::split::KeyRange;
use ashlar_base::{InternalKey, LookupKey, Result, RunCursor, Window};
use ashlar_table::Windows;
use ashlar_tree::version::{FileMeta, Version};
use std::sync::Arc;

/// Disjoint, ascending tables as one run, restricted to a range of user keys.
pub(super) struct LevelRun {
    version: Arc<Version>,
    files: Vec<Arc<FileMeta>>,
    range: KeyRange,
    /// The next file to open.
    next: usize,
    cursor: Option<Box<dyn RunCursor>>,
    readahead: usize,
    windows: Arc<Windows>,
}

impl LevelRun {
    /// A run positioned before its first entry. Reads at least `readahead` bytes at a time.
    pub(super) fn new(
        version: Arc<Version>,
        files: Vec<Arc<FileMeta>>,
        range: KeyRange,
        readahead: usize,
    ) -> Self {
        let windows = version.tables().windows();
        LevelRun { version, files, range, next: 0, cursor: None, readahead, windows }
    }

    /// Opens the next table and positions before its first entry at or after `key`. False past the last table.
    fn open_next(&mut self, key: Option<&LookupKey<'_>>) -> Result<bool> {
        let Some(file) = self.files.get(self.next) else { return Ok(false) };
        if self.range.ends_before(&self.version.order, file.smallest().user_key()) {
            return Ok(false);
        }
        let table = self.version.table_for_pass(file)?;
        let mut cursor = table.cursor_within(self.readahead, &self.windows);
        cursor.seek(key)?;
        self.next += 1;
        self.cursor = Some(cursor);
        Ok(true)
    }

    /// Removes entries past the range from the window; true when there were any.
    fn clip(&self, window: &mut Window) -> bool {
        if self.range.end.is_none() {
            return false;
        }
        let behind = |key: InternalKey<'_>| self.range.ends_before(&self.version.order, key.user_key());
        let is_behind = |at: usize| window.entry(at).is_some_and(|e| behind(e.key));
        let len = window.len();
        if !is_behind(len.saturating_sub(1)) {
            return false;
        }
        let (mut inside, mut outside) = (0, len);
        while inside < outside {
            let middle = inside.midpoint(outside);
            if is_behind(middle) {
                outside = middle;
            } else {
                inside = middle + 1;
            }
        }
        window.truncate(inside);
        true
    }
}

impl RunCursor for LevelRun {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        self.cursor = None;
        self.next = key.map_or(0, |key| {
            self.files.partition_point(|f| {
                let (user, trailer) = f.largest().split();
                self.version.order.compare_parts(user, trailer, key.user_key, key.trailer()).is_lt()
            })
        });
        self.open_next(key).map(|_| ())
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.cursor
                && cursor.window(window)?
            {
                if self.clip(window) {
                    self.cursor = None;
                    self.next = self.files.len();
                }
                return Ok(!window.is_empty());
            }
            self.cursor = None;
            if !self.open_next(None)? {
                window.clear();
                return Ok(false);
            }
        }
    }
}

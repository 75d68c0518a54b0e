//! Tables as runs: one table, or the tables of one level one behind the other.
//!
//! Only point entries: the range tombstones of all inputs are gathered before the first run moves.

use crate::version::{FileMeta, Version};
use ashlar_base::{LookupKey, Result, RunCursor, Window};
use std::sync::Arc;

/// Tables in ascending order, disjoint, as one run.
pub(super) struct LevelRun {
    version: Arc<Version>,
    files: Vec<Arc<FileMeta>>,
    /// The next file to open.
    next: usize,
    cursor: Option<Box<dyn RunCursor>>,
    readahead: usize,
}

impl LevelRun {
    /// Before the first entry. Reads at least `readahead` bytes at a time.
    pub(super) fn new(version: Arc<Version>, files: Vec<Arc<FileMeta>>, readahead: usize) -> Self {
        LevelRun { version, files, next: 0, cursor: None, readahead }
    }

    /// Opens the next table and stands before its first entry at or after `key`. False past the last table.
    fn open_next(&mut self, key: Option<&LookupKey<'_>>) -> Result<bool> {
        let Some(file) = self.files.get(self.next) else { return Ok(false) };
        let table = self.version.table(file)?;
        let mut cursor = table.cursor(self.readahead);
        cursor.seek(key)?;
        self.next += 1;
        self.cursor = Some(cursor);
        Ok(true)
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
                return Ok(true);
            }
            self.cursor = None;
            if !self.open_next(None)? {
                window.clear();
                return Ok(false);
            }
        }
    }
}

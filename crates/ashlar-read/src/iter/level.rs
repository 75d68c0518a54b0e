//! A cursor over a level below 0, whose files are disjoint and in order. It opens each file when it reaches it.
//!
//! When the cursor enters a file, it reports the range tombstones of that file. This is early enough, because a merge
//! does not pass a key within a file's bounds before this cursor has been in the file.

use crate::range_del::{Bounds, Sources};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Entry, InternalIterator, InternalKey, Level, Result};
use ashlar_table::{ReadHow, TableIter, TableReader};
use ashlar_tree::version::{FileMeta, FileTable, Version};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// See the module.
pub struct LevelIter {
    version: Arc<Version>,
    level: Level,
    how: ReadHow,
    sources: Arc<Sources>,
    /// The index of this run in the merge.
    run: usize,
    /// The files whose range tombstones were reported.
    noted: BTreeSet<usize>,
    /// The current file; `None`: off the end.
    current: Option<(usize, TableIter<FileTable>)>,
}

impl LevelIter {
    /// A cursor over `level`, off the end. It reports range tombstones that it meets to the sources, as those of its
    /// run.
    pub(crate) fn new(
        version: Arc<Version>,
        level: Level,
        how: ReadHow,
        (sources, run): (Arc<Sources>, usize),
    ) -> Self {
        LevelIter { version, level, how, sources, run, noted: BTreeSet::new(), current: None }
    }

    /// The current file.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.current.as_ref().map(|(_, table)| table.source().path())
    }

    /// Bytes of the current block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |(_, table)| table.block_bytes())
    }

    fn files(&self) -> &[Arc<FileMeta>] {
        self.version.level(self.level)
    }

    /// The cursor of file `at`: the current cursor, if it is in that file.
    fn table(&mut self, at: usize) -> Result<Option<TableIter<FileTable>>> {
        match self.current.take() {
            Some((now, table)) if now == at => return Ok(Some(table)),
            _ => {}
        }
        let Some(file) = self.version.level(self.level).get(at) else { return Ok(None) };
        let tables = self.version.tables();
        let table = tables.lease(file, &self.how)?;
        if !table.range_tombstones().is_empty() && self.noted.insert(at) {
            note_tombstones(&table, file, &self.sources, self.run);
        }
        Ok(Some(TableIter::new(FileTable::new(tables, file), self.how.clone())))
    }

    /// Goes to file `at` and positions by `place`. If no entry is there, goes on to the first entry of a later file.
    fn enter_forward(
        &mut self,
        mut at: usize,
        place: impl FnOnce(&mut TableIter<FileTable>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut table) = self.table(at)? else { return Ok(()) };
        place(&mut table)?;
        while table.key().is_none() {
            at += 1;
            match self.table(at)? {
                Some(next) => table = next,
                None => return Ok(()),
            }
            table.first()?;
        }
        self.current = Some((at, table));
        Ok(())
    }

    /// The same backward.
    fn enter_backward(
        &mut self,
        mut at: usize,
        place: impl FnOnce(&mut TableIter<FileTable>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut table) = self.table(at)? else { return Ok(()) };
        place(&mut table)?;
        while table.key().is_none() {
            match at.checked_sub(1) {
                Some(before) => at = before,
                None => return Ok(()),
            }
            match self.table(at)? {
                Some(before) => table = before,
                None => return Ok(()),
            }
            table.last()?;
        }
        self.current = Some((at, table));
        Ok(())
    }
}

impl LevelIter {
    /// The first file that ends at or after `target`.
    fn file_of(&self, target: InternalKey<'_>) -> usize {
        let order = &self.version.order;
        self.files().partition_point(|f| order.compare_internal(f.largest(), target) == Ordering::Less)
    }

    /// See [`TableIter::seek_begin`].
    pub(crate) fn seek_begin(&mut self, target: InternalKey<'_>) -> Result<()> {
        let at = self.file_of(target);
        let Some(mut table) = self.table(at)? else { return Ok(()) };
        let begun = table.seek_begin(target);
        begun.or_else(|e| if planted(Bug::ReadErrorSkipsTable) { Ok(()) } else { Err(e) })?;
        self.current = Some((at, table));
        Ok(())
    }

    /// See [`TableIter::seek_finish`].
    pub(crate) fn seek_finish(&mut self, target: InternalKey<'_>) -> Result<()> {
        let Some((at, _)) = self.current else { return Ok(()) };
        self.enter_forward(at, |table| table.seek_finish(target))
    }
}

impl InternalIterator for LevelIter {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.seek_begin(target)?;
        self.seek_finish(target)
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let order = &self.version.order;
        let behind = self
            .files()
            .partition_point(|f| order.compare_internal(f.smallest(), target) != Ordering::Greater);
        match behind.checked_sub(1) {
            Some(at) => self.enter_backward(at, |table| table.seek_for_prev(target)),
            None => {
                self.current = None;
                Ok(())
            }
        }
    }

    fn first(&mut self) -> Result<()> {
        self.enter_forward(0, InternalIterator::first)
    }

    fn last(&mut self) -> Result<()> {
        match self.files().len().checked_sub(1) {
            Some(at) => self.enter_backward(at, InternalIterator::last),
            None => Ok(()),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some((at, table)) = &mut self.current else { return Ok(()) };
        let at = *at;
        match table.next() {
            Ok(()) if table.key().is_some() => Ok(()),
            Ok(()) => self.enter_forward(at, |_| Ok(())),
            Err(e) => {
                self.current = None;
                Err(e)
            }
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some((at, table)) = &mut self.current else { return Ok(()) };
        let at = *at;
        match table.prev() {
            Ok(()) if table.key().is_some() => Ok(()),
            Ok(()) => self.enter_backward(at, |_| Ok(())),
            Err(e) => {
                self.current = None;
                Err(e)
            }
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.current.as_ref()?.1.entry()
    }

    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        self.current.as_ref()?.1.key()
    }
}

/// Adds the range tombstones of a table to `sources`, if it has any. `run`: the run of the table.
#[inline]
pub(super) fn note_tombstones(table: &TableReader, file: &FileMeta, sources: &Sources, run: usize) {
    let tombstones = table.range_tombstones();
    if !tombstones.is_empty() {
        sources.add(Arc::clone(tombstones), Some(Bounds::new(file.smallest(), file.largest())), run);
    }
}

//! A cursor that keeps its table open: the general trait over [`TableCursor`].

use crate::iter::{Stepped, TableCursor};
use crate::read_how::ReadHow;
use crate::reader::TableReader;
use ashlar_base::{Entry, InternalIterator, InternalKey, Result};
use std::sync::Arc;

/// A cursor over the entries of one table.
#[derive(Debug)]
pub struct TableIter {
    table: Arc<TableReader>,
    how: ReadHow,
    cursor: TableCursor,
}

impl TableReader {
    /// A cursor over all entries, off the end.
    pub fn iter(self: &Arc<Self>, how: ReadHow) -> TableIter {
        TableIter { table: self.clone(), how, cursor: TableCursor::default() }
    }
}

impl TableIter {
    fn seek_ended(&mut self, target: InternalKey<'_>, sought: Stepped) -> Result<()> {
        match sought {
            Ok(true) => Ok(()),
            sought => self.cursor.seek_settle(&self.table, &self.how, target, sought),
        }
    }
}

impl InternalIterator for TableIter {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.cursor.seek_begin(&self.table, &self.how, target)?;
        self.cursor.seek_pin(&self.table, &self.how)?;
        let sought = self.cursor.seek_finish(self.table.order(), target);
        self.seek_ended(target, sought)
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.cursor.seek_for_prev(&self.table, &self.how, target)
    }

    fn first(&mut self) -> Result<()> {
        self.cursor.first(&self.table, &self.how)
    }

    fn last(&mut self) -> Result<()> {
        self.cursor.last(&self.table, &self.how)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self.cursor.step() {
            Ok(true) => Ok(()),
            stepped => self.cursor.next_block(&self.table, &self.how, stepped),
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        match self.cursor.step_back() {
            Ok(true) => Ok(()),
            stepped => self.cursor.prev_block(&self.table, &self.how, stepped),
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.cursor.entry()
    }

    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        self.cursor.key()
    }
}

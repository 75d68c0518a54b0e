//! Iterator and run cursor over an index. Both keep the memtable alive and remember their place. Entries never move, so
//! a place stays valid during inserts.

use crate::index::{Index, Target};
use crate::memtable::Memtable;
use ashlar_base::{Entry, InternalIterator, InternalKey, LookupKey, Result, RunCursor, Window};
use std::sync::Arc;

/// The iterator, entry by entry.
pub(crate) struct IndexIter<I: Index> {
    memtable: Arc<Memtable<I>>,
    at: Option<I::At>,
}

impl<I: Index> IndexIter<I> {
    pub(crate) fn new(memtable: Arc<Memtable<I>>) -> Self {
        IndexIter { memtable, at: None }
    }
}

fn target(key: InternalKey<'_>) -> Target<'_> {
    let (user_key, trailer) = key.split();
    Target { user_key, trailer }
}

impl<I: Index> InternalIterator for IndexIter<I> {
    fn seek(&mut self, key: InternalKey<'_>) -> Result<()> {
        self.at = self.memtable.index().at_or_after(&target(key));
        Ok(())
    }

    fn seek_for_prev(&mut self, key: InternalKey<'_>) -> Result<()> {
        self.at = self.memtable.index().at_or_before(&target(key));
        Ok(())
    }

    fn first(&mut self) -> Result<()> {
        self.at = self.memtable.index().first();
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        self.at = self.memtable.index().last();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.at.and_then(|at| self.memtable.index().next(at));
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.at = self.at.and_then(|at| self.memtable.index().prev(at));
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let entry = self.memtable.index().entry(self.at?);
        Some(Entry { key: entry.encoded_key(), value: entry.value() })
    }
}

/// The cursor for a flush, in windows.
pub(crate) struct IndexCursor<I: Index> {
    memtable: Arc<Memtable<I>>,
    next: Option<I::At>,
}

impl<I: Index> IndexCursor<I> {
    pub(crate) fn new(memtable: Arc<Memtable<I>>) -> Self {
        let next = memtable.index().first();
        IndexCursor { memtable, next }
    }
}

impl<I: Index> RunCursor for IndexCursor<I> {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let index = self.memtable.index();
        self.next = match key {
            Some(key) => index.at_or_after(&Target { user_key: key.user_key, trailer: key.trailer() }),
            None => index.first(),
        };
        Ok(())
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        window.clear();
        let index = self.memtable.index();
        while !window.is_full() {
            let Some(at) = self.next else { break };
            let entry = index.entry(at);
            window.push(entry.encoded_key(), entry.value());
            self.next = index.next(at);
        }
        Ok(!window.is_empty())
    }
}

//! Iterator and run cursor over an index. Both keep the memtable alive and remember their place. Entries never move, so
//! a place stays valid during inserts.

use crate::arena::Address;
use crate::index::{Index, Target};
use crate::memtable::Memtable;
use crate::stored::Stored;
use ashlar_base::key::Sharing;
use ashlar_base::{Entry, InternalIterator, InternalKey, LookupKey, Result, RunCursor, Window};
use std::sync::Arc;

/// The iterator, entry by entry.
pub(crate) struct IndexIter<I: Index> {
    memtable: Arc<Memtable<I>>,
    at: Option<I::At>,
    /// The address of the entry at `at`, which a merge reads several times per step.
    entry: Option<Address>,
}

impl<I: Index> IndexIter<I> {
    pub(crate) fn new(memtable: Arc<Memtable<I>>) -> Self {
        IndexIter { memtable, at: None, entry: None }
    }

    #[inline]
    fn go(&mut self, to: impl FnOnce(&I) -> Option<I::At>) -> Result<()> {
        self.at = to(self.memtable.index());
        self.entry = self.at.map(|at| self.memtable.index().entry(at).address());
        Ok(())
    }

    /// Moves as `step` says. Returns the new user key beside the old one.
    #[inline]
    fn step(&mut self, step: impl FnOnce(&I, I::At) -> Option<I::At>) -> Result<Option<Sharing>> {
        let (Some(at), Some(from)) = (self.at, self.entry) else { return Ok(None) };
        self.go(|index| step(index, at))?;
        let index = self.memtable.index();
        let user_key = |address| Stored::at(index.arena(), address).encoded_key().user_key();
        Ok(self.entry.map(|entry| Sharing::of(user_key(from), user_key(entry))))
    }

    #[inline]
    fn stored(&self) -> Option<Stored<'_>> {
        Some(Stored::at(self.memtable.index().arena(), self.entry?))
    }
}

fn target(key: InternalKey<'_>) -> Target<'_> {
    let (user_key, trailer) = key.split();
    Target { user_key, trailer }
}

impl<I: Index> InternalIterator for IndexIter<I> {
    fn seek(&mut self, key: InternalKey<'_>) -> Result<()> {
        self.go(|index| index.at_or_after(&target(key)))
    }

    fn seek_for_prev(&mut self, key: InternalKey<'_>) -> Result<()> {
        self.go(|index| index.at_or_before(&target(key)))
    }

    fn first(&mut self) -> Result<()> {
        self.go(I::first)
    }

    fn last(&mut self) -> Result<()> {
        self.go(I::last)
    }

    fn next(&mut self) -> Result<()> {
        let at = self.at;
        self.go(|index| index.next(at?))
    }

    fn prev(&mut self) -> Result<()> {
        let at = self.at;
        self.go(|index| index.prev(at?))
    }

    fn next_sharing(&mut self) -> Result<Option<Sharing>> {
        self.step(I::next)
    }

    fn prev_sharing(&mut self) -> Result<Option<Sharing>> {
        self.step(I::prev)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let entry = self.stored()?;
        Some(Entry { key: entry.encoded_key(), value: entry.value() })
    }

    fn key(&self) -> Option<InternalKey<'_>> {
        Some(self.stored()?.encoded_key())
    }

    fn is_on_entry(&self) -> bool {
        self.entry.is_some()
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

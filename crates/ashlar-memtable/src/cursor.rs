//! Iterator and run cursor over the list. Both keep the memtable alive and remember their position by address. Entries
//! never move, so a position stays valid during inserts.

use crate::node::{Anchor, Spot};
use crate::skiplist::SkipList;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::{Entry, InternalIterator, InternalKey, LookupKey, Result, RunCursor, Window};
use std::sync::Arc;

/// The iterator, entry by entry.
pub(crate) struct ListIter<C> {
    list: Arc<SkipList<C>>,
    at: Option<Anchor>,
}

impl<C: KeyOrder + 'static> ListIter<C> {
    pub(crate) fn new(list: Arc<SkipList<C>>) -> Self {
        ListIter { list, at: None }
    }

    fn spot(&self) -> Option<Spot<'_>> {
        Some(self.list.resume(self.at?))
    }
}

impl<C: KeyOrder + 'static> InternalIterator for ListIter<C> {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, trailer) = target.split();
        self.at = self.list.lower_bound(user_key, trailer).map(Spot::anchor);
        Ok(())
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, trailer) = target.split();
        self.at = self.list.upper_bound(user_key, trailer).map(Spot::anchor);
        Ok(())
    }

    fn first(&mut self) -> Result<()> {
        self.at = self.list.first().map(Spot::anchor);
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        self.at = self.list.last().map(Spot::anchor);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.spot().and_then(Spot::next).map(Spot::anchor);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let before = self.spot().and_then(|spot| {
            let (user_key, trailer) = spot.key();
            self.list.before(user_key, trailer)
        });
        self.at = before.map(Spot::anchor);
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        let spot = self.spot()?;
        Some(Entry { key: spot.encoded_key(), value: spot.value() })
    }
}

/// The cursor for a flush, in windows.
pub(crate) struct ListCursor<C> {
    list: Arc<SkipList<C>>,
    next: Option<Anchor>,
}

impl<C: KeyOrder + 'static> ListCursor<C> {
    pub(crate) fn new(list: Arc<SkipList<C>>) -> Self {
        let next = list.first().map(Spot::anchor);
        ListCursor { list, next }
    }
}

impl<C: KeyOrder + 'static> RunCursor for ListCursor<C> {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let spot = match key {
            Some(key) => self.list.lower_bound(key.user_key, key.trailer()),
            None => self.list.first(),
        };
        self.next = spot.map(Spot::anchor);
        Ok(())
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        window.clear();
        while !window.is_full() {
            let Some(anchor) = self.next else { break };
            let spot = self.list.resume(anchor);
            window.push(spot.encoded_key(), spot.value());
            self.next = spot.next().map(Spot::anchor);
        }
        Ok(!window.is_empty())
    }
}

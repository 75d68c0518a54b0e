//! Pending changes over a database: what reads, scans and cursors of an indexed batch and of a transaction see.

use crate::{Columns, MayExist, Result, View};
use ashlar_base::Error;
use ashlar_engine::column_family::Family;
use ashlar_options::ReadOptions;
use ashlar_read::iter::{DbIter, KeyBounds, TailingIter};
use ashlar_read::snapshot::Snapshot;
use ashlar_txn::{ChangedIter, ChangesView, IndexedBatch, MergedIter, Transaction};
use std::cell::{Ref, RefCell, RefMut};
use std::sync::Arc;

/// The owner of the changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Overlay<'a> {
    Batch(&'a RefCell<IndexedBatch>),
    Transaction(&'a RefCell<Transaction>),
    /// None: the snapshot below the changes belongs to another database.
    Foreign,
}

/// # Errors
/// `InvalidArgument`: a callback of a call that changes the value makes this call.
pub(crate) fn shared<T>(cell: &RefCell<T>) -> Result<Ref<'_, T>> {
    cell.try_borrow().map_err(|_| in_use())
}

/// # Errors
/// `InvalidArgument`: a callback of a call on the same value makes this call.
pub(crate) fn changed<T>(cell: &RefCell<T>) -> Result<RefMut<'_, T>> {
    cell.try_borrow_mut().map_err(|_| in_use())
}

#[cold]
fn in_use() -> Error {
    Error::invalid("the batch or transaction is in the middle of another call")
        .hint("Use another one in callbacks of its calls")
}

#[cold]
fn foreign() -> Error {
    Error::invalid("the snapshot belongs to another open database")
        .hint("Take a snapshot of the database that the batch belongs to")
}

/// Calls the same method of the owner, whichever it is.
macro_rules! over {
    ($overlay:expr, $owner:ident => $call:expr) => {
        match $overlay {
            Overlay::Batch(cell) => {
                let $owner = shared(cell)?;
                $call
            }
            Overlay::Transaction(cell) => {
                let $owner = shared(cell)?;
                $call
            }
            Overlay::Foreign => Err(foreign()),
        }
    };
}

impl Overlay<'_> {
    pub(crate) fn get(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<View>> {
        over!(self, owner => owner.get(family, key, options))
    }

    pub(crate) fn get_entity(
        &self,
        family: &Family,
        key: &[u8],
        options: ReadOptions,
    ) -> Result<Option<Columns>> {
        over!(self, owner => owner.get_entity(family, key, options))
    }

    pub(crate) fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: ReadOptions,
    ) -> Result<Vec<Result<Option<View>>>> {
        over!(self, owner => owner.multi_get(family, keys, options))
    }

    pub(crate) fn key_may_exist(
        &self,
        family: &Family,
        key: &[u8],
        options: ReadOptions,
    ) -> Result<MayExist> {
        over!(self, owner => owner.key_may_exist(family, key, options))
    }

    /// The changes of the family at this moment, and the snapshot over which they are read, if the owner has one.
    pub(crate) fn view(&self, family: &Arc<Family>) -> Result<(ChangesView, Option<Snapshot>)> {
        match self {
            Overlay::Batch(batch) => Ok((shared(batch)?.view(family)?, None)),
            Overlay::Transaction(transaction) => shared(transaction)?.view(family),
            Overlay::Foreign => Err(foreign()),
        }
    }
}

/// A cursor over a family: plain, with pending changes over it, or one that follows the writes.
/// Only two variants, so that a step of a plain cursor costs one comparison more than the step itself.
#[expect(clippy::large_enum_variant, reason = "a cursor without changes needs no allocation")]
pub(crate) enum Walk {
    Plain(DbIter),
    Other(Box<Other>),
}

/// The rarer cursors.
pub(crate) enum Other {
    Merged(ChangedIter),
    Tailing(TailingIter),
}

/// Calls the same method of the cursor, whichever it is. `$by`: `as_ref` or `as_mut`.
macro_rules! each {
    ($walk:expr, $by:ident, $cursor:ident => $call:expr) => {
        match $walk {
            Walk::Plain($cursor) => $call,
            Walk::Other(other) => match other.$by() {
                Other::Merged($cursor) => $call,
                Other::Tailing($cursor) => $call,
            },
        }
    };
}

/// The steps are calls, so that those of a plain cursor stay short.
impl Other {
    #[inline(never)]
    fn next(&mut self) -> Result<()> {
        match self {
            Other::Merged(cursor) => cursor.next(),
            Other::Tailing(cursor) => cursor.next(),
        }
    }

    #[inline(never)]
    fn prev(&mut self) -> Result<()> {
        match self {
            Other::Merged(cursor) => cursor.prev(),
            Other::Tailing(cursor) => cursor.prev(),
        }
    }

    #[inline(never)]
    fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Other::Merged(cursor) => cursor.entry(),
            Other::Tailing(cursor) => cursor.entry(),
        }
    }
}

impl Walk {
    pub(crate) fn merged(below: DbIter, changes: ChangesView, bounds: KeyBounds) -> Walk {
        Walk::Other(Box::new(Other::Merged(MergedIter::new(below, changes, bounds))))
    }

    pub(crate) fn tailing(cursor: TailingIter) -> Walk {
        Walk::Other(Box::new(Other::Tailing(cursor)))
    }

    pub(crate) fn beside(&self, bounds: KeyBounds, options: ReadOptions) -> Result<Walk> {
        if let Walk::Other(other) = self
            && let Other::Merged(cursor) = other.as_ref()
        {
            return Ok(Walk::Other(Box::new(Other::Merged(cursor.beside(bounds, options)?))));
        }
        Ok(Walk::Plain(self.below().beside(bounds, options)?))
    }

    /// The cursor of the database.
    pub(crate) fn below(&self) -> &DbIter {
        match self {
            Walk::Plain(cursor) => cursor,
            Walk::Other(other) => match other.as_ref() {
                Other::Merged(cursor) => cursor.below(),
                Other::Tailing(cursor) => cursor.shown(),
            },
        }
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        each!(self, as_mut, cursor => cursor.first())
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        each!(self, as_mut, cursor => cursor.last())
    }

    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        each!(self, as_mut, cursor => cursor.seek(key))
    }

    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        each!(self, as_mut, cursor => cursor.seek_for_prev(key))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        match self {
            Walk::Plain(cursor) => cursor.next(),
            Walk::Other(cursor) => cursor.next(),
        }
    }

    #[inline]
    pub(crate) fn prev(&mut self) -> Result<()> {
        match self {
            Walk::Plain(cursor) => cursor.prev(),
            Walk::Other(cursor) => cursor.prev(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        each!(self, as_ref, cursor => cursor.key())
    }

    #[inline]
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Walk::Plain(cursor) => cursor.entry(),
            Walk::Other(cursor) => cursor.entry(),
        }
    }

    pub(crate) fn columns(&self) -> Result<Option<Columns>> {
        each!(self, as_ref, cursor => cursor.columns())
    }
}

//! An iterator with a batch over it, and any kind of iterator.
//!
//! 1. The iterator shows the batch as it is at each move: an operation that is added behind the position shows. A move
//!    waits for a change of the batch by another thread.
//! 2. The bounds of the options count for the batch. The iterator below has its own.
//! 3. A step off the entries is an error, as in RocksDB.

use crate::indexed::{Index, IndexedBatch, Pending, merger};
use crate::iterator::Iterator;
use crate::sst_reader::SstIterator;
use crate::turn::Turn;
use ashlar_base::{FamilyId, Order};
use ashlar_read::merge::Merger;
use ashlar_txn::merged::{Below, Changes, MergedIter};
use ashlar_txn::ordered::Key;
use ashlardb::{Error, Family, KeyBounds, Result, Snapshot};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// The iterator below.
struct Base(AnyIterator);

impl Base {
    /// Moves the iterator.
    ///
    /// # Errors
    /// The error that ended the iterator.
    fn moved(&mut self, step: impl FnOnce(&mut AnyIterator)) -> Result<()> {
        step(&mut self.0);
        self.0.status()
    }
}

impl Below for Base {
    fn first(&mut self) -> Result<()> {
        self.moved(|below| below.seek_to_first())
    }

    fn last(&mut self) -> Result<()> {
        self.moved(|below| below.seek_to_last())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.moved(|below| below.seek(key))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.moved(|below| below.seek_for_prev(key))
    }

    fn next(&mut self) -> Result<()> {
        self.moved(|below| below.next())
    }

    fn prev(&mut self) -> Result<()> {
        self.moved(|below| below.prev())
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.0.entry()
    }

    fn key(&self) -> Option<&[u8]> {
        self.0.entry().map(|(key, _)| key)
    }
}

/// The operations of the batch on the family.
struct Live {
    index: Arc<Turn<Index>>,
    family: FamilyId,
    order: Order,
    merger: Option<Merger>,
}

impl Changes for Live {
    type Change = Pending;

    fn order(&self) -> &Order {
        &self.order
    }

    fn first_from(&self, from: Bound<&[u8]>) -> Result<Option<(Key, Pending)>> {
        let index = self.index.take()?;
        let found = index.whole()?.family(self.family).and_then(|keys| keys.first_from(from));
        Ok(found.map(|(key, pending)| (key.clone(), pending.clone())))
    }

    fn last_to(&self, to: Bound<&[u8]>) -> Result<Option<(Key, Pending)>> {
        let index = self.index.take()?;
        let found = index.whole()?.family(self.family).and_then(|keys| keys.last_to(to));
        Ok(found.map(|(key, pending)| (key.clone(), pending.clone())))
    }

    fn value<'a>(
        &self,
        key: &Key,
        change: &'a Pending,
        below: Option<&'a [u8]>,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        change.value(self.merger.as_ref(), key.bytes(), below)
    }
}

/// An iterator with a batch over it.
#[derive(Debug)]
pub struct OverIterator {
    inner: MergedIter<Base, Live>,
    status: Option<Error>,
}

impl OverIterator {
    /// `base` with the operations of `batch` on a family over it; `None`: on the family `default`, in the order that the batch was
    /// made with. `bounds`: the first key, and the first one behind, of the operations that show.
    pub fn new(
        batch: &IndexedBatch,
        base: AnyIterator,
        family: Option<&Family>,
        bounds: (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> OverIterator {
        let changes = Live {
            index: Arc::clone(batch.index()),
            family: family.map_or(FamilyId::DEFAULT, Family::id),
            order: family.map_or_else(|| batch.order().clone(), |family| family.options().order.clone()),
            merger: family.map(merger),
        };
        let bounds = KeyBounds { lower: bounds.0, upper: bounds.1, ..KeyBounds::default() };
        OverIterator { inner: MergedIter::new(Base(base), changes, bounds), status: None }
    }

    fn step(&mut self, name: &str, moved: impl FnOnce(&mut MergedIter<Base, Live>) -> Result<()>) {
        self.status = match self.is_valid() {
            true => moved(&mut self.inner).err(),
            false => Some(Error::not_supported(format!("{name} on an iterator that is not valid"))),
        };
    }

    fn is_valid(&self) -> bool {
        self.status.is_none() && self.inner.key().is_some()
    }
}

/// Any kind of iterator. [`Iterator`] describes the calls.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a plain iterator costs no second allocation")]
pub enum AnyIterator {
    /// Over a database.
    Plain(Iterator),
    /// With a batch over it.
    Over(Box<OverIterator>),
    /// Over an SST file.
    File(Box<SstIterator>),
}

impl From<SstIterator> for AnyIterator {
    fn from(file: SstIterator) -> Self {
        AnyIterator::File(Box::new(file))
    }
}

impl From<Iterator> for AnyIterator {
    fn from(plain: Iterator) -> Self {
        AnyIterator::Plain(plain)
    }
}

impl AnyIterator {
    /// This iterator with a batch over it: see [`OverIterator::new`].
    pub fn over(
        self,
        batch: &IndexedBatch,
        family: Option<&Family>,
        bounds: (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> AnyIterator {
        AnyIterator::Over(Box::new(OverIterator::new(batch, self, family, bounds)))
    }

    /// Shows the newest state, or that of the snapshot, from now on.
    ///
    /// # Errors
    /// Those of [`Iterator::refresh`]. `NotSupported`: it has a batch over it, or is over an SST file.
    pub fn refresh(&mut self, snapshot: Option<Snapshot>) -> Result<()> {
        match self {
            AnyIterator::Plain(plain) => plain.refresh(snapshot),
            AnyIterator::Over(_) => {
                Err(Error::not_supported("a refresh of an iterator with a batch over it"))
            }
            AnyIterator::File(_) => Err(Error::not_supported("a refresh of an iterator over an SST file")),
        }
    }

    /// Whether the iterator is on an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        match self {
            AnyIterator::Plain(plain) => plain.is_valid(),
            AnyIterator::Over(over) => over.is_valid(),
            AnyIterator::File(file) => file.is_valid(),
        }
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        match self {
            AnyIterator::Plain(plain) => plain.seek_to_first(),
            AnyIterator::Over(over) => over.status = over.inner.first().err(),
            AnyIterator::File(file) => file.seek_to_first(),
        }
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        match self {
            AnyIterator::Plain(plain) => plain.seek_to_last(),
            AnyIterator::Over(over) => over.status = over.inner.last().err(),
            AnyIterator::File(file) => file.seek_to_last(),
        }
    }

    /// To the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        match self {
            AnyIterator::Plain(plain) => plain.seek(key),
            AnyIterator::Over(over) => over.status = over.inner.seek(key).err(),
            AnyIterator::File(file) => file.seek(key),
        }
    }

    /// To the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        match self {
            AnyIterator::Plain(plain) => plain.seek_for_prev(key),
            AnyIterator::Over(over) => over.status = over.inner.seek_for_prev(key).err(),
            AnyIterator::File(file) => file.seek_for_prev(key),
        }
    }

    /// To the next entry.
    #[inline]
    pub fn next(&mut self) {
        match self {
            AnyIterator::Plain(plain) => plain.next(),
            AnyIterator::Over(over) => over.step("a step forward", MergedIter::next),
            AnyIterator::File(file) => file.next(),
        }
    }

    /// To the entry before.
    #[inline]
    pub fn prev(&mut self) {
        match self {
            AnyIterator::Plain(plain) => plain.prev(),
            AnyIterator::Over(over) => over.step("a step backward", MergedIter::prev),
            AnyIterator::File(file) => file.prev(),
        }
    }

    /// Key and value; `None` off the entries.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self {
            AnyIterator::Plain(plain) => plain.entry(),
            AnyIterator::Over(over) => over.inner.entry().filter(|_| over.status.is_none()),
            AnyIterator::File(file) => file.entry(),
        }
    }

    /// The error that ended the iterator.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        match self {
            AnyIterator::Plain(plain) => plain.status(),
            AnyIterator::Over(over) => over.status.clone().map_or(Ok(()), Err),
            AnyIterator::File(file) => file.status(),
        }
    }
}

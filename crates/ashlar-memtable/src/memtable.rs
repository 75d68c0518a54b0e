//! A memtable over an [`Index`]: entries in the arena and in order, range tombstones, counters.

use crate::arena::{Address, Turn};
use crate::cursor::{IndexCursor, IndexIter};
use crate::entry::{MemoryLimit, Op, TombstoneParts};
use crate::gap::Gap;
use crate::index::{Index, Target};
use crate::rep::{Found, MemtableRep, Prepared, Show, WriterSlot};
use crate::stored::Fresh;
use crate::tombstones::{Pending, TombstoneList};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{InternalIterator, InternalKeyBuf, LookupKey, Order, Result, RunCursor, SeqNum, ValueType};
use ashlar_sync::ReadPin;
use ashlar_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as StaticU64;

/// Not a sequence number: the memtable is not sealed.
const OPEN: u64 = u64::MAX;

// A counter of the process, so never one of loom's atomics.
static NEXT_ID: StaticU64 = StaticU64::new(1);

/// See the module.
pub(crate) struct Memtable<I> {
    index: I,
    order: Order,
    tombstones: TombstoneList,
    gap: Gap,
    id: u64,
    count: AtomicU64,
    deletions: AtomicU64,
    sealed: AtomicU64,
}

impl<I: Index> Memtable<I> {
    /// An empty memtable; `index` has the order `order`.
    pub(crate) fn new(index: I, order: Order) -> Self {
        Memtable {
            index,
            tombstones: TombstoneList::new(order.clone()),
            gap: Gap::new(order.clone()),
            order,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            count: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            sealed: AtomicU64::new(OPEN),
        }
    }

    pub(crate) fn index(&self) -> &I {
        &self.index
    }

    fn insert_points(&self, turn: &Turn<'_>, writer: &mut WriterSlot, prepared: &Prepared, first: SeqNum) {
        let in_gap = self.gap.is_noted();
        let (mut newest, mut values) = (None, None::<(&[u8], &[u8])>);
        for at in prepared.points() {
            let (entry, trailer) = Fresh::at(turn, at).number(first.get());
            self.index.insert(turn, writer, self.id, entry);
            if !trailer.value_type().is_some_and(ValueType::deletes) {
                newest = newest.max(Some(trailer.seq()));
                if in_gap {
                    let key = entry.user_key();
                    let (first, last) = values.unwrap_or((key, key));
                    let (is_first, is_last) =
                        (self.order.compare(key, first).is_lt(), self.order.compare(key, last).is_gt());
                    values = Some((if is_first { key } else { first }, if is_last { key } else { last }));
                }
            }
        }
        if let Some(newest) = newest {
            self.gap.written(newest, values);
        }
        // Only the holder of the turn writes the counters.
        let add =
            |to: &AtomicU64, n: u32| to.store(to.load(Ordering::Relaxed) + u64::from(n), Ordering::Relaxed);
        add(&self.count, prepared.count);
        if prepared.deletions > 0 {
            add(&self.deletions, prepared.deletions);
        }
    }
}

impl Prepared {
    /// The addresses of the point entries.
    fn points(&self) -> impl Iterator<Item = Address> {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    fn push(&mut self, at: Address) -> Result<(), MemoryLimit> {
        match self.first {
            None => self.first = Some(at),
            Some(_) => {
                self.others.try_reserve(1).map_err(|_| MemoryLimit)?;
                self.others.push(at);
            }
        }
        self.count = self.count.checked_add(1).ok_or(MemoryLimit)?;
        Ok(())
    }
}

impl<I: Index> MemtableRep for Memtable<I> {
    fn prepare(
        &self,
        writer: &mut WriterSlot,
        ops: &mut dyn Iterator<Item = Op<'_>>,
    ) -> Result<Prepared, MemoryLimit> {
        let turn = self.index.arena().turn();
        let mut prepared = Prepared {
            memtable: self.id,
            first: None,
            others: Vec::new(),
            count: 0,
            deletions: 0,
            tombstones: Vec::new(),
        };
        for op in ops {
            if op.value_type == ValueType::RangeDelete {
                if self.tombstones.covers_something(&op) {
                    prepared.tombstones.push(Pending::copy(&op)?);
                }
                continue;
            }
            prepared.push(self.index.store(&turn, writer, &op)?.address())?;
            prepared.deletions += u32::from(op.value_type.deletes());
        }
        Ok(prepared)
    }

    fn insert(&self, writer: &mut WriterSlot, prepared: Prepared, first: SeqNum) {
        assert_eq!(prepared.memtable, self.id, "prepared for another memtable");
        if prepared.count > 0 {
            self.insert_points(&self.index.arena().turn(), writer, &prepared, first);
        }
        if !prepared.tombstones.is_empty() {
            self.tombstones.insert(prepared.tombstones, first);
        }
    }

    fn get<'g>(&'g self, key: &LookupKey<'_>) -> Result<Option<Found<'g>>> {
        let found = self.index.get(&Target { user_key: key.user_key, trailer: key.trailer() });
        Ok(found.map(|entry| Found { trailer: entry.key().1, value: entry.value(), at: entry }))
    }

    fn older(&self, found: &Found<'_>, show: &mut Show<'_>) -> Result<()> {
        let (mut at, key) = (self.index.place_of(found.at), found.at.user_key());
        while let Some(next) = self.index.next(at) {
            let entry = self.index.entry(next);
            if entry.user_key() != key || !show(entry.key().1, entry.value())? {
                break;
            }
            at = next;
        }
        Ok(())
    }

    fn range_tombstones(&self) -> Option<TombstoneParts> {
        self.tombstones.parts()
    }

    fn cut_tombstones<'g>(&'g self, pin: &'g ReadPin) -> Option<&'g [Arc<FragmentedTombstones>]> {
        self.tombstones.cut_parts(pin)
    }

    fn range_tombstone_count(&self) -> u64 {
        self.tombstones.len()
    }

    fn gap(&self) -> &Gap {
        &self.gap
    }

    fn iter(self: Arc<Self>) -> Box<dyn InternalIterator> {
        Box::new(IndexIter::new(self))
    }

    fn cursor(self: Arc<Self>) -> Box<dyn RunCursor> {
        Box::new(IndexCursor::new(self))
    }

    fn memory(&self) -> usize {
        self.index.arena().used_bytes() + self.tombstones.memory()
    }

    fn held(&self) -> usize {
        self.index.arena().held_bytes() + self.tombstones.memory()
    }

    fn filled(&self) -> usize {
        self.memory().saturating_sub(self.index.overhead(self.count.load(Ordering::Relaxed)))
    }

    fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed) + self.tombstones.len()
    }

    fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Relaxed)
    }

    fn approximate_count(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        let all = self.count.load(Ordering::Relaxed);
        let before = |key: Option<&[u8]>| key.map(|key| self.index.rank(key, all));
        before(to).unwrap_or(all).min(all).saturating_sub(before(from).unwrap_or(0))
    }

    fn smallest_and_largest(&self) -> Option<(InternalKeyBuf, InternalKeyBuf)> {
        let (first, last) = (self.index.first()?, self.index.last()?);
        let key = |at| self.index.entry(at).encoded_key().to_buf();
        Some((key(first), key(last)))
    }

    fn seal(&self, last: SeqNum) {
        // Release pairs with the Acquire in `sealed_at`: a thread that sees the seal sees the inserts before it.
        self.sealed.store(last.get(), Ordering::Release);
    }

    fn sealed_at(&self) -> Option<SeqNum> {
        SeqNum::new(self.sealed.load(Ordering::Acquire))
    }
}

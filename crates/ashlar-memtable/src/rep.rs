//! The interface of a memtable.
//!
//! 1. Entries are never changed or removed while the memtable lives; readers need no lock.
//! 2. Writing has two halves: [`MemtableRep::prepare`] does everything that can fail, before a sequence number is
//!    reserved; [`MemtableRep::insert`] cannot fail.
//! 3. One thread at a time writes. In the engine that is the leader of a group of writes, or the replay of the WAL.
//!    Writing takes no lock: a second writer panics.
//! 4. An insert that returned is seen by every read that starts afterwards.

use crate::arena::Address;
use crate::entry::{MemoryLimit, Op, TombstoneParts};
use crate::gap::Gap;
use crate::node::Anchor;
use crate::stored::Stored;
use crate::tombstones::Pending;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{InternalIterator, InternalKeyBuf, LookupKey, Result, RunCursor, SeqNum, Trailer};
use ashlar_sync::ReadPin;
use std::sync::Arc;

/// An entry found by [`MemtableRep::get`], borrowed from the memtable.
#[derive(Clone, Copy, Debug)]
pub struct Found<'g> {
    /// Sequence number and type.
    pub trailer: Trailer,
    /// The value as stored.
    pub value: &'g [u8],
    /// The entry.
    pub(crate) at: Stored<'g>,
}

/// Looks at the sequence number, type and value of an entry, and answers whether to go on.
pub type Show<'s> = dyn FnMut(Trailer, &[u8]) -> Result<bool> + 's;

/// Per level, the place of a writer's last insert. Every anchor is before or on the lowest one.
#[derive(Debug, Default)]
pub(crate) struct Hint {
    pub(crate) memtable: u64,
    pub(crate) anchors: Vec<Anchor>,
}

/// The position of a writer's last insert, so that ordered writes skip the search. It is valid for any memtable: with
/// another memtable it only makes the insert slower.
#[derive(Debug, Default)]
pub struct WriterSlot {
    pub(crate) hint: Hint,
    pub(crate) random: u64,
}

/// Entries that are in the memtable's memory and not yet in its order. Pass them to [`MemtableRep::insert`] of the same
/// memtable. If they are dropped, their memory stays in use as long as the memtable.
#[derive(Debug)]
#[must_use]
pub struct Prepared {
    pub(crate) memtable: u64,
    pub(crate) first: Option<Address>,
    /// The point entries after the first one. A batch of one entry allocates nothing.
    pub(crate) others: Vec<Address>,
    pub(crate) count: u32,
    /// The number of deletions of single keys among them.
    pub(crate) deletions: u32,
    pub(crate) tombstones: Vec<Pending>,
}

impl Prepared {
    /// Number of entries, range tombstones included.
    pub fn len(&self) -> usize {
        self.count as usize + self.tombstones.len()
    }

    /// True if the memtable has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A memtable. Shared by an `Arc`; iterators and cursors keep it alive.
pub trait MemtableRep: Send + Sync {
    /// Copies the entries into the memtable; they are not visible yet. Range tombstones go to a separate list, which
    /// [`MemtableRep::get`] and cursors do not see. A range tombstone with an empty range is left out.
    ///
    /// # Errors
    /// [`MemoryLimit`]: no entry of `ops` will ever be visible.
    ///
    /// # Panics
    /// When another thread prepares or inserts.
    fn prepare(
        &self,
        writer: &mut WriterSlot,
        ops: &mut dyn Iterator<Item = Op<'_>>,
    ) -> Result<Prepared, MemoryLimit>;

    /// Makes prepared entries visible under the sequence numbers `first + seq_delta`. Concurrent with reads.
    /// Each entry (user key, sequence, type) must be new.
    ///
    /// # Panics
    /// When another thread prepares or inserts, `prepared` belongs to another memtable, or a sequence number would exceed
    /// [`SeqNum::MAX`].
    fn insert(&self, writer: &mut WriterSlot, prepared: Prepared, first: SeqNum);

    /// The newest point entry of `key.user_key` at or below `key.seq`, of whatever type.
    ///
    /// # Errors
    /// `Corruption`: the entry is not what was written. Only of a [`protected`](crate::protected()) memtable.
    fn get<'g>(&'g self, key: &LookupKey<'_>) -> Result<Option<Found<'g>>>;

    /// Shows the older entries of the same user key, newest first, until `show` answers false. `found` is an entry of this
    /// memtable.
    ///
    /// # Errors
    /// As [`MemtableRep::get`], and those of `show`.
    /// # Cost
    /// One step for each entry.
    fn older(&self, found: &Found<'_>, show: &mut Show<'_>) -> Result<()>;

    /// The range tombstones inserted so far, and perhaps some inserted meanwhile; `None` when there are none. They come
    /// in a few parts (about the logarithm of their number), and the caller must ask each part. Call it without a
    /// [`ReadPin`]: after an insert it takes a lock and cuts the new tombstones.
    fn range_tombstones(&self) -> Option<TombstoneParts>;

    /// [`MemtableRep::range_tombstones`] without a lock: borrowed, no part if there are no tombstones. `None`: some are
    /// not cut yet, and the caller must drop the pin and ask [`MemtableRep::range_tombstones`]. Two loads.
    fn cut_tombstones<'g>(&'g self, pin: &'g ReadPin) -> Option<&'g [Arc<FragmentedTombstones>]>;

    /// Number of range tombstones inserted. One load.
    fn range_tombstone_count(&self) -> u64;

    /// The newest value, and the range of keys in which reads see no key.
    fn gap(&self) -> &Gap;

    /// A cursor over all point entries, including those inserted later. Not positioned. Backward steps cost a search.
    fn iter(self: Arc<Self>) -> Box<dyn InternalIterator>;

    /// A forward cursor over the point entries in windows, for flush. Not positioned: starts at the first entry.
    fn cursor(self: Arc<Self>) -> Box<dyn RunCursor>;

    /// The bytes of entries with padding and unusable ends of chunks, and of range tombstones.
    fn memory(&self) -> usize;

    /// The bytes of the memtable with its entries. An empty one has a size too, as in RocksDB.
    fn size(&self) -> u64 {
        (size_of_val(self) + self.memory()) as u64
    }

    /// The bytes that the memtable takes from its budget: [`MemtableRep::memory`], and the room of its last chunk that has no
    /// entry yet. Of a small memtable that room is the larger part.
    fn held(&self) -> usize;

    /// The part of [`MemtableRep::memory`] that counts towards the size limit: the entries, and eight bytes for each. So a
    /// memtable of a given size holds about as many entries as RocksDB's.
    fn filled(&self) -> usize {
        self.memory()
    }

    /// Number of entries inserted, range tombstones included.
    fn len(&self) -> u64;

    /// Number of deletions of single keys among them.
    fn deletions(&self) -> u64;

    /// True when nothing was inserted.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many point entries have user keys in `from..to` (`None`: without bound), all versions counted: exact up
    /// to some hundred entries in the memtable, within a few percent of all entries beyond.
    ///
    /// # Cost
    /// Some hundred to thousand loads.
    fn approximate_count(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64;

    /// The first and the last internal key of the point entries in order; `None` when there are none.
    fn smallest_and_largest(&self) -> Option<(InternalKeyBuf, InternalKeyBuf)>;

    /// Notes that no sequence number above `last` will be inserted: the memtable is immutable from now on.
    fn seal(&self, last: SeqNum);

    /// The sequence number that [`MemtableRep::seal`] noted.
    fn sealed_at(&self) -> Option<SeqNum>;
}

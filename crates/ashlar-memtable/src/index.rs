//! What a memtable asks of the structure that keeps its entries in order.
//!
//! The skiplist and the tree implement it; [`Memtable`](crate::memtable::Memtable) is written once over both.

use crate::arena::{Arena, Turn};
use crate::entry::{MemoryLimit, Op};
use crate::rep::WriterSlot;
use crate::stored::{Fresh, Stored};
use ashlar_base::Trailer;

/// The key of a search.
#[derive(Clone, Copy)]
pub(crate) struct Target<'k> {
    pub(crate) user_key: &'k [u8],
    pub(crate) trailer: Trailer,
}

impl<'k> Target<'k> {
    /// The key of an entry.
    #[inline]
    pub(crate) fn of(entry: Stored<'k>) -> Target<'k> {
        let (user_key, trailer) = entry.key();
        Target { user_key, trailer }
    }
}

/// Entries in order. Writers hold the arena's turn, readers need nothing.
pub(crate) trait Index: Send + Sync + 'static {
    /// The place of an entry. It stays valid, and leads to the same entry, as long as the index.
    type At: Copy + Send;

    fn arena(&self) -> &Arena;

    /// Copies an entry into the arena.
    fn store<'a>(
        &'a self,
        turn: &Turn<'a>,
        writer: &mut WriterSlot,
        op: &Op<'_>,
    ) -> Result<Fresh<'a>, MemoryLimit>;

    /// Publishes an entry that [`Index::store`] made. Its key is new. `memtable` is the number that hints carry.
    fn insert<'a>(&'a self, turn: &Turn<'a>, writer: &mut WriterSlot, memtable: u64, entry: Stored<'a>);

    fn entry(&self, at: Self::At) -> Stored<'_>;

    /// The place of an entry of this index.
    fn place_of(&self, entry: Stored<'_>) -> Self::At;

    /// The first entry at or after the target, if it has the target's user key.
    fn get(&self, target: &Target<'_>) -> Option<Stored<'_>>;

    /// The first entry at or after the target.
    fn at_or_after(&self, target: &Target<'_>) -> Option<Self::At>;

    /// The last entry at or before the target.
    fn at_or_before(&self, target: &Target<'_>) -> Option<Self::At>;

    fn first(&self) -> Option<Self::At>;

    fn last(&self) -> Option<Self::At>;

    fn next(&self, at: Self::At) -> Option<Self::At>;

    fn prev(&self, at: Self::At) -> Option<Self::At>;

    /// An estimate of the number of entries before the first version of the key; `all` is the number of all entries.
    fn rank(&self, user_key: &[u8], all: u64) -> u64;

    /// The bytes of the arena that hold no entry, without eight bytes for each of `all` entries.
    fn overhead(&self, all: u64) -> usize;
}

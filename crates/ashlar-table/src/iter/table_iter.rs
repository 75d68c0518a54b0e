//! The general cursor over a table, both ways, through the pool.
//!
//! 1. The cursor pins only its current block. It borrows the table from its [`TableSource`] for the length of one call, to
//!    position itself or to move to another block. Moves inside the block need nothing else.
//! 2. The table cache may close the table between two calls. It reopens as the same file, so positions in it stay valid.

use crate::iter::TableSource;
use crate::read_how::ReadHow;
use crate::reader::{BlockAt, Readahead, TableReader};
use ashlar_base::Malformed;
use ashlar_base::{Entry, InternalIterator, InternalKey, InternalKeyBuf, Result, SeqNum, Trailer};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock};
use std::cmp::Ordering;
use std::sync::Arc;

/// A cursor over the entries of one table. It pins its current block, not the table.
#[derive(Debug)]
pub struct TableIter<S = Arc<TableReader>> {
    source: S,
    place: Place,
}

/// A block, and an entry in it.
#[derive(Debug, Default)]
struct Place {
    how: ReadHow,
    readahead: Option<Readahead>,
    at: BlockAt,
    /// `None` exactly when the cursor is off the end.
    pin: Option<FramePin>,
    cursor: BlockCursor,
    /// The sequence number of all entries, for a table whose MANIFEST entry has it.
    global_seq: Option<SeqNum>,
    /// The key with that sequence number, for such a table.
    presented: Option<InternalKeyBuf>,
}

impl TableReader {
    /// A cursor over all entries, off the end.
    pub fn iter(self: &Arc<Self>, how: ReadHow) -> TableIter {
        TableIter::new(self.clone(), how)
    }
}

impl<S: TableSource> TableIter<S> {
    /// A cursor over all entries of a table, off the end.
    pub fn new(source: S, how: ReadHow) -> Self {
        TableIter { source, place: Place { how, ..Place::default() } }
    }

    /// The source of the table.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Bytes of the current block; 0 off the end.
    pub fn block_bytes(&self) -> usize {
        self.place.pin.as_ref().map_or(0, |pin| pin.len())
    }

    /// The first half of a [`seek`](InternalIterator::seek) to `target`: pins the block to search, and asks the processor
    /// to load it. The cursor's position is not known until [`TableIter::seek_finish`]. A caller that seeks in several
    /// tables begins in all of them first, so that their memory loads at the same time.
    ///
    /// # Errors
    /// As the seek.
    pub fn seek_begin(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.go(|place, table| place.seek_begin(table, target))
    }

    /// The second half: searches the block that [`TableIter::seek_begin`] pinned.
    ///
    /// # Errors
    /// As the seek.
    pub fn seek_finish(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, wanted) = target.split();
        let (order, stored) = (self.source.order(), stored_trailer(self.place.global_seq, wanted));
        match self.place.in_block(|cursor, block| cursor.seek_key(block, order, user_key, stored)) {
            Ok(()) if self.place.pin.is_none() => Ok(()),
            Ok(()) if self.place.cursor.is_on_entry() && self.place.global_seq.is_none() => Ok(()),
            Ok(()) => self.go(|place, table| place.settle_behind(table, user_key, wanted)),
            Err(e) => self.go(|place, table| Err(table.misread(place.at, e))),
        }
    }

    /// Ends a move that needs the table: the cursor is off the end after an error.
    fn go(&mut self, act: impl FnOnce(&mut Place, &TableReader) -> Result<()>) -> Result<()> {
        let moved = self.source.open(&self.place.how).and_then(|table| act(&mut self.place, &table));
        if moved.is_err() {
            self.place.leave();
        }
        self.place.present();
        moved
    }
}

impl Place {
    fn leave(&mut self) {
        self.pin = None;
        self.cursor.reset();
    }

    /// Pins the block. `None`: the cursor is off the end, and the answer is false.
    fn load(&mut self, table: &TableReader, block: Option<BlockAt>) -> Result<bool> {
        if self.pin.is_some() && block == Some(self.at) {
            return Ok(true);
        }
        self.leave();
        let Some(at) = block else { return Ok(false) };
        if let Some(limit) = &self.how.limit {
            limit.check()?;
        }
        self.at = at;
        self.global_seq = table.global_seq();
        if self.how.readahead > 0 && self.readahead.is_none() {
            self.readahead = Some(Readahead::new(self.how.readahead, table.charge_buffer()));
        }
        self.pin = Some(table.block(at, &self.how, self.readahead.as_mut())?);
        Ok(true)
    }

    /// Runs `act` on the pinned block.
    #[inline]
    fn in_block(
        &mut self,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Unreadable> {
        let Some(pin) = &self.pin else { return Ok(()) };
        let block = DataBlock::reopen(pin)?;
        act(&mut self.cursor, &block).map_err(Into::into)
    }

    /// The same, with the table borrowed.
    #[inline]
    fn in_block_of(
        &mut self,
        table: &TableReader,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>) -> Result<(), Malformed>,
    ) -> Result<()> {
        self.in_block(act).map_err(|e| table.misread(self.at, e))
    }

    /// If the block has ended, goes on to the first entry of the next nonempty block.
    fn skip_forward(&mut self, table: &TableReader) -> Result<()> {
        while !self.cursor.is_on_entry() {
            let next = table.after(self.at, &self.how)?;
            if !self.load(table, next)? {
                break;
            }
            self.in_block_of(table, |cursor, block| cursor.first(block))?;
        }
        Ok(())
    }

    /// If the block has ended at its front, goes back to the last entry of the preceding nonempty block.
    fn skip_backward(&mut self, table: &TableReader) -> Result<()> {
        while !self.cursor.is_on_entry() {
            let before = table.before(self.at, &self.how)?;
            if !self.load(table, before)? {
                break;
            }
            self.in_block_of(table, |cursor, block| cursor.last(block))?;
        }
        Ok(())
    }

    /// Updates the key with the table's sequence number.
    #[inline]
    fn present(&mut self) {
        if let Some(seq) = self.global_seq
            && let Some(key) = self.cursor.internal_key()
        {
            let (user_key, trailer) = key.split();
            let trailer = Trailer::from_raw(seq.get() << 8 | u64::from(trailer.type_byte()));
            self.presented.get_or_insert_with(|| InternalKeyBuf::new(&[], trailer)).set(user_key, trailer);
        }
    }

    /// See [`TableIter::seek_begin`].
    fn seek_begin(&mut self, table: &TableReader, target: InternalKey<'_>) -> Result<()> {
        let (user_key, wanted) = target.split();
        let found = table.find(user_key, stored_trailer(table.global_seq(), wanted), &self.how)?;
        if self.pin.is_some() && found == Some(self.at) {
            return Ok(());
        }
        self.load(table, found)?;
        if let Some(pin) = &self.pin {
            pin.prefetch();
        }
        Ok(())
    }

    /// Ends a search for a key: goes on from the end of the block to the first entry at or after the key.
    fn settle_behind(&mut self, table: &TableReader, user_key: &[u8], wanted: Trailer) -> Result<()> {
        self.skip_forward(table)?;
        // A stored trailer of zero equals `LAST`, although with the table's sequence number it comes before the target.
        if self.global_seq.is_some_and(|seq| wanted.seq() < seq)
            && self.cursor.internal_key().is_some_and(|k| k.user_key() == user_key)
        {
            self.in_block_of(table, |cursor, block| cursor.next(block))?;
            self.skip_forward(table)?;
        }
        Ok(())
    }

    fn seek_for_prev(&mut self, table: &TableReader, target: InternalKey<'_>) -> Result<()> {
        let (user_key, trailer) = target.split();
        let (order, stored) = (table.order(), stored_trailer(table.global_seq(), trailer));
        let found = table.find(user_key, stored, &self.how)?;
        if found.is_none() {
            return self.last(table);
        }
        self.load(table, found)?;
        self.in_block_of(table, |cursor, block| cursor.seek_key_for_prev(block, order, user_key, stored))?;
        self.skip_backward(table)
    }

    fn first(&mut self, table: &TableReader) -> Result<()> {
        let first = table.first_block(&self.how)?;
        if !self.load(table, first)? {
            return Ok(());
        }
        self.in_block_of(table, |cursor, block| cursor.first(block))?;
        self.skip_forward(table)
    }

    fn last(&mut self, table: &TableReader) -> Result<()> {
        let last = table.last_block(&self.how)?;
        if !self.load(table, last)? {
            return Ok(());
        }
        self.in_block_of(table, |cursor, block| cursor.last(block))?;
        self.skip_backward(table)
    }
}

/// The trailer to search for in the table. If the table has one sequence number for all entries, every stored one is
/// zero.
fn stored_trailer(global_seq: Option<SeqNum>, target: Trailer) -> Trailer {
    let Some(seq) = global_seq else { return target };
    match target.seq().cmp(&seq) {
        Ordering::Greater => Trailer::FIRST,
        Ordering::Equal => Trailer::from_raw(u64::from(target.type_byte())),
        Ordering::Less => Trailer::LAST,
    }
}

impl<S: TableSource> InternalIterator for TableIter<S> {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.seek_begin(target)?;
        self.seek_finish(target)
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.go(|place, table| place.seek_for_prev(table, target))
    }

    fn first(&mut self) -> Result<()> {
        self.go(Place::first)
    }

    fn last(&mut self) -> Result<()> {
        self.go(Place::last)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self.place.in_block(|cursor, block| cursor.next(block)) {
            Ok(()) if self.place.cursor.is_on_entry() => {
                self.place.present();
                Ok(())
            }
            Ok(()) if self.place.pin.is_none() => Ok(()),
            Ok(()) => self.go(Place::skip_forward),
            Err(e) => self.go(|place, table| Err(table.misread(place.at, e))),
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        match self.place.in_block(|cursor, block| cursor.prev(block)) {
            Ok(()) if self.place.cursor.is_on_entry() => {
                self.place.present();
                Ok(())
            }
            Ok(()) if self.place.pin.is_none() => Ok(()),
            Ok(()) => self.go(Place::skip_backward),
            Err(e) => self.go(|place, table| Err(table.misread(place.at, e))),
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let key = self.key()?;
        Some(Entry { key, value: self.place.cursor.value_range().of(self.place.pin.as_ref()?) })
    }

    #[inline]
    fn key(&self) -> Option<InternalKey<'_>> {
        let Place { cursor, presented, global_seq, .. } = &self.place;
        let stored = cursor.internal_key()?;
        if global_seq.is_some() { presented.as_ref().map(InternalKeyBuf::as_key) } else { Some(stored) }
    }
}

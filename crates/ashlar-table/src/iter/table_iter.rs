//! The general cursor over a table, both ways, through the pool.

use crate::iter::Readahead;
use crate::options::ReadHow;
use crate::reader::{BlockAt, TableReader};
use ashlar_base::{Entry, InternalIterator, InternalKey, InternalKeyBuf, Malformed, Order, Result, Trailer};
use ashlar_cache::FramePin;
use ashlar_format::block::{BlockCursor, DataBlock};
use std::cmp::Ordering;
use std::sync::Arc;

/// A cursor over the entries of one table. Pins the block it stands in.
#[derive(Debug)]
pub struct TableIter {
    table: Arc<TableReader>,
    how: ReadHow,
    readahead: Option<Readahead>,
    at: BlockAt,
    /// `None` exactly when the cursor is off the end.
    pin: Option<FramePin>,
    cursor: BlockCursor,
    /// The key as presented, for a table whose one sequence number stands in the MANIFEST.
    presented: Option<InternalKeyBuf>,
}

impl TableIter {
    pub(crate) fn new(table: Arc<TableReader>, how: ReadHow) -> Self {
        let readahead = (how.readahead > 0).then(|| Readahead::new(how.readahead, table.charge_buffer()));
        TableIter {
            table,
            how,
            readahead,
            at: BlockAt::default(),
            pin: None,
            cursor: BlockCursor::default(),
            presented: None,
        }
    }

    /// The table it goes over.
    pub fn table(&self) -> &Arc<TableReader> {
        &self.table
    }

    /// Bytes of the block it stands in; 0 off the end.
    pub fn block_bytes(&self) -> usize {
        self.pin.as_ref().map_or(0, |pin| pin.len())
    }

    /// Pins the block; off the end for none. False then.
    fn load(&mut self, block: Option<BlockAt>) -> Result<bool> {
        if self.pin.is_some() && block == Some(self.at) {
            return Ok(true);
        }
        self.pin = None;
        self.cursor.reset();
        let Some(at) = block else { return Ok(false) };
        self.at = at;
        self.pin = Some(self.table.block(at, self.how.fill_cache, self.readahead.as_mut())?);
        Ok(true)
    }

    /// Runs `act` on the pinned block and the table's order.
    #[inline]
    fn in_block(
        &mut self,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>, &Order) -> Result<(), Malformed>,
    ) -> Result<()> {
        let Some(pin) = &self.pin else { return Ok(()) };
        let moved = match DataBlock::reopen(pin) {
            Ok(block) => act(&mut self.cursor, &block, self.table.order()).map_err(Into::into),
            Err(e) => Err(e),
        };
        moved.map_err(|e| self.table.misread(self.at, e))
    }

    /// If the block has ended: goes on to the first entry of the next block that has any.
    #[inline]
    fn skip_forward(&mut self) -> Result<()> {
        while !self.cursor.is_on_entry() {
            let next = self.table.after(self.at)?;
            if !self.load(next)? {
                break;
            }
            self.in_block(|cursor, block, _| cursor.first(block))?;
        }
        Ok(())
    }

    /// If the block has ended at its front: goes on to the last entry of the block before that has any.
    #[inline]
    fn skip_backward(&mut self) -> Result<()> {
        while !self.cursor.is_on_entry() {
            let before = self.table.before(self.at)?;
            if !self.load(before)? {
                break;
            }
            self.in_block(|cursor, block, _| cursor.last(block))?;
        }
        Ok(())
    }

    /// Closes a positioning call: off the end after an error, the presented key up to date.
    #[inline]
    fn settle(&mut self, moved: Result<()>) -> Result<()> {
        if moved.is_err() {
            self.pin = None;
            self.cursor.reset();
        }
        if let Some(seq) = self.table.global_seq()
            && let Some(key) = self.cursor.internal_key()
        {
            let (user_key, trailer) = key.split();
            let trailer = Trailer::from_raw(seq.get() << 8 | u64::from(trailer.type_byte()));
            self.presented.get_or_insert_with(|| InternalKeyBuf::new(&[], trailer)).set(user_key, trailer);
        }
        moved
    }

    /// The trailer to look for inside the table. Where one sequence number stands for all, every stored one is zero.
    fn stored_trailer(&self, target: Trailer) -> Trailer {
        let Some(seq) = self.table.global_seq() else { return target };
        match target.seq().cmp(&seq) {
            Ordering::Greater => Trailer::FIRST,
            Ordering::Equal => Trailer::from_raw(u64::from(target.type_byte())),
            Ordering::Less => Trailer::LAST,
        }
    }

    /// Pins the block that a [`seek`](InternalIterator::seek) to `target` will search, and asks the processor for it. The
    /// cursor stands nowhere until that seek. Who seeks in several tables aims in all of them first: their memory comes at
    /// the same time.
    ///
    /// # Errors
    /// As the seek.
    pub fn aim(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, wanted) = target.split();
        let found = self.table.find(user_key, self.stored_trailer(wanted))?;
        self.load_to_search(found).map(drop)
    }

    /// [`TableIter::load`], and asks the processor for a block that it did not stand in.
    #[inline]
    fn load_to_search(&mut self, block: Option<BlockAt>) -> Result<bool> {
        if self.pin.is_some() && block == Some(self.at) {
            return Ok(true);
        }
        let loaded = self.load(block)?;
        if let Some(pin) = &self.pin {
            pin.prefetch();
        }
        Ok(loaded)
    }

    fn seek_inner(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, wanted) = target.split();
        let trailer = self.stored_trailer(wanted);
        let found = self.table.find(user_key, trailer)?;
        if !self.load_to_search(found)? {
            return Ok(());
        }
        self.in_block(|cursor, block, order| cursor.seek_key(block, order, user_key, trailer))?;
        self.skip_forward()?;
        // A stored trailer of zero equals `LAST`, though as presented it comes before the target.
        if self.table.global_seq().is_some_and(|seq| wanted.seq() < seq)
            && self.cursor.internal_key().is_some_and(|k| k.user_key() == user_key)
        {
            self.in_block(|cursor, block, _| cursor.next(block))?;
            self.skip_forward()?;
        }
        Ok(())
    }

    fn seek_for_prev_inner(&mut self, target: InternalKey<'_>) -> Result<()> {
        let (user_key, trailer) = target.split();
        let stored = self.stored_trailer(trailer);
        let found = self.table.find(user_key, stored)?;
        if found.is_none() {
            return self.last_inner();
        }
        self.load(found)?;
        self.in_block(|cursor, block, order| cursor.seek_key_for_prev(block, order, user_key, stored))?;
        self.skip_backward()
    }

    fn first_inner(&mut self) -> Result<()> {
        let first = self.table.first_block()?;
        if !self.load(first)? {
            return Ok(());
        }
        self.in_block(|cursor, block, _| cursor.first(block))?;
        self.skip_forward()
    }

    fn last_inner(&mut self) -> Result<()> {
        let last = self.table.last_block()?;
        if !self.load(last)? {
            return Ok(());
        }
        self.in_block(|cursor, block, _| cursor.last(block))?;
        self.skip_backward()
    }
}

impl InternalIterator for TableIter {
    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let moved = self.seek_inner(target);
        self.settle(moved)
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let moved = self.seek_for_prev_inner(target);
        self.settle(moved)
    }

    fn first(&mut self) -> Result<()> {
        let moved = self.first_inner();
        self.settle(moved)
    }

    fn last(&mut self) -> Result<()> {
        let moved = self.last_inner();
        self.settle(moved)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.pin.is_none() {
            return Ok(());
        }
        let mut moved = self.in_block(|cursor, block, _| cursor.next(block));
        if moved.is_ok() {
            moved = self.skip_forward();
        }
        self.settle(moved)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.pin.is_none() {
            return Ok(());
        }
        let mut moved = self.in_block(|cursor, block, _| cursor.prev(block));
        if moved.is_ok() {
            moved = self.skip_backward();
        }
        self.settle(moved)
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let stored = self.cursor.internal_key()?;
        let value = self.cursor.value_range().of(self.pin.as_ref()?);
        let key = if self.table.global_seq().is_some() { self.presented.as_ref()?.as_key() } else { stored };
        Some(Entry { key, value })
    }
}

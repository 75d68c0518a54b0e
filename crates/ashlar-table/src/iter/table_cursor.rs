//! A position in a table, both ways, through the pool.
//!
//! 1. The cursor pins its current block and nothing else. Steps inside the block need no table. A caller that leaves the
//!    block gives the table, and may close it between two calls. The table reopens as the same file, so positions in it stay
//!    valid.
//! 2. A step has two halves. [`TableCursor::step`] and [`TableCursor::step_back`] move inside the block, and are small enough
//!    to become part of their caller. [`TableCursor::next_block`] and [`TableCursor::prev_block`] do the remaining steps.
//! 3. The cursor is off the end exactly when it pins no block. After an error it is off the end.

use crate::read_how::ReadHow;
use crate::reader::{Ahead, BlockAt, TableReader, opened};
use ashlar_base::key::Sharing;
use ashlar_base::{Entry, InternalKey, InternalKeyBuf, Malformed, Order, Result, SeqNum, Trailer};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{BlockCursor, DataBlock, Passed, Start, ValueRange};
use std::cmp::Ordering;

/// The result of a step inside a block: whether the cursor is on an entry. False: the entry is in another block, if there
/// is one.
pub type Stepped = Result<bool, Malformed>;

/// The number of cache lines that a seek prefetches from where its search begins, for the steps after it: about seven entries.
const SOUGHT_LINES: usize = 12;

/// A cursor that has walked into this many blocks since its last seek prefetches the next one.
const WALKS: u32 = 2;

/// See the module. A cursor belongs to one table until [`TableCursor::leave_table`].
#[derive(Debug, Default)]
pub struct TableCursor {
    at: BlockAt,
    pin: Option<FramePin>,
    /// The length of the block's entry area, with which the block begins.
    entries: usize,
    cursor: BlockCursor,
    /// During a seek: the block to search, and where the search begins in it.
    sought: Option<BlockAt>,
    start: Option<Start>,
    /// The sequence number of all entries, for a table whose MANIFEST entry has it.
    global_seq: Option<SeqNum>,
    /// The key with that sequence number, for such a table.
    presented: Option<InternalKeyBuf>,
    ahead: Ahead,
    /// The number of blocks that the cursor has walked into since its last seek.
    walked: u32,
}

impl TableCursor {
    /// Leaves the table. The cursor is off the end, and the next positioning call may give another table.
    pub fn leave_table(&mut self) {
        self.leave();
        self.ahead = Ahead::default();
    }

    /// Bytes of the current block; 0 off the end.
    pub fn block_bytes(&self) -> usize {
        self.pin.as_ref().map_or(0, |pin| pin.len())
    }

    /// Bytes of its copies of keys.
    pub fn key_bytes(&self) -> usize {
        self.cursor.key_bytes() + self.presented.as_ref().map_or(0, InternalKeyBuf::memory)
    }

    /// Whether the cursor is on an entry.
    #[inline]
    pub fn is_on_entry(&self) -> bool {
        self.cursor.is_on_entry()
    }

    /// Whether the cursor pins no block. Between the two halves of a step, a cursor may pin a block without an entry.
    #[inline]
    pub fn is_off_the_end(&self) -> bool {
        self.pin.is_none()
    }

    /// Whether the MANIFEST gives the sequence number of all entries of the current table.
    #[inline]
    pub fn has_global_seq(&self) -> bool {
        self.global_seq.is_some()
    }

    /// The entry under the cursor; `None` off the end.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        let key = self.key()?;
        Some(Entry { key, value: self.value() })
    }

    /// The key of that entry.
    #[inline]
    pub fn key(&self) -> Option<InternalKey<'_>> {
        let stored = self.cursor.internal_key()?;
        if self.global_seq.is_none() { Some(stored) } else { self.presented_key() }
    }

    #[cold]
    fn presented_key(&self) -> Option<InternalKey<'_>> {
        self.presented.as_ref().map(InternalKeyBuf::as_key)
    }

    /// The value of that entry; empty off the end.
    #[inline]
    pub fn value(&self) -> &[u8] {
        let ValueRange { start, end } = self.cursor.value_range();
        self.pin.as_ref().map_or(&[], |pin| pin.at(start..end))
    }

    /// Moves one entry on inside the block if that entry is plain; see [`BlockCursor::step_plain`]. False: the cursor has not
    /// moved. No entry is plain in a table whose entries have one sequence number.
    #[inline]
    pub fn step_plain(&mut self, order: &Order, seq: SeqNum) -> bool {
        let Some(block) = &self.pin else { return false };
        self.global_seq.is_none() && self.cursor.step_plain(block.at(0..self.entries), order, seq)
    }

    /// [`TableCursor::step`]. Returns the new user key beside the old one; `None`: the entry is in another block, if there is one.
    #[inline]
    pub fn step_sharing(&mut self) -> Result<Option<Sharing>, Malformed> {
        let Some(block) = &self.pin else { return Ok(None) };
        let sharing = self.cursor.step_sharing(block.at(0..self.entries))?;
        self.present();
        Ok(sharing)
    }

    /// [`TableCursor::step_back`]. Returns the new user key beside the old one; `None`: the cursor has not moved.
    #[inline]
    pub fn step_back_sharing(&mut self) -> Option<Sharing> {
        let sharing = self.cursor.sharing_before()?;
        self.cursor.step_back();
        self.present();
        Some(sharing)
    }

    /// The user key of the entry before, beside the one under the cursor. `None`: that entry is not decoded yet, or does not exist.
    #[inline]
    pub fn sharing_before(&self) -> Option<Sharing> {
        self.cursor.sharing_before()
    }

    /// The user key under the cursor, or after a step off the end of the block, the one that it has left.
    #[inline]
    pub fn left_key(&self) -> &[u8] {
        self.cursor.left_key()
    }

    /// Moves one entry back inside the decoded entries if that entry is plain; see [`BlockCursor::step_back_plain`]. False: the
    /// cursor has not moved.
    #[inline]
    pub fn step_back_plain(&mut self, order: &Order, seq: SeqNum) -> bool {
        self.global_seq.is_none() && self.cursor.step_back_plain(order, seq)
    }

    /// The user key of the entry before. `None`: that entry is not decoded yet, or does not exist.
    #[inline]
    pub fn user_key_before(&self) -> Option<&[u8]> {
        self.cursor.key_before(1).map(InternalKey::user_key)
    }

    /// The length of user key and value under the cursor.
    #[inline]
    pub fn shown_len(&self) -> usize {
        self.cursor.shown_len()
    }

    /// Moves one entry on inside the block. If the answer is not `Ok(true)`, [`TableCursor::next_block`] ends the step.
    #[inline]
    pub fn step(&mut self) -> Stepped {
        let Some(block) = &self.pin else { return Ok(false) };
        self.cursor.step(block.at(0..self.entries))?;
        self.present();
        Ok(self.cursor.is_on_entry())
    }

    /// Moves one entry back inside the block. If the answer is not `Ok(true)`, [`TableCursor::prev_block`] ends the step.
    #[inline]
    pub fn step_back(&mut self) -> Stepped {
        if !self.cursor.step_back() {
            self.in_block(|cursor, block| cursor.prev(block))?;
        }
        self.present();
        Ok(self.cursor.is_on_entry())
    }

    /// Passes deletions inside the block; see [`BlockCursor::pass_deletions`]. Passes nothing in a table whose entries have
    /// one sequence number.
    ///
    /// # Errors
    /// `Malformed`: the block is damaged. [`TableCursor::next_block`] makes an error with its place of that.
    pub fn pass_deletions(
        &mut self,
        order: &Order,
        seq: SeqNum,
        limit: Option<&[u8]>,
    ) -> Result<Passed, Malformed> {
        let mut passed = Passed::default();
        if self.global_seq.is_none() {
            self.in_block(|cursor, block| {
                passed = cursor.pass_deletions(block, order, seq, limit)?;
                Ok(())
            })?;
        }
        Ok(passed)
    }

    /// Ends a step forward that left the block, or failed in it.
    ///
    /// # Errors
    /// `Corruption`: a block is damaged. `Io`: a read failed. Also those of [`ReadHow::in_file`].
    pub fn next_block(&mut self, table: &TableReader, how: &ReadHow, stepped: Stepped) -> Result<()> {
        let moved = self.check(table, stepped).and_then(|_| self.skip_forward(table, how));
        self.end(moved)
    }

    /// Ends a step backward that left the block, or failed in it.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn prev_block(&mut self, table: &TableReader, how: &ReadHow, stepped: Stepped) -> Result<()> {
        let moved = self.check(table, stepped).and_then(|_| self.skip_backward(table, how));
        self.end(moved)
    }

    /// The first part of a seek to the first entry at or after `target`: finds the block to search. Each part prefetches what
    /// the next one reads. A caller that seeks in several tables does each part in all of them, so that they wait for
    /// memory together. The position is not known until [`TableCursor::seek_finish`].
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn seek_begin(&mut self, table: &TableReader, how: &ReadHow, target: InternalKey<'_>) -> Result<()> {
        // Of a seek that ended early, as when another table failed.
        (self.sought, self.start, self.walked) = (None, None, 0);
        let (user_key, wanted) = target.split();
        match table.find(user_key, stored_trailer(table.global_seq(), wanted), how) {
            Ok(found) => {
                self.sought = found;
                found.iter().for_each(|at| table.prefetch_slot(*at));
                Ok(())
            }
            Err(e) => self.end(Err(e)),
        }
    }

    /// The second part: pins the block.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn seek_pin(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        let sought = self.sought.take();
        if self.pin.is_some() && sought == Some(self.at) {
            return Ok(());
        }
        let loaded = self.load(table, how, sought);
        self.pin.iter().for_each(FramePin::prefetch);
        self.end(loaded)
    }

    /// The third part: finds out where the search in the block begins. It can be left out.
    #[inline]
    pub fn seek_start(&mut self, order: &Order, target: InternalKey<'_>) {
        if let Some(pin) = &self.pin
            && let Ok(block) = opened(pin)
        {
            self.start = block.start(order, target.user_key());
            self.start.iter().for_each(|start| start.prefetch(&block, SOUGHT_LINES));
        }
    }

    /// The last part: searches the pinned block. If the answer is not `Ok(true)`, [`TableCursor::seek_settle`] ends the seek.
    #[inline]
    pub fn seek_finish(&mut self, order: &Order, target: InternalKey<'_>) -> Stepped {
        let (user_key, wanted) = target.split();
        let stored = stored_trailer(self.global_seq, wanted);
        let start = self.start.take();
        self.in_block(|cursor, block| match start {
            Some(start) => cursor.seek_from(block, start, order, user_key, stored),
            None => cursor.seek_key(block, order, user_key, stored),
        })?;
        Ok(self.global_seq.is_none() && self.cursor.is_on_entry())
    }

    /// The end of a seek whose entry is behind the block, or may be.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn seek_settle(
        &mut self,
        table: &TableReader,
        how: &ReadHow,
        target: InternalKey<'_>,
        sought: Stepped,
    ) -> Result<()> {
        let settled = self.check(table, sought).and_then(|_| self.settle_behind(table, how, target));
        self.end(settled)
    }

    /// Moves to the last entry at or before `target`.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn seek_for_prev(
        &mut self,
        table: &TableReader,
        how: &ReadHow,
        target: InternalKey<'_>,
    ) -> Result<()> {
        let moved = self.seek_back(table, how, target);
        self.end(moved)
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn first(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        let moved = table.first_block(how).and_then(|first| {
            self.load(table, how, first)?;
            self.in_block_of(table, |cursor, block| cursor.first(block))?;
            self.skip_forward(table, how)
        });
        self.end(moved)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`TableCursor::next_block`].
    pub fn last(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        let moved = self.go_last(table, how);
        self.end(moved)
    }

    fn go_last(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        self.load(table, how, table.last_block(how)?)?;
        self.in_block_of(table, |cursor, block| cursor.last(block))?;
        self.skip_backward(table, how)
    }

    fn leave(&mut self) {
        self.pin = None;
        self.cursor.reset();
    }

    /// Ends a move: after an error the cursor is off the end.
    fn end(&mut self, moved: Result<()>) -> Result<()> {
        if moved.is_err() {
            self.leave();
        }
        self.present();
        moved
    }

    /// The error of a step in the block, with the block's place.
    fn check(&self, table: &TableReader, stepped: Stepped) -> Result<bool> {
        stepped.map_err(|e| table.misread(self.at, e.into()))
    }

    /// Pins the block. `None`: the cursor is off the end.
    fn load(&mut self, table: &TableReader, how: &ReadHow, block: Option<BlockAt>) -> Result<()> {
        if self.pin.is_some() && block == Some(self.at) {
            return Ok(());
        }
        self.leave();
        let Some(at) = block else { return Ok(()) };
        if let Some(limit) = &how.limit {
            limit.check()?;
        }
        self.at = at;
        self.global_seq = table.global_seq();
        self.pin = Some(table.block(at, how, Some(&mut self.ahead))?);
        Ok(())
    }

    /// Runs `act` on the pinned block. Does nothing off the end.
    #[inline]
    fn in_block(
        &mut self,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let Some(pin) = &self.pin else { return Ok(()) };
        match opened(pin) {
            Ok(block) => {
                self.entries = block.entries().len();
                act(&mut self.cursor, &block)
            }
            Err(Unreadable::Malformed(e)) => Err(e),
            // Not reached: whatever reads a block from a file opens it.
            Err(_) => Err(Malformed { field: "block", at: 0, what: "not readable" }),
        }
    }

    fn in_block_of(
        &mut self,
        table: &TableReader,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>) -> Result<(), Malformed>,
    ) -> Result<()> {
        self.in_block(act).map_err(|e| table.misread(self.at, e.into()))
    }

    /// If the block has ended, goes on to the first entry of the next nonempty block.
    fn skip_forward(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        while self.pin.is_some() && !self.cursor.is_on_entry() {
            self.load(table, how, table.after(self.at, how)?)?;
            self.prefetch_next(table, self.at.block().checked_add(1));
            self.in_block_of(table, |cursor, block| cursor.first(block))?;
        }
        Ok(())
    }

    /// Notes that the cursor has walked into a block. Prefetches `block`, to which it comes next, if it has walked for a while.
    // bench: readseq, readreverse
    #[inline]
    fn prefetch_next(&mut self, table: &TableReader, block: Option<u32>) {
        self.walked = self.walked.saturating_add(1);
        if self.walked >= WALKS
            && let Some(block) = block
        {
            table.prefetch_block(BlockAt::new(self.at.partition(), block));
        }
    }

    /// If the block has ended at its front, goes back to the last entry of the preceding nonempty block.
    fn skip_backward(&mut self, table: &TableReader, how: &ReadHow) -> Result<()> {
        while self.pin.is_some() && !self.cursor.is_on_entry() {
            self.load(table, how, table.before(self.at, how)?)?;
            self.prefetch_next(table, self.at.block().checked_sub(1));
            self.in_block_of(table, |cursor, block| cursor.last(block))?;
        }
        Ok(())
    }

    /// Updates the key with the table's sequence number.
    #[inline]
    fn present(&mut self) {
        if let Some(seq) = self.global_seq {
            self.present_at(seq);
        }
    }

    #[cold]
    fn present_at(&mut self, seq: SeqNum) {
        if let Some(key) = self.cursor.internal_key() {
            let (user_key, trailer) = key.split();
            let trailer = Trailer::from_raw(seq.get() << 8 | u64::from(trailer.type_byte()));
            self.presented.get_or_insert_with(|| InternalKeyBuf::new(&[], trailer)).set(user_key, trailer);
        }
    }

    /// Ends a search for a key: goes on from the end of the block to the first entry at or after the key.
    fn settle_behind(&mut self, table: &TableReader, how: &ReadHow, target: InternalKey<'_>) -> Result<()> {
        self.skip_forward(table, how)?;
        let (user_key, wanted) = target.split();
        // A stored trailer of zero equals `LAST`, although with the table's sequence number it comes before the target.
        if self.global_seq.is_some_and(|seq| wanted.seq() < seq)
            && self.cursor.internal_key().is_some_and(|k| k.user_key() == user_key)
        {
            self.in_block_of(table, |cursor, block| cursor.next(block))?;
            self.skip_forward(table, how)?;
        }
        Ok(())
    }

    fn seek_back(&mut self, table: &TableReader, how: &ReadHow, target: InternalKey<'_>) -> Result<()> {
        self.walked = 0;
        let (user_key, trailer) = target.split();
        let (order, stored) = (table.order(), stored_trailer(table.global_seq(), trailer));
        let found = table.find(user_key, stored, how)?;
        if found.is_none() {
            return self.go_last(table, how);
        }
        self.load(table, how, found)?;
        self.in_block_of(table, |cursor, block| cursor.seek_key_for_prev(block, order, user_key, stored))?;
        self.skip_backward(table, how)
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

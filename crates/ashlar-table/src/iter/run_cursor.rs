//! The forward cursor of compaction: it reads in large pieces, uses no block cache, and returns entries in windows.

use crate::read_how::ReadHow;
use crate::reader::{BlockAt, Readahead, SharedBlock, TableReader, Windows};
use ashlar_base::{LookupKey, Malformed, Order, Result, RunCursor, Trailer, Window};
use ashlar_format::block::{BlockCursor, DataBlock};
use std::sync::Arc;

/// Reads a table from front to back. It decodes blocks from its own window on the file and does not use the block
/// cache. Off an entry, `at` is the block whose entries are all handed out; the next block is read by the next call of
/// `window`, when no window holds the buffer any more.
#[derive(Debug)]
struct TableRunCursor {
    table: Arc<TableReader>,
    /// The ordinal of `block`; `None` past the last.
    at: Option<BlockAt>,
    /// Windows hold its buffer as long as they have its entries. Dropped before `readahead`, which hands the buffer on.
    block: SharedBlock,
    readahead: Readahead,
    cursor: BlockCursor,
    /// The file offset of `block`.
    base: u64,
}

impl TableReader {
    /// A forward cursor for compaction. It reads at least `readahead` bytes at a time, verifies checksums as the
    /// options say, and does not use the block cache. Call `seek` before the first use.
    pub fn cursor(self: &Arc<Self>, readahead: usize) -> Box<dyn RunCursor> {
        Box::new(TableRunCursor::new(self.clone(), readahead, None))
    }

    /// [`TableReader::cursor`] with a buffer of `windows`.
    pub fn cursor_within(self: &Arc<Self>, readahead: usize, windows: &Arc<Windows>) -> Box<dyn RunCursor> {
        Box::new(TableRunCursor::new(self.clone(), readahead, Some(Arc::clone(windows))))
    }
}

impl TableRunCursor {
    /// A cursor before the first entry. `readahead`: the least number of bytes per read.
    fn new(table: Arc<TableReader>, readahead: usize, windows: Option<Arc<Windows>>) -> Self {
        let readahead = Readahead::new(readahead, table.charge_buffer()).within(windows);
        TableRunCursor {
            table,
            readahead,
            at: None,
            block: SharedBlock::default(),
            cursor: BlockCursor::default(),
            base: 0,
        }
    }

    /// Reads block `self.at` and positions before its first entry. False past the last block.
    fn load(&mut self) -> Result<bool> {
        self.cursor.reset();
        self.block = SharedBlock::default();
        let Some(handle) = self.at.and_then(|at| self.table.handle(at)) else { return Ok(false) };
        self.base = handle.offset;
        self.block = self.readahead.read_shared(self.table.file(), handle)?;
        DataBlock::parse(self.block.bytes()).map_err(|e| e.in_file(self.table.path(), self.base))?;
        Ok(true)
    }

    /// Positions on the first entry of block `self.at`, or of the next nonempty block.
    fn first_from_here(&mut self) -> Result<()> {
        while self.load()? {
            self.in_block(|cursor, block, _| cursor.first(block))?;
            if self.cursor.is_on_entry() {
                break;
            }
            self.advance()?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(at) = self.at {
            self.at = self.table.after(at, ReadHow::plain())?;
        }
        Ok(())
    }

    fn in_block(
        &mut self,
        act: impl FnOnce(&mut BlockCursor, &DataBlock<'_>, &Order) -> Result<(), Malformed>,
    ) -> Result<()> {
        let path = self.table.path();
        let block = DataBlock::reopen(self.block.bytes()).map_err(|e| e.in_file(path, self.base))?;
        act(&mut self.cursor, &block, self.table.order()).map_err(|e| e.in_file(path, self.base))
    }

    fn place(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let Some(key) = key else {
            self.at = self.table.first_block(ReadHow::plain())?;
            return self.first_from_here();
        };
        let trailer = match self.table.global_seq() {
            Some(seq) if seq > key.seq => Trailer::LAST,
            Some(_) => Trailer::FIRST,
            None => key.trailer(),
        };
        self.at = self.table.find(key.user_key, trailer, ReadHow::plain())?;
        if !self.load()? {
            return Ok(());
        }
        self.in_block(|cursor, block, order| cursor.seek_key(block, order, key.user_key, trailer))?;
        if !self.cursor.is_on_entry() {
            self.advance()?;
            self.first_from_here()?;
        }
        // If the table's one sequence number is above the key's, no entry of that user key may be seen.
        if trailer == Trailer::LAST {
            while self.cursor.internal_key().is_some_and(|k| k.user_key() == key.user_key) {
                self.step()?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.in_block(|cursor, block, _| cursor.next(block))?;
        if !self.cursor.is_on_entry() {
            self.advance()?;
            self.first_from_here()?;
        }
        Ok(())
    }

    /// Moves from the end of a block to the first entry behind it. False at the end of the table.
    fn reach_entry(&mut self) -> Result<bool> {
        if !self.cursor.is_on_entry() {
            self.advance()?;
            self.first_from_here()?;
        }
        Ok(self.cursor.is_on_entry())
    }

    /// Goes to the end of the table.
    fn leave(&mut self) {
        self.at = None;
        self.cursor.reset();
        self.block = SharedBlock::default();
    }

    /// Replaces the content of the window with entries of the current block, until it is full or the block ends.
    fn fill(&mut self, window: &mut Window) -> Result<()> {
        let global = self.table.global_seq();
        window.pin(&self.block.buffer);
        let base = self.block.range.start;
        self.in_block(|cursor, block, _| {
            while let Some(key) = cursor.internal_key() {
                if window.is_full() {
                    break;
                }
                let value = cursor.value_range();
                window.push_in_block(key, base + value.start..base + value.end);
                if let Some(seq) = global {
                    let raw = seq.get() << 8 | u64::from(key.trailer().type_byte());
                    window.set_last_trailer(Trailer::from_raw(raw));
                }
                cursor.next(block)?;
            }
            Ok(())
        })
    }
}

impl RunCursor for TableRunCursor {
    fn seek(&mut self, key: Option<&LookupKey<'_>>) -> Result<()> {
        let placed = self.place(key);
        if placed.is_err() {
            self.leave();
        }
        placed
    }

    fn window(&mut self, window: &mut Window) -> Result<bool> {
        window.clear();
        let filled =
            self.reach_entry().and_then(|on| if on { self.fill(window).map(|()| true) } else { Ok(false) });
        if filled.is_err() {
            self.leave();
            window.clear();
        }
        filled
    }
}

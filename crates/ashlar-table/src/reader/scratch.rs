//! The buffers in which a thread's point lookups read blocks that do not enter the block cache.
//!
//! Without them each such lookup would allocate, zero and free one or two buffers of a block's length. It would also copy
//! the block into a frame, for which another frame has to leave the cache.
//!
//! 1. A thread holds at most two buffers of twice [`LONGEST`] bytes, usually of one block each. They are freed with the
//!    thread, and are not charged to the memory budget. A longer block does not stay in them.
//! 2. The buffers keep their last block if its checksum was verified, or no read of its table verifies any. The next
//!    lookup in that block reads no file. Tables do not change, so the block is never stale.

use ashlar_base::kept::with_kept;
use ashlar_format::table::BlockHandle;
use std::cell::RefCell;

/// The longest block, stored or uncompressed, that is read into the buffers.
pub(super) const LONGEST: usize = 64 << 10;

/// A block of a table: the table's slots ([`SlotArray::id`](ashlar_cache::SlotArray::id)) and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId {
    pub(super) slots: u64,
    pub(super) ordinal: u32,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs a lookup with the thread's buffers.
pub(super) fn with_scratch<T>(run: impl FnOnce(&mut Scratch) -> T) -> T {
    with_kept(&SCRATCH, |scratch| {
        let done = run(scratch);
        scratch.trim();
        done
    })
}

/// One thread's buffers.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The block as stored, with its trailer.
    pub(super) stored: Vec<u8>,
    /// The block, uncompressed and in the plain form, unless it is so in `stored` already.
    pub(super) raw: Vec<u8>,
    /// `Some`: the block is the first so many bytes of `stored`. `None`: it is `raw`.
    pub(super) as_stored: Option<usize>,
    /// The block that later lookups may use.
    kept: Option<BlockId>,
}

impl Scratch {
    /// Whether a block of that stored length is read into the buffers.
    pub(super) fn takes(handle: BlockHandle) -> bool {
        handle.size <= LONGEST as u64
    }

    /// The block that was read last.
    pub(super) fn block(&self) -> &[u8] {
        match self.as_stored {
            Some(len) => self.stored.get(..len).unwrap_or_default(),
            None => &self.raw,
        }
    }

    /// Whether [`Scratch::block`] is that block.
    pub(super) fn has(&self, id: BlockId) -> bool {
        self.kept == Some(id)
    }

    /// Keeps the block for later lookups as that one; with `None`, no lookup may use it any more.
    pub(super) fn keep(&mut self, id: Option<BlockId>) {
        self.kept = id;
    }

    /// The block that was read last, without a copy.
    pub(super) fn into_block(mut self) -> Vec<u8> {
        match self.as_stored {
            Some(len) => {
                self.stored.truncate(len);
                self.stored
            }
            None => self.raw,
        }
    }

    /// Frees the buffer of a block that is too long to stay.
    fn trim(&mut self) {
        if self.raw.capacity() > 2 * LONGEST {
            self.raw = Vec::new();
            self.kept = None;
        }
    }
}

//! Which blocks enter a pool without room: those that were read before, about one turnover of the pool ago at most.
//!
//! A pool that admits every block that is read evicts, for a block that no read asks for again, one that reads ask for.
//! So a block enters while there is room, and afterwards on its second read. One byte per block, its ghost, holds the
//! time of the read that did not admit it.
//!
//! ```text
//! time of a pool, u64: | turnovers | eighths: 3 bits | fraction: 37 bits |    a turnover = as many bytes read as the pool may hold
//! ghost of a block:    | 8 bits from `eighths` upwards |                      0 = never read
//! ```
//! 1. Only reads that miss move the time, each by the length of its block.
//! 2. A ghost is a hint: it wraps after 32 turnovers and is 0 or 1 for the same time, so that a block may enter a turn
//!    early or late. No read depends on it.
//!
//! Source: T. Johnson, D. Shasha, "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm", VLDB 1994.

use crate::pages::Pages;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The bits of the time below one turnover, and below an eighth of one.
const TURNOVER: u32 = 40;
const EIGHTH: u32 = TURNOVER - 3;
/// The eighths of a turnover during which a read is remembered.
const REMEMBERED: u8 = 8;
/// A longer block moves the time as one of this length.
const LONGEST: usize = 4 << 20;

/// The time of a pool, in turnovers of its contents. Relaxed: it orders no other memory access.
#[derive(Debug)]
pub(crate) struct Turnovers(AtomicU64);

impl Turnovers {
    pub(crate) fn new() -> Turnovers {
        Turnovers(AtomicU64::new(0))
    }

    /// Moves the time by a read of `bytes` in a pool that may hold `limit` bytes. Returns the eighth of the read.
    fn pass(&self, bytes: usize, limit: usize) -> u8 {
        let (bytes, limit) = (bytes.min(LONGEST) as u64, limit.max(1) as u64);
        let step = (bytes << TURNOVER) / limit;
        (self.0.fetch_add(step, Ordering::Relaxed) >> EIGHTH).to_le_bytes()[0]
    }
}

/// One ghost for each block of a table.
pub(crate) struct Ghosts(Pages<AtomicU8>);

impl Ghosts {
    pub(crate) fn new(blocks: u32) -> Ghosts {
        Ghosts((0..blocks).map(|_| AtomicU8::new(0)).collect())
    }

    /// The memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Notes a read of a block that is not in the pool. True when the preceding one is remembered.
    pub(crate) fn read(&self, ordinal: u32, bytes: usize, (time, limit): (&Turnovers, usize)) -> bool {
        let Some(ghost) = self.0.get(ordinal as usize) else { return false };
        let now = time.pass(bytes, limit).max(1);
        let before = ghost.load(Ordering::Relaxed);
        ghost.store(now, Ordering::Relaxed);
        before != 0 && now.wrapping_sub(before) <= REMEMBERED
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_remembered_for_a_turnover() {
        let (time, ghosts) = (Turnovers::new(), Ghosts::new(3));
        let read = |ordinal, bytes| ghosts.read(ordinal, bytes, (&time, 80_000));
        assert!(!read(0, 4000), "never read before");
        assert!(read(0, 4000) && read(0, 4000));
        (0..18).for_each(|_| _ = read(1, 4000));
        assert!(read(0, 4000), "0.95 turnovers");
        (0..24).for_each(|_| _ = read(1, 4000));
        assert!(!read(0, 4000), "1.25 turnovers");
        assert!(!read(3, 4000), "no such block");
        assert!(!ghosts.read(2, usize::MAX, (&time, 0)), "a pool without memory");
    }
}

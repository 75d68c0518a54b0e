//! Asks the system for what a cursor will read next.
//!
//! 1. A table's file is read at random ([`ReadFile::expect_random`](ashlar_env::ReadFile::expect_random)), so the system reads nothing
//!    ahead by itself. Its guesses would read twice the bytes of random gets, and fill the page cache with them.
//! 2. Reads in a row that lie close to one another, in either direction, are a walk. From the third read on, the system is asked
//!    for what lies before the walk: little at first, twice as much each time.
//! 3. The system reads in the background, into the page cache. Nothing here waits, and a request that fails has no effect.
//! 4. Only reads of the file count. A walk through blocks that are cached asks for nothing.

use crate::reader::BlockFile;
use std::ops::Range;

/// Reads in a row before the first request.
const READS: u32 = 3;
/// Bytes between two reads of one walk: blocks that the cache had.
const GAP: u64 = 32 << 10;
/// Bytes of the first request of a walk, and of the largest.
const LEAST: u64 = 32 << 10;
const MOST: u64 = 512 << 10;

/// The walk of one cursor through one file.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The place of the read before.
    last: Range<u64>,
    walks_back: bool,
    /// Reads in a row.
    reads: u32,
    /// The place up to which the system was asked.
    asked: u64,
    /// Bytes of the next request.
    size: u64,
}

impl Ahead {
    /// Notes that the cursor is about to read this place of `file`, and asks the system for what comes next.
    pub(crate) fn reads(&mut self, file: &BlockFile, place: Range<u64>) {
        if let Some(next) = self.next(&place, file.size()) {
            file.will_read(next);
        }
    }

    /// What to ask for. `size`: the bytes of the file.
    fn next(&mut self, place: &Range<u64>, size: u64) -> Option<Range<u64>> {
        let on = place.start.checked_sub(self.last.end).is_some_and(|gap| gap <= GAP);
        let back = self.last.start.checked_sub(place.end).is_some_and(|gap| gap <= GAP);
        if self.reads == 0 || !(on || back) || (self.reads > 1 && back != self.walks_back) {
            *self = Ahead { last: place.clone(), reads: 1, size: LEAST, ..Ahead::default() };
            return None;
        }
        (self.last, self.walks_back) = (place.clone(), back);
        self.reads = self.reads.saturating_add(1);
        if self.reads < READS {
            return None;
        }
        let next = if back { self.next_back(place.start) } else { self.next_on(place.end, size) };
        (!next.is_empty()).then(|| {
            self.size = (self.size * 2).min(MOST);
            next
        })
    }

    fn next_on(&mut self, here: u64, size: u64) -> Range<u64> {
        let from = if self.reads == READS { here } else { self.asked.max(here) };
        if from - here >= self.size / 2 {
            return 0..0;
        }
        self.asked = from.saturating_add(self.size).min(size);
        from..self.asked
    }

    fn next_back(&mut self, here: u64) -> Range<u64> {
        let to = if self.reads == READS { here } else { self.asked.min(here) };
        if here - to >= self.size / 2 {
            return 0..0;
        }
        self.asked = to.saturating_sub(self.size);
        self.asked..to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 10 << 20;
    const BLOCK: u64 = 4096;

    fn block(n: u64) -> Range<u64> {
        n * BLOCK..(n + 1) * BLOCK
    }

    /// Reads the blocks in turn. Before each read from the fourth on, the block must have been asked for, if `covered`.
    fn walk(blocks: impl Iterator<Item = u64>, covered: bool) -> Vec<Range<u64>> {
        let (mut ahead, mut asked): (Ahead, Vec<Range<u64>>) = (Ahead::default(), Vec::new());
        for (at, n) in blocks.enumerate() {
            let has = asked.iter().any(|range| range.start <= n * BLOCK && (n + 1) * BLOCK <= range.end);
            assert!(!covered || at < 3 || has, "block {n} of {asked:?}");
            asked.extend(ahead.next(&block(n), SIZE));
        }
        asked
    }

    #[test]
    fn a_walk_is_asked_for_once_and_in_growing_pieces() {
        let blocks = SIZE / BLOCK;
        let on = walk(0..blocks, true);
        assert_eq!(on[0], 3 * BLOCK..3 * BLOCK + LEAST);
        assert_eq!(on.last().unwrap().end, SIZE);
        assert!(on.windows(2).all(|pair| pair[0].end == pair[1].start), "no byte twice: {on:?}");
        assert!(on.iter().all(|range| range.end - range.start <= MOST) && on.len() < 30, "{on:?}");
        let back = walk((0..blocks).rev(), true);
        assert_eq!(back[0], SIZE - 3 * BLOCK - LEAST..SIZE - 3 * BLOCK);
        assert_eq!(back.last().unwrap().start, 0);
        assert!(back.windows(2).all(|pair| pair[0].start == pair[1].end), "no byte twice: {back:?}");
        // Every third block, because the others are in the cache.
        assert!(walk((0..blocks).step_by(3), true).len() < 30);
    }

    #[test]
    fn random_reads_and_short_walks_ask_for_nothing() {
        assert_eq!(walk((0..1000).map(|n| n * 7919 % 2560), false), []);
        assert_eq!(walk([5, 6, 100, 101, 7, 8, 500, 499].into_iter(), false), []);
        // There and back again: each turn begins a walk.
        assert_eq!(walk([5, 6, 5, 6, 5, 6, 5].into_iter(), false), []);
        // The same block again and again.
        assert_eq!(walk([5; 20].into_iter(), false), []);
    }

    #[test]
    fn places_at_the_ends_of_what_a_file_can_be() {
        let mut ahead = Ahead::default();
        for place in [0..u64::MAX, u64::MAX..u64::MAX, 0..0, 0..0, 0..0, 0..0, u64::MAX - 1..u64::MAX] {
            let next = ahead.next(&place, u64::MAX);
            assert!(next.is_none_or(|next| next.start < next.end));
        }
    }
}

//! Range tombstones: "every key from `begin` up to `end`, not included, is deleted as of `seq`".
//!
//! Raw tombstones overlap in every way. [`FragmentedTombstones`] cuts them at each other's borders once, so that a read
//! finds what covers a key with one binary search.
//!
//! 1. Fragments are disjoint, ascending, and each carries the sequences of all tombstones over it, newest first.
//! 2. A tombstone covers an entry of the key when its sequence is greater than the entry's and visible to the read.
//!
//! Source: RocksDB `db/range_tombstone_fragmenter.h` for the idea.

use crate::{Order, SeqNum};
use std::cmp::Ordering;

/// One range tombstone as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first user key deleted.
    pub begin: Vec<u8>,
    /// The first user key not deleted.
    pub end: Vec<u8>,
    /// When.
    pub seq: SeqNum,
}

/// A piece of the key space under one set of tombstones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first user key of the piece.
    pub begin: Vec<u8>,
    /// The first user key behind it.
    pub end: Vec<u8>,
    /// The sequences of the tombstones over it, newest first, each once.
    pub seqs: Vec<SeqNum>,
}

/// Range tombstones cut into disjoint pieces.
#[derive(Clone, Debug, Default)]
pub struct FragmentedTombstones {
    order: Order,
    fragments: Vec<Fragment>,
}

impl FragmentedTombstones {
    /// Cuts `tombstones`; those with `begin >= end` cover nothing and are left out. O(n · overlap).
    pub fn new(order: &Order, tombstones: &[RangeTombstone]) -> Self {
        let live: Vec<&RangeTombstone> =
            tombstones.iter().filter(|t| order.compare(&t.begin, &t.end) == Ordering::Less).collect();
        let mut borders: Vec<&[u8]> = live.iter().flat_map(|t| [&t.begin[..], &t.end[..]]).collect();
        borders.sort_by(|a, b| order.compare(a, b));
        borders.dedup();
        let mut by_begin = live;
        by_begin.sort_by(|a, b| order.compare(&a.begin, &b.begin));
        let (mut fragments, mut open, mut waiting) =
            (Vec::new(), Vec::<&RangeTombstone>::new(), by_begin.into_iter().peekable());
        for (begin, end) in borders.iter().zip(borders.iter().skip(1)) {
            open.retain(|t| order.compare(&t.end, begin) == Ordering::Greater);
            while let Some(t) = waiting.next_if(|t| order.compare(&t.begin, begin) != Ordering::Greater) {
                open.push(t);
            }
            if open.is_empty() {
                continue;
            }
            let mut seqs: Vec<SeqNum> = open.iter().map(|t| t.seq).collect();
            seqs.sort_unstable_by(|a, b| b.cmp(a));
            seqs.dedup();
            fragments.push(Fragment { begin: begin.to_vec(), end: end.to_vec(), seqs });
        }
        FragmentedTombstones { order: order.clone(), fragments }
    }

    /// True when nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The pieces, ascending.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The piece that covers `user_key`.
    pub fn fragment_over(&self, user_key: &[u8]) -> Option<&Fragment> {
        let at =
            self.fragments.partition_point(|f| self.order.compare(&f.end, user_key) != Ordering::Greater);
        self.fragments.get(at).filter(|f| self.order.compare(&f.begin, user_key) != Ordering::Greater)
    }

    /// The newest tombstone over `user_key` that a read at `read_seq` sees.
    pub fn covering_seq(&self, user_key: &[u8], read_seq: SeqNum) -> Option<SeqNum> {
        self.fragment_over(user_key)?.seqs.iter().copied().find(|s| *s <= read_seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(begin: u8, end: u8, seq: u64) -> RangeTombstone {
        RangeTombstone { begin: vec![begin], end: vec![end], seq: SeqNum::new(seq).unwrap() }
    }

    #[test]
    fn equals_the_plain_form() {
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for order in [Order::Bytewise, Order::ReverseBytewise] {
            for round in 0..200 {
                let all: Vec<_> = (0..round % 9)
                    .map(|_| tombstone(draw(20).to_le_bytes()[0], draw(20).to_le_bytes()[0], 1 + draw(12)))
                    .collect();
                let cut = FragmentedTombstones::new(&order, &all);
                for key in 0..=21u8 {
                    for read in 0..14 {
                        let read = SeqNum::new(read).unwrap();
                        let covers = |t: &&RangeTombstone| {
                            t.seq <= read
                                && order.compare(&t.begin, &[key]) != Ordering::Greater
                                && order.compare(&[key], &t.end) == Ordering::Less
                        };
                        let plain = all.iter().filter(covers).map(|t| t.seq).max();
                        assert_eq!(cut.covering_seq(&[key], read), plain, "{all:?} key {key} at {read}");
                    }
                }
            }
        }
    }
}

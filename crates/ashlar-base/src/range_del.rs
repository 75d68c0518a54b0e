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
        borders.dedup_by(|a, b| order.compare(a, b) == Ordering::Equal);
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

    /// The tombstones that these pieces stand for, in the order in which tables store them: by begin, newest first.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.fragments.iter().flat_map(|f| {
            f.seqs.iter().map(|&seq| RangeTombstone { begin: f.begin.clone(), end: f.end.clone(), seq })
        })
    }

    /// Where `user_key` stands: the index of the first piece that ends behind it. It covers the key if it begins at or
    /// before it. One binary search.
    #[inline]
    pub fn place(&self, user_key: &[u8]) -> usize {
        self.fragments.partition_point(|f| self.order.compare(&f.end, user_key) != Ordering::Greater)
    }

    /// The piece that covers `user_key`.
    pub fn fragment_over(&self, user_key: &[u8]) -> Option<&Fragment> {
        let fragment = self.fragments.get(self.place(user_key));
        fragment.filter(|f| self.order.compare(&f.begin, user_key) != Ordering::Greater)
    }

    /// The newest tombstone over `user_key` that a read at `read_seq` sees.
    pub fn covering_seq(&self, user_key: &[u8], read_seq: SeqNum) -> Option<SeqNum> {
        self.fragment_over(user_key)?.newest(read_seq)
    }

    /// Bytes of memory it takes, about.
    pub fn memory(&self) -> usize {
        let of = |f: &Fragment| {
            size_of::<Fragment>() + f.begin.len() + f.end.len() + f.seqs.len() * size_of::<SeqNum>()
        };
        self.fragments.iter().map(of).sum()
    }
}

impl Fragment {
    /// The newest tombstone that a read at `read_seq` sees.
    #[inline]
    pub fn newest(&self, read_seq: SeqNum) -> Option<SeqNum> {
        self.seqs.get(self.seqs.partition_point(|s| *s > read_seq)).copied()
    }

    /// The oldest tombstone that is newer than `seq`.
    #[inline]
    pub fn oldest_above(&self, seq: SeqNum) -> Option<SeqNum> {
        let above = self.seqs.partition_point(|s| *s > seq);
        self.seqs.get(above.checked_sub(1)?).copied()
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
                let again: Vec<_> = cut.tombstones().collect();
                assert_eq!(FragmentedTombstones::new(&order, &again).fragments(), cut.fragments());
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
                        let over = all.iter().filter(|t| {
                            t.seq > read
                                && order.compare(&t.begin, &[key]) != Ordering::Greater
                                && order.compare(&[key], &t.end) == Ordering::Less
                        });
                        let above = cut.fragment_over(&[key]).and_then(|f| f.oldest_above(read));
                        assert_eq!(above, over.map(|t| t.seq).min());
                    }
                }
            }
        }
    }
}

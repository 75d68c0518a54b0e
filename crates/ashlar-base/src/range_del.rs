//! Range tombstones: "every key from `begin` up to `end`, not included, is deleted as of `seq`".
//!
//! Stored tombstones overlap in every way. [`FragmentedTombstones`] cuts the key space at their borders once, so that a
//! read finds the tombstones over a key with one binary search.
//!
//! ```text
//! tombstones     a-----f@3   c-----------k@5        fragments    a..c   c..f   f..k
//! ```
//! 1. Fragments are disjoint and ascending. They do not list their tombstones, because n nested tombstones would then
//!    need n squared entries. Instead, a tree over the fragments holds each tombstone in at most two nodes per layer.
//!    The nodes from a fragment up to the root hold the tombstones over that fragment.
//! 2. Memory and time to cut are about n log n, however the tombstones overlap.
//! 3. A search compares words: of each key, the eight bytes after the bytes with which all borders begin. It reads a key
//!    only where two words are equal. Words are no order under a custom comparator, which compares the keys.
//! 4. A tombstone covers an entry of the key when its sequence is greater than the entry's and visible to the read.
//!
//! Source: RocksDB `db/range_tombstone_fragmenter.h` for the idea of fragments.

mod listed;

pub use listed::ListedTombstones;

use crate::ext::comparator::{BytewiseOrder, KeyOrder, ReverseBytewiseOrder};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::{Order, SeqNum};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// One range tombstone as written. Its keys are owned, or borrowed where there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeTombstone<K = Vec<u8>> {
    /// The first user key deleted.
    pub begin: K,
    /// The first user key not deleted.
    pub end: K,
    /// When.
    pub seq: SeqNum,
}

impl<K: AsRef<[u8]>> RangeTombstone<K> {
    fn ends(&self) -> [&[u8]; 2] {
        [self.begin.as_ref(), self.end.as_ref()]
    }

    fn covers_something(&self, order: &Order) -> bool {
        let [begin, end] = self.ends();
        order.compare(begin, end) == Ordering::Less
    }
}

/// A piece of the key space with its own tombstones.
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
    /// The keys of all borders, one after the other, and the end of each.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// The number of bytes with which all borders begin.
    shared: usize,
    /// The word of each piece's begin; empty under a custom order.
    begins: Vec<u64>,
    pieces: Vec<Piece>,
    /// The tombstones by the pieces they cover, newest first.
    spans: Vec<Span>,
    /// Where the list of each node ends in `seqs`. The root is node 1, the children of node i are 2i and 2i + 1, and piece i
    /// is node `pieces.len()` + i.
    node_ends: Vec<usize>,
    seqs: Vec<SeqNum>,
}

/// From border `border` to the next one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    border: usize,
    /// The newest tombstone over it.
    newest: SeqNum,
    /// The word of its end; 0 under a custom order.
    end: u64,
}

/// A tombstone over the pieces from `from` up to `to`, not included.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: usize,
    to: usize,
    seq: SeqNum,
}

/// Bytes that a cut takes for a tombstone, beside the copies of its keys. The span is one part. For each of the two borders come a piece,
/// its word, the place of the key, two nodes of the tree, and one place in a list.
const CUTTING: usize =
    size_of::<Span>() + 2 * (size_of::<Piece>() + size_of::<u64>() + 4 * size_of::<usize>());

/// What a cut takes is charged from this many bytes on.
const CHARGED: usize = 64 << 10;

impl FragmentedTombstones {
    /// [`FragmentedTombstones::new`]. What the cut and the list of tombstones take until the cut ends is charged to `budget`.
    pub fn cut<K: AsRef<[u8]>>(
        order: &Order,
        tombstones: &[RangeTombstone<K>],
        budget: Option<&Arc<MemoryBudget>>,
    ) -> Self {
        let keys: usize = tombstones.iter().flat_map(|t| t.ends()).map(<[u8]>::len).sum();
        let bytes = keys + tombstones.len() * (CUTTING + size_of::<RangeTombstone<K>>());
        let charge = |budget: &Arc<MemoryBudget>| budget.charge(MemoryUse::Buffers, bytes);
        let _charge = budget.filter(|_| bytes >= CHARGED).map(charge);
        Self::new(order, tombstones)
    }

    /// Cuts `tombstones`; those with `begin >= end` cover nothing and are left out.
    pub fn new<K: AsRef<[u8]>>(order: &Order, tombstones: &[RangeTombstone<K>]) -> Self {
        let live: Vec<_> = tombstones.iter().filter(|t| t.covers_something(order)).collect();
        let mut borders: Vec<&[u8]> = Vec::with_capacity(2 * live.len());
        live.iter().for_each(|t| borders.extend(t.ends()));
        order.sort_by(&mut borders, |a, b| order.compare(a, b));
        borders.dedup_by(|a, b| order.compare(a, b) == Ordering::Equal);
        let rank =
            |key: &[u8]| borders.partition_point(|border| order.compare(border, key) == Ordering::Less);
        let span = |t: &&RangeTombstone<K>| {
            let [from, to] = t.ends().map(rank);
            Span { from, to, seq: t.seq }
        };
        let mut spans: Vec<Span> = live.iter().map(span).collect();
        spans.sort_unstable_by_key(|span| (std::cmp::Reverse(span.seq), span.from, span.to));
        let mut cut = FragmentedTombstones { order: order.clone(), ..Self::default() };
        cut.keys.reserve_exact(borders.iter().map(|border| border.len()).sum());
        cut.ends.reserve_exact(borders.len());
        for border in &borders {
            cut.keys.extend_from_slice(border);
            cut.ends.push(cut.keys.len());
        }
        let borders = borders.len();
        drop(live);
        cut.number_pieces(&mut spans, borders);
        match order {
            Order::Bytewise => cut.note_words(&BytewiseOrder),
            Order::ReverseBytewise => cut.note_words(&ReverseBytewiseOrder),
            Order::Custom(_) => {}
        }
        cut.spans = spans;
        cut.fill_tree();
        cut
    }

    /// Finds the stretches between two borders that anything covers, and makes `spans` count in them.
    fn number_pieces(&mut self, spans: &mut [Span], borders: usize) {
        // How many tombstones begin less how many end at each border.
        let mut change = vec![0_isize; borders];
        let mut add = |at: usize, by: isize| {
            if let Some(count) = change.get_mut(at) {
                *count += by;
            }
        };
        for span in spans.iter() {
            add(span.from, 1);
            add(span.to, -1);
        }
        let (mut open, mut numbers) = (0, Vec::with_capacity(borders));
        self.pieces.reserve_exact(borders);
        for (border, change) in change.into_iter().enumerate() {
            open += change;
            numbers.push(self.pieces.len());
            if open > 0 {
                self.pieces.push(Piece { border, newest: SeqNum::ZERO, end: 0 });
            }
        }
        for span in spans {
            let number = |border: usize| numbers.get(border).copied().unwrap_or(0);
            (span.from, span.to) = (number(span.from), number(span.to));
        }
        self.pieces.shrink_to_fit();
    }

    /// Takes the words of all pieces.
    fn note_words(&mut self, order: &impl KeyOrder) {
        let last = self.ends.len().saturating_sub(1);
        // Every border lies between the first and the last one, and begins as both do.
        self.shared = self.border(0).iter().zip(self.border(last)).take_while(|(a, b)| a == b).count();
        let mut pieces = std::mem::take(&mut self.pieces);
        let word = |border: usize| order.word(self.border(border), self.shared);
        let begins = pieces.iter().map(|piece| word(piece.border)).collect();
        pieces.iter_mut().for_each(|piece| piece.end = word(piece.border + 1));
        (self.begins, self.pieces) = (begins, pieces);
    }

    fn fill_tree(&mut self) {
        let count = self.pieces.len();
        let mut ends = vec![0; 2 * count];
        for span in &self.spans {
            nodes_under(count, span, |node| {
                if let Some(len) = ends.get_mut(node) {
                    *len += 1;
                }
            });
        }
        let mut sum = 0;
        for end in &mut ends {
            // For now, where the list begins.
            sum += std::mem::replace(end, sum);
        }
        self.seqs = vec![SeqNum::ZERO; sum];
        // Newest first, so that each list is in that order.
        for span in &self.spans {
            nodes_under(count, span, |node| {
                let Some(at) = ends.get_mut(node) else { return };
                if let Some(seq) = self.seqs.get_mut(*at) {
                    *seq = span.seq;
                }
                *at += 1;
            });
        }
        self.node_ends = ends;
        for at in 0..count {
            let newest = self.lists(at).filter_map(|list| list.first()).max().copied().unwrap_or_default();
            if let Some(piece) = self.pieces.get_mut(at) {
                piece.newest = newest;
            }
        }
    }

    /// The lists of the nodes from piece `at` up to the root. Together they hold every tombstone over the piece.
    fn lists(&self, at: usize) -> impl Iterator<Item = &[SeqNum]> {
        let mut node = at + self.pieces.len();
        std::iter::from_fn(move || {
            let here = node;
            node /= 2;
            (here > 0).then(|| {
                let end_of = |node: usize| self.node_ends.get(node).copied().unwrap_or(0);
                self.seqs.get(end_of(here - 1)..end_of(here)).unwrap_or(&[])
            })
        })
    }

    fn border(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).and_then(|end| self.keys.get(start..*end)).unwrap_or(&[])
    }

    /// True when nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The pieces, ascending.
    pub fn fragments(&self) -> impl Iterator<Item = FragmentRef<'_>> {
        (0..self.len()).filter_map(|at| self.fragment(at))
    }

    /// The piece of that number.
    #[inline]
    pub fn fragment(&self, at: usize) -> Option<FragmentRef<'_>> {
        let piece = self.pieces.get(at)?;
        let (begin, end) = (self.border(piece.border), self.border(piece.border + 1));
        Some(FragmentRef { begin, end, newest: piece.newest, at, of: self })
    }

    /// The tombstones that were cut, newest first.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone<&[u8]>> {
        self.spans.iter().filter_map(|span| {
            let (first, last) = (self.fragment(span.from)?, self.fragment(span.to.checked_sub(1)?)?);
            Some(RangeTombstone { begin: first.begin, end: last.end, seq: span.seq })
        })
    }

    /// The tombstones that were cut, newest first: the numbers of the pieces under each.
    pub fn spans(&self) -> impl Iterator<Item = (Range<usize>, SeqNum)> {
        self.spans.iter().map(|span| (span.from..span.to, span.seq))
    }

    /// The index of the first piece that ends after `user_key`. It covers the key if it begins at or
    /// before it. One binary search.
    #[inline]
    pub fn find(&self, user_key: &[u8]) -> Result<usize, usize> {
        match &self.order {
            Order::Bytewise => self.find_by_words(&BytewiseOrder, user_key),
            Order::ReverseBytewise => self.find_by_words(&ReverseBytewiseOrder, user_key),
            Order::Custom(order) => {
                let begins = |piece: &Piece| order.compare(self.border(piece.border), user_key).is_le();
                let begun = self.pieces.partition_point(begins);
                self.covering(begun, |piece| order.compare(self.border(piece.border + 1), user_key).is_gt())
            }
        }
    }

    #[inline]
    fn find_by_words(&self, order: &impl KeyOrder, user_key: &[u8]) -> Result<usize, usize> {
        let shared = self.border(0).get(..self.shared).unwrap_or(&[]);
        // A key that begins otherwise comes before or after all borders.
        match order.cmp(user_key.get(..self.shared).unwrap_or(user_key), shared) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(self.len()),
            Ordering::Equal => {}
        }
        let word = order.word(user_key, self.shared);
        let mut begun = self.begins.partition_point(|begin| *begin <= word);
        if begun.checked_sub(1).and_then(|last| self.begins.get(last)) == Some(&word) {
            let from = self.begins.partition_point(|begin| *begin < word);
            let same = self.pieces.get(from..begun).unwrap_or(&[]);
            begun =
                from + same.partition_point(|piece| order.cmp(self.border(piece.border), user_key).is_le());
        }
        self.covering(begun, |piece| {
            let by_word = piece.end.cmp(&word);
            by_word.then_with(|| order.cmp(self.border(piece.border + 1), user_key)).is_gt()
        })
    }

    /// The answer of [`FragmentedTombstones::find`] for a key at or before which `begun` pieces begin.
    #[inline]
    fn covering(&self, begun: usize, ends_behind: impl FnOnce(&Piece) -> bool) -> Result<usize, usize> {
        let last = begun.checked_sub(1).ok_or(0_usize)?;
        match self.pieces.get(last) {
            Some(piece) if ends_behind(piece) => Ok(last),
            _ => Err(begun),
        }
    }

    /// The piece that covers `user_key`.
    pub fn fragment_over(&self, user_key: &[u8]) -> Option<FragmentRef<'_>> {
        self.fragment(self.find(user_key).ok()?)
    }

    /// The newest tombstone over `user_key` that a read at `read_seq` sees.
    pub fn covering_seq(&self, user_key: &[u8], read_seq: SeqNum) -> Option<SeqNum> {
        let at = self.find(user_key).ok()?;
        self.newest(at, self.pieces.get(at)?.newest, read_seq)
    }

    /// The newest tombstone over piece `at` that a read at `read_seq` sees. `newest`: the newest of all.
    #[inline]
    fn newest(&self, at: usize, newest: SeqNum, read_seq: SeqNum) -> Option<SeqNum> {
        if newest <= read_seq {
            return Some(newest);
        }
        self.lists(at).filter_map(|list| list.get(list.partition_point(|s| *s > read_seq))).max().copied()
    }

    /// Bytes of memory it takes, about.
    pub fn memory(&self) -> usize {
        self.keys.len()
            + self.begins.len() * size_of::<u64>()
            + (self.ends.len() + self.node_ends.len() + self.seqs.len()) * size_of::<usize>()
            + self.pieces.len() * size_of::<Piece>()
            + self.spans.len() * size_of::<Span>()
    }
}

/// Calls `visit` for the nodes that together stand for the pieces of `span`.
fn nodes_under(count: usize, span: &Span, mut visit: impl FnMut(usize)) {
    let (mut from, mut to) = (span.from + count, span.to + count);
    while from < to {
        if from % 2 == 1 {
            visit(from);
            from += 1;
        }
        if to % 2 == 1 {
            to -= 1;
            visit(to);
        }
        (from, to) = (from / 2, to / 2);
    }
}

/// One piece of [`FragmentedTombstones`].
#[derive(Clone, Copy, Debug)]
pub struct FragmentRef<'a> {
    /// The first user key of the piece.
    pub begin: &'a [u8],
    /// The first user key behind it.
    pub end: &'a [u8],
    newest: SeqNum,
    at: usize,
    of: &'a FragmentedTombstones,
}

impl FragmentRef<'_> {
    /// The newest tombstone that a read at `read_seq` sees.
    #[inline]
    pub fn newest(&self, read_seq: SeqNum) -> Option<SeqNum> {
        self.of.newest(self.at, self.newest, read_seq)
    }

    /// The oldest tombstone that is newer than `seq`.
    #[inline]
    pub fn oldest_above(&self, seq: SeqNum) -> Option<SeqNum> {
        if self.newest <= seq {
            return None;
        }
        let above = |list: &[SeqNum]| list.get(list.partition_point(|s| *s > seq).checked_sub(1)?).copied();
        self.of.lists(self.at).filter_map(above).min()
    }

    /// The sequences of all tombstones over the piece, newest first, each once.
    pub fn seqs(&self) -> Vec<SeqNum> {
        let mut all: Vec<SeqNum> = self.of.lists(self.at).flatten().copied().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        all
    }

    /// The newest sequence of each stripe that `snapshots` (ascending) cut the sequences into, newest first.
    pub fn newest_per_stripe(&self, snapshots: &[SeqNum]) -> Vec<SeqNum> {
        let mut kept = Vec::new();
        let mut next = Some(self.newest);
        while let Some(seq) = next {
            kept.push(seq);
            // What the next older snapshot sees is in an older stripe.
            let older = snapshots.partition_point(|snapshot| *snapshot < seq).checked_sub(1);
            next = older.and_then(|at| self.newest(*snapshots.get(at)?));
        }
        kept
    }
}

#[cfg(test)]
mod tests;

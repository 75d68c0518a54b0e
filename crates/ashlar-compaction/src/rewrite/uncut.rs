//! Range tombstones as they were written, for tables: see rule 4 of `tombstones`.

use super::retention::stripe;
use super::tombstones::{Piece, Survivors};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{Order, Result, SeqNum};
use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::sync::Arc;

/// So many pieces for each tombstone are stored as pieces.
const PIECES_MAX: usize = 4;
/// So many pieces are, however few the tombstones.
const PIECES_LEAST: usize = 4096;

/// The tombstones that no table has taken yet.
#[derive(Debug)]
pub(super) struct Uncut {
    of: Arc<FragmentedTombstones>,
    /// The pieces under each, by the first one, newest first.
    waiting: Vec<(Range<usize>, SeqNum)>,
    /// The one to take next.
    at: usize,
    /// Those that reach over the end of the last table: the end of their pieces.
    open: Vec<(usize, SeqNum)>,
    /// Where that table ended.
    cut: Vec<u8>,
}

impl Survivors {
    /// The number of pieces from which on they are many.
    pub(super) fn many(&self) -> usize {
        (PIECES_MAX * self.tombstones.spans().count()).max(PIECES_LEAST)
    }

    /// The survivors as they were written, if more than `many` pieces would be left of them.
    ///
    /// # Cost
    /// Searches for `many` pieces at most.
    pub(super) fn uncut(&self, many: usize) -> Option<Uncut> {
        let of = &self.tombstones;
        if of.len().saturating_mul(self.snapshots.len() + 1) <= many {
            return None;
        }
        let mut pieces = of.fragments().map(|f| f.newest_per_stripe(&self.snapshots).len());
        let mut found = 0;
        if !pieces.any(|more| {
            found += more;
            found > many
        }) {
            return None;
        }
        let is_late = |seq: SeqNum| stripe(&self.snapshots, seq) > 0;
        let mut waiting: Vec<_> = of.spans().filter(|(_, seq)| is_late(*seq)).collect();
        // Of what every snapshot sees, the newest of each fragment.
        let seen_by_all = self.snapshots.first().copied().unwrap_or(SeqNum::MAX);
        let early = |(at, f): (usize, _)| {
            let seq = of.fragment(at)?.newest(seen_by_all)?;
            self.is_needed(&f).then_some((at..at + 1, seq))
        };
        waiting.extend(of.fragments().enumerate().filter_map(early));
        waiting.sort_unstable_by_key(|(pieces, seq)| (pieces.start, Reverse(*seq), pieces.end));
        Some(Uncut { of: Arc::clone(of), waiting, at: 0, open: Vec::new(), cut: Vec::new() })
    }
}

impl Uncut {
    /// Bytes beside the tombstones that were cut.
    pub(super) fn memory(&self) -> usize {
        self.waiting.capacity() * size_of::<(Range<usize>, SeqNum)>()
    }

    /// True when all tombstones are taken.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.waiting.len() && self.open.is_empty()
    }

    /// As [`Carried::hand_over`](super::tombstones::Carried::hand_over).
    ///
    /// # Errors
    /// Those of `take`.
    pub(super) fn hand_over(
        &mut self,
        order: &Order,
        next: Option<&[u8]>,
        take: impl FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let (of, cut) = (Arc::clone(&self.of), std::mem::take(&mut self.cut));
        if next.is_some_and(|next| !self.open.is_empty() && order.compare(next, &cut).is_le()) {
            self.cut = cut;
            return Ok(());
        }
        let begin_of = |pieces: &Range<usize>| of.fragment(pieces.start).map_or(&[][..], |f| f.begin);
        let is_due = |(pieces, _): &(Range<usize>, SeqNum)| {
            next.is_none_or(|next| order.compare(begin_of(pieces), next).is_lt())
        };
        let waiting = self.waiting.get(self.at..).unwrap_or_default();
        let due = waiting.get(..waiting.partition_point(is_due)).unwrap_or_default();
        self.at += due.len();
        let open = std::mem::take(&mut self.open);
        let mut pieces = Vec::with_capacity(open.len() + due.len());
        let open = open.into_iter().map(|(end, seq)| (&cut[..], end, seq));
        for (begin, last, seq) in open.chain(due.iter().map(|(at, seq)| (begin_of(at), at.end, *seq))) {
            let end = last.checked_sub(1).and_then(|at| of.fragment(at)).map_or(&[][..], |f| f.end);
            match next.filter(|next| order.compare(next, end).is_lt()) {
                Some(next) => {
                    self.open.push((last, seq));
                    pieces.push(Piece { begin, end: next, seq });
                }
                None => pieces.push(Piece { begin, end, seq }),
            }
        }
        self.cut = next.unwrap_or_default().to_vec();
        hand_over_sorted(order, pieces, take)
    }
}

/// Passes the pieces to `take` in the order of a table. Of pieces with the same begin and sequence number the longest stays.
fn hand_over_sorted(
    order: &Order,
    mut pieces: Vec<Piece<'_>>,
    take: impl FnMut(Piece<'_>) -> Result<()>,
) -> Result<()> {
    let by_place = |a: &Piece<'_>, b: &Piece<'_>| match order.compare(a.begin, b.begin) {
        Ordering::Equal => b.seq.cmp(&a.seq),
        other => other,
    };
    order.sort_by(&mut pieces, |a, b| by_place(a, b).then_with(|| order.compare(b.end, a.end)));
    pieces.dedup_by(|a, b| by_place(a, b).is_eq());
    pieces.into_iter().try_for_each(take)
}

#[cfg(test)]
mod tests {
    use super::super::retention::{Beneath, Retention};
    use super::super::tombstones::Carried;
    use super::*;
    use ashlar_base::range_del::RangeTombstone;
    use ashlar_env::SeededRand;

    fn seq(n: u64) -> SeqNum {
        SeqNum::new(n).unwrap()
    }

    /// What tables that end before `borders` store.
    fn stored(
        mut take: impl FnMut(Option<&[u8]>, &mut dyn FnMut(Piece<'_>) -> Result<()>),
        borders: &[u8],
    ) -> Vec<Vec<RangeTombstone>> {
        let ends = borders.iter().map(std::slice::from_ref).map(Some).chain([None]);
        ends.map(|end| {
            let mut table: Vec<RangeTombstone> = Vec::new();
            take(end, &mut |piece| {
                let (begin, seq) = (piece.begin.to_vec(), piece.seq);
                assert!(*begin < *piece.end, "covers nothing");
                if let Some(last) = table.last() {
                    assert!((&last.begin, Reverse(last.seq)) < (&begin, Reverse(seq)), "order of a table");
                }
                assert!(end.is_none_or(|end| piece.end <= end), "over the border");
                table.push(RangeTombstone { begin, end: piece.end.to_vec(), seq });
                Ok(())
            });
            table
        })
        .collect()
    }

    fn retention(all: &[RangeTombstone], snapshots: &[SeqNum], beneath: Beneath) -> Retention {
        let tombstones = Arc::new(FragmentedTombstones::new(&Order::Bytewise, all));
        Retention { snapshots: snapshots.to_vec(), beneath, tombstones, operator: None, blobs: None }
    }

    /// Each snapshot sees of the uncut tombstones what it sees of the cut ones, in every table.
    #[test]
    fn uncut_tombstones_hide_what_the_cut_ones_do() {
        for seed in 0..300 {
            let rand = SeededRand::new(seed);
            let byte = || u8::try_from(rand.below(30)).unwrap();
            let tombstone =
                |n| RangeTombstone { begin: vec![byte()], end: vec![byte()], seq: seq(1 + n / 2) };
            let all: Vec<_> = (0..rand.below(40)).map(tombstone).collect();
            let mut snapshots: Vec<_> = (0..rand.below(6)).map(|_| seq(rand.below(22))).collect();
            snapshots.sort_unstable();
            let beneath = match rand.below(3) {
                0 => Beneath::Unknown,
                1 => Beneath::Ranges(Vec::new()),
                _ => Beneath::Ranges(vec![(vec![5], vec![9]), (vec![20], vec![21])]),
            };
            let mut borders: Vec<u8> = (0..rand.below(4)).map(|_| byte()).collect();
            borders.sort_unstable();
            borders.dedup();
            let survivors = || retention(&all, &snapshots, beneath.clone()).survivors(&Order::Bytewise);
            let mut cut = Carried::new(survivors(), 0, None);
            let cut = stored(|end, take| cut.hand_over(&Order::Bytewise, end, take).unwrap(), &borders);
            let Some(mut uncut) = survivors().uncut(0) else {
                assert!(cut.iter().all(Vec::is_empty));
                continue;
            };
            let found = stored(|end, take| uncut.hand_over(&Order::Bytewise, end, take).unwrap(), &borders);
            assert!(uncut.is_empty());
            let oldest = snapshots.first().copied();
            for (cut, found) in cut.iter().zip(&found) {
                let [cut, found] = [cut, found].map(|all| FragmentedTombstones::new(&Order::Bytewise, all));
                for key in 0..31 {
                    for read in snapshots.iter().copied().chain([SeqNum::MAX]) {
                        let at = |of: &FragmentedTombstones| of.covering_seq(&[key], read);
                        assert_eq!(at(&cut), at(&found), "seed {seed}, key {key}, read {read}");
                    }
                    // Nothing that every snapshot sees lies over a key where the cut ones have nothing.
                    let early =
                        |of: &FragmentedTombstones| of.covering_seq(&[key], oldest.unwrap_or(SeqNum::MAX));
                    assert_eq!(early(&cut), early(&found), "seed {seed}, key {key}");
                }
            }
        }
    }

    /// Regression: 20,000 tombstones inside one another and 2,500 snapshots made a table of 663 MB.
    #[test]
    fn tombstones_inside_one_another_stay_as_many_as_they_were() {
        const COUNT: u64 = 1000;
        let key = |n: u64| n.to_be_bytes().to_vec();
        let nested = |n| RangeTombstone { begin: key(n), end: key(4 * COUNT - n), seq: seq(n + 1) };
        let all: Vec<_> = (0..COUNT).map(nested).collect();
        let snapshots: Vec<_> = (0..COUNT).step_by(8).map(|n| seq(n + 1)).collect();
        let survivors = retention(&all, &snapshots, Beneath::Unknown).survivors(&Order::Bytewise);
        let mut carried = Carried::new(survivors, 0, None);
        let mut count = 0;
        let taken = carried.hand_over(&Order::Bytewise, None, |_| {
            count += 1;
            Ok(())
        });
        taken.unwrap();
        assert!(count <= 3 * COUNT && carried.is_empty(), "{count}");
    }
}

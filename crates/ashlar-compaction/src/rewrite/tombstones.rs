//! Which range tombstones are kept, and in which table.
//!
//! 1. Of the tombstones over one fragment of the key space in one stripe (see `retention`), only the newest is needed.
//! 2. A tombstone that every snapshot sees is dropped after the rewrite, except where something lies beneath.
//! 3. A table that ends before a key gets the part of a tombstone before that key; the next table gets the rest.
//! 4. With n tombstones inside one another and m snapshots, the first rule alone would leave n times m pieces. Where the pieces are many,
//!    the tombstones that snapshots need are stored as they were written. What every snapshot sees is cut all the same: the sequence
//!    numbers of entries above become 0 where nothing lies beneath, and such a tombstone must not reach there.
//!
//! Source: RocksDB `db/compaction/compaction_outputs.cc` (`AddRangeDels`, behaviour).

use super::retention::{Beneath, Retention, stripe};
use super::uncut::Uncut;
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::range_del::{Fragment, FragmentRef, FragmentedTombstones};
use ashlar_base::{Order, Result, SeqNum};
use std::sync::Arc;

impl Retention {
    /// The range tombstones that the outputs must hold.
    pub fn survivors(&self, order: &Order) -> Survivors {
        let (snapshots, beneath) = (self.snapshots.clone(), self.beneath.clone());
        Survivors::new(order, Arc::clone(&self.tombstones), snapshots, beneath)
    }
}

/// The range tombstones that the outputs of a rewrite must hold: ascending and disjoint. Each is made when it is asked for.
#[derive(Debug)]
pub struct Survivors {
    pub(super) order: Order,
    pub(super) tombstones: Arc<FragmentedTombstones>,
    /// Ascending.
    pub(super) snapshots: Vec<SeqNum>,
    beneath: Beneath,
    /// The fragment to look at next.
    at: usize,
    /// The survivor after the one that was returned last.
    ahead: Option<Fragment>,
}

impl Survivors {
    fn new(
        order: &Order,
        tombstones: Arc<FragmentedTombstones>,
        mut snapshots: Vec<SeqNum>,
        beneath: Beneath,
    ) -> Survivors {
        snapshots.sort_unstable();
        Survivors { order: order.clone(), tombstones, snapshots, beneath, at: 0, ahead: None }
    }

    /// What reads of the newest state need of `tombstones`.
    pub fn of_newest(order: &Order, tombstones: Arc<FragmentedTombstones>) -> Survivors {
        Survivors::new(order, tombstones, Vec::new(), Beneath::Unknown)
    }

    /// Whether a tombstone over the fragment that every snapshot sees has something to hide.
    pub(super) fn is_needed(&self, f: &FragmentRef<'_>) -> bool {
        self.beneath.meets(&self.order, f.begin, f.end) && !planted(Bug::RangeTombstoneDroppedEarly)
    }

    /// The survivor of the next fragment that has one.
    fn next_cut(&mut self) -> Option<Fragment> {
        while let Some(f) = self.tombstones.fragment(self.at) {
            self.at += 1;
            let needed = self.is_needed(&f);
            let mut seqs = f.newest_per_stripe(&self.snapshots);
            seqs.retain(|seq| needed || stripe(&self.snapshots, *seq) > 0);
            if !seqs.is_empty() {
                return Some(Fragment { begin: f.begin.to_vec(), end: f.end.to_vec(), seqs });
            }
        }
        None
    }
}

impl Iterator for Survivors {
    type Item = Fragment;

    fn next(&mut self) -> Option<Fragment> {
        let mut joined = self.ahead.take().or_else(|| self.next_cut())?;
        while let Some(next) = self.next_cut() {
            // Adjacent fragments whose remaining sequences are equal are joined.
            if joined.end != next.begin || joined.seqs != next.seqs {
                self.ahead = Some(next);
                break;
            }
            joined.end = next.end;
        }
        Some(joined)
    }
}

impl Beneath {
    /// Whether something may lie beneath a part of the range.
    fn meets(&self, order: &Order, begin: &[u8], end: &[u8]) -> bool {
        match self {
            Beneath::Unknown => true,
            Beneath::Ranges(ranges) => {
                let at = ranges.partition_point(|(_, largest)| order.compare(largest, begin).is_lt());
                ranges.get(at).is_some_and(|(smallest, _)| order.compare(smallest, end).is_lt())
            }
        }
    }
}

/// A part of a tombstone for one table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) begin: &'a [u8],
    pub(super) end: &'a [u8],
    pub(super) seq: SeqNum,
}

/// The tombstones that no table has taken yet.
#[derive(Debug)]
pub(super) struct Carried {
    rest: Rest,
    _charge: MemoryCharge,
}

#[derive(Debug)]
enum Rest {
    /// The first of them, and the others; `None`: all are taken.
    Cut(Option<Fragment>, Option<Survivors>),
    Uncut(Uncut),
}

impl Default for Carried {
    fn default() -> Self {
        Carried { rest: Rest::Cut(None, None), _charge: MemoryCharge::none() }
    }
}

impl Carried {
    /// Charges `bytes` of the tombstones that the survivors are cut from to `budget`.
    pub(super) fn new(mut survivors: Survivors, bytes: usize, budget: Option<&Arc<MemoryBudget>>) -> Self {
        let uncut = survivors.uncut(survivors.many());
        let bytes = bytes + uncut.as_ref().map_or(0, Uncut::memory);
        let charge =
            budget.map_or_else(MemoryCharge::none, |budget| budget.charge(MemoryUse::Buffers, bytes));
        let rest = match uncut {
            Some(uncut) => Rest::Uncut(uncut),
            None => Rest::Cut(survivors.next(), Some(survivors)),
        };
        Carried { rest, _charge: charge }
    }

    /// True when all tombstones are taken.
    pub(super) fn is_empty(&self) -> bool {
        match &self.rest {
            Rest::Cut(first, _) => first.is_none(),
            Rest::Uncut(uncut) => uncut.is_empty(),
        }
    }

    /// Passes everything before `next` (`None`: everything) to `take`, in the order in which tables store tombstones.
    ///
    /// # Errors
    /// Those of `take`.
    pub(super) fn hand_over(
        &mut self,
        order: &Order,
        next: Option<&[u8]>,
        mut take: impl FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let (first, rest) = match &mut self.rest {
            Rest::Cut(first, rest) => (first, rest),
            Rest::Uncut(uncut) => return uncut.hand_over(order, next, take),
        };
        while let Some(f) = first {
            let cut = next.filter(|next| order.compare(next, &f.end).is_lt());
            if cut.is_some_and(|cut| order.compare(cut, &f.begin).is_le()) {
                break;
            }
            let end = cut.unwrap_or(&f.end);
            f.seqs.iter().try_for_each(|&seq| take(Piece { begin: &f.begin, end, seq }))?;
            match cut {
                Some(cut) => f.begin = cut.to_vec(),
                None => *first = rest.as_mut().and_then(Iterator::next),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::range_del::RangeTombstone;

    fn seq(n: u64) -> SeqNum {
        SeqNum::new(n).unwrap()
    }

    fn retention(all: &[(&str, &str, u64)], snapshots: &[u64], beneath: Beneath) -> Retention {
        let all: Vec<_> =
            all.iter().map(|(b, e, s)| RangeTombstone { begin: *b, end: *e, seq: seq(*s) }).collect();
        let tombstones = Arc::new(FragmentedTombstones::new(&Order::Bytewise, &all));
        Retention {
            snapshots: snapshots.iter().map(|s| seq(*s)).collect(),
            beneath,
            tombstones,
            operator: None,
            blobs: None,
        }
    }

    fn text(begin: &[u8], end: &[u8], seqs: &[SeqNum]) -> String {
        let seqs: Vec<_> = seqs.iter().map(ToString::to_string).collect();
        format!("{}..{}@{}", begin.escape_ascii(), end.escape_ascii(), seqs.join(" "))
    }

    fn survivors(all: &[(&str, &str, u64)], snapshots: &[u64], beneath: Beneath) -> Vec<String> {
        let left = retention(all, snapshots, beneath).survivors(&Order::Bytewise);
        left.map(|f| text(&f.begin, &f.end, &f.seqs)).collect()
    }

    fn ranges(ranges: &[(&str, &str)]) -> Beneath {
        Beneath::Ranges(ranges.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect())
    }

    #[test]
    fn the_newest_of_each_stripe_stays() {
        let all = [("a", "m", 3), ("c", "f", 5), ("d", "z", 9)];
        assert_eq!(survivors(&all, &[], Beneath::Unknown), ["a..c@3", "c..d@5", "d..z@9"]);
        assert_eq!(survivors(&all, &[4], Beneath::Unknown), ["a..c@3", "c..d@5 3", "d..m@9 3", "m..z@9"]);
        assert_eq!(
            survivors(&all, &[4, 8], Beneath::Unknown),
            ["a..c@3", "c..d@5 3", "d..f@9 5 3", "f..m@9 3", "m..z@9"]
        );
    }

    #[test]
    fn at_the_bottom_only_snapshots_need_them() {
        let all = [("a", "m", 3), ("c", "f", 5), ("d", "z", 9)];
        assert_eq!(survivors(&all, &[], ranges(&[])), [""; 0]);
        assert_eq!(survivors(&all, &[9], ranges(&[])), [""; 0]);
        assert_eq!(survivors(&all, &[4], ranges(&[])), ["c..d@5", "d..z@9"]);
        assert_eq!(survivors(&all, &[], ranges(&[("b", "bb"), ("x", "y")])), ["a..c@3", "m..z@9"]);
        // The end of a fragment is exclusive, that of a range beneath is inclusive.
        assert_eq!(survivors(&[("a", "c", 3)], &[], ranges(&[("c", "d")])), [""; 0]);
        assert_eq!(survivors(&[("c", "d", 3)], &[], ranges(&[("a", "c")])), ["c..d@3"]);
    }

    #[test]
    fn what_waits_for_a_table_is_charged() {
        let all = [("a", "m", 3), ("c", "f", 5), ("d", "z", 9)];
        let survivors = retention(&all, &[4], Beneath::Unknown).survivors(&Order::Bytewise);
        let budget = MemoryBudget::new(1 << 20);
        let carried = Carried::new(survivors, 1000, Some(&budget));
        assert_eq!(budget.held(MemoryUse::Buffers), 1000);
        drop(carried);
        assert_eq!(budget.held(MemoryUse::Buffers), 0);
    }

    #[test]
    fn tables_share_what_reaches_over_their_border() {
        let all = [("b", "d", 3), ("e", "k", 5), ("m", "n", 1)];
        let mut carried =
            Carried::new(retention(&all, &[], Beneath::Unknown).survivors(&Order::Bytewise), 0, None);
        let mut table = |next: Option<&str>| {
            let mut got = vec![];
            let mut take = |t: Piece<'_>| {
                got.push(text(t.begin, t.end, &[t.seq]));
                Ok(())
            };
            carried.hand_over(&Order::Bytewise, next.map(str::as_bytes), &mut take).unwrap();
            (got, carried.is_empty())
        };
        let some = |pieces: &[&str]| (pieces.iter().map(ToString::to_string).collect::<Vec<_>>(), false);
        assert_eq!(table(Some("a")), some(&[]));
        assert_eq!(table(Some("b")), some(&[]));
        assert_eq!(table(Some("c")), some(&["b..c@3"]));
        assert_eq!(table(Some("d")), some(&["c..d@3"]));
        assert_eq!(table(Some("f")), some(&["e..f@5"]));
        assert_eq!(table(Some("g")), some(&["f..g@5"]));
        assert_eq!(table(None), (vec!["g..k@5".into(), "m..n@1".into()], true));
        assert_eq!(table(None), (vec![], true));
    }
}

//! The bounds of a table within which its range tombstones apply, as user keys.
//!
//! A largest key with the trailer [`Trailer::RANGE_END`] is outside the table; any other largest key is inside. RocksDB
//! may cut a table between two versions of one user key. Then both tables hold the tombstones over that key, and each
//! may apply them to all versions of the key without a wrong result.

use ashlar_base::range_del::{FragmentedTombstones, RangeTombstone};
use ashlar_base::{InternalKey, Order, Trailer};
use std::cmp::Ordering;
use std::sync::Arc;

/// The user keys between which a table's range tombstones apply.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub(super) smallest: Vec<u8>,
    pub(super) largest: Vec<u8>,
    /// `largest` is outside the bounds.
    pub(super) exclusive: bool,
}

impl Bounds {
    /// The bounds from the smallest and largest internal key in the MANIFEST.
    pub fn new(smallest: InternalKey<'_>, largest: InternalKey<'_>) -> Self {
        let (end, trailer) = largest.split();
        Bounds {
            smallest: smallest.user_key().to_vec(),
            largest: end.to_vec(),
            exclusive: trailer == Trailer::RANGE_END,
        }
    }

    /// Compares `user_key` with the bounds: before, within (`Equal`), or after them.
    pub(super) fn side(&self, order: &Order, user_key: &[u8]) -> Ordering {
        if order.compare(user_key, &self.smallest) == Ordering::Less {
            return Ordering::Less;
        }
        match order.compare(user_key, &self.largest) {
            Ordering::Less => Ordering::Equal,
            Ordering::Equal if !self.exclusive => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }

    /// The tombstones, to be cut at the bounds. If the largest key is inside the bounds, a tombstone that reaches past it
    /// must end right after it. If the order has no key right after it, the tombstone ends before it. The next table,
    /// which begins with the same user key, then covers that key.
    pub fn cut(self, order: &Order, all: Arc<FragmentedTombstones>) -> CutTombstones {
        let Bounds { smallest: begin, largest: mut end, exclusive } = self;
        if !exclusive && matches!(order, Order::Bytewise) {
            end.push(0);
        }
        CutTombstones { all, begin, end }
    }
}

/// The range tombstones of a table within its bounds.
#[derive(Clone, Debug)]
pub struct CutTombstones {
    all: Arc<FragmentedTombstones>,
    begin: Vec<u8>,
    end: Vec<u8>,
}

impl CutTombstones {
    /// The tombstones of the table, if none reaches beyond the bounds.
    pub fn whole(&self, order: &Order) -> Option<&Arc<FragmentedTombstones>> {
        let (first, last) = (self.all.fragment(0)?, self.all.fragment(self.all.len() - 1)?);
        let is_within =
            order.compare(&self.begin, first.begin).is_le() && order.compare(last.end, &self.end).is_le();
        is_within.then_some(&self.all)
    }

    /// The tombstones, each cut at the bounds. No key is copied.
    pub fn iter<'a>(&'a self, order: &'a Order) -> impl Iterator<Item = RangeTombstone<&'a [u8]>> {
        let less = |a: &[u8], b: &[u8]| order.compare(a, b) == Ordering::Less;
        self.all.tombstones().filter_map(move |t| {
            let begin = if less(t.begin, &self.begin) { &self.begin } else { t.begin };
            let end = if less(&self.end, t.end) { &self.end } else { t.end };
            less(begin, end).then_some(RangeTombstone { begin, end, seq: t.seq })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{InternalKeyBuf, SeqNum, ValueType};

    fn bounds(smallest: &str, largest: &str, exclusive: bool) -> Bounds {
        let point = Trailer::new(SeqNum::new(5).unwrap(), ValueType::Put);
        let end = if exclusive { Trailer::RANGE_END } else { point };
        let smallest = InternalKeyBuf::new(smallest.as_bytes(), point);
        Bounds::new(smallest.as_key(), InternalKeyBuf::new(largest.as_bytes(), end).as_key())
    }

    #[test]
    fn an_exclusive_end_is_outside() {
        let sides =
            |b: &Bounds| ["a", "b", "c", "d", "e"].map(|k| b.side(&Order::Bytewise, k.as_bytes()) as i8);
        assert_eq!(sides(&bounds("b", "d", false)), [-1, 0, 0, 0, 1]);
        assert_eq!(sides(&bounds("b", "d", true)), [-1, 0, 0, 1, 1]);
        let reverse = bounds("d", "b", true);
        assert_eq!(
            ["e", "d", "b"].map(|k| reverse.side(&Order::ReverseBytewise, k.as_bytes()) as i8),
            [-1, 0, 1]
        );
    }

    #[test]
    fn tombstones_are_cut_to_the_bounds() {
        let cut = |b: &Bounds, order: &Order, begin: &str, end: &str| {
            let t = RangeTombstone { begin, end, seq: SeqNum::new(9).unwrap() };
            let all = Arc::new(FragmentedTombstones::new(order, &[t]));
            let cut = b.clone().cut(order, all);
            let first = cut.iter(order).next();
            let is_whole = first.is_some_and(|t| (t.begin, t.end) == (begin.as_bytes(), end.as_bytes()));
            assert_eq!(cut.whole(order).is_some(), is_whole);
            let text = |b: &[u8]| b.escape_ascii().to_string();
            first.map_or("nothing".into(), |t| format!("{}..{}", text(t.begin), text(t.end)))
        };
        let (inside, outside) = (bounds("c", "k", false), bounds("c", "k", true));
        let forward = Order::Bytewise;
        assert_eq!(cut(&outside, &forward, "a", "z"), "c..k");
        assert_eq!(cut(&inside, &forward, "a", "z"), "c..k\\x00");
        assert_eq!(cut(&inside, &forward, "d", "e"), "d..e");
        assert_eq!(cut(&inside, &forward, "a", "c"), "nothing");
        assert_eq!(cut(&inside, &forward, "k", "m"), "k..k\\x00");
        assert_eq!(cut(&outside, &forward, "k", "m"), "nothing");
        let back = Order::ReverseBytewise;
        assert_eq!(cut(&bounds("k", "c", false), &back, "z", "a"), "k..c");
        assert_eq!(cut(&bounds("k", "c", true), &back, "e", "b"), "e..c");
    }
}

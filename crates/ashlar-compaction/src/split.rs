//! Cutting a large compaction into parts that run concurrently, each over its own user keys.
//!
//! 1. The parts are ascending and disjoint, and together cover all keys: the first has no beginning, the last no end. A
//!    cut is a user key, so all versions of a key are in one part, and retention and merging decide the same as without
//!    cuts.
//! 2. A part sees the range tombstones within its own keys, cut at its ends: a tombstone across a cut is in both parts.
//!
//! Source: RocksDB `db/compaction/compaction_job.cc` (`GenSubcompactionBoundaries`, behaviour).

use ashlar_base::Order;
use ashlar_base::memory::{MemoryBudget, MemoryUse};
use ashlar_base::range_del::{FragmentedTombstones, RangeTombstone};
use ashlar_read::range_del::CutTombstones;
use std::sync::Arc;

/// User keys from `begin` on and before `end`; `None`: unbounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyRange {
    /// The first key inside.
    pub(super) begin: Option<Vec<u8>>,
    /// The first key outside.
    pub(super) end: Option<Vec<u8>>,
}

/// A consecutive piece of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its last user key, or one slightly above.
    pub(super) upto: Vec<u8>,
    /// The bytes of that piece of the input.
    pub(super) bytes: u64,
}

/// Cuts at the ends of stretches into at most `parts` parts of about equal bytes. Pure; ties and order of the stretches
/// do not matter.
pub(super) fn split(order: &Order, mut stretches: Vec<Stretch>, parts: usize) -> Vec<KeyRange> {
    order.sort_by(&mut stretches, |a, b| order.compare(&a.upto, &b.upto));
    let total: u128 = stretches.iter().map(|s| u128::from(s.bytes)).sum();
    let last = stretches.last().map(|s| s.upto.clone()).unwrap_or_default();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut before = 0u128;
    for stretch in stretches {
        before += u128::from(stretch.bytes);
        let due = total * (cuts.len() as u128 + 1);
        let is_new = cuts.last().is_none_or(|cut| order.compare(cut, &stretch.upto).is_lt());
        if cuts.len() + 1 < parts && before * parts as u128 >= due && is_new {
            cuts.push(stretch.upto);
        }
    }
    // No key follows the last stretch, so a cut there would make an empty part.
    cuts.retain(|cut| order.compare(cut, &last).is_lt());
    let begins = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    begins.zip(ends).map(|(begin, end)| KeyRange { begin, end }).collect()
}

/// The tombstones within each of the ranges, which are adjacent and together unbounded; and the memory of each part beside that of
/// the tables.
pub(super) fn cut_tombstones(
    order: &Order,
    ranges: &[KeyRange],
    tombstones: Vec<CutTombstones>,
    budget: Option<&Arc<MemoryBudget>>,
) -> Vec<(Arc<FragmentedTombstones>, usize)> {
    if let ([_], [only]) = (ranges, &tombstones[..])
        && let Some(whole) = only.whole(order)
    {
        return vec![(Arc::clone(whole), 0)];
    }
    let all: Vec<_> = tombstones.iter().flat_map(|of_table| of_table.iter(order)).collect();
    let _charge = budget.map(|budget| budget.charge(MemoryUse::Buffers, size_of_val(&*all)));
    let part = |range: &KeyRange| {
        let part = range.cut(order, &all, budget);
        let added = part.memory();
        (Arc::new(part), added)
    };
    ranges.iter().map(part).collect()
}

impl KeyRange {
    /// Whether a key is at or past the end.
    pub(super) fn ends_before(&self, order: &Order, user_key: &[u8]) -> bool {
        self.end.as_ref().is_some_and(|end| order.compare(end, user_key).is_le())
    }

    /// The tombstones within the range, cut at its ends.
    fn cut(
        &self,
        order: &Order,
        all: &[RangeTombstone<&[u8]>],
        budget: Option<&Arc<MemoryBudget>>,
    ) -> FragmentedTombstones {
        let less = |a: &[u8], b: &[u8]| order.compare(a, b).is_lt();
        let inside = all.iter().filter_map(|t| {
            let begin = self.begin.as_deref().filter(|begin| less(t.begin, begin)).unwrap_or(t.begin);
            let end = self.end.as_deref().filter(|end| less(end, t.end)).unwrap_or(t.end);
            less(begin, end).then_some(RangeTombstone { begin, end, seq: t.seq })
        });
        FragmentedTombstones::cut(order, &inside.collect::<Vec<_>>(), budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::SeqNum;
    use ashlar_env::SeededRand;

    fn cuts(stretches: &[(&str, u64)], parts: usize) -> Vec<String> {
        let stretches = stretches.iter().map(|(upto, bytes)| Stretch { upto: (*upto).into(), bytes: *bytes });
        let ranges = split(&Order::Bytewise, stretches.collect(), parts);
        ranges.iter().skip(1).map(|r| String::from_utf8(r.begin.clone().unwrap()).unwrap()).collect()
    }

    #[test]
    fn parts_weigh_about_the_same() {
        let even = [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("e", 10), ("f", 10)];
        assert_eq!(cuts(&even, 1), [""; 0]);
        assert_eq!(cuts(&even, 2), ["c"]);
        assert_eq!(cuts(&even, 3), ["b", "d"]);
        assert_eq!(cuts(&even, 100), ["a", "b", "c", "d", "e"]);
        assert_eq!(cuts(&[("a", 90), ("b", 5), ("c", 5)], 2), ["a"]);
        assert_eq!(cuts(&[("k", 5), ("k", 5), ("k", 5)], 3), [""; 0]);
        assert_eq!(cuts(&[], 4), [""; 0]);
    }

    fn drawn(rand: &SeededRand, order: &Order) -> (Vec<Stretch>, Vec<RangeTombstone>) {
        let byte = || u8::try_from(rand.below(40)).unwrap();
        let stretch = |_| Stretch { upto: vec![byte()], bytes: rand.below(100) };
        let stretches = (0..rand.below(30)).map(stretch).collect();
        let tombstone = |_| RangeTombstone {
            begin: vec![byte()],
            end: vec![byte()],
            seq: SeqNum::new(1 + rand.below(48)).unwrap(),
        };
        let some = (0..rand.below(10)).map(tombstone);
        (stretches, some.filter(|t| order.compare(&t.begin, &t.end).is_lt()).collect())
    }

    /// Every key is in exactly one part, and only that part's tombstones cover it, as those of the whole do.
    #[test]
    fn parts_are_a_partition() {
        for seed in 0..300 {
            let rand = SeededRand::new(seed);
            let order = if seed % 2 == 0 { Order::Bytewise } else { Order::ReverseBytewise };
            let (stretches, all) = drawn(&rand, &order);
            let most = usize::try_from(1 + rand.below(6)).unwrap();
            let ranges = split(&order, stretches, most);
            assert!(!ranges.is_empty() && ranges.len() <= most);
            let whole = FragmentedTombstones::new(&order, &all);
            let inside: Vec<_> = whole.tombstones().collect();
            let cut: Vec<_> = ranges.iter().map(|r| r.cut(&order, &inside, None)).collect();
            for key in (0..40u8).map(|key| [key]) {
                let after_begin =
                    |r: &KeyRange| r.begin.as_ref().is_none_or(|b| order.compare(b, &key).is_le());
                let is_home =
                    |at: &usize| after_begin(&ranges[*at]) && !ranges[*at].ends_before(&order, &key);
                let homes: Vec<usize> = (0..ranges.len()).filter(is_home).collect();
                assert_eq!(homes.len(), 1, "seed {seed}: {key:?} in {ranges:?}");
                for seq in [1, 10, 49].map(|seq| SeqNum::new(seq).unwrap()) {
                    for (at, part) in cut.iter().enumerate() {
                        let expected = if at == homes[0] { whole.covering_seq(&key, seq) } else { None };
                        assert_eq!(
                            part.covering_seq(&key, seq),
                            expected,
                            "seed {seed}: {key:?} in part {at}"
                        );
                    }
                }
            }
        }
    }
}

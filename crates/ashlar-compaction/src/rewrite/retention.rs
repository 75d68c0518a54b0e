//! Which versions survive a rewrite: a pure rule over the versions of one user key, newest first.
//!
//! Live snapshots cut the sequence numbers into stripes: (0, s1], (s1, s2], …, (sn, ∞). A read sees, of each stripe, at
//! most its newest version. So:
//!
//! 1. A version that decides a read (value or tombstone) hides every older one of its stripe.
//! 2. A merge operand decides nothing: older versions stay, down to the first one that decides. (`fold` may combine
//!    them into one value.)
//! 3. A tombstone is useless if nothing older is beneath, neither in this rewrite's survivors nor in deeper levels. It
//!    is held back until an older survivor of its key appears, and dropped if none does.
//! 4. A single delete must meet the one put it belongs to, wherever that is: it is never dropped for being hidden, only
//!    by rule 3.
//! 5. If nothing at all lies beneath the output, a value that every snapshot sees gets sequence number 0. Merge
//!    operands, timed puts and tombstones keep theirs.
//! 6. Unknown kinds, and tombstones with timestamps, neither hide nor are hidden, except by rule 7.
//! 7. A range tombstone hides older versions in its own stripe. Versions in an older stripe stay for their snapshot,
//!    and the tombstone stays for other reads. `tombstones` decides which range tombstones are dropped.
//!
//! Source: RocksDB `db/compaction/compaction_iterator.cc` (behaviour).

use super::filter::Filtering;
use ashlar_base::MergeOperator;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::key::{SeqNum, Trailer, ValueType};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_tree::blobs::BlobFiles;
use std::sync::Arc;

/// What may lie beneath the output of a rewrite: data older than everything the rewrite reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beneath {
    /// Any key may have older data (flush).
    Unknown,
    /// Data only in these ranges of user keys, both ends inclusive, ascending and disjoint. Empty = bottommost.
    Ranges(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Beneath {
    /// True when nothing lies beneath.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Beneath::Ranges(ranges) if ranges.is_empty())
    }
}

/// What a rewrite must keep.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The sequence numbers of the live snapshots, ascending. Reads of the newest state are always served.
    pub snapshots: Vec<SeqNum>,
    /// What lies beneath the output.
    pub beneath: Beneath,
    /// The range tombstones of all runs, cut to the bounds of their tables.
    pub tombstones: Arc<FragmentedTombstones>,
    /// Folds merge operands; `None`: operands are kept.
    pub operator: Option<Arc<dyn MergeOperator>>,
    /// The blob files that entries refer to, for operands that apply to a blob; `None`: such operands are kept.
    pub blobs: Option<Arc<BlobFiles>>,
}

impl Retention {
    /// For flushes: any key may lie beneath.
    pub fn above_unknown(snapshots: Vec<SeqNum>, tombstones: Arc<FragmentedTombstones>) -> Self {
        Retention { snapshots, beneath: Beneath::Unknown, tombstones, operator: None, blobs: None }
    }

    /// Sets the operator that folds merge operands.
    pub fn with_operator(self, operator: Option<Arc<dyn MergeOperator>>) -> Self {
        Retention { operator, ..self }
    }

    /// Sets the blob files that entries refer to.
    pub fn with_blobs(self, blobs: Arc<BlobFiles>) -> Self {
        Retention { blobs: Some(blobs), ..self }
    }
}

/// What happens to one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The version stays, with this trailer; held-back versions of the same key stay too and come before it.
    Keep(Trailer),
    /// The version is held back: it stays if an older version of the key stays.
    Hold,
    /// The version is dropped.
    Drop,
    /// The version is folded with the merge operands of its key.
    Folded,
    /// This engine cannot rewrite the version's kind: the rewrite must stop.
    Refuse,
}

/// The rule, with its position in the stream of keys.
#[derive(Debug)]
pub struct Rule<C: KeyOrder> {
    order: C,
    snapshots: Vec<SeqNum>,
    beneath: Beneath,
    tombstones: Arc<FragmentedTombstones>,
    /// The first fragment that ends after the current key.
    fragment_at: usize,
    zeroing: bool,
    range_at: usize,
    hidden_stripe: Option<usize>,
    zeroed: bool,
    /// A user's decision on what the rule keeps; `None`: everything stays. See `filter`.
    pub(super) filter: Option<Box<Filtering>>,
}

impl<C: KeyOrder> Rule<C> {
    /// The rule for one rewrite.
    pub fn new(order: C, retention: Retention) -> Self {
        let zeroing = retention.beneath.is_nothing() || planted(Bug::SequenceZeroedEarly);
        let Retention { mut snapshots, beneath, tombstones, .. } = retention;
        snapshots.retain(|_| !planted(Bug::SnapshotsForgotten));
        snapshots.sort_unstable();
        snapshots.dedup();
        Rule {
            order,
            snapshots,
            beneath,
            tombstones,
            fragment_at: 0,
            zeroing,
            range_at: 0,
            hidden_stripe: None,
            zeroed: false,
            filter: None,
        }
    }

    /// The order of the keys.
    pub(super) fn order(&self) -> &C {
        &self.order
    }

    /// The number of snapshots, which is the number of the newest stripe.
    pub(super) fn snapshot_count(&self) -> usize {
        self.snapshots.len()
    }

    /// The tombstone in place of a value that the rule kept and the filter removed, with its verdict.
    pub(super) fn removed(&mut self, user_key: &[u8], value: Trailer) -> (Trailer, Verdict) {
        self.zeroed = false;
        let tombstone = Trailer::new(value.seq(), ValueType::Delete);
        if planted(Bug::FilteredWithoutTombstone) {
            return (tombstone, Verdict::Drop);
        }
        (tombstone, self.tombstone(user_key, tombstone))
    }

    /// Begins a new user key. Keys come in ascending order.
    #[inline]
    pub fn begin_key(&mut self) {
        self.hidden_stripe = None;
        self.zeroed = false;
    }

    /// The verdict on the next older version of `user_key`.
    #[inline]
    pub fn decide(&mut self, user_key: &[u8], trailer: Trailer) -> Verdict {
        let stripe = self.stripe(trailer.seq());
        if !self.tombstones.is_empty() && self.is_covered(user_key, trailer, stripe) {
            return Verdict::Drop;
        }
        let hidden = self.hidden_stripe == Some(stripe);
        match trailer.value_type() {
            Some(ValueType::Put | ValueType::BlobIndex | ValueType::Entity) if !hidden => {
                self.hidden_stripe = Some(stripe);
                Verdict::Keep(self.settled(trailer, stripe))
            }
            Some(ValueType::TimedPut) if !hidden => {
                self.hidden_stripe = Some(stripe);
                Verdict::Keep(trailer)
            }
            Some(ValueType::Merge) if !hidden => Verdict::Keep(trailer),
            Some(ValueType::Delete) if !hidden => {
                self.hidden_stripe = Some(stripe);
                self.tombstone(user_key, trailer)
            }
            Some(ValueType::SingleDelete) if planted(Bug::SingleDeleteAlone) => Verdict::Drop,
            Some(ValueType::SingleDelete) => {
                self.hidden_stripe = Some(stripe);
                self.tombstone(user_key, trailer)
            }
            Some(ValueType::RangeDelete) => Verdict::Refuse,
            Some(ValueType::DeleteWithTimestamp) | None if self.zeroed => Verdict::Refuse,
            Some(ValueType::DeleteWithTimestamp) | None => Verdict::Keep(trailer),
            Some(_) => Verdict::Drop,
        }
    }

    /// Whether a range tombstone of the same stripe hides the version. Walks along the fragments: keys ascend.
    fn is_covered(&mut self, user_key: &[u8], trailer: Trailer, stripe: usize) -> bool {
        let fragment = loop {
            let Some(fragment) = self.tombstones.fragment(self.fragment_at) else { return false };
            if self.order.cmp(fragment.end, user_key).is_gt() {
                break fragment;
            }
            self.fragment_at += 1;
        };
        trailer.value_type() != Some(ValueType::RangeDelete)
            && self.order.cmp(fragment.begin, user_key).is_le()
            && fragment.oldest_above(trailer.seq()).is_some_and(|above| self.stripe(above) == stripe)
    }

    /// The trailer that a value keeps, by rule 5.
    pub(super) fn settled(&mut self, value: Trailer, stripe: usize) -> Trailer {
        if !self.zeroing || stripe > 0 {
            return value;
        }
        self.zeroed = true;
        Trailer::from_raw(u64::from(value.type_byte()))
    }

    fn tombstone(&mut self, user_key: &[u8], trailer: Trailer) -> Verdict {
        if self.may_lie_beneath(user_key) && !planted(Bug::TombstoneDroppedEarly) {
            Verdict::Keep(trailer)
        } else {
            Verdict::Hold
        }
    }

    /// The index of the first snapshot that sees `seq`; the number of snapshots when none does. The lowest stripe is
    /// visible to every snapshot and to reads of the newest state.
    #[inline]
    pub(super) fn stripe(&self, seq: SeqNum) -> usize {
        stripe(&self.snapshots, seq)
    }

    /// Whether a deeper level may hold an older version. Walks along the ranges: keys ascend.
    pub(super) fn may_lie_beneath(&mut self, user_key: &[u8]) -> bool {
        let Beneath::Ranges(ranges) = &self.beneath else { return true };
        while let Some((smallest, largest)) = ranges.get(self.range_at) {
            if self.order.cmp(largest, user_key).is_lt() {
                self.range_at += 1;
            } else {
                return self.order.cmp(smallest, user_key).is_le();
            }
        }
        false
    }
}

/// See [`Rule::stripe`].
#[inline]
pub(super) fn stripe(snapshots: &[SeqNum], seq: SeqNum) -> usize {
    if snapshots.is_empty() { 0 } else { snapshots.partition_point(|s| *s < seq) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ext::comparator::BytewiseOrder;

    fn t(seq: u64, kind: ValueType) -> Trailer {
        Trailer::new(SeqNum::new(seq).unwrap(), kind)
    }

    /// The versions of the key "k" that survive.
    fn survivors(
        snapshots: &[u64],
        beneath: Beneath,
        versions: &[(u64, ValueType)],
    ) -> Vec<(u64, ValueType)> {
        let snapshots = snapshots.iter().map(|s| SeqNum::new(*s).unwrap()).collect();
        let mut rule = Rule::new(
            BytewiseOrder,
            Retention { snapshots, beneath, tombstones: Arc::default(), operator: None, blobs: None },
        );
        rule.begin_key();
        let (mut left, mut held) = (vec![], vec![]);
        for &(seq, kind) in versions {
            match rule.decide(b"k", t(seq, kind)) {
                Verdict::Keep(trailer) => {
                    left.append(&mut held);
                    left.push(trailer);
                }
                Verdict::Hold => held.push(t(seq, kind)),
                Verdict::Drop | Verdict::Folded => {}
                Verdict::Refuse => panic!("refused {seq} {kind:?}"),
            }
        }
        left.iter().map(|t| (t.seq().get(), t.value_type().unwrap())).collect()
    }

    use ValueType::{BlobIndex, Delete, Entity, Merge, Put, SingleDelete, TimedPut};

    fn bottom() -> Beneath {
        Beneath::Ranges(vec![])
    }
    fn covered() -> Beneath {
        Beneath::Ranges(vec![(b"a".to_vec(), b"c".to_vec()), (b"j".to_vec(), b"k".to_vec())])
    }
    fn beside() -> Beneath {
        Beneath::Ranges(vec![(b"a".to_vec(), b"j".to_vec()), (b"ka".to_vec(), b"z".to_vec())])
    }

    #[test]
    fn newest_of_each_stripe_stays() {
        let versions = [(9, Put), (7, Put), (5, Put), (4, Put), (2, Put)];
        assert_eq!(survivors(&[], covered(), &versions), [(9, Put)]);
        assert_eq!(survivors(&[4, 8], covered(), &versions), [(9, Put), (7, Put), (4, Put)]);
        assert_eq!(survivors(&[4, 8], bottom(), &versions), [(9, Put), (7, Put), (0, Put)]);
    }

    #[test]
    fn tombstones_stay_while_something_is_beneath() {
        let versions = [(9, Delete), (5, Put)];
        assert_eq!(survivors(&[], Beneath::Unknown, &versions), [(9, Delete)]);
        assert_eq!(survivors(&[], covered(), &versions), [(9, Delete)]);
        assert_eq!(survivors(&[], beside(), &versions), []);
        assert_eq!(survivors(&[], bottom(), &versions), []);
        assert_eq!(survivors(&[5], bottom(), &versions), [(9, Delete), (0, Put)]);
        assert_eq!(survivors(&[4], bottom(), &versions), []);
        assert_eq!(survivors(&[4, 6], bottom(), &[(9, Delete), (5, Delete)]), []);
    }

    #[test]
    fn merge_operands_protect_what_is_below_them() {
        let versions = [(9, Merge), (8, Merge), (5, Put), (4, Merge), (3, Put)];
        assert_eq!(survivors(&[], bottom(), &versions), [(9, Merge), (8, Merge), (0, Put)]);
        assert_eq!(
            survivors(&[], covered(), &[(9, Merge), (8, Delete), (7, Put)]),
            [(9, Merge), (8, Delete)]
        );
        assert_eq!(survivors(&[], bottom(), &[(9, Merge), (8, Delete), (7, Put)]), [(9, Merge)]);
        assert_eq!(survivors(&[], bottom(), &[(9, Put), (8, Merge)]), [(0, Put)]);
    }

    #[test]
    fn single_deletes_are_never_lost_above_their_put() {
        let hidden = [(10, Put), (5, SingleDelete), (3, Put)];
        assert_eq!(survivors(&[], covered(), &hidden), [(10, Put), (5, SingleDelete)]);
        assert_eq!(survivors(&[], bottom(), &hidden), [(0, Put)]);
        assert_eq!(survivors(&[4], bottom(), &hidden), [(10, Put), (5, SingleDelete), (0, Put)]);
        assert_eq!(survivors(&[], beside(), &[(5, SingleDelete)]), []);
        assert_eq!(survivors(&[], covered(), &[(5, SingleDelete)]), [(5, SingleDelete)]);
    }

    #[test]
    fn only_plain_values_lose_their_sequence() {
        for (kind, seq) in [(Put, 0), (BlobIndex, 0), (Entity, 0), (TimedPut, 7), (Merge, 7)] {
            assert_eq!(survivors(&[8], bottom(), &[(7, kind)]), [(seq, kind)]);
            assert_eq!(survivors(&[6], bottom(), &[(7, kind)]), [(7, kind)]);
            assert_eq!(survivors(&[], beside(), &[(7, kind)]), [(7, kind)]);
        }
    }

    #[test]
    fn unknown_kinds_are_carried_or_refused() {
        let unknown = Trailer::from_raw((3 << 8) | 0x7e);
        let rule = |beneath| {
            let (snapshots, tombstones) = (vec![], Arc::default());
            let retention = Retention { snapshots, beneath, tombstones, operator: None, blobs: None };
            let mut rule = Rule::new(BytewiseOrder, retention);
            rule.begin_key();
            rule
        };
        let mut above = rule(covered());
        assert_eq!(above.decide(b"k", t(9, Put)), Verdict::Keep(t(9, Put)));
        assert_eq!(above.decide(b"k", unknown), Verdict::Keep(unknown));
        assert_eq!(above.decide(b"k", t(1, ValueType::RangeDelete)), Verdict::Refuse);
        let mut lowest = rule(bottom());
        assert_eq!(lowest.decide(b"k", unknown), Verdict::Keep(unknown));
        assert_eq!(lowest.decide(b"k", t(2, Put)), Verdict::Keep(t(0, Put)));
        assert_eq!(lowest.decide(b"k", Trailer::from_raw((1 << 8) | 0x7e)), Verdict::Refuse);
    }
}

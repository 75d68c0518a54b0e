//! Folds merge operands during a rewrite, so that a key with endless merges does not grow without bound.
//!
//! The operands of one stripe (see `retention`) are collected, newest first, until the base to which they apply is
//! found:
//! 1. A put (timed or not, inline or a blob), an entity or a delete of the same stripe, or an entry that a range
//!    tombstone of the same stripe hides: the operands fold over it, for an entity over its default column.
//! 2. The end of the key, where nothing lies beneath: the operands fold over nothing.
//! 3. Anything else, including another stripe: the operands are kept, combined into one where the operator can do that
//!    without a base.
//!
//! The folded result is a put (or an entity) at the newest operand's sequence. It hides all older versions of its
//! stripe, which operands do not. A single delete is kept beneath it, for the put that it belongs to. Operands that the
//! operator refuses are kept unchanged: readers of the key get the operator's error, and nothing is lost. Operands
//! whose result would be too large for a table are kept too, because otherwise their flush could never succeed: readers
//! get the value.
//!
//! Source: RocksDB `db/merge_helper.cc` (behaviour).

use super::drive::{EntrySink, KeyState, RewriteCounters};
use super::retention::{Rule, Verdict};
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Entry, MergeOperator, Result, Trailer, ValueType};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_table::MAX_ENTRY_BYTES;
use ashlar_tree::blobs::BlobFiles;
use std::borrow::Cow;
use std::sync::Arc;

/// The largest total size of collected operands; older operands are folded separately.
const BYTES_MAX: usize = 32 << 20;

/// The collected operands.
#[derive(Debug)]
pub(super) struct Operands {
    operator: Option<Arc<dyn MergeOperator>>,
    blobs: Option<Arc<BlobFiles>>,
    /// Newest first.
    gathered: Vec<(Trailer, Vec<u8>)>,
    stripe: usize,
    bytes: usize,
    /// The largest entry of a table: operands with a larger result are kept unchanged.
    entry_bytes_max: usize,
}

impl Operands {
    /// Without an operator no operand is ever collected.
    pub(super) fn new(operator: Option<Arc<dyn MergeOperator>>, blobs: Option<Arc<BlobFiles>>) -> Self {
        let entry_bytes_max = MAX_ENTRY_BYTES;
        Operands { operator, blobs, gathered: Vec::new(), stripe: 0, bytes: 0, entry_bytes_max }
    }

    /// The value of a blob index or a timed put; `None` when it cannot be read: readers of the key get the error.
    fn fetch(&self, entry: Entry<'_>) -> Option<Vec<u8>> {
        let (user_key, trailer) = entry.key.split();
        let value = self.blobs.as_ref()?.value(user_key, trailer.value_type(), entry.value);
        value.ok().map(Cow::into_owned)
    }

    /// Whether [`KeyState::chain`] has to see an entry.
    #[inline]
    pub(super) fn concern(&self, trailer: Trailer) -> bool {
        !self.gathered.is_empty()
            || (trailer.type_byte() == ValueType::Merge as u8 && self.operator.is_some())
    }

    fn oldest_first(&self) -> Vec<&[u8]> {
        self.gathered.iter().rev().map(|(_, operand)| &operand[..]).collect()
    }

    /// `value` if it fits into a table; `None` if it is too large.
    fn fitting(&self, user_key: &[u8], value: Vec<u8>) -> Option<Vec<u8>> {
        let entry_bytes = user_key.len() + size_of::<Trailer>() + value.len();
        (entry_bytes <= self.entry_bytes_max).then_some(value)
    }

    /// The value in place of the operands, and its type; `None` when the operator refuses them, or the value is too
    /// large.
    fn fold(&self, user_key: &[u8], base: Base<'_>) -> Option<(ValueType, Vec<u8>)> {
        let merge =
            |existing| self.operator.as_ref()?.full_merge(user_key, existing, &self.oldest_first()).ok();
        let (value_type, value) = match base {
            Base::Nothing => (ValueType::Put, merge(None)?),
            Base::Value(value) => (ValueType::Put, merge(Some(value))?),
            Base::Entity(stored) => {
                let entity = Entity::decode(stored).ok()?;
                let existing = match entity.default_column() {
                    Some(ColumnValue::Inline(value)) => value,
                    // The operands stay; a read of the key reads the blob.
                    Some(ColumnValue::Blob(_)) => return None,
                    None => &[],
                };
                let value = merge(Some(existing))?;
                let mut columns = vec![Column { name: b"", value: ColumnValue::Inline(&value) }];
                columns.extend(entity.columns().iter().filter(|column| !column.name.is_empty()));
                let mut merged = Vec::new();
                Entity::new(columns).ok()?.encode(&mut merged);
                (ValueType::Entity, merged)
            }
        };
        Some((value_type, self.fitting(user_key, value)?))
    }

    /// Combines all operands into one, if the operator can do that without the base. Returns how many operands
    /// disappeared.
    fn combine(&mut self, user_key: &[u8]) -> u64 {
        let (Some((newest, _)), [_, _, ..]) = (self.gathered.first(), &self.gathered[..]) else { return 0 };
        let newest = *newest;
        let combined = self.operator.as_ref().and_then(|o| o.partial_merge(user_key, &self.oldest_first()));
        let Some(combined) = combined.and_then(|combined| self.fitting(user_key, combined)) else { return 0 };
        let gone = self.gathered.len() as u64 - 1;
        self.gathered.clear();
        self.gathered.push((newest, combined));
        gone
    }
}

/// The base that operands apply to.
#[derive(Clone, Copy)]
enum Base<'a> {
    Nothing,
    Value(&'a [u8]),
    /// An encoded entity: the operands apply to its default column.
    Entity(&'a [u8]),
}

impl KeyState {
    /// Handles an entry of a key with operands. Returns the verdict that is left to carry out.
    #[cold]
    pub(super) fn chain<C: KeyOrder, S: EntrySink>(
        &mut self,
        rule: &mut Rule<C>,
        sink: &mut S,
        entry: Entry<'_>,
        verdict: Verdict,
        counters: &mut RewriteCounters,
    ) -> Result<Verdict> {
        let trailer = entry.key.trailer();
        let stripe = rule.stripe(trailer.seq());
        let kept = matches!(verdict, Verdict::Keep(_));
        if trailer.value_type() == Some(ValueType::Merge) && kept {
            if stripe != self.operands.stripe || self.operands.bytes > BYTES_MAX {
                self.pass_operands(sink, true, counters)?;
            }
            self.operands.stripe = stripe;
            self.operands.bytes += entry.value.len() + size_of::<(Trailer, Vec<u8>)>();
            self.operands.gathered.push((trailer, entry.value.to_vec()));
            if planted(Bug::MergedTwice) {
                self.operands.gathered.push((trailer, entry.value.to_vec()));
            }
            return Ok(Verdict::Taken);
        }
        let fetched;
        // The base of the operands, and the verdict that is left for the entry.
        let base = match (trailer.value_type(), verdict) {
            _ if stripe != self.operands.stripe => None,
            (Some(ValueType::BlobIndex | ValueType::TimedPut), Verdict::Keep(_)) => {
                fetched = self.operands.fetch(entry);
                fetched.as_deref().map(|value| (Base::Value(value), Verdict::Taken))
            }
            (Some(ValueType::Put), Verdict::Keep(_)) => Some((Base::Value(entry.value), Verdict::Taken)),
            (Some(ValueType::Entity), Verdict::Keep(_)) => Some((Base::Entity(entry.value), Verdict::Taken)),
            (Some(ValueType::Delete), Verdict::Keep(_) | Verdict::Hold) => {
                Some((Base::Nothing, Verdict::Taken))
            }
            (Some(ValueType::SingleDelete), Verdict::Keep(_) | Verdict::Hold) => {
                Some((Base::Nothing, verdict))
            }
            // The entry is hidden. Operands hide nothing, so a range tombstone between the two hides it.
            (_, Verdict::Drop) => Some((Base::Nothing, verdict)),
            _ => None,
        };
        let refused = base.is_some();
        if let Some((base, left)) = base
            && self.fold_operands(rule, sink, base, counters)?
        {
            counters.folded += u64::from(left == Verdict::Taken);
            return Ok(left);
        }
        self.pass_operands(sink, !refused, counters)?;
        Ok(verdict)
    }

    /// Ends a key: it has no further entries.
    #[inline]
    pub(super) fn end_chain<C: KeyOrder, S: EntrySink>(
        &mut self,
        rule: &mut Rule<C>,
        sink: &mut S,
        counters: &mut RewriteCounters,
    ) -> Result<()> {
        if self.operands.gathered.is_empty() {
            return Ok(());
        }
        let over_nothing = !rule.may_lie_beneath(&self.user_key);
        if over_nothing && self.fold_operands(rule, sink, Base::Nothing, counters)? {
            return Ok(());
        }
        self.pass_operands(sink, !over_nothing, counters)
    }

    /// Writes the value in place of the operands; false when there is none.
    fn fold_operands<C: KeyOrder, S: EntrySink>(
        &mut self,
        rule: &mut Rule<C>,
        sink: &mut S,
        base: Base<'_>,
        counters: &mut RewriteCounters,
    ) -> Result<bool> {
        let Some((newest, _)) = self.operands.gathered.first() else { return Ok(false) };
        let newest = newest.seq();
        let Some((value_type, value)) = self.operands.fold(&self.user_key, base) else { return Ok(false) };
        let trailer = rule.settled(Trailer::new(newest, value_type), self.operands.stripe);
        counters.folded += self.operands.gathered.len() as u64 - 1;
        counters.entries_out += self.emit_parts(sink, trailer, &value)?;
        self.operands.gathered.clear();
        self.operands.bytes = 0;
        Ok(true)
    }

    /// Passes the operands to the sink: unchanged, or combined into one.
    fn pass_operands<S: EntrySink>(
        &mut self,
        sink: &mut S,
        combine: bool,
        counters: &mut RewriteCounters,
    ) -> Result<()> {
        self.operands.bytes = 0;
        if combine {
            counters.folded += self.operands.combine(&self.user_key);
        }
        for (trailer, operand) in std::mem::take(&mut self.operands.gathered) {
            counters.entries_out += self.emit_parts(sink, trailer, &operand)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::trailer;
    use super::*;
    use ashlar_base::ext::merge_operator::standard_operator;

    #[test]
    fn what_no_table_takes_is_not_folded() {
        let mut operands = Operands::new(standard_operator("stringappend"), None);
        operands.gathered = vec![(trailer(2, ValueType::Merge), b"operand".to_vec())];
        // A key of 3 bytes, a trailer of 8, the base, a comma, the operand of 7.
        operands.entry_bytes_max = 3 + 8 + 4 + 1 + 7;
        let folded = operands.fold(b"key", Base::Value(b"base"));
        assert_eq!(folded, Some((ValueType::Put, b"base,operand".to_vec())));
        assert_eq!(operands.fold(b"key", Base::Value(b"bases")), None);
        assert_eq!(operands.fold(b"keys", Base::Value(b"base")), None);
        operands.gathered.push((trailer(1, ValueType::Merge), b"more".to_vec()));
        assert_eq!(operands.combine(b"key"), 1);
        assert_eq!(operands.gathered, [(trailer(2, ValueType::Merge), b"more,operand".to_vec())]);
        operands.gathered.push((trailer(1, ValueType::Merge), b"still more".to_vec()));
        assert_eq!((operands.combine(b"key"), operands.gathered.len()), (0, 2), "too large for a table");
    }
}

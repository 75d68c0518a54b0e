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

use super::filter::Judged;
use super::key_state::KeyState;
use super::operands::Base;
use super::retention::{Rule, Verdict};
use super::sink::{EntrySink, RewriteCounters};
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Entry, Result, Trailer, ValueType};

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
            if stripe != self.operands.stripe || self.operands.bytes > self.operands.bytes_max {
                self.pass_operands(sink, true, counters)?;
            }
            self.operands.stripe = stripe;
            self.operands.push(trailer, entry.value);
            if planted(Bug::MergedTwice) {
                self.operands.collected.push((trailer, entry.value.to_vec()));
            }
            return Ok(Verdict::Folded);
        }
        let fetched;
        // The base of the operands, and the verdict that is left for the entry.
        let base = match (trailer.value_type(), verdict) {
            _ if stripe != self.operands.stripe => None,
            (Some(ValueType::BlobIndex | ValueType::TimedPut), Verdict::Keep(_)) => {
                fetched = self.operands.fetch(entry);
                fetched.as_deref().map(|value| (Base::Value(value), Verdict::Folded))
            }
            (Some(ValueType::Put), Verdict::Keep(_)) => Some((Base::Value(entry.value), Verdict::Folded)),
            (Some(ValueType::Entity), Verdict::Keep(_)) => Some((Base::Entity(entry.value), Verdict::Folded)),
            (Some(ValueType::Delete), Verdict::Keep(_) | Verdict::Hold) => {
                Some((Base::Nothing, Verdict::Folded))
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
            counters.folded += u64::from(left == Verdict::Folded);
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
        if self.operands.collected.is_empty() {
            return Ok(());
        }
        let over_nothing = !rule.may_lie_beneath(self.user_key());
        if over_nothing && self.fold_operands(rule, sink, Base::Nothing, counters)? {
            return Ok(());
        }
        self.pass_operands(sink, !over_nothing, counters)
    }

    /// Writes the value in place of the operands; false if there is no value.
    fn fold_operands<C: KeyOrder, S: EntrySink>(
        &mut self,
        rule: &mut Rule<C>,
        sink: &mut S,
        base: Base<'_>,
        counters: &mut RewriteCounters,
    ) -> Result<bool> {
        let Some((newest, _)) = self.operands.collected.first() else { return Ok(false) };
        let newest = newest.seq();
        let Some((value_type, value)) = self.operands.fold(self.user_key(), base) else { return Ok(false) };
        self.operands.charge_value(&value);
        let trailer = Trailer::new(newest, value_type);
        let judged = match rule.filter {
            None => Judged::AsItIs,
            Some(_) => rule.folded(self.user_key(), trailer, &value)?,
        };
        counters.folded += self.operands.collected.len() as u64 - 1;
        let (trailer, value) = match judged {
            Judged::AsItIs => (rule.settled(trailer, self.operands.stripe), value),
            Judged::Changed(trailer, value) => (rule.settled(trailer, self.operands.stripe), value),
            Judged::Removed(tombstone, Verdict::Keep(_)) => (tombstone, Vec::new()),
            Judged::Removed(tombstone, verdict) => {
                if verdict == Verdict::Hold {
                    self.held.push(tombstone);
                }
                self.operands.clear();
                return Ok(true);
            }
            Judged::Gone => {
                self.operands.clear();
                return Ok(true);
            }
        };
        counters.entries_out += self.emit_parts(sink, trailer, &value)?;
        self.operands.clear();
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
            counters.folded += self.operands.combine(self.key.as_key().user_key());
        }
        for (trailer, operand) in std::mem::take(&mut self.operands.collected) {
            counters.entries_out += self.emit_parts(sink, trailer, &operand)?;
        }
        self.operands.clear();
        Ok(())
    }
}

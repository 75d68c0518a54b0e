//! The merge operands of one stripe, collected until the base to which they apply is found; see `fold`.

use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::{Entry, MergeOperator, Trailer, ValueType};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_table::{MAX_ENTRY_BYTES, ReadHow};
use ashlar_tree::blobs::BlobFiles;
use std::borrow::Cow;
use std::sync::Arc;

/// The limit on collected operands is a sixteenth of the cap, within these bounds.
const BYTES_MAX: usize = 32 << 20;
const BYTES_MIN: usize = 1 << 20;
/// The steps in which operands are charged.
const CHARGED: usize = 64 << 10;

/// The collected operands.
#[derive(Debug)]
pub(super) struct Operands {
    operator: Option<Arc<dyn MergeOperator>>,
    blobs: Option<Arc<BlobFiles>>,
    /// Newest first.
    pub(super) collected: Vec<(Trailer, Vec<u8>)>,
    pub(super) stripe: usize,
    pub(super) bytes: usize,
    /// Older operands of a stripe are folded separately when there are more bytes than this.
    pub(super) bytes_max: usize,
    charged: usize,
    charge: MemoryCharge,
    /// The largest entry of a table: operands with a larger result are kept unchanged.
    entry_bytes_max: usize,
}

impl Operands {
    /// Without an operator no operand is ever collected.
    pub(super) fn new(
        operator: Option<Arc<dyn MergeOperator>>,
        blobs: Option<Arc<BlobFiles>>,
        budget: Option<&Arc<MemoryBudget>>,
    ) -> Self {
        Operands {
            operator,
            blobs,
            collected: Vec::new(),
            stripe: 0,
            bytes: 0,
            charged: 0,
            bytes_max: budget.map_or(BYTES_MAX, |budget| (budget.cap() / 16).clamp(BYTES_MIN, BYTES_MAX)),
            charge: budget.map_or_else(MemoryCharge::none, |budget| budget.charge(MemoryUse::Operands, 0)),
            entry_bytes_max: MAX_ENTRY_BYTES,
        }
    }

    /// Adds an operand that is older than those before.
    pub(super) fn push(&mut self, trailer: Trailer, operand: &[u8]) {
        self.bytes += operand.len() + size_of::<(Trailer, Vec<u8>)>();
        self.collected.push((trailer, operand.to_vec()));
        if self.bytes >= self.charged + CHARGED {
            self.charged = self.bytes;
            self.charge.set(self.charged);
        }
    }

    /// Charges a folded value, which is beside the operands until it is written.
    pub(super) fn charge_value(&mut self, value: &Vec<u8>) {
        if value.capacity() >= CHARGED {
            self.charged += value.capacity();
            self.charge.set(self.charged);
        }
    }

    /// The value of a blob index or a timed put; `None` when it cannot be read: readers of the key get the error.
    pub(super) fn fetch(&self, entry: Entry<'_>) -> Option<Vec<u8>> {
        let (user_key, trailer) = entry.key.split();
        let value = self.blobs.as_ref()?.value(user_key, trailer.value_type(), entry.value, ReadHow::plain());
        value.ok().map(Cow::into_owned)
    }

    /// Whether [`KeyState::chain`](super::key_state::KeyState::chain) has to see an entry.
    #[inline]
    pub(super) fn may_fold(&self, trailer: Trailer) -> bool {
        !self.collected.is_empty()
            || (trailer.type_byte() == ValueType::Merge as u8 && self.operator.is_some())
    }

    /// Forgets the operands, which were folded.
    pub(super) fn clear(&mut self) {
        self.collected.clear();
        self.bytes = 0;
        if self.charged > 0 {
            self.charged = 0;
            self.charge.set(0);
        }
    }

    fn oldest_first(&self) -> Vec<&[u8]> {
        self.collected.iter().rev().map(|(_, operand)| &operand[..]).collect()
    }

    /// `value` if it fits into a table; `None` if it is too large.
    fn fitting(&self, user_key: &[u8], value: Vec<u8>) -> Option<Vec<u8>> {
        let entry_bytes = user_key.len() + size_of::<Trailer>() + value.len();
        (entry_bytes <= self.entry_bytes_max).then_some(value)
    }

    /// The value in place of the operands, and its type; `None` when the operator refuses them, or the value is too
    /// large.
    pub(super) fn fold(&self, user_key: &[u8], base: Base<'_>) -> Option<(ValueType, Vec<u8>)> {
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
    pub(super) fn combine(&mut self, user_key: &[u8]) -> u64 {
        let (Some((newest, _)), [_, _, ..]) = (self.collected.first(), &self.collected[..]) else { return 0 };
        let newest = *newest;
        let combined = self.operator.as_ref().and_then(|o| o.partial_merge(user_key, &self.oldest_first()));
        let Some(combined) = combined.and_then(|combined| self.fitting(user_key, combined)) else { return 0 };
        let gone = self.collected.len() as u64 - 1;
        self.collected.clear();
        self.collected.push((newest, combined));
        gone
    }
}

/// The base that operands apply to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    Nothing,
    Value(&'a [u8]),
    /// An encoded entity: the operands apply to its default column.
    Entity(&'a [u8]),
}

#[cfg(test)]
mod tests {
    use super::super::fixture::trailer;
    use super::*;
    use ashlar_base::ext::merge_operator::standard_operator;

    #[test]
    fn what_no_table_takes_is_not_folded() {
        let mut operands = Operands::new(standard_operator("stringappend"), None, None);
        operands.collected = vec![(trailer(2, ValueType::Merge), b"operand".to_vec())];
        // A key of 3 bytes, a trailer of 8, the base, a comma, the operand of 7.
        operands.entry_bytes_max = 3 + 8 + 4 + 1 + 7;
        let folded = operands.fold(b"key", Base::Value(b"base"));
        assert_eq!(folded, Some((ValueType::Put, b"base,operand".to_vec())));
        assert_eq!(operands.fold(b"key", Base::Value(b"bases")), None);
        assert_eq!(operands.fold(b"keys", Base::Value(b"base")), None);
        operands.collected.push((trailer(1, ValueType::Merge), b"more".to_vec()));
        assert_eq!(operands.combine(b"key"), 1);
        assert_eq!(operands.collected, [(trailer(2, ValueType::Merge), b"more,operand".to_vec())]);
        operands.collected.push((trailer(1, ValueType::Merge), b"still more".to_vec()));
        assert_eq!((operands.combine(b"key"), operands.collected.len()), (0, 2), "too large for a table");
    }
}

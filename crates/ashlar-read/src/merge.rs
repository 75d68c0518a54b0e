//! Collects merge operands, and combines them with a value by the family's merge operator.

use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::{Error, MergeOperator, Result};
use std::sync::Arc;

/// Bytes of operands from which on their memory is charged.
const CHARGED: usize = 64 << 10;

/// Combines the merge operands of a family with values.
#[derive(Clone, Debug)]
pub struct Merger {
    family: String,
    operator: Option<Arc<dyn MergeOperator>>,
}

impl Merger {
    /// The operator of a family, and the family's name for messages.
    pub fn new(family: &str, operator: Option<Arc<dyn MergeOperator>>) -> Self {
        Merger { family: family.to_owned(), operator }
    }

    /// The operator; `None` when the family was opened without one.
    pub fn operator(&self) -> Option<&Arc<dyn MergeOperator>> {
        self.operator.as_ref()
    }

    /// The value of `key`: `base` with the operands applied, oldest first. `base` is `None` if there is no value.
    ///
    /// # Errors
    /// `InvalidArgument`, with family and key, when the family has no operator. Also the errors of the operator.
    pub fn fold<'a>(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        oldest_first: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<u8>> {
        let Some(operator) = &self.operator else { return Err(self.missing(key)) };
        let operands: Vec<&[u8]> = oldest_first.collect();
        operator.full_merge(key, base, &operands)
    }

    /// The error of an operation in a family without a merge operator.
    #[cold]
    pub fn missing(&self, key: &[u8]) -> Error {
        let (family, key) = (&self.family, key.escape_ascii());
        Error::invalid(format!("family {family:?} has no merge operator, which key '{key}' needs"))
            .hint("Open the family with the merge operator that its operands were written for")
    }
}

/// Merge operands of one key, in one buffer.
#[derive(Debug, Default)]
pub struct Operands {
    bytes: Vec<u8>,
    /// The end of each in `bytes`.
    ends: Vec<usize>,
}

impl Operands {
    /// Adds an operand after the others.
    pub fn push(&mut self, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push(self.bytes.len());
    }

    /// Charges the memory of the operands, if they are long, until the answer is dropped. Not for a thread under a pin or with a lock:
    /// a charge may free other memory.
    pub fn charge(&self, budget: Option<&Arc<MemoryBudget>>) -> Option<MemoryCharge> {
        let memory = self.memory();
        budget.filter(|_| memory >= CHARGED).map(|budget| budget.charge(MemoryUse::Operands, memory))
    }

    /// Bytes of the buffer, and of each operand's place in it, which [`Merger::fold`] has a second time.
    fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * (size_of::<usize>() + size_of::<&[u8]>())
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The operands in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| {
            let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            let end = self.ends.get(at).copied().unwrap_or(0);
            self.bytes.get(start..end).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_come_back_in_both_orders() {
        let mut operands = Operands::default();
        assert!(operands.is_empty() && operands.iter().next().is_none());
        for operand in ["first", "", "last"] {
            operands.push(operand.as_bytes());
        }
        assert_eq!(operands.len(), 3);
        assert_eq!(operands.iter().collect::<Vec<_>>(), [&b"first"[..], b"", b"last"]);
        assert_eq!(operands.iter().rev().collect::<Vec<_>>(), [&b"last"[..], b"", b"first"]);
        operands.clear();
        assert!(operands.is_empty() && operands.iter().next().is_none());
    }

    #[test]
    fn long_operands_are_charged() {
        let budget = MemoryBudget::new(1 << 20);
        let mut operands = Operands::default();
        operands.push(&[0; 1000]);
        assert!(operands.charge(Some(&budget)).is_none() && operands.charge(None).is_none(), "short");
        (0..99).for_each(|_| operands.push(&[0; 1000]));
        let charge = operands.charge(Some(&budget));
        assert!(charge.is_some() && budget.held(MemoryUse::Operands) >= 100_000);
        drop(charge);
        assert_eq!(budget.held(MemoryUse::Operands), 0);
    }
}

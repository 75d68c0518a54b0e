//! The merge operands that a search has met.

/// Merge operands, newest first, in one buffer.
#[derive(Default)]
pub(super) struct Operands {
    bytes: Vec<u8>,
    /// The end of each in `bytes`.
    ends: Vec<usize>,
}

impl Operands {
    /// Adds an operand that is older than the others.
    pub(super) fn push(&mut self, operand: &[u8]) {
        self.bytes.extend_from_slice(operand);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The operands, as a merge wants them.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = &[u8]> {
        let starts = self.ends.iter().rev().skip(1).chain(&[0]);
        self.ends
            .iter()
            .rev()
            .zip(starts)
            .map(|(end, start)| self.bytes.get(*start..*end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_come_back_oldest_first() {
        let mut operands = Operands::default();
        assert!(operands.is_empty() && operands.oldest_first().next().is_none());
        for operand in ["newest", "", "old"] {
            operands.push(operand.as_bytes());
        }
        assert_eq!(operands.len(), 3);
        assert_eq!(operands.oldest_first().collect::<Vec<_>>(), [&b"old"[..], b"", b"newest"]);
    }
}

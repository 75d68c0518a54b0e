//! Combines merge operands with a value, by the family's merge operator.

use ashlar_base::{Error, MergeOperator, Result};
use std::sync::Arc;

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

//! Merge operators: how operands written by `merge` become a value, and the standard ones under RocksDB's ids.
//!
//! Source: RocksDB `include/rocksdb/merge_operator.h`, `utilities/merge_operators/`.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// How merge operands of a family are combined.
pub trait MergeOperator: Send + Sync + fmt::Debug {
    /// The name that OPTIONS and table properties remember.
    fn name(&self) -> &str;
    /// The value of `key`: `existing` (`None`: there was none, or it was deleted) with `operands` applied, oldest first.
    ///
    /// # Errors
    /// `Corruption` when the operands make no sense; the read of the key fails with it.
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>>;
}

/// A built-in operator by the id that OPTIONS files use, or by its name.
pub fn standard_operator(id: &str) -> Option<Arc<dyn MergeOperator>> {
    match id {
        "uint64add" | "UInt64AddOperator" => Some(Arc::new(UInt64Add)),
        "stringappend" | "StringAppendOperator" => Some(Arc::new(StringAppend { delimiter: b",".to_vec() })),
        "max" | "MaxOperator" => Some(Arc::new(Max)),
        "put" | "PutOperator" => Some(Arc::new(LastPut)),
        _ => None,
    }
}

/// Adds unsigned 64-bit integers (eight bytes, little endian), wrapping. A value of another length counts as 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct UInt64Add;

fn as_u64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let start = existing.map_or(0, as_u64);
        let sum = operands.iter().fold(start, |sum, o| sum.wrapping_add(as_u64(o)));
        Ok(sum.to_le_bytes().to_vec())
    }
}

/// Joins strings with a delimiter.
#[derive(Clone, Debug)]
pub struct StringAppend {
    /// What stands between two strings.
    pub delimiter: Vec<u8>,
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        "StringAppendOperator"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(parts.join(&self.delimiter[..]))
    }
}

/// Keeps the largest value in byte order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "MaxOperator"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(existing.into_iter().chain(operands.iter().copied()).max().unwrap_or_default().to_vec())
    }
}

/// The last operand wins.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastPut;

impl MergeOperator for LastPut {
    fn name(&self) -> &str {
        "PutOperator"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let last = operands.last().ok_or_else(|| Error::corruption("a merge without an operand"))?;
        Ok(last.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_operators_combine() {
        let five = 5u64.to_le_bytes();
        let merge = |id: &str, existing: Option<&[u8]>, operands: &[&[u8]]| {
            standard_operator(id).unwrap().full_merge(b"k", existing, operands).unwrap()
        };
        assert_eq!(merge("uint64add", None, &[&five, &five]), 10u64.to_le_bytes());
        assert_eq!(merge("uint64add", Some(b"odd"), &[&five]), five);
        assert_eq!(merge("stringappend", Some(b"a"), &[b"b", b"c"]), b"a,b,c");
        assert_eq!(merge("max", Some(b"m"), &[b"z", b"a"]), b"z");
        assert_eq!(merge("put", Some(b"m"), &[b"z", b"a"]), b"a");
        assert!(standard_operator("nothing").is_none());
    }
}

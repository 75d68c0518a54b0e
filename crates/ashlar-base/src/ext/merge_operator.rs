//! Merge operators: how operands written by `merge` become a value, and the standard ones under RocksDB's ids.
//!
//! Source: RocksDB `include/rocksdb/merge_operator.h`, `utilities/merge_operators/`.

use crate::error::{Error, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Combines the merge operands of a family with values.
///
/// The operator must not call the database it belongs to, and must not panic: a panic during a flush or compaction stops
/// writes until the database is opened again.
pub trait MergeOperator: Any + Send + Sync + fmt::Debug {
    /// The name, which OPTIONS files and table properties store. It must not be empty or equal the name of a built-in
    /// operator: an open without an operator takes the built-in one of the stored name.
    fn name(&self) -> &str;
    /// The value of `key`: `existing` with `operands` applied, oldest first. `existing` is `None` if the key had no
    /// value or was deleted.
    ///
    /// # Errors
    /// `Corruption` when the operands cannot be combined; the read of the key then fails with this error.
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>>;

    /// One operand with the same effect on every base value as `operands` (two or more, oldest first) one after the
    /// other. `None` is always correct, and means that the operator cannot combine operands without the base. Combined
    /// operands keep a key small when a merge happens many levels above the base.
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

/// A built-in operator, by its name or by the id that OPTIONS files use: the operators that RocksDB finds in the same
/// way.
pub fn standard_operator(id: &str) -> Option<Arc<dyn MergeOperator>> {
    let joined = |name| Arc::new(StringAppend { delimiter: b",".to_vec(), name });
    match id {
        "uint64add" | "UInt64AddOperator" => Some(Arc::new(UInt64Add)),
        "stringappend" | "StringAppendOperator" => Some(joined("StringAppendOperator")),
        "stringappendtest" | "StringAppendTESTOperator" => Some(joined("StringAppendTESTOperator")),
        "max" | "MaxOperator" => Some(Arc::new(Max)),
        "put" | "put_v1" | "PutOperator" => Some(Arc::new(LastPut)),
        "bytesxor" | "BytesXOR" => Some(Arc::new(BytesXor)),
        "sortlist" | "MergeSortOperator" => Some(Arc::new(SortList)),
        _ => None,
    }
}

/// Whether a user's operator has the name of a built-in one. Files with that name would not say which of the two wrote
/// them.
pub fn borrows_built_in_name(operator: &dyn MergeOperator) -> bool {
    let any: &dyn Any = operator;
    let built_in = any.is::<UInt64Add>()
        || any.is::<StringAppend>()
        || any.is::<Max>()
        || any.is::<LastPut>()
        || any.is::<BytesXor>()
        || any.is::<SortList>();
    !built_in && standard_operator(operator.name()).is_some()
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

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands).ok()
    }
}

/// Joins strings with a delimiter.
#[derive(Clone, Debug)]
pub struct StringAppend {
    /// The text between two strings.
    pub delimiter: Vec<u8>,
    name: &'static str,
}

impl StringAppend {
    /// Joins with `delimiter`, under RocksDB's name.
    pub fn new(delimiter: impl Into<Vec<u8>>) -> StringAppend {
        StringAppend { delimiter: delimiter.into(), name: "StringAppendOperator" }
    }

    /// The operator of that name with another delimiter; `None`: it has none.
    pub fn named(name: &str, delimiter: impl Into<Vec<u8>>) -> Option<StringAppend> {
        let name =
            ["StringAppendOperator", "StringAppendTESTOperator"].into_iter().find(|known| *known == name)?;
        Some(StringAppend { delimiter: delimiter.into(), name })
    }
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        self.name
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(parts.join(&self.delimiter[..]))
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.join(&self.delimiter[..]))
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

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.iter().max().map(|largest| largest.to_vec())
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

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.last().map(|last| last.to_vec())
    }
}

/// The exclusive or of all bytes; the shorter one counts as if zeros followed it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesXor;

impl BytesXor {
    fn all<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut sum: Vec<u8> = Vec::new();
        for part in parts {
            if sum.len() < part.len() {
                sum.resize(part.len(), 0);
            }
            sum.iter_mut().zip(part).for_each(|(sum, byte)| *sum ^= byte);
        }
        sum
    }
}

impl MergeOperator for BytesXor {
    fn name(&self) -> &str {
        "BytesXOR"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(Self::all(existing.into_iter().chain(operands.iter().copied())))
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(Self::all(operands.iter().copied()))
    }
}

/// Merges ascending lists of whole numbers, in digits with commas between. RocksDB's forgets the value that is merged into;
/// here it is one of the lists. What is no list is `Corruption`; RocksDB ends the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortList;

impl SortList {
    fn all<'a>(lists: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
        let mut numbers: Vec<i64> = Vec::new();
        for list in lists.filter(|list| !list.is_empty()) {
            for number in std::str::from_utf8(list).ok()?.split(',') {
                numbers.push(number.trim().parse().ok()?);
            }
        }
        numbers.sort_unstable();
        Some(numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",").into_bytes())
    }
}

impl MergeOperator for SortList {
    fn name(&self) -> &str {
        "MergeSortOperator"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let lists = existing.into_iter().chain(operands.iter().copied());
        Self::all(lists).ok_or_else(|| Error::corruption("an operand is not a list of numbers"))
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Self::all(operands.iter().copied())
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
        assert_eq!(merge("bytesxor", Some(b"\x0f\x01"), &[b"\xff", b"\x00\x00\x07"]), [0xf0, 1, 7]);
        assert_eq!(merge("stringappendtest", None, &[b"", b"c"]), b",c");
        assert_eq!(merge("sortlist", Some(b"2,5,9"), &[b"1,3", b"", b"-4, 5"]), b"-4,1,2,3,5,5,9");
        assert!(SortList.full_merge(b"k", None, &[b"1,x"]).unwrap_err().is_corruption());
        assert_eq!(SortList.partial_merge(b"k", &[b"1", b"x"]), None, "the read of the key reports it");
        let e = LastPut.full_merge(b"k", Some(b"m"), &[]).unwrap_err();
        assert!(e.is_corruption() && e.message() == "a merge without an operand", "{e}");
        assert!(standard_operator("nothing").is_none());
    }

    /// RocksDB's ids and names, `sortlist` and the older `put` included: each finds the operator of that name.
    #[test]
    fn every_id_of_rocksdb_is_known() {
        for (id, name) in [
            ("stringappend", "StringAppendOperator"),
            ("stringappendtest", "StringAppendTESTOperator"),
            ("sortlist", "MergeSortOperator"),
            ("bytesxor", "BytesXOR"),
            ("uint64add", "UInt64AddOperator"),
            ("max", "MaxOperator"),
            ("put", "PutOperator"),
            ("put_v1", "PutOperator"),
        ] {
            assert_eq!(standard_operator(id).unwrap().name(), name);
            assert_eq!(standard_operator(name).unwrap().name(), name);
        }
    }

    /// Any two neighbours may be combined, over every base, without a difference.
    #[test]
    fn combined_operands_mean_the_same() {
        let words: [&[u8]; 7] =
            [b"", b"a", b"\x01\0\0\0\0\0\0\0", b"zz", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"a,b", b"m"];
        for id in ["uint64add", "stringappend", "stringappendtest", "max", "put", "put_v1", "bytesxor"] {
            let operator = standard_operator(id).unwrap();
            assert_eq!(standard_operator(operator.name()).unwrap().name(), operator.name());
            for base in [None, Some(words[0]), Some(words[2]), Some(words[3])] {
                for from in 0..words.len() {
                    for to in from + 2..=words.len() {
                        let combined = operator.partial_merge(b"k", &words[from..to]).unwrap();
                        let fewer = [&words[..from], &[&combined[..]], &words[to..]].concat();
                        let merge = |operands: &[&[u8]]| operator.full_merge(b"k", base, operands).unwrap();
                        assert_eq!(merge(&fewer), merge(&words), "{id} {base:?} {from}..{to}");
                    }
                }
            }
        }
    }
}

//! How a user key begins like the one before it.

use crate::bytes::common_prefix;
use std::cmp::Ordering;

/// A user key beside the one from which a cursor came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The number of bytes with which both keys begin.
    pub bytes: usize,
    /// The byte of this key behind them; `None`: the key ends there.
    pub byte: Option<u8>,
    /// This key compared with the other one, byte by byte.
    pub order: Ordering,
}

impl Sharing {
    /// Compares `key` with `from`.
    #[inline]
    pub fn of(from: &[u8], key: &[u8]) -> Sharing {
        Sharing::behind(0, from, key)
    }

    /// Compares two keys that begin with the same `known` bytes. Behind these, the keys are `from` and `key`.
    #[inline]
    pub fn behind(known: usize, from: &[u8], key: &[u8]) -> Sharing {
        let more = match (from.first(), key.first()) {
            (Some(a), Some(b)) if a == b => common_prefix(from, key),
            _ => 0,
        };
        let (old, byte) = (from.get(more), key.get(more));
        Sharing { bytes: known + more, byte: byte.copied(), order: byte.cmp(&old) }
    }

    /// Compares `key` with a key of `len` bytes. The shorter one of both is a prefix of the longer one.
    #[inline]
    pub fn of_prefix(len: usize, key: &[u8]) -> Sharing {
        Sharing { bytes: len.min(key.len()), byte: key.get(len).copied(), order: key.len().cmp(&len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_a_comparison_byte_by_byte() {
        let keys: [&[u8]; 8] = [b"", b"a", b"ab", b"abc", b"abd", b"b", b"abcdefghijk", b"abcdefghijl"];
        for from in keys {
            for key in keys {
                let bytes = from.iter().zip(key).take_while(|(a, b)| a == b).count();
                let expected = Sharing { bytes, byte: key.get(bytes).copied(), order: key.cmp(from) };
                assert_eq!(Sharing::of(from, key), expected);
                for known in 0..=bytes {
                    assert_eq!(Sharing::behind(known, &from[known..], &key[known..]), expected);
                }
                if bytes == from.len().min(key.len()) {
                    assert_eq!(Sharing::of_prefix(from.len(), key), expected);
                }
            }
        }
    }
}

//! User-defined timestamps: the last bytes of a user key, in a family whose comparator says so.
//!
//! ```text
//! | key: what the application means | timestamp: 8 bytes, u64 LE, with the built-in comparators | trailer |
//! ```
//! 1. Order: key ascending, timestamp *descending*, then the trailer as in other families. The newest version of a key
//!    comes first.
//! 2. Filters are built over keys without timestamps.
//! 3. A family may keep timestamps in memory only. Then tables and their bounds have none, and a read adds the smallest
//!    one. A bound that is the exclusive end of a range tombstone gets the largest one.
//!
//! Source: RocksDB `db/dbformat.h`, `util/udt_util.h`, `util/comparator.cc`.

use crate::bytes::Malformed;
use crate::key::{InternalKey, InternalKeyBuf, Trailer};

/// Bytes of a timestamp of the built-in comparators.
pub const U64_TIMESTAMP: usize = 8;

/// Splits a user key into what the application means and its timestamp.
///
/// # Errors
/// `Malformed`: the key is shorter than a timestamp.
#[inline]
pub fn split_timestamp(user_key: &[u8], size: usize) -> Result<(&[u8], &[u8]), Malformed> {
    let at = user_key.len().checked_sub(size);
    at.and_then(|at| user_key.split_at_checked(at)).ok_or(Malformed {
        field: "timestamp",
        at: 0,
        what: "key shorter than its timestamp",
    })
}

/// The user key without its timestamp; the whole key when it is too short to have one.
#[inline]
pub fn strip_timestamp(user_key: &[u8], size: usize) -> &[u8] {
    user_key.len().checked_sub(size).and_then(|len| user_key.get(..len)).unwrap_or(user_key)
}

/// A timestamp of the built-in comparators as a number.
///
/// # Errors
/// `Malformed`: not eight bytes.
pub fn decode_u64_timestamp(timestamp: &[u8]) -> Result<u64, Malformed> {
    let wrong = Malformed { field: "timestamp", at: 0, what: "not eight bytes" };
    timestamp.try_into().map(u64::from_le_bytes).map_err(|_| wrong)
}

fn pad(user_key: &[u8], size: usize, byte: u8) -> Vec<u8> {
    let mut padded = user_key.to_vec();
    padded.resize(user_key.len() + size, byte);
    padded
}

/// A boundary of a table as the MANIFEST stores it without timestamps, with one again.
pub fn pad_boundary(stripped: InternalKey<'_>, size: usize) -> InternalKeyBuf {
    let (user_key, trailer) = stripped.split();
    let byte = if trailer == Trailer::RANGE_END { 0xff } else { 0 };
    InternalKeyBuf::new(&pad(user_key, size, byte), trailer)
}

/// The internal key of an entry without the timestamp in its user key.
///
/// # Errors
/// `Malformed`: the key is shorter than a timestamp.
pub fn strip_internal(key: InternalKey<'_>, size: usize) -> Result<InternalKeyBuf, Malformed> {
    let (user_key, trailer) = key.split();
    Ok(InternalKeyBuf::new(split_timestamp(user_key, size)?.0, trailer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{SeqNum, ValueType};

    #[test]
    fn keys_of_the_golden_database_split() {
        // `ldb idump` of golden/rocksdb-7.8.3/udt: 'a' at 3, 2, 1 and 'b' at 4, 1.
        for (key, plain, time) in
            [(&b"a\x03\0\0\0\0\0\0\0"[..], &b"a"[..], 3), (b"b\x04\0\0\0\0\0\0\0", b"b", 4)]
        {
            let (found, timestamp) = split_timestamp(key, U64_TIMESTAMP).unwrap();
            assert_eq!((found, decode_u64_timestamp(timestamp)), (plain, Ok(time)));
            assert_eq!(strip_timestamp(key, U64_TIMESTAMP), plain);
        }
        assert_eq!(split_timestamp(b"\0\0\0\0\0\0\0\0", 8), Ok((&b""[..], &[0; 8][..])));
        assert!(split_timestamp(b"short", 8).is_err() && decode_u64_timestamp(b"short").is_err());
        assert_eq!(strip_timestamp(b"short", 8), b"short");
    }

    #[test]
    fn padding_undoes_stripping() {
        let seq = SeqNum::new(9).unwrap();
        let entry = InternalKeyBuf::new(b"a\0\0\0\0\0\0\0\0", Trailer::new(seq, ValueType::Put));
        let stripped = strip_internal(entry.as_key(), 8).unwrap();
        assert_eq!(stripped, InternalKeyBuf::new(b"a", Trailer::new(seq, ValueType::Put)));
        assert_eq!(pad_boundary(stripped.as_key(), 8), entry);
        let end = InternalKeyBuf::new(b"z", Trailer::RANGE_END);
        assert_eq!(pad_boundary(end.as_key(), 2).as_key().user_key(), b"z\xff\xff");
        assert!(strip_internal(stripped.as_key(), 8).is_err());
    }
}

//! The built-in orders of keys with timestamps.
//!
//! 1. Key by the order without timestamps, then the newer timestamp first, in both directions of keys.
//! 2. A key shorter than a timestamp is damage; it is ordered as if it were all key, so that the order stays total.
//!
//! Source: RocksDB `util/comparator.cc` (`ComparatorWithU64TsImpl`).

use crate::ext::comparator::{Comparator, Order};
use crate::key::timestamp::U64_TIMESTAMP;
use std::cmp::Ordering;
use std::sync::Arc;

/// Keys that end in a timestamp of eight bytes, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct U64TimestampOrder {
    /// Keys descend.
    reverse: bool,
}

impl U64TimestampOrder {
    /// `leveldb.BytewiseComparator.u64ts`.
    pub const BYTEWISE: U64TimestampOrder = U64TimestampOrder { reverse: false };
    /// `rocksdb.ReverseBytewiseComparator.u64ts`.
    pub const REVERSE_BYTEWISE: U64TimestampOrder = U64TimestampOrder { reverse: true };
}

impl Comparator for U64TimestampOrder {
    fn name(&self) -> &str {
        match self.reverse {
            false => "leveldb.BytewiseComparator.u64ts",
            true => "rocksdb.ReverseBytewiseComparator.u64ts",
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((key_a, time_a), (key_b, time_b)) = (split(a), split(b));
        let keys = key_a.cmp(key_b);
        let keys = if self.reverse { keys.reverse() } else { keys };
        keys.then_with(|| time_b.cmp(&time_a))
    }

    fn timestamp_len(&self) -> usize {
        U64_TIMESTAMP
    }
}

/// Key and timestamp; a short key has none.
fn split(user_key: &[u8]) -> (&[u8], Option<u64>) {
    match user_key.split_last_chunk::<U64_TIMESTAMP>() {
        Some((key, timestamp)) => (key, Some(u64::from_le_bytes(*timestamp))),
        None => (user_key, None),
    }
}

/// A built-in order with timestamps by its name.
pub fn timestamp_order(name: &str) -> Option<Order> {
    [U64TimestampOrder::BYTEWISE, U64TimestampOrder::REVERSE_BYTEWISE]
        .into_iter()
        .find(|order| order.name() == name)
        .map(|order| Order::Custom(Arc::new(order)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(plain: &[u8], timestamp: u64) -> Vec<u8> {
        [plain, &timestamp.to_le_bytes()].concat()
    }

    #[test]
    fn newer_timestamps_come_first_in_both_directions() {
        // 256 before 255: as numbers, not as bytes.
        let ascending =
            [key(b"", 1), key(b"a", 256), key(b"a", 255), key(b"a", 0), key(b"a\0", 9), key(b"b", 1)];
        let descending = [key(b"b", 1), key(b"a\0", 9), key(b"a", 256), key(b"a", 255), key(b"a", 0)];
        for (name, keys) in [
            ("leveldb.BytewiseComparator.u64ts", &ascending[..]),
            ("rocksdb.ReverseBytewiseComparator.u64ts", &descending),
        ] {
            let order = timestamp_order(name).unwrap();
            assert_eq!((order.name(), order.timestamp_len()), (name, 8));
            assert!(Order::by_name(name).is_none(), "families with timestamps are not opened yet");
            for (i, a) in keys.iter().enumerate() {
                for (j, b) in keys.iter().enumerate() {
                    assert_eq!(order.compare(a, b), i.cmp(&j), "{name} {a:?} {b:?}");
                }
            }
        }
        assert_eq!(Order::Bytewise.timestamp_len(), 0);
        assert!(timestamp_order("leveldb.BytewiseComparator").is_none());
    }

    #[test]
    fn short_keys_keep_the_order_total() {
        let order = timestamp_order("leveldb.BytewiseComparator.u64ts").unwrap();
        let keys =
            [b"".to_vec(), b"a".to_vec(), b"aaaaaaa".to_vec(), key(b"", 0), key(b"a", 5), key(b"a", 0)];
        for a in &keys {
            assert_eq!(order.compare(a, a), Ordering::Equal);
            for b in &keys {
                assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
                assert_eq!(order.compare(a, b) == Ordering::Equal, a == b);
            }
        }
    }
}

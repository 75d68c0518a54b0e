//! Key order: the built-in comparators and user-defined ones.
//!
//! [`Order`] is matched once per operation or job; code below that seam is generic over [`KeyOrder`].
//! Source: RocksDB `util/comparator.cc`, `db/dbformat.cc`.

use crate::key::{InternalKey, Trailer};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A user-defined total order over keys.
///
/// **Keys that compare equal must have equal bytes.** RocksDB also accepts other comparators, such as one that ignores
/// case. Under such an order, gets and scans here may find one spelling of a key or several. A delete of another spelling
/// deletes nothing, and a reverse scan may answer `Corruption`. Make the order total: where two keys are otherwise equal,
/// compare their bytes.
///
/// The comparator must not call the database it belongs to, and must not panic: a panic during a write, flush or
/// compaction stops writes until the database is opened again.
pub trait Comparator: Send + Sync + fmt::Debug {
    /// The name, which the MANIFEST stores; a database opens only with a comparator of this name. It must not be empty,
    /// nor that of a built-in order, unless the comparator is the same order.
    fn name(&self) -> &str;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
    /// The length of the timestamp at the end of every user key, in bytes. Larger timestamps sort first, and filters
    /// ignore them.
    fn timestamp_len(&self) -> usize {
        0
    }
}

/// The order of a family's keys.
#[derive(Clone, Debug, Default)]
pub enum Order {
    /// Lexicographic by unsigned bytes: `leveldb.BytewiseComparator`.
    #[default]
    Bytewise,
    /// The reverse of that: `rocksdb.ReverseBytewiseComparator`.
    ReverseBytewise,
    /// A user-defined order.
    Custom(Arc<dyn Comparator>),
}

impl Order {
    /// The name in MANIFEST, table properties and OPTIONS files.
    pub fn name(&self) -> &str {
        match self {
            Order::Bytewise => "leveldb.BytewiseComparator",
            Order::ReverseBytewise => "rocksdb.ReverseBytewiseComparator",
            Order::Custom(c) => c.name(),
        }
    }

    /// The length of the timestamp at the end of every user key, in bytes.
    pub fn timestamp_len(&self) -> usize {
        match self {
            Order::Bytewise | Order::ReverseBytewise => 0,
            Order::Custom(c) => c.timestamp_len(),
        }
    }

    /// A built-in order by its name. Those with timestamps are not among them, as families with them are not served yet:
    /// [`crate::ext::timestamp_order::timestamp_order`] has them.
    pub fn by_name(name: &str) -> Option<Order> {
        match name {
            "leveldb.BytewiseComparator" => Some(Order::Bytewise),
            "rocksdb.ReverseBytewiseComparator" => Some(Order::ReverseBytewise),
            _ => None,
        }
    }

    /// The order of a comparator of the caller. A comparator with the name of a built-in order is that order, if it orders some
    /// keys in the same way: the interface of C lends out no built-in comparator in descending order, so programs write one. The keys
    /// tell apart orders that ignore case, count digits as numbers, or compare bytes from the end.
    pub fn of(comparator: Arc<dyn Comparator>) -> Order {
        const KEYS: [&[u8]; 16] = [
            b"",
            b"\0",
            b"\0\0",
            b"10",
            b"9",
            b"A",
            b"B",
            b"a",
            b"a\0",
            b"aa",
            b"ab",
            b"b",
            b"\x01\0\0\0\0\0\0\x02",
            b"\x02\0\0\0\0\0\0\x01",
            b"\x7f\x80",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ];
        let is_alike = |order: &Order| {
            let pairs = KEYS.iter().flat_map(|a| KEYS.iter().map(move |b| (*a, *b)));
            comparator.timestamp_len() == 0
                && pairs.into_iter().all(|(a, b)| comparator.compare(a, b) == order.compare(a, b))
        };
        match Order::by_name(comparator.name()).filter(is_alike) {
            Some(built_in) => built_in,
            None => Order::Custom(comparator),
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytewise => a.cmp(b),
            Order::ReverseBytewise => b.cmp(a),
            Order::Custom(c) => c.compare(a, b),
        }
    }

    /// [`Order::compare`] for two user keys whose first `shared` bytes are equal, and no byte more than these.
    #[inline]
    pub fn compare_sharing(&self, shared: usize, a: &[u8], b: &[u8]) -> Ordering {
        let bytewise = || match (a.get(shared), b.get(shared)) {
            (Some(x), Some(y)) => x.cmp(y),
            _ => a.len().cmp(&b.len()),
        };
        match self {
            Order::Bytewise => bytewise(),
            Order::ReverseBytewise => bytewise().reverse(),
            Order::Custom(c) => c.compare(a, b),
        }
    }

    /// Compares two internal keys: user key ascending, trailer descending.
    #[inline]
    pub fn compare_internal(&self, a: InternalKey<'_>, b: InternalKey<'_>) -> Ordering {
        let ((ka, ta), (kb, tb)) = (a.split(), b.split());
        self.compare_parts(ka, ta, kb, tb)
    }

    /// [`Order::compare_internal`] on split keys.
    #[inline]
    pub fn compare_parts(&self, ka: &[u8], ta: Trailer, kb: &[u8], tb: Trailer) -> Ordering {
        self.compare(ka, kb).then_with(|| tb.cmp(&ta))
    }

    /// A short user key `s` with `a < s < b`, `None`: no such key is as short as `a`.
    /// Only the bytewise order shortens; never shortening is always valid.
    pub fn shortest_separator(&self, a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
        if !matches!(self, Order::Bytewise) {
            return None;
        }
        let diff = a.iter().zip(b).position(|(x, y)| x != y)?;
        let (&x, &y) = (a.get(diff)?, b.get(diff)?);
        if x >= y {
            return None;
        }
        if diff + 1 < b.len() || x + 1 < y {
            let mut short = a.get(..=diff)?.to_vec();
            *short.last_mut()? += 1;
            return Some(short);
        }
        let tail = a.get(diff + 1..)?.iter().position(|&c| c < 0xff)?;
        let mut short = a.get(..=diff + 1 + tail)?.to_vec();
        *short.last_mut()? += 1;
        Some(short)
    }
}

/// The order as a type parameter: for block seek, merge loop and memtable leaf, where a branch per entry shows.
pub trait KeyOrder: Clone + Send + Sync {
    /// Whether [`KeyOrder::word`] orders keys.
    const WORDS: bool;
    /// Eight bytes of the key from `skip` on, big endian, zero padded: if two words differ, they order the keys
    /// (given that the skipped bytes are equal).
    fn word(&self, key: &[u8], skip: usize) -> u64;
    /// The full comparison.
    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering;
}

#[inline]
fn prefix_word(key: &[u8], skip: usize) -> u64 {
    let tail = key.get(skip..).unwrap_or(&[]);
    if let Some(head) = tail.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    if let Some(last) = key.last_chunk::<8>() {
        // The shift drops the skipped bytes among the last eight, and pads with zeros.
        return match tail.len() {
            0 => 0,
            len => u64::from_be_bytes(*last) << (64 - 8 * len),
        };
    }
    let mut padded = [0u8; 8];
    for (to, from) in padded.iter_mut().zip(tail) {
        *to = *from;
    }
    u64::from_be_bytes(padded)
}

/// [`Order::Bytewise`] as a type.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytewiseOrder;

impl KeyOrder for BytewiseOrder {
    const WORDS: bool = true;
    #[inline]
    fn word(&self, key: &[u8], skip: usize) -> u64 {
        prefix_word(key, skip)
    }
    #[inline]
    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

/// [`Order::ReverseBytewise`] as a type: the complement of the word keeps the integer code shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReverseBytewiseOrder;

impl KeyOrder for ReverseBytewiseOrder {
    const WORDS: bool = true;
    #[inline]
    fn word(&self, key: &[u8], skip: usize) -> u64 {
        !prefix_word(key, skip)
    }
    #[inline]
    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// [`Order::Custom`] as a type: no words.
#[derive(Clone, Debug)]
pub struct CustomOrder(pub Arc<dyn Comparator>);

impl KeyOrder for CustomOrder {
    const WORDS: bool = false;
    #[inline]
    fn word(&self, _: &[u8], _: usize) -> u64 {
        0
    }
    #[inline]
    fn cmp(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{InternalKeyBuf, SeqNum, ValueType};

    #[test]
    fn newest_version_comes_first() {
        let key = |k: &[u8], s| InternalKeyBuf::new(k, Trailer::new(SeqNum::new(s).unwrap(), ValueType::Put));
        let (old, new, other) = (key(b"a", 1), key(b"a", 2), key(b"b", 9));
        assert_eq!(Order::Bytewise.compare_internal(new.as_key(), old.as_key()), Ordering::Less);
        assert_eq!(Order::Bytewise.compare_internal(old.as_key(), other.as_key()), Ordering::Less);
        assert_eq!(Order::ReverseBytewise.compare_internal(old.as_key(), other.as_key()), Ordering::Greater);
    }

    #[derive(Debug)]
    struct Named(&'static str, Order);

    impl Comparator for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            self.1.compare(a, b)
        }
    }

    type Compare = fn(&[u8], &[u8]) -> Ordering;

    /// Another order with the name of the ascending one.
    struct Other(Compare);

    impl fmt::Debug for Other {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name())
        }
    }

    impl Comparator for Other {
        fn name(&self) -> &str {
            "leveldb.BytewiseComparator"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            (self.0)(a, b)
        }
    }

    /// Regression: a program of C that has written RocksDB's descending comparator by itself could not open its database.
    #[test]
    fn a_comparator_that_is_a_built_in_order_becomes_that_order() {
        let of = |name, order| Order::of(Arc::new(Named(name, order)));
        let (ascending, descending) = ("leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator");
        assert!(matches!(of(descending, Order::ReverseBytewise), Order::ReverseBytewise));
        assert!(matches!(of(ascending, Order::Bytewise), Order::Bytewise));
        assert!(matches!(of(descending, Order::Bytewise), Order::Custom(_)));
        assert!(matches!(of("mine", Order::ReverseBytewise), Order::Custom(_)));
        let other = |by: Compare| Order::of(Arc::new(Other(by)));
        let orders: [Compare; 4] = [
            |a, b| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase()),
            |a, b| a.len().cmp(&b.len()).then(a.cmp(b)),
            |a, b| a.iter().rev().cmp(b.iter().rev()),
            |a, b| a.iter().map(|byte| byte.cast_signed()).cmp(b.iter().map(|byte| byte.cast_signed())),
        ];
        orders.into_iter().for_each(|by| assert!(matches!(other(by), Order::Custom(_))));
    }

    #[test]
    fn separators_lie_between() {
        let o = Order::Bytewise;
        assert_eq!(o.shortest_separator(b"abcdef", b"abzz"), Some(b"abd".to_vec()));
        assert_eq!(o.shortest_separator(b"abc", b"abcd"), None);
        assert_eq!(o.shortest_separator(b"ab1zz", b"ab2"), Some(b"ab1{".to_vec()));
        assert_eq!(o.shortest_separator(b"ab1\xff\xff", b"ab2"), None);
    }

    #[test]
    fn a_known_prefix_changes_no_order() {
        let keys: [&[u8]; 7] = [b"", b"a", b"ab", b"ab\x00", b"abc", b"b", b"ba"];
        for order in [Order::Bytewise, Order::ReverseBytewise] {
            for a in keys {
                for b in keys {
                    let shared = crate::bytes::common_prefix(a, b);
                    assert_eq!(order.compare_sharing(shared, a, b), order.compare(a, b), "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn words_order_keys() {
        let keys: [&[u8]; 6] = [b"", b"\x00", b"a", b"a\x00b", b"abcdefgh", b"abcdefghi"];
        for a in keys {
            for b in keys {
                let (wa, wb) = (BytewiseOrder.word(a, 0), BytewiseOrder.word(b, 0));
                if wa != wb {
                    assert_eq!(wa.cmp(&wb), a.cmp(b), "{a:?} {b:?}");
                    assert_eq!((!wa).cmp(&!wb), b.cmp(a));
                }
            }
        }
    }

    #[test]
    fn words_are_padded_with_zeros_behind_the_key() {
        let key: Vec<u8> = (1..=20).collect();
        for len in 0..=key.len() {
            for skip in 0..=len + 9 {
                let word = BytewiseOrder.word(&key[..len], skip);
                let at = |i: usize| if skip + i < len { key[skip + i] } else { 0 };
                assert_eq!(word.to_be_bytes(), std::array::from_fn(at), "{len} bytes from {skip} on");
                assert_eq!(ReverseBytewiseOrder.word(&key[..len], skip), !word);
            }
        }
    }
}

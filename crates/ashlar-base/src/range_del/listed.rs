//! Range tombstones in the order in which they came, with all keys in one allocation.
//!
//! ```text
//! keys    begin 0 | end 0 | begin 1 | end 1 | …
//! ```

use super::RangeTombstone;
use crate::SeqNum;
use std::ops::Range;

/// A list of range tombstones. Beside its keys, a tombstone takes 24 bytes.
#[derive(Clone, Debug, Default)]
pub struct ListedTombstones {
    keys: Vec<u8>,
    ends: Vec<Ends>,
}

/// Where the keys of a tombstone end in `keys`.
#[derive(Clone, Copy, Debug)]
struct Ends {
    begin: usize,
    end: usize,
    seq: SeqNum,
}

impl ListedTombstones {
    /// Bytes of a tombstone beside its keys.
    pub const BYTES_EACH: usize = size_of::<Ends>();

    /// Appends a tombstone.
    pub fn push(&mut self, begin: &[u8], end: &[u8], seq: SeqNum) {
        self.keys.extend_from_slice(begin);
        let middle = self.keys.len();
        self.keys.extend_from_slice(end);
        self.ends.push(Ends { begin: middle, end: self.keys.len(), seq });
    }

    /// Bytes of memory that the list takes.
    pub fn memory(&self) -> usize {
        self.keys.capacity() + self.ends.capacity() * size_of::<Ends>()
    }

    /// The number of tombstones.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list has no tombstone.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tombstones from number `first` on.
    pub fn since(&self, first: usize) -> Vec<RangeTombstone<&[u8]>> {
        let before = first.checked_sub(1).and_then(|last| self.ends.get(last));
        let mut from = before.map_or(0, |ends| ends.end);
        let borrowed = |ends: &Ends| {
            let key = |range: Range<usize>| self.keys.get(range).unwrap_or_default();
            let tombstone = RangeTombstone {
                begin: key(from..ends.begin),
                end: key(ends.begin..ends.end),
                seq: ends.seq,
            };
            from = ends.end;
            tombstone
        };
        self.ends.get(first..).unwrap_or_default().iter().map(borrowed).collect()
    }
}

impl<K: AsRef<[u8]>> FromIterator<RangeTombstone<K>> for ListedTombstones {
    fn from_iter<I: IntoIterator<Item = RangeTombstone<K>>>(tombstones: I) -> Self {
        let mut list = ListedTombstones::default();
        tombstones.into_iter().for_each(|t| list.push(t.begin.as_ref(), t.end.as_ref(), t.seq));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back() {
        let of = |n: u64| RangeTombstone {
            begin: vec![7; usize::try_from(n % 3).unwrap()],
            end: n.to_be_bytes().to_vec(),
            seq: SeqNum::new(n).unwrap(),
        };
        let list: ListedTombstones = (0..20).map(of).collect();
        assert_eq!((list.len(), list.is_empty(), ListedTombstones::default().is_empty()), (20, false, true));
        for first in 0..21 {
            let found: Vec<_> = list.since(usize::try_from(first).unwrap()).into_iter().collect();
            let expected: Vec<_> = (first..20).map(of).collect();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(
                    (found.begin, found.end, found.seq),
                    (&*expected.begin, &*expected.end, expected.seq)
                );
            }
        }
        assert!(list.since(21).is_empty());
    }
}

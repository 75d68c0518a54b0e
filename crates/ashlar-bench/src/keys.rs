//! Keys: numbers as bytes, and the order in which a workload takes the numbers.
//!
//! ```text
//! integer   | number: u64 BE (its low-order bytes when the key is shorter than 8) | character '0' up to key_size |
//!           | number modulo prefixes: u64 BE | '0' up to prefix_size | the above |, with prefixes
//! decimal   the number in digits, zeros in front up to key_size
//! uuid      36 characters of a mixed number: neighbours in number are not neighbours in order
//! url       https://www.example-NNNN.com/section/number?view=full: long common prefixes, two hundred numbers per host
//! ```
//! Keys of the first two shapes sort like their numbers. A missing key is a key with one more '0' behind it.
//! Source: RocksDB `tools/db_bench_tool.cc` (the integers).

use crate::access::{Access, Drawn};
use crate::random::Random;
use std::io::Write as _;
use std::ops::Range;

/// What a key looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyShape {
    /// db_bench's.
    #[default]
    Integer,
    /// Digits, as LevelDB's tool has them.
    Decimal,
    /// Random identifiers.
    Uuid,
    /// Addresses of pages.
    Url,
}

/// Writes keys of one shape into one buffer.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    key: Vec<u8>,
    shape: KeyShape,
    size: usize,
    missing: bool,
    /// Bytes of the prefix in front of an integer, and how many prefixes there are.
    prefix: (usize, u64),
}

impl KeyMaker {
    /// For db_bench's keys of `size` bytes.
    pub fn new(size: usize) -> Self {
        Self::shaped(KeyShape::Integer, size)
    }

    /// For keys of another shape. Identifiers and addresses have a length of their own.
    pub fn shaped(shape: KeyShape, size: usize) -> Self {
        KeyMaker { key: vec![b'0'; size], shape, size, missing: false, prefix: (0, 0) }
    }

    /// Integers with a prefix of `size` bytes in front, one of `prefixes`: the number modulo that, big-endian.
    pub fn prefixed(mut self, size: usize, prefixes: u64) -> Self {
        self.prefix = (size.min(self.size), prefixes);
        self
    }

    /// Makes keys that no other maker of this shape and size makes.
    pub fn missing(mut self) -> Self {
        self.missing = true;
        if self.shape == KeyShape::Integer {
            self.key.push(b'0');
        }
        self
    }

    /// The key of `number`. Valid until the next call.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        if self.shape == KeyShape::Integer {
            let (prefix, prefixes) = self.prefix;
            if prefixes > 0 {
                put_integer(&mut self.key, 0..prefix, number % prefixes);
            }
            put_integer(&mut self.key, prefix..self.size, number);
            return &self.key;
        }
        self.text(number)
    }

    fn text(&mut self, number: u64) -> &[u8] {
        self.key.clear();
        // Writing to a vector cannot fail.
        let _ = match self.shape {
            KeyShape::Integer | KeyShape::Decimal => write!(self.key, "{number:0width$}", width = self.size),
            KeyShape::Uuid => {
                let mut mixed = Random::new(number, 1);
                let (high, low) = (mixed.next_u64(), mixed.next_u64());
                write!(
                    self.key,
                    "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
                    high >> 32,
                    high >> 16 & 0xffff,
                    high & 0xfff,
                    0x8000 | low >> 48 & 0x3fff,
                    low & 0xffff_ffff_ffff
                )
            }
            KeyShape::Url => write!(
                self.key,
                "https://www.example-{:04}.com/section/{number:012}?view=full",
                number / 200 % 10_000
            ),
        };
        if self.missing {
            self.key.push(b'0');
        }
        &self.key
    }
}

/// Big-endian at the front of `place`, its low-order bytes where that is shorter.
#[inline]
fn put_integer(key: &mut [u8], place: Range<usize>, number: u64) {
    let bytes = number.to_be_bytes();
    let used = place.len().min(bytes.len());
    let low = bytes.iter().skip(bytes.len() - used);
    key.iter_mut().skip(place.start).zip(low).for_each(|(to, from)| *to = *from);
}

/// In which order numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// 0, 1, 2, …
    Sequential,
    /// Drawn with replacement.
    Random,
    /// Each once, in a drawn order.
    Unique,
}

/// The numbers a thread works on.
#[derive(Clone, Debug)]
pub struct KeyStream {
    order: KeyOrder,
    drawn: Drawn,
    /// Numbers still to be taken, of a drawn order.
    left: Vec<u64>,
    next: u64,
}

impl KeyStream {
    /// Numbers below `bound`, drawn as `access` says when the order is random; from 0 upwards, when sequential. A drawn
    /// order begins anew when all were taken; it needs eight bytes per number.
    pub fn new(order: KeyOrder, bound: u64, access: Access) -> Self {
        let left = if order == KeyOrder::Unique { (0..bound).collect() } else { Vec::new() };
        KeyStream { order, drawn: access.below(bound), left, next: 0 }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match self.order {
            KeyOrder::Random => self.drawn.next(random),
            KeyOrder::Sequential => {
                self.next += 1;
                self.next - 1
            }
            KeyOrder::Unique => self.unique(random),
        }
    }

    /// Fisher and Yates, a step at a time: what was taken goes behind `next` ends.
    fn unique(&mut self, random: &mut Random) -> u64 {
        let bound = self.left.len() as u64;
        if self.next >= bound {
            self.next = 0;
        }
        let at = self.next + random.below(bound - self.next);
        let (at, next) = (usize::try_from(at).unwrap_or(0), usize::try_from(self.next).unwrap_or(0));
        self.next += 1;
        if at < self.left.len() && next < self.left.len() {
            self.left.swap(at, next);
        }
        self.left.get(next).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_big_endian_and_filled_with_zeros() {
        assert_eq!(KeyMaker::new(16).key(0x0102), b"\0\0\0\0\0\0\x01\x0200000000");
        assert_eq!(KeyMaker::new(8).key(u64::MAX - 1), b"\xff\xff\xff\xff\xff\xff\xff\xfe");
        assert_eq!(KeyMaker::new(4).key(0x0a0b_0c0d_0102_0304), b"\x01\x02\x03\x04");
        assert_eq!(KeyMaker::new(16).prefixed(4, 10).key(0x10d), b"\0\0\0\x09\0\0\0\0\0\0\x01\x0d0000");
        assert_eq!(KeyMaker::new(20).prefixed(10, 3).key(5), b"\0\0\0\0\0\0\0\x0200\0\0\0\0\0\0\0\x0500");
        assert_eq!(KeyMaker::new(4).prefixed(8, 2).key(3), b"\0\0\0\x01", "no room behind the prefix");
        assert_eq!(KeyMaker::new(0).key(5), b"");
        assert_eq!(KeyMaker::new(17).key(0), b"\0\0\0\0\0\0\0\x00000000000");
    }

    #[test]
    fn keys_sort_like_their_numbers() {
        let mut maker = KeyMaker::new(16);
        let keys: Vec<Vec<u8>> = [0, 1, 255, 256, 65_536, u64::MAX].map(|n| maker.key(n).to_vec()).into();
        assert!(keys.is_sorted());
    }

    #[test]
    fn streams_count_or_draw() {
        let mut random = Random::new(1, 0);
        let mut take = |order| {
            let mut stream = KeyStream::new(order, 5, Access::Uniform);
            (0..6).map(|_| stream.next(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(take(KeyOrder::Sequential), [0, 1, 2, 3, 4, 5]);
        assert!(take(KeyOrder::Random).iter().all(|&n| n < 5));
        let mut unique = take(KeyOrder::Unique);
        unique.truncate(5);
        unique.sort_unstable();
        assert_eq!(unique, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn shapes_are_what_they_say() {
        let key =
            |shape, number| String::from_utf8(KeyMaker::shaped(shape, 16).key(number).to_vec()).unwrap();
        assert_eq!(key(KeyShape::Decimal, 42), "0000000000000042");
        assert_eq!(key(KeyShape::Url, 401), "https://www.example-0002.com/section/000000000401?view=full");
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|n| key(KeyShape::Uuid, n)).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'4'), "{ids:?}");
        assert!(
            key(KeyShape::Uuid, 1) > key(KeyShape::Uuid, 2)
                || key(KeyShape::Uuid, 2) > key(KeyShape::Uuid, 3)
        );
    }

    #[test]
    fn missing_keys_are_others_keys_and_one_more() {
        for shape in [KeyShape::Integer, KeyShape::Decimal, KeyShape::Uuid, KeyShape::Url] {
            let mut there = KeyMaker::shaped(shape, 16);
            let mut missing = there.clone().missing();
            assert_eq!(missing.key(7), [there.key(7), b"0"].concat());
            assert_eq!(missing.key(9), [there.key(9), b"0"].concat());
        }
    }
}

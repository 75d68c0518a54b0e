//! Keys: numbers as bytes, and the order in which a workload takes the numbers.
//!
//! ```text
//! integer   | number: u64 BE (its low-order bytes when the key is shorter than 8) | character '0' up to key_size |
//!           | number modulo prefixes: u64 BE | '0' up to prefix_size | the above |, with prefixes
//! be8       number: u64 BE, and nothing else
//! decimal   the number in digits, zeros in front up to key_size (its low-order digits when the key is shorter)
//! uuid      | 16 bytes of a mixed number, with the marks of a version 4 UUID |
//! url       https://www.example-NNNN.com/item/NNNNNNNNNNNN?view=all: two hundred numbers per host
//! prefix:N  | N - 16 bytes that all keys share | the number in 16 digits |
//! ```
//! 1. All keys of a shape have one length, so an engine's format decides nothing about what is written.
//! 2. Keys sort like their numbers, except `uuid` (in no order) and `url` (by host, and the hosts repeat after 2 million).
//! 3. A missing key is a key with one more '0' at the end.
//!
//! Source: RocksDB `tools/db_bench_tool.cc` (the integers).

use crate::access::{Access, Drawn};
use crate::random::Random;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The shape of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyShape {
    /// The keys of db_bench.
    #[default]
    Integer,
    /// Eight bytes, big-endian.
    BigEndian,
    /// Digits, as in LevelDB's tool.
    Decimal,
    /// Random identifiers of sixteen bytes.
    Uuid,
    /// URLs of pages, 55 bytes.
    Url,
    /// This many bytes, of which all but the last sixteen are the same in every key.
    Prefix(usize),
}

const URL: &[u8; 55] = b"https://www.example-0000.com/item/000000000000?view=all";
/// The places of the host's and the page's number in the URL.
const URL_HOST: Range<usize> = 20..24;
const URL_PAGE: Range<usize> = 34..46;
const PER_HOST: u64 = 200;
/// The text that fills the prefix of keys of [`KeyShape::Prefix`], repeated.
const SHARED: &[u8] = b"region=eu-west/tenant=00042/table=orders/";
/// Digits at the end of such a key.
const DIGITS: usize = 16;
/// The longest key that every log-structured engine of a comparison takes.
const LONGEST: usize = 65_535;

impl KeyShape {
    /// Bytes of a key. `size` counts for shapes without a fixed length.
    pub fn bytes(self, size: usize) -> usize {
        match self {
            KeyShape::Integer | KeyShape::Decimal => size,
            KeyShape::BigEndian => 8,
            KeyShape::Uuid => 16,
            KeyShape::Url => URL.len(),
            KeyShape::Prefix(bytes) => bytes,
        }
    }
}

impl FromStr for KeyShape {
    type Err = String;

    fn from_str(text: &str) -> Result<KeyShape, String> {
        match text {
            "integer" => Ok(KeyShape::Integer),
            "be8" => Ok(KeyShape::BigEndian),
            "decimal" => Ok(KeyShape::Decimal),
            "uuid" => Ok(KeyShape::Uuid),
            "url" => Ok(KeyShape::Url),
            _ => {
                let bytes = text.strip_prefix("prefix:").and_then(|bytes| bytes.parse().ok());
                let fits = bytes.filter(|bytes| (DIGITS + 1..=LONGEST).contains(bytes));
                fits.map(KeyShape::Prefix).ok_or_else(|| {
                    format!(
                        "expected integer, be8, decimal, uuid, url or prefix:N with {} to {LONGEST} bytes, \
                         found {text:?}",
                        DIGITS + 1
                    )
                })
            }
        }
    }
}

impl fmt::Display for KeyShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyShape::Integer => f.write_str("integer"),
            KeyShape::BigEndian => f.write_str("be8"),
            KeyShape::Decimal => f.write_str("decimal"),
            KeyShape::Uuid => f.write_str("uuid"),
            KeyShape::Url => f.write_str("url"),
            KeyShape::Prefix(bytes) => write!(f, "prefix:{bytes}"),
        }
    }
}

/// Writes keys of one shape into one buffer.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    key: Vec<u8>,
    shape: KeyShape,
    /// Bytes of a key that is not missing.
    size: usize,
    /// Bytes of the prefix in front of an integer, and how many prefixes there are.
    prefix: (usize, u64),
}

impl KeyMaker {
    /// Makes db_bench's keys of `size` bytes.
    pub fn new(size: usize) -> Self {
        Self::shaped(KeyShape::Integer, size)
    }

    /// Makes keys of another shape. `size` counts for shapes without a fixed length.
    pub fn shaped(shape: KeyShape, size: usize) -> Self {
        let size = shape.bytes(size);
        let mut key = vec![b'0'; size];
        match shape {
            KeyShape::Url => key.copy_from_slice(URL),
            KeyShape::Prefix(_) => {
                key.iter_mut().zip(SHARED.iter().cycle()).for_each(|(to, from)| *to = *from);
            }
            _ => {}
        }
        KeyMaker { key, shape, size, prefix: (0, 0) }
    }

    /// Integers with a prefix of `size` bytes in front, one of `prefixes`: the number modulo that, big-endian.
    pub fn prefixed(mut self, size: usize, prefixes: u64) -> Self {
        self.prefix = (size.min(self.size), prefixes);
        self
    }

    /// Makes missing keys: no other maker of this shape and size makes them.
    pub fn missing(mut self) -> Self {
        self.key.push(b'0');
        self
    }

    /// The key of `number`. Valid until the next call.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        match self.shape {
            KeyShape::Integer => {
                let (prefix, prefixes) = self.prefix;
                if prefixes > 0 {
                    put_integer(&mut self.key, 0..prefix, number % prefixes);
                }
                put_integer(&mut self.key, prefix..self.size, number);
            }
            KeyShape::BigEndian => put_integer(&mut self.key, 0..self.size, number),
            KeyShape::Decimal => put_digits(&mut self.key, 0..self.size, number),
            KeyShape::Uuid => put_uuid(&mut self.key, number),
            KeyShape::Url => {
                put_digits(&mut self.key, URL_HOST, number / PER_HOST);
                put_digits(&mut self.key, URL_PAGE, number);
            }
            KeyShape::Prefix(bytes) => put_digits(&mut self.key, bytes - DIGITS..bytes, number),
        }
        &self.key
    }
}

/// Writes the number to the front of `place`, big-endian; only the low-order bytes if `place` is shorter.
#[inline]
fn put_integer(key: &mut [u8], place: Range<usize>, number: u64) {
    let bytes = number.to_be_bytes();
    let used = place.len().min(bytes.len());
    let low = bytes.iter().skip(bytes.len() - used);
    key.iter_mut().skip(place.start).zip(low).for_each(|(to, from)| *to = *from);
}

/// Decimal digits that fill `place`, the low-order ones where it is shorter.
#[inline]
fn put_digits(key: &mut [u8], place: Range<usize>, number: u64) {
    let mut rest = number;
    for digit in key.get_mut(place).into_iter().flatten().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
}

/// Sixteen bytes drawn by the number, marked as version 4, variant 1.
#[inline]
fn put_uuid(key: &mut [u8], number: u64) {
    let mut mixed = Random::new(number, 1);
    let high = mixed.next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = mixed.next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    key.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
}

/// The order in which numbers are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// 0, 1, 2, …
    Sequential,
    /// Random, drawn with replacement.
    Random,
    /// Random, each number once.
    Unique,
}

/// The numbers that a thread uses.
#[derive(Clone, Debug)]
pub struct KeyStream {
    order: KeyOrder,
    drawn: Drawn,
    /// The unused numbers of a random order.
    left: Vec<u64>,
    next: u64,
}

impl KeyStream {
    /// Numbers below `bound`: drawn by `access` if the order is random, from 0 upwards if it is sequential. An order that
    /// uses each number once restarts after the last one; it needs eight bytes per number.
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

    /// A step of the Fisher-Yates shuffle: the drawn number moves behind the undrawn ones.
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
        let key = |shape, number| KeyMaker::shaped(shape, 16).key(number).to_vec();
        assert_eq!(key(KeyShape::Decimal, 42), b"0000000000000042");
        assert_eq!(KeyMaker::shaped(KeyShape::Decimal, 3).key(12_345), b"345");
        assert_eq!(key(KeyShape::BigEndian, 258), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(key(KeyShape::Url, 401), b"https://www.example-0002.com/item/000000000401?view=all");
        assert_eq!(key(KeyShape::Prefix(30), 7), b"region=eu-west0000000000000007");
        let long = key(KeyShape::Prefix(300), u64::MAX);
        assert!(long.starts_with(&[SHARED, SHARED].concat()) && long.ends_with(b"6744073709551615"));
        let ids: std::collections::BTreeSet<_> = (0..1000).map(|n| key(KeyShape::Uuid, n)).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 16 && id[6] >> 4 == 4 && id[8] >> 6 == 2), "{ids:?}");
        assert!(!(0..10).map(|n| key(KeyShape::Uuid, n)).is_sorted(), "neighbours do not lie together");
    }

    #[test]
    fn every_shape_has_a_name_and_one_length() {
        for name in ["integer", "be8", "decimal", "uuid", "url", "prefix:17", "prefix:1000"] {
            let shape: KeyShape = name.parse().unwrap();
            assert_eq!(shape.to_string(), name);
            let mut maker = KeyMaker::shaped(shape, 16);
            let mut missing = maker.clone().missing();
            for number in [0, 7, 401, 1 << 40] {
                assert_eq!(maker.key(number).len(), shape.bytes(16), "{name}");
                assert_eq!(missing.key(number), [maker.key(number), b"0"].concat(), "{name}");
            }
        }
        for wrong in ["round", "prefix", "prefix:16", "prefix:65536", "prefix:x", ""] {
            let why = wrong.parse::<KeyShape>().unwrap_err();
            assert!(why.starts_with("expected integer, be8, decimal, uuid, url or prefix:N"), "{why}");
        }
    }
}

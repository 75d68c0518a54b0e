//! Keys: numbers as bytes, and the order in which a workload takes the numbers.
//!
//! ```text
//! | number: u64 BE (its low-order bytes when the key is shorter than 8) | character '0' up to key_size |
//! ```
//! Source: RocksDB `tools/db_bench_tool.cc` (keys without prefixes).

use crate::random::Random;

/// Writes keys of one size into one buffer.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    key: Vec<u8>,
}

impl KeyMaker {
    /// For keys of `size` bytes.
    pub fn new(size: usize) -> Self {
        KeyMaker { key: vec![b'0'; size] }
    }

    /// The key of `number`. Valid until the next call.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        let bytes = number.to_be_bytes();
        let used = self.key.len().min(bytes.len());
        let (head, low) = (self.key.iter_mut(), bytes.iter().skip(bytes.len() - used));
        head.zip(low).for_each(|(to, from)| *to = *from);
        &self.key
    }
}

/// In which order numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// 0, 1, 2, …
    Sequential,
    /// Drawn with replacement.
    Random,
}

/// The numbers a thread works on.
#[derive(Clone, Debug)]
pub struct KeyStream {
    order: KeyOrder,
    bound: u64,
    next: u64,
}

impl KeyStream {
    /// Numbers below `bound`, when random; from 0 upwards, when sequential.
    pub fn new(order: KeyOrder, bound: u64) -> Self {
        KeyStream { order, bound, next: 0 }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match self.order {
            KeyOrder::Random => random.below(self.bound),
            KeyOrder::Sequential => {
                self.next += 1;
                self.next - 1
            }
        }
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
            let mut stream = KeyStream::new(order, 5);
            (0..6).map(|_| stream.next(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(take(KeyOrder::Sequential), [0, 1, 2, 3, 4, 5]);
        assert!(take(KeyOrder::Random).iter().all(|&n| n < 5));
    }
}

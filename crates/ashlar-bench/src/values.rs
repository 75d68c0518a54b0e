//! Values: slices of one buffer that compresses to a known part of its size.
//!
//! The buffer consists of 100-byte pieces; each is `100 × ratio` random printable bytes, repeated until it is full. So the
//! redundancy lies within 100 bytes, where every codec finds it. Values are consecutive slices, from the start again
//! after the end.
//! Source: RocksDB `tools/db_bench_tool.cc`, `test_util/testutil.cc`.

use crate::random::Random;
use std::sync::Arc;

const PIECE: usize = 100;
const BUFFER: usize = 1 << 20;

/// The values of one thread. Clones share the buffer; each has its own position.
#[derive(Clone, Debug)]
pub struct Values {
    buffer: Arc<[u8]>,
    at: usize,
}

impl Values {
    /// A buffer for values of up to `largest` bytes, which a good codec compresses to `ratio` of their size.
    pub fn new(seed: u64, ratio: f64, largest: usize) -> Self {
        let mut random = Random::new(seed, u64::MAX);
        let wanted = BUFFER.max(largest);
        let mut buffer = Vec::with_capacity(wanted + PIECE);
        let mut raw = Vec::with_capacity(PIECE);
        // The piece is small: the cast from a float cannot leave the range, and `as` saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let fresh = ((PIECE as f64 * ratio) as usize).clamp(1, PIECE);
        while buffer.len() < wanted {
            raw.clear();
            raw.extend((0..fresh).map(|_| b' ' + u8::try_from(random.below(95)).unwrap_or(0)));
            buffer.extend(raw.iter().cycle().take(PIECE));
        }
        Values { buffer: buffer.into(), at: 0 }
    }

    /// The same buffer for thread number `thread`, which reads from another position on.
    pub fn for_thread(&self, thread: usize) -> Self {
        let at = thread.wrapping_mul(PIECE * 1009) % self.buffer.len().max(1);
        Values { buffer: Arc::clone(&self.buffer), at }
    }

    /// The next value of `len` bytes. If `len` exceeds the buffer, the whole buffer.
    #[inline]
    pub fn next(&mut self, len: usize) -> &[u8] {
        if self.buffer.len() - self.at < len {
            self.at = 0;
        }
        let from = self.at;
        self.at = (from + len).min(self.buffer.len());
        self.buffer.get(from..self.at).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_format::compress::{Compression, Compressor};

    #[test]
    fn values_follow_each_other_and_wrap() {
        let mut values = Values::new(1, 0.5, 0);
        let all = values.buffer.to_vec();
        assert!(all.len() >= 1 << 20);
        assert_eq!(values.next(300), &all[..300]);
        assert_eq!(values.next(100), &all[300..400]);
        // Too little is left at the end, so start at the beginning again.
        assert_eq!(values.next(all.len() - 401), &all[400..all.len() - 1]);
        assert_eq!(values.next(2), &all[..2]);
        assert_eq!(values.next(0), b"");
    }

    #[test]
    fn large_values_fit() {
        assert_eq!(Values::new(1, 1.0, 3 << 20).next(3 << 20).len(), 3 << 20);
    }

    #[test]
    fn codecs_find_the_redundancy() {
        for ratio in [0.1, 0.5, 0.9] {
            let mut values = Values::new(3, ratio, 0);
            let raw = values.next(1 << 20).to_vec();
            assert!(raw.iter().all(|b| (b' '..=b'~').contains(b)));
            let mut out = Vec::new();
            let mut lz4 = Compressor::new(Compression::Lz4, Compressor::DEFAULT).unwrap();
            let kind = lz4.compress(&raw, &mut out);
            let got = if kind == Compression::None { 1.0 } else { out.len() as f64 / raw.len() as f64 };
            assert!((got - ratio).abs() < 0.12, "{ratio}: {got}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| Values::new(seed, 0.5, 0).next(100).to_vec();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let one = Values::new(1, 0.5, 0);
        assert_ne!(one.for_thread(0).next(100), one.for_thread(1).next(100));
    }
}

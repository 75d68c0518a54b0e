//! The Bloom filter of format versions below 5: 32-bit hash, probes in one line per key.
//!
//! ```text
//! | bits: lines * line size | probes: u8, 1..=127 | lines: u32 LE |
//! ```
//! 1. The line size is a power of two: what a cache line was on the writing machine, 64 bytes nearly everywhere.
//! 2. The number of lines is odd when this engine or RocksDB wrote it; readers take any.
//!
//! Source: RocksDB `util/bloom_impl.h` (`LegacyLocalityBloomImpl`), `table/block_based/filter_policy.cc`.

use super::hash32::{BLOOM_SEED, hash32};

/// Bytes of a line that this engine writes.
const LINE: usize = 64;

/// A decoded legacy Bloom filter, without its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyBloom {
    /// Number of lines.
    pub lines: u32,
    /// log2 of the bytes of a line.
    pub line_log2: u8,
    /// Probes per key, 1 to 127.
    pub probes: u8,
}

impl LegacyBloom {
    /// Recognises the filter by its metadata; `None` when bits and lines do not fit together.
    pub(super) fn decode(bits: &[u8], probes: u8, lines: u32) -> Option<LegacyBloom> {
        let line = bits.len().checked_div(usize::try_from(lines).ok()?)?;
        let fits = line.is_power_of_two() && line.checked_mul(lines as usize) == Some(bits.len());
        let line_log2 = u8::try_from(line.checked_ilog2()?).ok()?;
        (fits && (1..=0x7f).contains(&probes)).then_some(LegacyBloom { lines, line_log2, probes })
    }

    /// True unless the filter proves that the key was not added.
    #[inline]
    pub(super) fn may_contain(self, filter: &[u8], user_key: &[u8]) -> bool {
        let hash = hash32(user_key, BLOOM_SEED);
        let start = (hash.checked_rem(self.lines).unwrap_or(0) as usize) << self.line_log2;
        let Some(line) = filter.get(start..start + (1 << self.line_log2)) else { return true };
        probes(hash, self.probes, self.line_log2)
            .all(|bit| line.get(bit >> 3).is_none_or(|byte| byte >> (bit & 7) & 1 == 1))
    }
}

/// The bits of a hash within its line.
#[inline]
fn probes(hash: u32, probes: u8, line_log2: u8) -> impl Iterator<Item = usize> {
    let (delta, mask) = (hash.rotate_right(17), (8usize << line_log2) - 1);
    (0..u32::from(probes)).map(move |i| hash.wrapping_add(delta.wrapping_mul(i)) as usize & mask)
}

/// Collects hashes of user keys and builds a legacy Bloom filter, the bytes RocksDB builds from the same keys.
#[derive(Clone, Debug)]
pub struct LegacyBloomBuilder {
    bits_per_key: usize,
    hashes: Vec<u32>,
}

impl LegacyBloomBuilder {
    /// A builder with that many bits per key, rounded to a whole number in 1..=100; `None` below 0.5: no filter.
    pub fn new(bits_per_key: f64) -> Option<Self> {
        let wanted = bits_per_key >= 0.5;
        // In 1..=100 by the clamp.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits_per_key = bits_per_key.clamp(1.0, 100.0).round() as usize;
        wanted.then_some(LegacyBloomBuilder { bits_per_key, hashes: Vec::new() })
    }

    /// Adds a user key. Keys that follow on themselves (versions) count once.
    pub fn add(&mut self, user_key: &[u8]) {
        let hash = hash32(user_key, BLOOM_SEED);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Number of keys added, without repetitions.
    pub fn keys(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of the finished filter.
    pub fn size_estimate(&self) -> usize {
        if self.hashes.is_empty() { 0 } else { self.lines() as usize * LINE + 5 }
    }

    /// The filter block; empty when no key was added.
    pub fn finish(&self) -> Vec<u8> {
        if self.hashes.is_empty() {
            return Vec::new();
        }
        let lines = self.lines();
        let probes_per_key = self.probes();
        let mut filter = vec![0u8; lines as usize * LINE];
        for hash in &self.hashes {
            let start = (hash % lines) as usize * LINE;
            let Some(line) = filter.get_mut(start..start + LINE) else { continue };
            for bit in probes(*hash, probes_per_key, 6) {
                line.get_mut(bit >> 3).into_iter().for_each(|byte| *byte |= 1 << (bit & 7));
            }
        }
        filter.push(probes_per_key);
        filter.extend_from_slice(&lines.to_le_bytes());
        filter
    }

    /// ln 2 times the bits per key, which errs least.
    fn probes(&self) -> u8 {
        u8::try_from((self.bits_per_key * 69 / 100).clamp(1, 30)).unwrap_or(30)
    }

    /// Odd, so that the remainder uses all of the hash.
    fn lines(&self) -> u32 {
        let bits = self.hashes.len().saturating_mul(self.bits_per_key);
        let lines = bits.div_ceil(8 * LINE).min((u32::MAX as usize - 5) / LINE - 1) | 1;
        u32::try_from(lines).unwrap_or(1)
    }
}

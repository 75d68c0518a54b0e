//! Building Bloom filters.

use super::xxph3::xxph3_64;

/// Bytes of a line.
pub(super) const LINE: usize = 64;
/// Each probe's hash comes from the one before by this factor.
pub(super) const PROBE_STEP: u32 = 0x9e37_79b9;
/// The largest filter: its length fits 32 bits and is whole lines.
const MAX_LEN: u64 = 0xffff_ffc0;

/// Collects the hashes of a table's user keys and builds a FastLocalBloom filter. Eight bytes per key until then.
#[derive(Clone, Debug)]
pub struct BloomBuilder {
    millibits: u64,
    hashes: Vec<u64>,
}

impl BloomBuilder {
    /// A builder with that many bits per key, clamped to 1..=100; `None` below 0.5, which means no filter.
    pub fn new(bits_per_key: f64) -> Option<Self> {
        let wanted = bits_per_key >= 0.5;
        wanted.then_some(BloomBuilder { millibits: millibits_of(bits_per_key), hashes: Vec::new() })
    }

    /// Adds a user key. Keys that follow on themselves (versions) count once.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        let hash = xxph3_64(user_key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Number of keys added, without repetitions.
    pub fn keys(&self) -> usize {
        self.hashes.len()
    }

    /// What was added, in order.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Bytes of the finished filter.
    pub fn size_estimate(&self) -> usize {
        if self.hashes.is_empty() { 0 } else { self.bits_len() + 5 }
    }

    /// The filter block; empty when no key was added.
    pub fn finish(&self) -> Vec<u8> {
        if self.hashes.is_empty() {
            return Vec::new();
        }
        self.finish_with(self.bits_len() / LINE, probes_for(self.millibits))
    }

    /// The filter block with this many lines and probes: readers take any. RocksDB chooses other lines to fit its
    /// allocator; the bits of the same choice are the same.
    pub fn finish_with(&self, lines: usize, probes: u8) -> Vec<u8> {
        let lines = lines.clamp(1, usize::try_from(MAX_LEN).unwrap_or(usize::MAX) / LINE);
        let mut filter = vec![0u8; lines * LINE];
        let lines = u32::try_from(lines).unwrap_or(u32::MAX);
        for hash in &self.hashes {
            set_bits(&mut filter, line_start(*hash, lines), probes, (hash >> 32) as u32);
        }
        filter.extend_from_slice(&[0xff, 0, probes, 0, 0]);
        filter
    }

    fn bits_len(&self) -> usize {
        let bytes = (self.hashes.len() as u64).saturating_mul(self.millibits).saturating_add(7999) / 8000;
        let whole = bytes.div_ceil(LINE as u64).saturating_mul(LINE as u64).min(MAX_LEN);
        usize::try_from(whole).unwrap_or(LINE)
    }
}

/// Thousandths of a bit per key, within what filters may have.
fn millibits_of(bits_per_key: f64) -> u64 {
    let millibits = (bits_per_key.clamp(1.0, 100.0) * 1000.0).round();
    // In 1000..=100_000 by the clamp.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let millibits = millibits as u64;
    millibits
}

/// The false-positive rate to be expected of a FastLocalBloom filter with that many bits per key: the mean of a line that
/// is one standard deviation fuller than others and one that is as much emptier.
pub fn bloom_fp_rate(bits_per_key: f64) -> f64 {
    let line_bits = LINE as f64 * 8.0;
    let probes = f64::from(probes_for(millibits_of(bits_per_key)));
    let rate = |bits: f64| (1.0 - (-probes / bits).exp()).powf(probes);
    let keys = line_bits / bits_per_key;
    let deviation = keys.sqrt();
    (rate(line_bits / (keys + deviation)) + rate(line_bits / (keys - deviation))) / 2.0
}

#[inline]
fn set_bits(filter: &mut [u8], start: usize, probes: u8, mut h: u32) {
    let Some(line) = filter.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<LINE>()) else { return };
    for _ in 0..probes {
        let bit = h >> 23;
        if let Some(byte) = line.get_mut((bit >> 3) as usize & (LINE - 1)) {
            *byte |= 1 << (bit & 7);
        }
        h = h.wrapping_mul(PROBE_STEP);
    }
}

/// The number of probes that gives the fewest false positives at that many thousandths of a bit per key.
fn probes_for(millibits: u64) -> u8 {
    const STEPS: [u64; 12] = [2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501];
    let probes = match STEPS.iter().position(|step| millibits <= *step) {
        Some(at) => at as u64 + 1,
        None if millibits > 50_000 => 24,
        None => (millibits - 1) / 2000 - 1,
    };
    (probes & 0x1f) as u8
}

/// Offset of the line that a hash belongs to: its low half scaled to the number of lines.
#[inline]
pub(super) fn line_start(hash: u64, lines: u32) -> usize {
    let line = ((hash & 0xffff_ffff) * u64::from(lines)) >> 32;
    usize::try_from(line).unwrap_or(usize::MAX).saturating_mul(LINE)
}

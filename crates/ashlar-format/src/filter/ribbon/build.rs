//! Builds a filter: the number of slots and columns, then elimination and back-substitution.

use super::{BLOCK_SLOTS, Equation, Ribbon, SEGMENT};
use crate::filter::bloom::{BloomBuilder, bloom_fp_rate};

/// Keys that fit 2^8, 2^9, … 2^17 slots with one failure in twenty tries.
const FITTING: [f64; 10] =
    [248.851, 499.532, 1001.26, 2003.97, 4005.59, 8000.39, 15_966.6, 31_828.1, 63_447.3, 126_506.0];
/// Above this many keys RocksDB writes Bloom filters: slots would not fit 32 bits.
const MAX_KEYS: usize = 950_000_000;
/// With fewer slots a Bloom filter may be the smaller one.
const SMALL: u32 = 1024;

/// Collects the hashes of a table's user keys and builds a Ribbon filter. Eight bytes per key until then; 20 bytes per key
/// more while it is built.
///
/// Small sets give a Bloom filter, where that is smaller, as RocksDB's builder does.
#[derive(Clone, Debug)]
pub struct RibbonBuilder {
    /// Holds the hashes, and builds the filter where Ribbon has no advantage.
    bloom: BloomBuilder,
    /// One false positive in how many.
    one_in: f64,
}

/// How large a filter is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    blocks: u32,
    segments: usize,
}

impl RibbonBuilder {
    /// A builder with the false-positive rate of a Bloom filter of that many bits per key; `None` below 0.5.
    pub fn new(bloom_bits_per_key: f64) -> Option<Self> {
        let bloom = BloomBuilder::new(bloom_bits_per_key)?;
        let one_in = 1.0 / bloom_fp_rate(bloom_bits_per_key.clamp(1.0, 100.0));
        Some(RibbonBuilder { bloom, one_in })
    }

    /// Adds a user key. Keys that follow on themselves (versions) count once.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        self.bloom.add(user_key);
    }

    /// Number of keys added, without repetitions.
    pub fn keys(&self) -> usize {
        self.bloom.keys()
    }

    /// Bytes of the finished filter.
    pub fn size_estimate(&self) -> usize {
        self.size().map_or_else(|| self.bloom.size_estimate(), |size| size.segments * SEGMENT + 5)
    }

    /// The filter block, the bytes RocksDB builds from the same keys in the same order; empty when no key was added.
    pub fn finish(&self) -> Vec<u8> {
        let solved = self.size().and_then(|size| self.finish_with(size.blocks, size.segments));
        solved.unwrap_or_else(|| self.bloom.finish())
    }

    /// The filter block with this many blocks and segments: readers take any. RocksDB chooses other numbers of segments
    /// to fit its allocator. `None`: no seed solves the equations, because of too few slots or an invalid shape.
    pub fn finish_with(&self, blocks: u32, segments: usize) -> Option<Vec<u8>> {
        let first = (self.bloom.hashes().first()? & 0xff) as u8;
        let (ordinal, ribbon, rows) = (0..=255u8).find_map(|i| {
            let ordinal = first.wrapping_add(i);
            let ribbon = Ribbon::new(ordinal, blocks, segments)?;
            Some((ordinal, ribbon, Rows::solve(self.bloom.hashes(), ribbon)?))
        })?;
        let mut filter = vec![0; segments * SEGMENT];
        rows.substitute(ribbon, &mut filter);
        let [low, middle, high, _] = blocks.to_le_bytes();
        filter.extend_from_slice(&[0xfe, ordinal, low, middle, high]);
        Some(filter)
    }

    /// `None` where a Bloom filter is to be written.
    fn size(&self) -> Option<Size> {
        let first = *self.bloom.hashes().first()?;
        if self.keys() > MAX_KEYS {
            return None;
        }
        let slots = slots_for(self.keys());
        let blocks = slots / BLOCK_SLOTS;
        // The lower and the upper number of columns are mixed so that the rate comes out as wanted.
        let columns = (f64_to_u64(self.one_in).max(1).ilog2()).min(32);
        let lower_fp = (-f64::from(columns)).exp2();
        let upper_fp = lower_fp / 2.0;
        let portion = ((1.0 / self.one_in - upper_fp) / (lower_fp - upper_fp)).clamp(0.0, 1.0);
        let starts = f64::from(slots - (BLOCK_SLOTS - 1));
        let rounding = (f64::from((first >> 32) as u32) + 0.5) / 4_294_967_296.0;
        let upper_start = f64_to_u64((portion * starts + rounding) / f64::from(BLOCK_SLOTS));
        let upper_start = if columns == 32 { u64::from(blocks) } else { upper_start.min(u64::from(blocks)) };
        let segments = u64::from(blocks) * u64::from(columns) + (u64::from(blocks) - upper_start);
        let segments = usize::try_from(segments).ok()?;
        let larger = segments * SEGMENT + 5 > self.bloom.size_estimate();
        (slots >= SMALL || !larger).then_some(Size { blocks, segments })
    }
}

/// Not negative and far below 2^64 wherever it is used.
fn f64_to_u64(value: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = value as u64;
    whole
}

/// Keys that fit 2^log2 slots; 0 where it does not pay.
fn fitting(log2: u32) -> f64 {
    let measured = log2.checked_sub(8).and_then(|at| FITTING.get(at as usize));
    match measured {
        Some(keys) => *keys,
        None if log2 < 8 => 0.0,
        None => {
            let at_17 = 131_072.0 / 126_506.0 - 17.0 * 0.0038;
            f64::from(log2).exp2() / (at_17 + 0.0038 * f64::from(log2))
        }
    }
}

/// Slots for that many keys: interpolated between powers of two, whole blocks, at least two.
fn slots_for(keys: usize) -> u32 {
    let keys = u32::try_from(keys.min(MAX_KEYS)).map_or(0.0, f64::from);
    // The shortened constant is part of the format as far as equal bytes go.
    #[allow(clippy::approx_constant)]
    let log2 = u32::try_from(f64_to_u64(keys.max(1.0).ln() * 1.442_695_040_9 + 0.5)).unwrap_or(0);
    if fitting(log2) == 0.0 {
        return 2 * BLOCK_SLOTS;
    }
    let low = if keys < fitting(log2) { log2 - 1 } else { log2 };
    let portion = (keys - fitting(low)) / (fitting(low + 1) - fitting(low));
    let slots = f64_to_u64(f64::from(low).exp2() * (1.0 + portion) + 0.999_999_999);
    let slots = u32::try_from(slots).unwrap_or(u32::MAX - BLOCK_SLOTS);
    slots.next_multiple_of(BLOCK_SLOTS).max(2 * BLOCK_SLOTS)
}

/// The equations in echelon form: row `i` has its first coefficient at slot `i`, or is empty.
struct Rows {
    coefficients: Vec<u128>,
    results: Vec<u32>,
}

impl Rows {
    /// Eliminates all equations; `None` when two contradict each other.
    fn solve(hashes: &[u64], ribbon: Ribbon) -> Option<Rows> {
        let slots = (ribbon.blocks * BLOCK_SLOTS) as usize;
        let mut rows = Rows { coefficients: vec![0; slots], results: vec![0; slots] };
        hashes.iter().all(|hash| rows.add(ribbon.equation(*hash))).then_some(rows)
    }

    fn add(&mut self, equation: Equation) -> bool {
        let Equation { start, mut coefficients, mut result } = equation;
        let mut slot = start as usize;
        while let (Some(row), Some(sum)) = (self.coefficients.get_mut(slot), self.results.get_mut(slot)) {
            if *row == 0 {
                (*row, *sum) = (coefficients, result);
                return true;
            }
            coefficients ^= *row;
            result ^= *sum;
            if coefficients == 0 {
                return result == 0;
            }
            let shift = coefficients.trailing_zeros();
            coefficients >>= shift;
            slot += shift as usize;
        }
        // The last coefficient is at the last slot at most: a row is found before.
        false
    }

    /// Solves from the last slot to the first and writes each block's segments. Free slots come out zero-sum.
    fn substitute(&self, ribbon: Ribbon, segments: &mut [u8]) {
        // The next 128 solved bits of each column, the nearest lowest.
        let mut state = [0u128; 32];
        for block in (0..ribbon.blocks).rev() {
            let columns = ribbon.columns_of(block);
            let state = state.get_mut(..columns).unwrap_or_default();
            let first = (block * BLOCK_SLOTS) as usize;
            let slots = first..first + BLOCK_SLOTS as usize;
            let rows = self.coefficients.get(slots.clone()).unwrap_or_default().iter();
            let results = self.results.get(slots).unwrap_or_default();
            for (row, result) in rows.zip(results).rev() {
                for (column, bits) in state.iter_mut().enumerate() {
                    let shifted = *bits << 1;
                    let bit = (shifted & row).count_ones() ^ result >> column;
                    *bits = shifted | u128::from(bit & 1);
                }
            }
            let at = ribbon.first_segment(block) * SEGMENT;
            let place = segments.get_mut(at..at + columns * SEGMENT).unwrap_or_default();
            for (segment, bits) in place.as_chunks_mut::<SEGMENT>().0.iter_mut().zip(state) {
                *segment = bits.to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_with_keys_in_whole_blocks() {
        assert_eq!((slots_for(1), slots_for(180), slots_for(249)), (256, 256, 384));
        assert_eq!(slots_for(2000), 2048);
        let mut last = 0;
        for keys in [1, 10, 100, 1000, 5000, 10_000, 100_000, 126_506, 126_507, 1_000_000, MAX_KEYS] {
            let slots = slots_for(keys);
            assert!(slots >= last && slots.is_multiple_of(BLOCK_SLOTS) && slots as usize >= keys, "{keys}");
            last = slots;
        }
    }
}

//! Ribbon filter: a third smaller than Bloom at the same false-positive rate, slower to build.
//!
//! ```text
//! segments: 16 bytes LE each   | fe | ordinal seed: u8 | blocks: u24 LE |
//! ```
//! A key's hash names a slot and 128 coefficients, one per slot from there on; the filter stores, column by column, bits
//! such that the coefficients' sum of every added key equals bits of its hash. A key that was not added agrees by chance.
//!
//! 1. Slots come in blocks of 128. A block stores one segment per column; blocks from `upper_start` on have one
//!    column more than those before.
//! 2. A key's first slot is at most 128 before the last one, so its coefficients never leave the slots.
//! 3. Adding is solving linear equations; now and then that fails for a seed, and the next seed is tried.
//!
//! Source: RocksDB `util/ribbon_impl.h`, `util/ribbon_alg.h`, `table/block_based/filter_policy.cc`.

mod build;
mod shape;

pub use build::RibbonBuilder;
pub use shape::Ribbon;

/// Slots of a block, which is also the number of coefficients.
const BLOCK_SLOTS: u32 = 128;
/// Bytes of a segment.
const SEGMENT: usize = 16;

/// What a filter asks of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Equation {
    /// The first slot.
    start: u32,
    /// One bit for each of the slots from `start`; the lowest is set.
    coefficients: u128,
    /// What the slots must sum up to, one bit per column.
    result: u32,
}

impl Equation {
    /// The equation of a key's hash under a seed, with `starts` slots to start at.
    #[inline]
    fn new(hash: u64, seed: u32, starts: u32) -> Equation {
        let g = (hash ^ u64::from(seed)).wrapping_mul(0x6193_d459_236a_3a0d);
        let start = (u128::from(g) * u128::from(starts)) >> 64;
        let a = g.wrapping_mul(0xc28f_8282_2b65_0bed);
        let low = a ^ 0xc367_844a_6e52_731d;
        Equation {
            // Below `starts`, which has 32 bits.
            start: (start & 0xffff_ffff) as u32,
            coefficients: u128::from(a) << 64 | u128::from(low | 1),
            result: (a.swap_bytes() & 0xffff_ffff) as u32,
        }
    }
}

/// The seed of an ordinal: consecutive ordinals must not give similar hashes.
fn seed_of(ordinal: u8) -> u32 {
    let mut t = u64::from(ordinal).wrapping_mul(0xc782_19a2_3eea_dd03);
    t ^= (t & 0xf0f0_f0f0_f0f0_f0f0) >> 4;
    (t & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_examples() {
        assert_eq!(seed_of(103), 0x5579_e236);
        for (hash, start, coefficients, result) in [
            (0xc825_ba60_8113_1867, 1900, 0xcc03_97ba_4834_29d9_0f64_13f0_2666_5ac5, 0xba97_03cc),
            (0xb9b2_fd5f_b014_d7fb, 1491, 0xcdbf_eb89_b5d0_8d35_0ed8_6fc3_db82_fe29, 0x89eb_bfcd),
            (0xdf73_dd45_df63_a64d, 804, 0xef19_a27f_2932_6753_2c7e_2635_4760_144f_u128, 0x7fa2_19ef),
        ] {
            let equation = Equation::new(hash, 0x5579_e236, 1921);
            assert_eq!(equation, Equation { start, coefficients, result });
        }
    }
}

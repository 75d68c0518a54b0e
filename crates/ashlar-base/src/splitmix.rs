//! SplitMix64: a counter with a fixed step, mixed. Fast, and any seed is good. Not for secrets.
//!
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.

/// What the counter grows by: 2^64 divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next 64 random bits. The same state gives the same numbers on every machine and in every version.
#[inline]
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_numbers_come() {
        let mut state = 1_234_567;
        let got: Vec<u64> = (0..3).map(|_| super::next(&mut state)).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}

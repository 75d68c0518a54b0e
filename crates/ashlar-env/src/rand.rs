//! Randomness: a seeded generator, and named streams of one root seed.
//!
//! A run that draws more numbers from one stream (for example more faults) leaves the other streams as they were. Not
//! for secrets. Generators: splitmix64 for seeding, xoshiro256** after it (Blackman and Vigna).

use ashlar_base::splitmix;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

/// A source of random numbers.
pub trait Rand: Send + Sync + Debug {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// A generator that gives the same numbers for the same seed.
#[derive(Debug)]
pub struct SeededRand {
    // A leaf lock around arithmetic; below all ranks.
    state: Mutex<[u64; 4]>,
}

impl SeededRand {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        SeededRand {
            state: Mutex::new([
                splitmix::next(&mut x),
                splitmix::next(&mut x),
                splitmix::next(&mut x),
                splitmix::next(&mut x),
            ]),
        }
    }

    /// The sub-stream `name` of a root seed.
    pub fn stream(root: u64, name: &str) -> Self {
        // FNV-1a spreads the name, splitmix in `new` mixes it with the root.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut root = root;
        Self::new(splitmix::next(&mut root) ^ hash)
    }

    /// A number below `bound`; 0 for bound 0. The bias is below 2^-32 for bounds under 2^32.
    pub fn below(&self, bound: u64) -> u64 {
        // The high half of a 128-bit product is below `bound`.
        u64::try_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64).unwrap_or(0)
    }
}

impl Rand for SeededRand {
    fn next_u64(&self) -> u64 {
        let mut s = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let out = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers_and_streams_differ() {
        let draw = |r: SeededRand| (0..8).map(|_| r.next_u64()).collect::<Vec<_>>();
        assert_eq!(draw(SeededRand::new(7)), draw(SeededRand::new(7)));
        assert_eq!(draw(SeededRand::stream(7, "faults")), draw(SeededRand::stream(7, "faults")));
        let all = [
            draw(SeededRand::new(7)),
            draw(SeededRand::new(8)),
            draw(SeededRand::stream(7, "faults")),
            draw(SeededRand::stream(7, "ops")),
            draw(SeededRand::stream(8, "ops")),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn below_stays_below() {
        let r = SeededRand::new(1);
        assert!((1..200).all(|n| r.below(n) < n));
        assert_eq!(r.below(0), 0);
        assert!((0..100).map(|_| r.below(4)).any(|x| x == 3));
    }
}

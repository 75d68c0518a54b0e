//! Randomness: a seeded generator and named streams of one root seed.
//!
//! Sub-streams are named so that a run which draws more from one of them (more faults, say) leaves the others as they
//! were. Not for secrets. Generators: splitmix64 for seeding, xoshiro256** after it (Blackman and Vigna).

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

fn splitmix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl SeededRand {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        SeededRand {
            state: Mutex::new([splitmix(&mut x), splitmix(&mut x), splitmix(&mut x), splitmix(&mut x)]),
        }
    }

    /// The sub-stream `name` of a root seed.
    pub fn stream(root: u64, name: &str) -> Self {
        // FNV-1a spreads the name, splitmix in `new` mixes it with the root.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut root = root;
        Self::new(splitmix(&mut root) ^ hash)
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
    fn splitmix_gives_the_published_numbers() {
        let mut x = 1_234_567;
        let got: Vec<u64> = (0..3).map(|_| splitmix(&mut x)).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

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

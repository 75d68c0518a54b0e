//! The distribution of the keys of a random workload: uniform, Zipfian, or exponential.
//!
//! 1. Drawn ranks are scattered over the key space, so that hot keys are not neighbours.
//! 2. The same random stream gives the same keys.
//!
//! Zipfian ranks by rejection-inversion (Hörmann and Derflinger 1996), at a constant cost and without tables; YCSB's
//! constant is 0.99. The exponential form is db_bench's `read_random_exp_range`.

use crate::random::Random;

/// The distribution of numbers below a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Uniform: every number is equally likely.
    Uniform,
    /// Zipfian: the probability of rank r is proportional to r to the power of -theta.
    Zipfian {
        /// Above 0, and not 1.
        theta: f64,
    },
    /// Exponential: the probability of ranks falls off over this many e-foldings.
    Exponential {
        /// Above 0.
        range: f64,
    },
}

impl Access {
    /// A source of numbers below `bound`.
    pub(crate) fn below(self, bound: u64) -> Drawn {
        let zipf = match self {
            Access::Zipfian { theta } => Some(Zipf::new(bound, theta)),
            _ => None,
        };
        Drawn { access: self, bound, zipf }
    }
}

/// Numbers below a bound.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    access: Access,
    bound: u64,
    zipf: Option<Zipf>,
}

impl Drawn {
    /// The next number; 0 for bound 0.
    #[inline]
    pub(crate) fn next(&self, random: &mut Random) -> u64 {
        match (self.access, &self.zipf) {
            (Access::Exponential { range }, _) => {
                let rank = (-range * random.unit()).exp() * self.bound as f64;
                // db_bench's multiplier scatters neighbouring ranks.
                floor(rank).wrapping_mul(0x5bd1_e995) % self.bound.max(1)
            }
            (_, Some(zipf)) => scatter(zipf.rank(random), self.bound),
            _ => random.below(self.bound),
        }
    }
}

/// Positive and below 2^64 at every call; `as` saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn floor(x: f64) -> u64 {
    x as u64
}

fn scatter(rank: u64, bound: u64) -> u64 {
    Random::new(rank, 0).below(bound)
}

#[derive(Clone, Debug)]
struct Zipf {
    bound: f64,
    theta: f64,
    /// The integral at the first rank's left end, and at the last one's right end.
    first: f64,
    last: f64,
    /// Ranks this near to the inverse are accepted without the rejection test.
    near: f64,
}

impl Zipf {
    fn new(bound: u64, theta: f64) -> Zipf {
        let bound = bound.max(1) as f64;
        let mut zipf = Zipf { bound, theta, first: 0.0, last: 0.0, near: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(bound + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, y: f64) -> f64 {
        (1.0 + y * (1.0 - self.theta)).powf(1.0 / (1.0 - self.theta))
    }

    /// From 1, the most frequent, to the bound.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let y = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(y);
            let rank = x.round().clamp(1.0, self.bound);
            if rank - x <= self.near || y >= self.integral(rank + 0.5) - self.density(rank) {
                return floor(rank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn counts(access: Access, bound: u64, draws: u32) -> BTreeMap<u64, u32> {
        let (drawn, mut random) = (access.below(bound), Random::new(7, 0));
        let mut counts = BTreeMap::new();
        (0..draws).for_each(|_| *counts.entry(drawn.next(&mut random)).or_default() += 1);
        assert!(counts.keys().all(|&k| k < bound));
        counts
    }

    /// The shares of the first ranks against the sum they are defined by.
    #[test]
    fn zipfian_ranks_have_their_shares() {
        for theta in [0.5, 0.99, 1.5] {
            let (zipf, mut random) = (Zipf::new(1000, theta), Random::new(3, 0));
            let mut seen = [0_u32; 1001];
            let draws = 200_000;
            (0..draws).for_each(|_| seen[usize::try_from(zipf.rank(&mut random)).unwrap()] += 1);
            let all: f64 = (1..=1000).map(|r| f64::from(r).powf(-theta)).sum();
            for rank in [1_u16, 2, 3, 10, 100] {
                let wanted = f64::from(rank).powf(-theta) / all;
                let got = f64::from(seen[usize::from(rank)]) / f64::from(draws);
                let error = 5.0 * (wanted / f64::from(draws)).sqrt();
                assert!((got - wanted).abs() < error, "{theta} {rank}: {got} {wanted}");
            }
        }
    }

    #[test]
    fn few_keys_are_hot_and_they_lie_apart() {
        let zipfian = counts(Access::Zipfian { theta: 0.99 }, 100_000, 100_000);
        let mut hot: Vec<(u32, u64)> = zipfian.iter().map(|(k, n)| (*n, *k)).collect();
        hot.sort_unstable();
        hot.reverse();
        assert!(hot[0].0 > 5000 && zipfian.len() < 40_000, "{:?} {}", hot[0], zipfian.len());
        assert!(hot[0].1.abs_diff(hot[1].1) > 100, "{:?}", &hot[..2]);
        let skewed = counts(Access::Exponential { range: 15.0 }, 100_000, 100_000);
        let even = counts(Access::Uniform, 100_000, 100_000);
        assert!(skewed.len() < even.len() / 2, "{} {}", skewed.len(), even.len());
    }

    #[test]
    fn small_bounds_are_fine() {
        for access in [Access::Uniform, Access::Zipfian { theta: 0.99 }, Access::Exponential { range: 3.0 }] {
            assert_eq!(counts(access, 1, 10).len(), 1);
        }
    }
}

//! Ranks with Zipf-like frequencies, by the method of Gray et al., "Quickly generating billion-record synthetic databases" (1994):
//! the two most frequent ranks are exact, the rest follows a power law.
//!
//! The Linkbench document uses this method, so the workload does. The programs of `ashlar-bench` draw by rejection, which is exact
//! and would give other access frequencies than the document's.

use super::floor;
use ashlar_bench::Random;

/// From this many items on the sum is approximated.
const APPROXIMATED_FROM: u64 = 100_000;

/// Ranks below `n`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    zeta: f64,
    second: f64,
    alpha: f64,
    eta: f64,
}

/// Σ i^−shape for i from 1 to n.
pub fn zeta(n: u64, shape: f64) -> f64 {
    if n >= APPROXIMATED_FROM {
        let rest = 1.0 - shape;
        return (n as f64).powf(rest) / rest + 0.58 - 1.0 / rest;
    }
    exact_zeta(n, shape)
}

fn exact_zeta(n: u64, shape: f64) -> f64 {
    (1..=n).map(|i| (i as f64).powf(-shape)).sum()
}

impl Zipf {
    /// For `n` items; the shape is above 0 and below 1.
    pub fn new(n: u64, shape: f64) -> Zipf {
        let zeta = zeta(n, shape);
        let second = 1.0 + 0.5_f64.powf(shape);
        let items = n as f64;
        let eta = (1.0 - (2.0 / items).powf(1.0 - shape)) / (1.0 - second / zeta);
        Zipf { n: items, zeta, second, alpha: 1.0 / (1.0 - shape), eta }
    }

    /// The rank at the quantile `p`, from 0 to 1.
    pub fn at(&self, p: f64) -> u64 {
        let scaled = p * self.zeta;
        if scaled < 1.0 || self.n < 2.0 {
            return 0;
        }
        if scaled < self.second {
            return 1;
        }
        floor(self.n * (self.eta * p - self.eta + 1.0).powf(self.alpha)).min(floor(self.n) - 1)
    }

    /// The next rank.
    pub fn next(&self, random: &mut Random) -> u64 {
        self.at(random.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximated_sum_is_near_the_exact_one() {
        assert!((zeta(1_000_000, 0.8) - 74.825).abs() < 0.0005, "{}", zeta(1_000_000, 0.8));
        assert!((exact_zeta(1_000_000, 0.8) - 74.807).abs() < 0.0005);
    }

    /// The two first ranks have their exact shares. Those of the first 1 %, 10 % and half of the ranks are near the exact sums: the
    /// method follows a power law there, which is off by up to 5 %.
    #[test]
    fn ranks_have_their_shares() {
        let draws = 400_000;
        for (n, shape) in [(1000_u64, 0.8), (100_000, 0.625), (1_000_000, 0.741)] {
            let zipf = Zipf::new(n, shape);
            let mut random = Random::new(5, 0);
            let ranks: Vec<u64> = (0..draws).map(|_| zipf.next(&mut random)).collect();
            assert!(ranks.iter().all(|rank| *rank < n));
            let share =
                |most: u64| ranks.iter().filter(|rank| **rank < most).count() as f64 / f64::from(draws);
            let error = |p: f64| 5.0 * (p * (1.0 - p) / f64::from(draws)).sqrt();
            let all = exact_zeta(n, shape);
            for most in [1, 2] {
                let wanted = exact_zeta(most, shape) / all;
                assert!((share(most) - wanted).abs() < error(wanted), "{n} {most}: {} {wanted}", share(most));
            }
            for most in [n / 100, n / 10, n / 2] {
                let wanted = exact_zeta(most, shape) / all;
                assert!((share(most) / wanted - 1.0).abs() < 0.05, "{n} {most}: {} {wanted}", share(most));
            }
        }
    }

    #[test]
    fn few_items_are_fine() {
        let mut random = Random::new(1, 0);
        assert!((0..100).all(|_| Zipf::new(1, 0.8).next(&mut random) == 0));
        assert!((0..100).all(|_| Zipf::new(2, 0.8).next(&mut random) < 2));
    }
}

//! How many links a multiget asks for: geometric.

use super::floor;
use ashlar_bench::Random;

/// A geometric distribution from a least to a greatest number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometric {
    /// The least number.
    pub min: u64,
    /// Upper bound, not included.
    pub end: u64,
    /// The probability that a number is the last one.
    pub prob: f64,
    /// Whether to reproduce the original program, whose numbers are one too great.
    pub as_java: bool,
}

impl Geometric {
    /// The next number.
    pub fn next(&self, random: &mut Random) -> u64 {
        let failures = ((1.0 - random.unit()).ln() / (1.0 - self.prob).ln()).ceil().max(0.0);
        let drawn = floor(failures) + u64::from(self.as_java);
        drawn.clamp(self.min, self.end.saturating_sub(1).max(self.min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_the_specification() {
        for (as_java, wanted) in [(true, 3.62), (false, 2.62)] {
            let geometric = Geometric { min: 1, end: 128, prob: 0.382, as_java };
            let mut random = Random::new(3, 0);
            let all: Vec<u64> = (0..200_000).map(|_| geometric.next(&mut random)).collect();
            let mean = all.iter().sum::<u64>() as f64 / 2e5;
            assert!((mean - wanted).abs() < 0.03, "{mean}");
            assert!(all.iter().all(|k| (1..128).contains(k)));
            assert_eq!(all.contains(&1), !as_java, "the original never asks for one");
        }
    }
}

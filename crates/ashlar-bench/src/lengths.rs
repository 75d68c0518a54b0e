//! The lengths of values: all equal, or drawn from a distribution (`value_size_distribution_type`).

use crate::random::Random;

/// The lengths of the values of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    kind: Kind,
    /// Separate from the stream of the keys, so that the keys do not depend on the lengths.
    random: Random,
}

/// The distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All lengths are equal.
    Fixed(usize),
    /// Uniform, from the first length to the second.
    Uniform(usize, usize),
    /// Normal around the middle of the two lengths, which are six deviations apart; never outside them.
    Normal(usize, usize),
}

impl Kind {
    /// The greatest possible length.
    pub(crate) fn longest(self) -> usize {
        match self {
            Kind::Fixed(len) => len,
            Kind::Uniform(_, most) | Kind::Normal(_, most) => most,
        }
    }
}

impl Lengths {
    /// The lengths for the thread with the random stream `stream`.
    pub(crate) fn new(kind: Kind, seed: u64, stream: u64) -> Self {
        Lengths { kind, random: Random::new(!seed, stream) }
    }

    /// The next length.
    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        match self.kind {
            Kind::Fixed(len) => len,
            Kind::Uniform(least, most) => {
                let wide = (most - least) as u64 + 1;
                least + usize::try_from(self.random.below(wide)).unwrap_or(0)
            }
            Kind::Normal(least, most) => self.normal(least, most),
        }
    }

    /// The sum of twelve uniform draws is close enough to normal here: mean 6, deviation 1.
    fn normal(&mut self, least: usize, most: usize) -> usize {
        const PARTS: u64 = 1 << 20;
        let sum: u64 = (0..12).map(|_| self.random.below(PARTS)).sum();
        let deviations = sum as f64 / PARTS as f64 - 6.0;
        let (middle, deviation) = ((least + most) as f64 / 2.0, (most - least) as f64 / 6.0);
        let length = (middle + deviations * deviation).round().clamp(least as f64, most as f64);
        // Between two lengths; `as` cannot leave the range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let length = length as usize;
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(kind: Kind) -> Vec<usize> {
        let mut lengths = Lengths::new(kind, 1, 0);
        (0..20_000).map(|_| lengths.next()).collect()
    }

    #[test]
    fn lengths_have_their_distribution() {
        assert!(draw(Kind::Fixed(100)).iter().all(|&l| l == 100));
        let uniform = draw(Kind::Uniform(10, 19));
        assert!((10..20).all(|l| uniform.iter().filter(|&&x| x == l).count().abs_diff(2000) < 300));
        let normal = draw(Kind::Normal(100, 700));
        assert!(normal.iter().all(|l| (100..=700).contains(l)));
        let near = normal.iter().filter(|&&l| (300..=500).contains(&l)).count();
        assert!((13_000..14_500).contains(&near), "{near}: 68 % lie within one deviation");
        assert_eq!(draw(Kind::Uniform(5, 5)), vec![5; 20_000]);
    }
}

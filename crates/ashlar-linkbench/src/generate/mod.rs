//! Where ids, degrees and payloads come from. Every generator is a function of its seed.

pub mod access;
pub mod degree;
pub mod graph;
pub mod multiget;
pub mod payload;
pub mod permutation;
pub mod table;
pub mod zipf;

use ashlar_bench::Random;

/// The whole part of a number that is not negative; `as` saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#[inline]
pub fn floor(x: f64) -> u64 {
    x as u64
}

/// A number of the normal distribution with mean 0 and deviation 1, by the method of Box and Muller.
pub fn normal(random: &mut Random) -> f64 {
    // 1 - unit is above 0, so its logarithm is finite.
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut random = Random::new(1, 1);
        let all: Vec<f64> = (0..100_000).map(|_| normal(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / 1e5;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        let within = all.iter().filter(|x| x.abs() < 1.0).count() as f64 / 1e5;
        // Five standard errors.
        assert!(mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023, "{mean} {variance}");
        assert!((within - 0.6827).abs() < 0.0075, "{within}");
    }
}

//! The random stream of a thread: the same seed and thread give the same operations on every engine.

use ashlar_base::splitmix;

/// A random generator without locks.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of thread number `thread` in a run with `seed`.
    pub fn new(seed: u64, thread: u64) -> Self {
        let mut of_seed = Random { state: seed };
        Random { state: of_seed.next_u64() ^ thread.wrapping_mul(splitmix::STEP) }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        splitmix::next(&mut self.state)
    }

    /// A number below `bound`; 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is below `bound`.
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from 0 to 1, 1 not included.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_thread_make_a_stream() {
        let draw = |seed, thread| {
            let mut r = Random::new(seed, thread);
            [r.next_u64(), r.next_u64(), r.next_u64()]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut r = Random::new(7, 0);
        let mut seen = [0; 10];
        (0..1000).for_each(|_| seen[usize::try_from(r.below(10)).unwrap()] += 1);
        assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
        assert_eq!(r.below(0), 0);
    }
}

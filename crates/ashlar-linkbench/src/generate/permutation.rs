//! A fixed permutation of ranks and places, so that popular ranks are scattered over the ids. Both directions cost the same.
//!
//! The numbers below n form g = min(1024, n) residue classes modulo g. Class r has ⌊n/g⌋ members, or one more if r < n mod g;
//! the first ⌊n/g⌋ are rotated by an amount drawn once. The permutation then lays the classes one behind the other, so
//! neighbouring ranks land ⌊n/g⌋ places apart.

use ashlar_bench::Random;

const CLASSES: u64 = 1024;

/// A permutation of the numbers below `n`.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    /// The rotation of each class.
    turns: Vec<u64>,
}

impl Permutation {
    /// The permutation of `seed` for the numbers below `n`, which is at least 1.
    pub fn new(n: u64, seed: u64) -> Permutation {
        let classes = CLASSES.min(n.max(1));
        let whole = n / classes;
        let mut random = Random::new(seed, 0);
        Permutation { n, turns: (0..classes).map(|_| random.below(whole)).collect() }
    }

    fn classes(&self) -> u64 {
        self.turns.len() as u64
    }

    /// The place before all members of `class`.
    fn start(&self, class: u64) -> u64 {
        class * (self.n / self.classes()) + class.min(self.n % self.classes())
    }

    fn turn(&self, class: u64) -> u64 {
        usize::try_from(class).ok().and_then(|class| self.turns.get(class)).copied().unwrap_or(0)
    }

    /// The place of `rank`, which is below n.
    pub fn place(&self, rank: u64) -> u64 {
        let (class, member) = (rank % self.classes(), rank / self.classes());
        let whole = self.n / self.classes();
        let turned = if member < whole { (member + self.turn(class)) % whole } else { member };
        self.start(class) + turned
    }

    /// The rank at `place`, which is below n.
    pub fn rank(&self, place: u64) -> u64 {
        let (whole, more) = (self.n / self.classes(), self.n % self.classes());
        // The first `more` classes have one member more.
        let long = more * (whole + 1);
        let class = if place < long { place / (whole + 1) } else { more + (place - long) / whole.max(1) };
        let turned = place - self.start(class);
        let member = if turned < whole { (turned + whole - self.turn(class)) % whole } else { turned };
        member * self.classes() + class
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_bijection_and_its_inverse_is_right() {
        for n in [1, 2, 3, 1000, 1023, 1024, 1025, 20_000, 123_457] {
            let permutation = Permutation::new(n, 7);
            let places: BTreeSet<u64> = (0..n).map(|rank| permutation.place(rank)).collect();
            assert_eq!((places.len() as u64, places.last()), (n, Some(&(n - 1))), "{n}");
            assert!((0..n).all(|rank| permutation.rank(permutation.place(rank)) == rank), "{n}");
        }
    }

    #[test]
    fn seeds_differ_and_popular_ranks_lie_apart() {
        let places =
            |seed| (0..50).map(|rank| Permutation::new(1_000_000, seed).place(rank)).collect::<Vec<_>>();
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
        assert!(places(1).windows(2).all(|two| two[0].abs_diff(two[1]) > 3));
    }
}

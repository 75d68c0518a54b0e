//! How many links go out of each node, and how they are shared among the link types.

use super::floor;
use super::permutation::Permutation;
use super::table::Table;
use super::zipf::zeta;

/// A function of the id.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// The observed distribution, of which every degree above `cap` becomes `cap`.
    Real {
        /// The distribution.
        table: Table,
        /// The greatest degree.
        cap: u64,
    },
    /// The same degree for every node.
    Const,
    /// Small ids have more links: n over the id.
    Reciprocal,
    /// An id that is a multiple of the parameter gets that many extra links.
    Multiples,
    /// Powers with the parameter as exponent have more links, by their distance from the power before.
    PerfectSquares,
    /// Powers of the parameter have more links, by their distance from the power before.
    Exponential,
    /// Zipf-like with this shape and this mean.
    Zipf {
        /// Above 0 and below 1.
        shape: f64,
        /// Links of a node.
        mean: f64,
    },
    /// The same number for every node: a mean of a uniform distribution.
    Uniform {
        /// Links of a node.
        mean: f64,
    },
}

/// The degrees of a graph.
#[derive(Clone, Debug)]
pub struct Degrees {
    function: Function,
    /// `nlinks_config`.
    parameter: u64,
    /// `nlinks_default`.
    least: u64,
    first: u64,
    n: u64,
    types: u64,
    /// Zipf's normalising sum; 1 for other functions.
    zeta: f64,
    shuffled: Option<Permutation>,
    /// Whether to share a degree among the types as the original does, which adds links.
    as_java: bool,
}

/// What [`Degrees::new`] needs.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The function.
    pub function: Function,
    /// `nlinks_config`.
    pub parameter: u64,
    /// `nlinks_default`.
    pub least: u64,
    /// `startid1`.
    pub first: u64,
    /// Nodes.
    pub n: u64,
    /// `link_type_count`.
    pub types: u64,
    /// Reproduce the original program where it differs from its words.
    pub as_java: bool,
}

impl Degrees {
    /// The degrees of a graph; `permutation` scatters those that depend on the rank.
    pub fn new(wanted: Wanted, permutation: &Permutation) -> Degrees {
        let Wanted { function, parameter, least, first, n, types, as_java } = wanted;
        let by_rank = matches!(function, Function::Real { .. } | Function::Zipf { .. });
        let zeta = if let Function::Zipf { shape, .. } = function { zeta(n, shape) } else { 1.0 };
        let shuffled = by_rank.then(|| permutation.clone());
        Degrees { function, parameter, least, first, n, types, zeta, shuffled, as_java }
    }

    /// The links of all types of node `id`.
    pub fn total(&self, id: u64) -> u64 {
        let offset = id - self.first;
        let rank = self.shuffled.as_ref().map_or(offset, |permutation| permutation.rank(offset));
        let parameter = self.parameter.max(1);
        match &self.function {
            Function::Real { table, cap } => table.of_rank(rank, self.n).min(*cap),
            Function::Const => self.least,
            Function::Reciprocal => self.least + self.n.div_ceil(offset.max(1)),
            Function::Multiples => self.least + if id.is_multiple_of(parameter) { parameter } else { 0 },
            Function::PerfectSquares => {
                self.least + gap(id, |root| power(root, parameter), nth_root(id, parameter))
            }
            Function::Exponential => {
                self.least + gap(id, |exponent| power(parameter, exponent), log(id, parameter))
            }
            Function::Zipf { shape, mean } => {
                floor((self.n as f64 * mean / ((rank + 1) as f64).powf(*shape) / self.zeta).round())
            }
            Function::Uniform { mean } => floor(mean.round()),
        }
    }

    /// The links of the type number `place`, from 0, of node `id`.
    pub fn of_type(&self, id: u64, place: u64) -> u64 {
        let (total, types) = (self.total(id), self.types);
        let each = total / types;
        let rest = if self.as_java { total - each } else { total - types * each };
        each + u64::from(place < rest)
    }
}

/// The distance of `id` from the power before it, if `id` is the power at `place`.
fn gap(id: u64, power: impl Fn(u64) -> u64, place: u64) -> u64 {
    if power(place) == id { id - power(place.saturating_sub(1)).min(id) } else { 0 }
}

fn power(base: u64, exponent: u64) -> u64 {
    base.saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

/// The least root whose power is at least `id`.
fn nth_root(id: u64, exponent: u64) -> u64 {
    let guess = floor((id as f64).powf(1.0 / exponent as f64)).saturating_sub(1);
    (guess..).find(|root| power(*root, exponent) >= id).unwrap_or(id)
}

/// The least exponent whose power is at least `id`.
fn log(id: u64, base: u64) -> u64 {
    if base < 2 {
        return 0;
    }
    (0..64).find(|exponent| power(base, *exponent) >= id).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: Function, parameter: u64, least: u64, n: u64) -> Degrees {
        let wanted = Wanted { function, parameter, least, first: 1, n, types: 2, as_java: true };
        Degrees::new(wanted, &Permutation::new(n, 1))
    }

    /// The mean of the links that are loaded per node.
    fn loaded(degrees: &Degrees) -> f64 {
        let links = |id| (0..degrees.types).map(|place| degrees.of_type(id, place)).sum::<u64>();
        (1..=degrees.n).map(links).sum::<u64>() as f64 / degrees.n as f64
    }

    #[test]
    fn the_originals_shares_add_links() {
        let four = of(Function::Const, 0, 4, 10);
        assert_eq!((four.of_type(3, 0), four.of_type(3, 1), loaded(&four)), (3, 3, 6.0));
        let intended = Degrees { as_java: false, ..four };
        assert_eq!((intended.of_type(3, 0), intended.of_type(3, 1)), (2, 2));
        for (total, java) in [(0, 0), (1, 1), (2, 3), (3, 4), (5, 6), (6, 8), (7, 8)] {
            let degrees = of(Function::Const, 0, total, 10);
            assert_eq!(degrees.of_type(1, 0) + degrees.of_type(1, 1), java, "{total}");
        }
    }

    /// The means were calculated from the 25 points apart from this code: within a bin the degree d has the part
    /// ln(d / (d − 1)) / ln(end / begin). Ranks begin with the greatest degree, which adds half of the cap divided by n. The shares
    /// of the two types add 0.273 links. (The original's whole table has 2.90 and 4.38 for the first and the last size.)
    #[test]
    fn capped_graphs_have_the_means_of_the_table() {
        for (n, wanted) in [(20_000, 2.925), (250_000, 4.331), (1_000_000, 4.551)] {
            let cap = 961_963 * n / 10_000_000;
            let degrees = of(Function::Real { table: Table::degrees(), cap }, 0, 0, n);
            let mean = loaded(&degrees);
            assert!((mean / wanted - 1.0).abs() < 0.01, "{n}: {mean}, not {wanted}");
            let plain = (1..=n).map(|id| degrees.total(id)).sum::<u64>() as f64 / n as f64;
            assert!((mean - plain - 0.274).abs() < 0.004, "{n}: {mean} {plain}");
        }
    }

    #[test]
    fn ids_have_the_degrees_of_their_ranks() {
        let degrees = of(Function::Real { table: Table::degrees(), cap: u64::MAX }, 0, 0, 5000);
        let mut all: Vec<u64> = (1..=5000).map(|id| degrees.total(id)).collect();
        assert!(all.windows(2).any(|two| two[0] < two[1]), "scattered");
        all.sort_unstable_by(|a, b| b.cmp(a));
        let wanted: Vec<u64> = (0..5000).map(|rank| Table::degrees().of_rank(rank, 5000)).collect();
        assert_eq!(all, wanted);
    }

    #[test]
    fn functions_of_the_id() {
        let total = |function, parameter, id| of(function, parameter, 1, 100).total(id);
        assert_eq!([2, 11].map(|id| total(Function::Reciprocal, 0, id)), [101, 11]);
        assert_eq!([10, 11].map(|id| total(Function::Multiples, 5, id)), [6, 1]);
        assert_eq!([16, 17, 1].map(|id| total(Function::PerfectSquares, 2, id)), [1 + 7, 1, 2]);
        assert_eq!([8, 9, 64].map(|id| total(Function::Exponential, 2, id)), [1 + 4, 1, 1 + 32]);
        let zipf = of(Function::Zipf { shape: 0.5, mean: 3.0 }, 0, 0, 10_000);
        let mean = (1..=10_000).map(|id| zipf.total(id)).sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 3.0).abs() < 0.1, "{mean}");
        assert_eq!(total(Function::Uniform { mean: 2.6 }, 0, 9), 3);
    }
}

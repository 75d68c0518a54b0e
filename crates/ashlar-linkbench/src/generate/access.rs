//! Which id an operation takes: Zipf-like ranks scattered over the ids, uniform, observed, or a function of the original.

use super::floor;
use super::permutation::Permutation;
use super::table::Table;
use super::zipf::Zipf;
use ashlar_bench::Random;
use std::sync::Arc;

/// A function of the original, by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// Zipf-like with this shape, scattered.
    Zipf {
        /// Above 0 and below 1.
        shape: f64,
    },
    /// Every id alike, scattered.
    Uniform,
    /// In proportion to the observed counts.
    Real(Table),
    /// One id after the other.
    RoundRobin,
    /// n over a uniform number.
    Reciprocal,
    /// Multiples of the parameter.
    Multiple(u64),
    /// Powers of the parameter.
    Power(u64),
    /// Powers with the parameter as exponent.
    PerfectPower(u64),
}

/// Cumulative weights. Each entry has the end of a run of ranks and the sum of all weights before that end.
#[derive(Clone, Debug)]
struct Weights {
    sums: Vec<(u64, f64)>,
}

/// Ranks are grouped into about so many runs; a run has the weight of its first rank.
const STEPS: u64 = 100_000;

impl Weights {
    fn new(table: &Table, n: u64) -> Weights {
        let step = (n / STEPS).max(1);
        let (mut sums, mut sum, mut rank) = (Vec::new(), 0.0, 0);
        while rank < n {
            let many = step.min(n - rank);
            sum += table.of_rank(rank, n) as f64 * many as f64;
            rank += many;
            sums.push((rank, sum));
        }
        Weights { sums }
    }

    fn next(&self, random: &mut Random) -> u64 {
        let Some((_, all)) = self.sums.last() else { return 0 };
        let drawn = random.unit() * all;
        let place = self.sums.partition_point(|(_, sum)| *sum <= drawn).min(self.sums.len() - 1);
        let from = place.checked_sub(1).map_or(0, |before| self.sums[before].0);
        from + random.below(self.sums[place].0 - from)
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Zipf(Zipf),
    Uniform,
    Weights(Arc<Weights>),
    Arithmetic(Function),
}

/// A source of ids. Clones draw independently; [`Function::RoundRobin`] begins again in each clone.
#[derive(Clone, Debug)]
pub struct Source {
    kind: Kind,
    first: u64,
    n: u64,
    scattered: Arc<Permutation>,
    last: Option<u64>,
}

impl Source {
    /// Ids from `first` on, `n` of them.
    pub fn new(function: &Function, first: u64, n: u64, scattered: &Arc<Permutation>) -> Source {
        let kind = match function {
            Function::Zipf { shape } => Kind::Zipf(Zipf::new(n, *shape)),
            Function::Uniform => Kind::Uniform,
            Function::Real(table) => Kind::Weights(Arc::new(Weights::new(table, n))),
            other => Kind::Arithmetic(other.clone()),
        };
        Source { kind, first, n, scattered: Arc::clone(scattered), last: None }
    }

    /// The next id.
    pub fn next(&mut self, random: &mut Random) -> u64 {
        let place = match &self.kind {
            Kind::Zipf(zipf) => self.scattered.place(zipf.next(random)),
            Kind::Uniform => self.scattered.place(random.below(self.n)),
            Kind::Weights(weights) => self.scattered.place(weights.next(random)),
            Kind::Arithmetic(function) => return self.computed(&function.clone(), random),
        };
        self.first + place
    }

    fn computed(&mut self, function: &Function, random: &mut Random) -> u64 {
        let drawn = self.first + random.below(self.n);
        let end = self.first + self.n;
        let id = match function {
            Function::RoundRobin => self.last.map_or(self.first, |last| last + 1),
            Function::Reciprocal => self.n.div_ceil(drawn.max(1)),
            Function::Multiple(of) => drawn / of * of,
            Function::Power(of) => {
                let exponent = (drawn.max(1) as f64).log((*of).max(2) as f64).ceil();
                floor(((*of).max(2) as f64).powf(exponent))
            }
            Function::PerfectPower(exponent) => {
                let exponent = (*exponent).max(1) as f64;
                floor((drawn as f64).powf(1.0 / exponent).ceil().powf(exponent))
            }
            _ => drawn,
        };
        let id = match function {
            Function::RoundRobin if id >= end => self.first,
            _ => id.clamp(self.first, end - 1),
        };
        self.last = Some(id);
        id
    }
}

/// Two sources, the second of which gives a part of the ids.
#[derive(Clone, Debug)]
pub struct Blend {
    /// With the permutation of the degrees.
    pub correlated: Source,
    /// With another permutation.
    pub uncorrelated: Option<Source>,
    /// The percentage of the second.
    pub percent: f64,
}

impl Blend {
    /// The next id.
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.uncorrelated {
            Some(second) if random.unit() * 100.0 < self.percent => second.next(random),
            _ => self.correlated.next(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const N: u64 = 10_000;

    fn drawn(function: &Function, draws: u32) -> BTreeMap<u64, u32> {
        let mut source = Source::new(function, 1, N, &Arc::new(Permutation::new(N, 9)));
        let mut random = Random::new(2, 0);
        let mut counts = BTreeMap::new();
        (0..draws).for_each(|_| *counts.entry(source.next(&mut random)).or_default() += 1);
        assert!(counts.keys().all(|id| (1..=N).contains(id)), "{function:?}");
        counts
    }

    #[test]
    fn the_most_popular_id_is_that_of_rank_zero() {
        let counts = drawn(&Function::Zipf { shape: 0.8 }, 200_000);
        let (most, _) = counts.iter().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(*most, 1 + Permutation::new(N, 9).place(0));
        let uniform = drawn(&Function::Uniform, 200_000);
        assert!(uniform.len() > 9990 && *uniform.values().max().unwrap() < 60);
    }

    #[test]
    fn observed_counts_are_weights() {
        let table = Table::degrees();
        let counts = drawn(&Function::Real(table.clone()), 200_000);
        let all: u64 = (0..N).map(|rank| table.of_rank(rank, N)).sum();
        let permutation = Permutation::new(N, 9);
        for rank in [0, 1, 3] {
            let wanted = table.of_rank(rank, N) as f64 / all as f64;
            let got = f64::from(counts[&(1 + permutation.place(rank))]) / 2e5;
            assert!((got - wanted).abs() < 5.0 * (wanted / 2e5).sqrt(), "{rank}: {got} {wanted}");
        }
        let never = 1 + permutation.place(N - 1);
        assert!(!counts.contains_key(&never), "no observed access");
    }

    #[test]
    fn functions_of_the_original() {
        assert_eq!(
            drawn(&Function::RoundRobin, 20_000).values().filter(|count| **count == 2).count() as u64,
            N
        );
        assert!(drawn(&Function::Multiple(10), 1000).keys().all(|id| id.is_multiple_of(10) || *id == 1));
        assert!(drawn(&Function::Power(2), 1000).keys().all(|id| id.is_power_of_two() || *id == N));
        let square = |id: &u64| id.isqrt().pow(2) == *id;
        assert!(drawn(&Function::PerfectPower(2), 1000).keys().all(square));
        assert!(drawn(&Function::Reciprocal, 1000)[&2] > 400);
    }

    #[test]
    fn a_blend_takes_its_part_of_the_second() {
        // So many that the two permutations have different places for the first rank.
        const MANY: u64 = 1_000_000;
        let zipf = Function::Zipf { shape: 0.9 };
        let of = |seed| Source::new(&zipf, 1, MANY, &Arc::new(Permutation::new(MANY, seed)));
        let mut blend = Blend { correlated: of(1), uncorrelated: Some(of(2)), percent: 95.0 };
        let mut random = Random::new(8, 0);
        let ids: Vec<u64> = (0..100_000).map(|_| blend.next(&mut random)).collect();
        let hot = |seed| {
            let id = 1 + Permutation::new(MANY, seed).place(0);
            ids.iter().filter(|drawn| **drawn == id).count() as f64
        };
        assert!((hot(2) / hot(1) - 19.0).abs() < 6.0, "{} {}", hot(2), hot(1));
    }
}

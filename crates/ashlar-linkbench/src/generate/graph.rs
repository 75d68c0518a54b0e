//! The generators of one configuration together: degrees, other ends of links, and the sources of ids.
//!
//! The three permutations have seeds of their own: A for degrees and correlated links, B for uncorrelated links, C for nodes.

use super::access::{Blend, Function, Source};
use super::degree::{Degrees, Wanted};
use super::permutation::Permutation;
use crate::config::Config;
use crate::model::{FIRST_LINK_TYPE, Fan};
use ashlar_bench::Random;
use std::sync::Arc;

const DEGREES_SEED: u64 = 0x000a;
const UNCORRELATED_SEED: u64 = 0x000b;
const NODES_SEED: u64 = 0x000c;

/// Draws of one end before it may be one that was drawn before.
const TRIES: u32 = 100;

/// Generators that threads share or copy.
#[derive(Clone, Debug)]
pub struct Generators {
    /// Links out of each node.
    pub degrees: Arc<Degrees>,
    /// Nodes whose links are read.
    pub link_reads: Blend,
    /// Nodes whose links are written.
    pub link_writes: Blend,
    /// Nodes to read, rewrite and remove.
    pub nodes: [Source; 3],
    random_id2: u64,
    /// How many requesters have ends of their own; 0: all ends are for all.
    owners: u64,
}

impl Generators {
    /// The generators of `config`.
    pub fn new(config: &Config) -> Generators {
        let (first, n, graph) = (config.graph.first, config.ids(), &config.graph);
        let permutation = |seed| Arc::new(Permutation::new(n, seed));
        let [a, b, c] = [DEGREES_SEED, UNCORRELATED_SEED, NODES_SEED].map(permutation);
        let blend = |(function, other): &(Function, Option<(Function, f64)>)| Blend {
            correlated: Source::new(function, first, n, &a),
            uncorrelated: other.as_ref().map(|(function, _)| Source::new(function, first, n, &b)),
            percent: other.as_ref().map_or(0.0, |(_, percent)| *percent),
        };
        let wanted = Wanted {
            function: graph.degree.clone(),
            parameter: graph.parameter,
            least: graph.least,
            first,
            n,
            types: graph.types,
            as_java: config.as_java,
        };
        Generators {
            degrees: Arc::new(Degrees::new(wanted, &a)),
            link_reads: blend(&config.access.reads),
            link_writes: blend(&config.access.writes),
            nodes: config.access.nodes.clone().map(|function| Source::new(&function, first, n, &c)),
            random_id2: graph.random_id2,
            owners: if config.own_ends { config.requesters.into() } else { 0 },
        }
    }

    /// The fan of the type number `place`.
    pub fn fan(&self, id1: u64, place: u64) -> Fan {
        Fan { id1, link_type: FIRST_LINK_TYPE + place }
    }

    /// The other end of the loaded link number `place` of a node.
    pub fn loaded_end(&self, id1: u64, place: u64, random: &mut Random) -> u64 {
        if self.random_id2 == 0 { id1 + place } else { random.below(self.random_id2) }
    }

    /// From how many ends an operation draws, so that its link exists with probability `exists`.
    fn range(&self, fan: Fan, exists: f64) -> u64 {
        let links = self.degrees.of_type(fan.id1, fan.link_type - FIRST_LINK_TYPE);
        super::floor((links as f64 / exists).ceil()).max(1)
    }

    /// The other end of a link that exists with probability `exists`, for requester number `own`.
    pub fn end(&self, fan: Fan, exists: f64, own: u64, random: &mut Random) -> u64 {
        self.drawn(fan, self.range(fan, exists), own, random)
    }

    fn drawn(&self, fan: Fan, range: u64, own: u64, random: &mut Random) -> u64 {
        let end =
            if self.random_id2 == 0 { fan.id1 + random.below(range) } else { random.below(self.random_id2) };
        self.owned(end, own)
    }

    fn owned(&self, end: u64, own: u64) -> u64 {
        if self.owners == 0 { end } else { end - end % self.owners + own }
    }

    /// Several ends, different as far as there are enough, half of which exist.
    pub fn ends(&self, fan: Fan, many: u64, own: u64, random: &mut Random, into: &mut Vec<u64>) {
        into.clear();
        let range = self.range(fan, 0.5);
        if range <= many && self.random_id2 == 0 {
            into.extend((0..many).map(|place| self.owned(fan.id1 + place, own)));
            return;
        }
        for _ in 0..many {
            let mut tries = 0..TRIES;
            let end = loop {
                let end = self.drawn(fan, range, own, random);
                if !into.contains(&end) || tries.next().is_none() {
                    break end;
                }
            };
            into.push(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generators(overrides: &[&str]) -> Generators {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Generators::new(&Config::builtin(&overrides, true).unwrap())
    }

    /// Else the most read links would be those of the node with the most links.
    #[test]
    fn the_permutations_of_every_size_differ_in_their_first_ranks() {
        for n in [20_000, 250_000, 1_000_000, 10_000_000] {
            let first = |seed| (0..3).map(|rank| Permutation::new(n, seed).place(rank)).collect::<Vec<_>>();
            let [a, b, c] = [DEGREES_SEED, UNCORRELATED_SEED, NODES_SEED].map(first);
            assert!(
                a.iter().zip(&b).zip(&c).all(|((a, b), c)| a != b && b != c && a != c),
                "{n}: {a:?} {b:?} {c:?}"
            );
        }
    }

    #[test]
    fn ends_exist_as_often_as_asked() {
        let all = generators(&["maxid1=1001", "nlinks_func=CONST", "nlinks_default=19", "link_type_count=1"]);
        let mut random = Random::new(1, 0);
        let fan = all.fan(7, 0);
        for exists in [0.05, 0.5, 0.9] {
            let hits =
                (0..20_000).filter(|_| all.end(fan, exists, 0, &mut random) < 7 + 19).count() as f64 / 2e4;
            assert!((hits - exists).abs() < 0.06, "{exists}: {hits}");
        }
        let mut ends = Vec::new();
        all.ends(fan, 10, 0, &mut random, &mut ends);
        let different: std::collections::BTreeSet<u64> = ends.iter().copied().collect();
        assert_eq!((different.len(), ends.len()), (10, 10));
        all.ends(fan, 50, 0, &mut random, &mut ends);
        assert_eq!(ends, (7..57).collect::<Vec<_>>(), "fewer ends than asked for");
    }

    #[test]
    fn requesters_have_ends_of_their_own_if_asked() {
        let all = generators(&["maxid1=1001", "id2gen_config=1", "requesters=4"]);
        let mut random = Random::new(1, 0);
        assert!((0..100).all(|id| all.end(all.fan(1 + id, 1), 0.05, 3, &mut random) % 4 == 3));
    }
}

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

/// Redraws before a repeated id2 is accepted.
const TRIES: u32 = 100;

/// A requester, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The requester's number, from 0.
    pub number: u64,
    /// Requesters of the row.
    pub of: u64,
}

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
    /// Whether each requester has other ends of its own.
    own_ends: bool,
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
            own_ends: config.own_ends,
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

    /// The links that the load gives a node and type.
    pub fn loaded_links(&self, fan: Fan) -> u64 {
        self.degrees.of_type(fan.id1, fan.link_type - FIRST_LINK_TYPE)
    }

    /// From how many ends an operation draws, so that its link exists with probability `exists`.
    fn range(&self, fan: Fan, exists: f64) -> u64 {
        super::floor((self.loaded_links(fan) as f64 / exists).ceil()).max(1)
    }

    /// The other end of a link that exists with probability `exists`, for the requester `owner`.
    pub fn end(&self, fan: Fan, exists: f64, owner: Owner, random: &mut Random) -> u64 {
        self.drawn(fan, self.range(fan, exists), owner, random)
    }

    fn drawn(&self, fan: Fan, range: u64, owner: Owner, random: &mut Random) -> u64 {
        let end =
            if self.random_id2 == 0 { fan.id1 + random.below(range) } else { random.below(self.random_id2) };
        self.owned(end, owner)
    }

    fn owned(&self, end: u64, owner: Owner) -> u64 {
        if self.own_ends { end - end % owner.of + owner.number } else { end }
    }

    /// Several ends, different as far as there are enough, half of which exist.
    pub fn ends(&self, fan: Fan, many: u64, owner: Owner, random: &mut Random, into: &mut Vec<u64>) {
        into.clear();
        let range = self.range(fan, 0.5);
        if range <= many && self.random_id2 == 0 {
            into.extend((0..many).map(|place| self.owned(fan.id1 + place, owner)));
            return;
        }
        for _ in 0..many {
            let mut tries = 0..TRIES;
            let end = loop {
                let end = self.drawn(fan, range, owner, random);
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

    const ONE: Owner = Owner { number: 0, of: 1 };

    fn generators(overrides: &[&str]) -> Generators {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Generators::new(&Config::builtin(&overrides, true).unwrap())
    }

    /// If two permutations began alike, the most read node would also have the most links.
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
                (0..20_000).filter(|_| all.end(fan, exists, ONE, &mut random) < 7 + 19).count() as f64 / 2e4;
            assert!((hits - exists).abs() < 0.06, "{exists}: {hits}");
        }
        let mut ends = Vec::new();
        all.ends(fan, 10, ONE, &mut random, &mut ends);
        let different: std::collections::BTreeSet<u64> = ends.iter().copied().collect();
        assert_eq!((different.len(), ends.len()), (10, 10));
        all.ends(fan, 50, ONE, &mut random, &mut ends);
        assert_eq!(ends, (7..57).collect::<Vec<_>>(), "fewer ends than asked for");
    }

    #[test]
    fn requesters_have_ends_of_their_own_if_asked() {
        // The configuration has one requester, as that of every size; the rows have others.
        let all = generators(&["maxid1=1001", "id2gen_config=1"]);
        let mut random = Random::new(1, 0);
        for of in [1, 4, 16] {
            let owner = Owner { number: of - 1, of };
            let mut end = |id: u64| all.end(all.fan(1 + id, 1), 0.05, owner, &mut random);
            assert!((0..100).all(|id| end(id) % of == of - 1), "{of}");
        }
    }
}

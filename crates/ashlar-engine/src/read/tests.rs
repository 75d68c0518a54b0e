//! Point reads against the model that the cursors are tested with.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use super::get;
use crate::iter::tests::{Family, Random, orders};
use crate::options::ReadOptions;
use ashlar_base::{LookupKey, SeqNum};
use std::collections::BTreeMap;

#[test]
fn gets_find_what_the_model_has() {
    for (seed, order) in (1..4).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let mut family = Family::new(order);
        let from = family.spread(&mut random);
        for _ in 0..30 {
            let seq = SeqNum::new(random.below(family.history.len() + 2) as u64).unwrap();
            let want: BTreeMap<_, _> = family.seen(seq).into_iter().collect();
            let keys: Vec<_> = family.history.iter().map(|e| e.key.clone()).chain([random.key()]).collect();
            for key in keys {
                let got = get(&from, &LookupKey::new(&key, seq), &ReadOptions::default()).unwrap();
                assert_eq!(
                    got.as_deref(),
                    want.get(&key).map(Vec::as_slice),
                    "{} at {seq}",
                    key.escape_ascii()
                );
            }
        }
    }
}

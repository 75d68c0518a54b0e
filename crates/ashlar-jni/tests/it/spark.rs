//! Spark's kvstore and its streaming queries over both native halves.

use crate::engine::Engine;
use std::collections::HashSet;

const RECORDS: u64 = 1000;
const FILES: u64 = 4;

/// The key and the amount of a record, as `Streaming.java` draws them.
fn drawn(id: u64) -> (u64, u64) {
    let mut mixed = (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let drawn = (mixed ^ (mixed >> 31)) >> 1;
    (drawn % (RECORDS / FILES / 4), drawn / 1000 % 5)
}

/// How many rows queries emit: a row for each key of each file, and a row for each pair of key and amount.
fn rows() -> (usize, usize) {
    let each: HashSet<_> = (0..RECORDS).map(|id| (id / (RECORDS / FILES), drawn(id).0)).collect();
    let pairs: HashSet<_> = (0..RECORDS).map(drawn).collect();
    (each.len(), pairs.len())
}

#[test]
fn spark_says_the_same_over_both_halves() {
    let said = match Engine::build("spark") {
        Ok(spark) => spark.both_say_the_same(&[&RECORDS.to_string(), "short"]),
        Err(skip) => return skip.announce("spark_says_the_same_over_both_halves"),
    };
    let (each, pairs) = rows();
    // Of 1,000 tasks 143 are deleted, the first one is task 1, then each seventh.
    for (start, wanted) in [
        ("kvstore count: ", "857, ".to_owned()),
        ("kvstore all: ", "857, ".to_owned()),
        ("kvstore again: ", "run, 857 tasks".to_owned()),
        ("aggregation with changelogs: ", format!("rows {each}, ")),
        ("processor with changelogs: ", format!("rows {each}, ")),
        ("dedup with changelogs: ", format!("rows {pairs}, ")),
    ] {
        let line = said.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
        assert!(line.contains(&wanted), "{start}{line} lacks {wanted}");
    }
    assert_eq!(said.lines().count(), 28, "{said}");
}

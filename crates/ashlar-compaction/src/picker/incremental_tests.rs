//! Windows of random runs: each takes what it must and no more than it may, and windows after one another empty the run.

use super::incremental::pick_window;
use super::shape::bytes;
use super::tests::{MIB, Tree, options, tree};
use crate::plan::{UserRange, user_range};
use ashlar_testkit::Rng;
use ashlar_tree::version::FileMeta;
use std::fmt::Write as _;
use std::sync::Arc;

/// A run of up to `most` files, in the format of the scripts. Neighbours may share a user key.
fn run(rng: &mut Rng, (level, first): (usize, usize), most: usize) -> String {
    let (mut text, mut key) = (format!("L{level}"), rng.below(40));
    for number in first..=first + rng.below(most) {
        let last = key + rng.below(60);
        write!(text, " {number}:{key:05}-{last:05}*{}", 1 + rng.below(12)).unwrap();
        let shares = last > key && rng.percent(20);
        key = if shares { last } else { last + 1 + rng.below(30) };
    }
    text + "\n"
}

fn share_a_key(t: &Tree, a: &[Arc<FileMeta>], b: &[Arc<FileMeta>]) -> bool {
    let meets = |a: &FileMeta, b: &FileMeta| UserRange::of(a).meets(&t.order, &UserRange::of(b));
    a.iter().any(|a| b.iter().any(|b| meets(a, b)))
}

/// Applies the next window as if its result were one file with the range of the inputs.
fn step(t: &mut Tree, seed: u64, next: u64) {
    let plan =
        pick_window(&t.shape(), &options(), &[], (5, 6)).unwrap_or_else(|| panic!("seed {seed}: nothing"));
    let numbers: Vec<_> = plan.files().map(|(_, file)| file.number()).collect();
    let taken = |file: &Arc<FileMeta>| numbers.contains(&file.number());
    let (upper, kept): (Vec<_>, Vec<_>) = t.levels[5].iter().cloned().partition(taken);
    let (lower, left): (Vec<_>, Vec<_>) = t.levels[6].iter().cloned().partition(taken);
    assert_eq!(upper.len() + lower.len(), numbers.len(), "seed {seed}");
    assert!(!upper.is_empty(), "seed {seed}: {plan}");
    assert!(!share_a_key(t, &upper, &kept), "seed {seed}: {plan}");
    assert!(!share_a_key(t, &lower, &left), "seed {seed}: {plan}");
    let range = user_range(&t.order, upper.iter()).unwrap();
    let within = |file: &Arc<FileMeta>| range.meets(&t.order, &UserRange::of(file));
    assert!(!left.iter().any(within) && !kept.iter().any(within), "seed {seed}: {plan}");
    let is_group = upper.windows(2).all(|pair| share_a_key(t, &pair[..1], &pair[1..]));
    let all = bytes(&upper) + bytes(&lower);
    assert!(all <= 100 * MIB || is_group, "seed {seed}: {plan}: {} MiB", all / MIB);
    let range = user_range(&t.order, upper.iter().chain(&lower)).unwrap();
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    let merged = format!("L6 {next}:{}-{}*{}", text(range.smallest), text(range.largest), all / MIB);
    let merged = tree(&merged).levels[6].clone();
    let begins = |file: &Arc<FileMeta>| file.smallest().user_key().to_vec();
    t.levels[5] = kept;
    t.levels[6] = left.into_iter().chain(merged).collect();
    t.levels[6].sort_by_key(begins);
}

#[test]
fn windows_are_whole_and_empty_the_run() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut t = tree(&(run(&mut rng, (5, 100), 20) + &run(&mut rng, (6, 200), 40)));
        let most = t.levels[5].len();
        for next in 0..most {
            if !t.levels[5].is_empty() {
                step(&mut t, seed, 1000 + next as u64);
            }
        }
        assert!(t.levels[5].is_empty(), "seed {seed}");
    }
}

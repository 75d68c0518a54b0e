//! The loop: draw an input, damage it, hand it to the decoder, watch.

use super::Mutator;
use crate::rng::Rng;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// First seed; round `n` uses `seed + n`, so that one number replays one input.
    pub seed: u64,
    /// At most so many rounds.
    pub rounds: u64,
    /// At most so long.
    pub time: Duration,
    /// A single input that takes longer is a finding.
    pub slowest: Duration,
}

impl Limits {
    /// `rounds` rounds from `seed`, no matter how long; an input may take a second.
    pub fn rounds(seed: u64, rounds: u64) -> Limits {
        Limits { seed, rounds, time: Duration::MAX, slowest: Duration::from_secs(1) }
    }
}

/// What was done when nothing was found.
#[derive(Clone, Copy, Debug)]
pub struct Explored {
    /// Inputs tried.
    pub rounds: u64,
    /// Slowest of them.
    pub slowest: Duration,
}

/// An input that a decoder did not survive.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Seed of the round: with the same corpus it makes the same input again.
    pub seed: u64,
    /// The input itself.
    pub input: Vec<u8>,
    /// The panic's text, or how long it took.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {} ({} bytes)", self.seed, self.what, self.input.len())
    }
}

impl std::error::Error for Finding {}

/// Damages inputs from `corpus`, repairs their checksums with `fix`, and hands them to `decode`, which may refuse but
/// must return.
///
/// # Errors
/// The first input that panics or is too slow.
pub fn explore(
    corpus: &[Vec<u8>],
    limits: Limits,
    fix: fn(&mut [u8]),
    decode: impl Fn(&[u8]),
) -> Result<Explored, Box<Finding>> {
    let start = Instant::now();
    let mut done = Explored { rounds: 0, slowest: Duration::ZERO };
    while done.rounds < limits.rounds && start.elapsed() < limits.time {
        let seed = limits.seed.wrapping_add(done.rounds);
        let input = input(corpus, seed, fix);
        let before = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| decode(&input)));
        let took = before.elapsed();
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            let what = format!("panicked: {}", text.unwrap_or_default());
            return Err(Box::new(Finding { seed, input, what }));
        }
        if took > limits.slowest {
            return Err(Box::new(Finding { seed, input, what: format!("took {took:?}") }));
        }
        done.slowest = done.slowest.max(took);
        done.rounds += 1;
    }
    Ok(done)
}

fn input(corpus: &[Vec<u8>], seed: u64, fix: fn(&mut [u8])) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut data = rng.pick(corpus).cloned().unwrap_or_default();
    let donor = rng.pick(corpus).cloned().unwrap_or_default();
    Mutator::new(rng.next_u64()).damage(&mut data, &donor);
    // One in four keeps its broken checksums: refusing them must work as well.
    if rng.below(4) != 0 {
        fix(&mut data);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::super::fix_nothing;
    use super::*;

    #[test]
    fn finds_a_planted_panic_and_replays_it() {
        let corpus = [vec![1, 2, 3, 4, 5, 6, 7, 8]];
        let decode = |input: &[u8]| assert!(input.first() != Some(&0xff), "planted");
        let finding = explore(&corpus, Limits::rounds(0, 100_000), fix_nothing, decode).unwrap_err();
        assert!(finding.what.contains("planted"), "{finding}");
        let again = explore(&corpus, Limits::rounds(finding.seed, 1), fix_nothing, decode).unwrap_err();
        assert_eq!(again.input, finding.input);
    }

    #[test]
    fn slow_inputs_are_findings_and_good_decoders_pass() {
        let limits = Limits { slowest: Duration::ZERO, ..Limits::rounds(0, 10) };
        assert!(explore(&[vec![1]], limits, fix_nothing, |_| ()).is_err());
        let done = explore(&[vec![1], vec![]], Limits::rounds(0, 1000), fix_nothing, |_| ()).unwrap();
        assert_eq!(done.rounds, 1000);
    }
}

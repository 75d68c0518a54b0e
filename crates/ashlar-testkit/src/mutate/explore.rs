//! The loop: draw an input, damage it, hand it to the decoder, watch.

use super::Mutator;
use crate::heap::peak_of;
use crate::rng::Rng;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Most bytes of heap that one of them took; 0 where [`crate::heap::CountingHeap`] is not installed.
    pub heap: usize,
}

/// An input that a decoder did not survive.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Seed of the round: with the same corpus it makes the same input again.
    pub seed: u64,
    /// The input itself.
    pub input: Vec<u8>,
    /// The panic's text, how long it took, or how much memory.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {} ({} bytes)", self.seed, self.what, self.input.len())
    }
}

impl std::error::Error for Finding {}

/// Bytes of heap that an input of `len` bytes may take.
pub fn heap_allowed(len: usize) -> usize {
    (64 << 20) + 4 * len
}

/// Draws input after input and hands them to `decode`, which may refuse but must return, in time and within
/// [`heap_allowed`]. An input that does not come back within twenty times [`Limits::slowest`] ends the program: there is
/// no other way to stop it.
///
/// # Errors
/// The first input that panics, is too slow or takes too much.
pub fn explore(
    limits: Limits,
    draw: impl Fn(u64) -> Vec<u8>,
    decode: impl Fn(&[u8]),
) -> Result<Explored, Box<Finding>> {
    let watch = &Watch { round: AtomicU64::new(0), over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let patience = limits.slowest.saturating_mul(20).max(Duration::from_secs(20));
        let watcher = scope.spawn(move || watch.keep(limits.seed, patience));
        let outcome = watch.rounds(limits, draw, decode);
        watch.over.store(true, Ordering::Release);
        watcher.thread().unpark();
        outcome
    })
}

/// What the watcher sees of the loop.
struct Watch {
    round: AtomicU64,
    over: AtomicBool,
}

impl Watch {
    /// Ends the program when a round lasts longer than `patience`.
    fn keep(&self, seed: u64, patience: Duration) {
        let (mut round, mut since) = (0, Instant::now());
        while !self.over.load(Ordering::Acquire) {
            std::thread::park_timeout(Duration::from_secs(1));
            let now = self.round.load(Ordering::Acquire);
            if now != round {
                (round, since) = (now, Instant::now());
            } else if since.elapsed() > patience && !self.over.load(Ordering::Acquire) {
                eprintln!("seed {}: did not come back within {patience:?}", seed.wrapping_add(round));
                std::process::exit(101);
            }
        }
    }

    fn rounds(
        &self,
        limits: Limits,
        draw: impl Fn(u64) -> Vec<u8>,
        decode: impl Fn(&[u8]),
    ) -> Result<Explored, Box<Finding>> {
        let start = Instant::now();
        let mut done = Explored { rounds: 0, slowest: Duration::ZERO, heap: 0 };
        while done.rounds < limits.rounds && start.elapsed() < limits.time {
            let seed = limits.seed.wrapping_add(done.rounds);
            let input = draw(seed);
            let before = Instant::now();
            let (outcome, heap) = peak_of(|| catch_unwind(AssertUnwindSafe(|| decode(&input))));
            let took = before.elapsed();
            let what = if let Err(panic) = outcome {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                format!("panicked: {}", text.unwrap_or_default())
            } else if took > limits.slowest {
                format!("took {took:?}")
            } else if heap > heap_allowed(input.len()) {
                format!("took {heap} bytes of heap")
            } else {
                done.slowest = done.slowest.max(took);
                done.heap = done.heap.max(heap);
                done.rounds += 1;
                self.round.store(done.rounds, Ordering::Release);
                continue;
            };
            return Err(Box::new(Finding { seed, input, what }));
        }
        Ok(done)
    }
}

/// The input of a seed: one of the corpus, damaged, and its checksums put right with `fix`.
pub fn damaged(corpus: &[Vec<u8>], seed: u64, fix: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut data = rng.pick(corpus).cloned().unwrap_or_default();
    let donor = rng.pick(corpus).map(Vec::as_slice).unwrap_or_default();
    Mutator::new(rng.next_u64()).damage(&mut data, donor);
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
        let draw = |seed| damaged(&corpus, seed, fix_nothing);
        let decode = |input: &[u8]| assert!(input.first() != Some(&0xff), "planted");
        let finding = explore(Limits::rounds(0, 100_000), draw, decode).unwrap_err();
        assert!(finding.what.contains("planted"), "{finding}");
        let again = explore(Limits::rounds(finding.seed, 1), draw, decode).unwrap_err();
        assert_eq!(again.input, finding.input);
    }

    #[test]
    fn slow_and_greedy_inputs_are_findings_and_good_decoders_pass() {
        let limits = Limits { slowest: Duration::ZERO, ..Limits::rounds(0, 10) };
        assert!(explore(limits, |_| vec![1], |_| ()).is_err());
        let greedy = |_: &[u8]| drop(std::hint::black_box(vec![0_u8; 65 << 20]));
        let finding = explore(Limits::rounds(0, 10), |_| vec![1], greedy).unwrap_err();
        assert!(finding.what.ends_with("bytes of heap"), "{finding}");
        let corpus = [vec![1], vec![]];
        let done = explore(Limits::rounds(0, 1000), |seed| damaged(&corpus, seed, fix_nothing), |_| ());
        assert_eq!(done.unwrap().rounds, 1000);
    }
}

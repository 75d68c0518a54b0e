//! The loops around an engine: one generic function each, nothing in them but keys, values and the engine.
//!
//! What is read is summed up word by word, so that every byte is touched and engines can be held against each other.

mod beside;
mod fill;
mod read;
mod ycsb;

pub use fill::complete;
pub use read::{scan, warm};

use crate::job::{Job, Step, Workload};
use crate::peer::{Peer, Result};
use std::time::{Duration, Instant};

/// What a loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Operations.
    pub ops: u64,
    /// Of them, reads that found something.
    pub found: u64,
    /// Entries that were written, in a workload that also reads.
    pub puts: u64,
    /// Bytes of the keys and values that were written, or found.
    pub bytes: u64,
    /// Sum of the words that were read; 0 for writes.
    pub digest: u64,
    /// True when the clock ended it.
    pub cut: bool,
}

impl Done {
    #[inline]
    fn saw(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest = self.digest.wrapping_mul(3).wrapping_add(words(bytes));
    }
}

/// All of `bytes`, eight at a time.
#[inline]
pub fn words(bytes: &[u8]) -> u64 {
    let chunks = bytes.as_chunks::<8>();
    let sum = chunks.0.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    chunks.1.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

/// Streams of random numbers: one per loop, so that reads do not repeat the order of the writes.
#[derive(Clone, Copy)]
pub enum Stream {
    /// The first load.
    Load = 1,
    /// Random gets.
    Reads = 2,
    /// Random seeks.
    Seeks = 3,
    /// Overwrites.
    Again = 4,
    /// Puts at a fixed rate.
    Paced = 5,
    /// YCSB.
    Mixed = 6,
}

/// An end by the clock. It is looked at every 64 operations, so that it costs nothing.
#[derive(Clone, Copy)]
pub struct Until(Option<Instant>);

impl Until {
    /// In `seconds`; 0: never.
    pub fn new(seconds: f64) -> Until {
        Until((seconds > 0.0).then(|| Instant::now() + Duration::from_secs_f64(seconds)))
    }

    /// True when it is over; `done` counts operations.
    #[inline]
    fn over(&self, done: u64) -> bool {
        done.is_multiple_of(64) && self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// Does one step. A step that is given no time limit and the same job does the same on every engine.
pub fn run<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<Done> {
    match step.workload {
        Workload::Fillseq | Workload::Fillrandom | Workload::Overwrite => fill::put(peer, job, step),
        Workload::Readrandom if step.threads > 1 => beside::read(peer, job, step, false),
        Workload::Readwhilewriting => beside::read(peer, job, step, true),
        Workload::Readrandom => read::get(peer, job, step),
        Workload::Seekrandom => read::seek(peer, job, step),
        Workload::Readseq => scan(peer, step.ops),
        Workload::YcsbA
        | Workload::YcsbB
        | Workload::YcsbC
        | Workload::YcsbD
        | Workload::YcsbE
        | Workload::YcsbF => ycsb::mixed(peer, job, step),
        Workload::Openloop => Err("an open loop is driven by its clock".into()),
    }
}

/// Writes again what `step` wrote when it did `done`: for the oracle.
pub fn replay<P: Peer>(peer: &P, job: &Job, step: &Step, done: &Done) -> Result<()> {
    let exactly = Step { ops: done.ops, seconds: 0.0, batch: 1, ..step.clone() };
    match step.workload {
        Workload::Fillseq | Workload::Fillrandom => {
            fill::put(peer, job, &Step { ops: step.ops, ..exactly }).map(drop)
        }
        Workload::Overwrite => fill::put(peer, job, &exactly).map(drop),
        Workload::Readwhilewriting => beside::write(peer, job, |puts| puts < done.puts).map(drop),
        Workload::Openloop => crate::open_loop::replay(peer, job, done.ops),
        Workload::YcsbA | Workload::YcsbB | Workload::YcsbD | Workload::YcsbE | Workload::YcsbF => {
            ycsb::mixed(peer, job, &exactly).map(drop)
        }
        Workload::Readrandom | Workload::Seekrandom | Workload::Readseq | Workload::YcsbC => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let sum = words(b"abcdefghXY");
        assert_eq!(sum, u64::from_le_bytes(*b"abcdefgh") + u64::from(b'X') + u64::from(b'Y'));
        assert_ne!(words(&[0; 100]), words(&[[0; 50], [1; 50]].concat()));
    }

    #[test]
    fn the_clock_ends_a_loop() {
        assert!(!Until::new(0.0).over(64));
        assert!(!Until::new(1000.0).over(64));
        let over = Until::new(1e-9);
        std::thread::sleep(Duration::from_millis(1));
        assert!(over.over(128) && !over.over(127));
    }
}

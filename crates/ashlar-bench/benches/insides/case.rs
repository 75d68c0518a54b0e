//! A case: a part of the engine that is measured by itself, and what it may cost at best.

use ashlar_bench::{KeyMaker, Random, Values};
use ashlar_env::Env;
use std::path::Path;

/// Something made ready that is done again and again.
pub trait Bench {
    /// Brings what the last round left back to the beginning; not measured.
    fn fresh(&mut self) {}

    /// Does a round, and answers how many operations that was.
    fn round(&mut self) -> u64;
}

/// Where and how large.
pub struct Place<'a> {
    /// The machine's clock and files.
    pub env: &'a Env,
    /// A folder that is removed in the end.
    pub dir: &'a Path,
    /// Small enough for an emulated processor. Else large enough that what is to be cold is cold.
    pub small: bool,
}

impl Place<'_> {
    /// `large`, or a part of it where everything is to be small.
    pub fn size(&self, large: u64, small: u64) -> u64 {
        if self.small { small } else { large }
    }
}

/// Physical limit and target of an operation, in nanoseconds, as the design page on hot paths has them.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// What the machine allows at best.
    pub limit: u32,
    /// From here on the design is not reached.
    pub most: u32,
}

/// A case by name.
pub struct Case {
    pub name: &'static str,
    /// What an operation is.
    pub text: &'static str,
    pub bounds: Bounds,
    pub make: fn(&Place<'_>) -> Box<dyn Bench>,
}

/// Bytes of a key and of a value, as in every table of results.
pub const KEY: usize = 16;
pub const VALUE: usize = 100;

const SEED: u64 = 301;

/// The keys of every case.
pub fn keys() -> KeyMaker {
    KeyMaker::new(KEY)
}

/// The values of every case; a codec brings them down to half.
pub fn values() -> Values {
    Values::new(SEED, 0.5, VALUE)
}

/// A stream of random numbers, the same in every run.
pub fn random(stream: u64) -> Random {
    Random::new(SEED, stream)
}

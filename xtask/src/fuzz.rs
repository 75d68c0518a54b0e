//! `fuzz`: the decoders, for as long as one likes.

use crate::{project, run};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask fuzz [--seconds=N] [--seed=N] [TARGET …]

Damages real files (golden/ and crates/ashlar-fuzz/corpus/), puts their checksums right again in three of four cases, and
hands them to the decoders. A decoder may refuse; a panic, a wrong answer, an input that takes longer than a second or more
than 64 MiB of heap and four times its length is a finding: it is written to target/fuzz/ and named with its seed. Without
TARGET: every target in turn, N seconds each (10 by default).
  cargo xtask fuzz --list          names of the targets";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let mut words = vec!["run", "--release", "--quiet", "--package", "ashlar-fuzz", "--"];
    words.extend(args.iter().map(String::as_str));
    run::plain(&project::cargo(), &words)
}

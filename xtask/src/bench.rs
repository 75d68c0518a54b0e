//! `bench`: the product's own benchmark, built as users build it.

use crate::{project, run};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask bench [FLAGS OF ashlar bench]

Without flags: the baseline, one million entries of 16 + 100 bytes through the usual list of workloads, on a fresh temporary
database. With flags: handed on as they are, for instance
  cargo xtask bench --benchmarks=fillrandom,readrandom --num=100000 --db=DIR
  cargo xtask bench --help-all     (ashlar bench's own help)";

const BASELINE: [&str; 3] = [
    "--benchmarks=fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,readmissing,seekrandom,readwhilewriting,stats",
    "--num=1000000",
    "--value_size=100",
];

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let mut words = vec!["run", "--release", "--quiet", "--package", "ashlar-cli", "--", "bench"];
    match args {
        [] => words.extend(BASELINE),
        [all] if all == "--help-all" => words.push("--help"),
        given => words.extend(given.iter().map(String::as_str)),
    }
    run::plain(&project::cargo(), &words)
}

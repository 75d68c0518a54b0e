//! `bench`: the insides by name, or the product's own benchmark, built as users build it.

use crate::{project, run};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask bench                  the names of the micro-benchmarks of the insides
       cargo xtask bench NAME... | all    nanoseconds, instructions, locked instructions and page faults of an operation, beside
                                          the physical limit
       cargo xtask bench --counts         compares the instructions of all with crates/ashlar-bench/benches/instructions.txt
                                          (as cargo xtask test does); REWRITE=1 writes them anew
       cargo xtask bench baseline         the product's benchmark: one million entries of 16 + 100 bytes through the usual list
                                          of workloads, on a fresh temporary database
       cargo xtask bench FLAGS            the same with the flags of ashlar bench, for instance
                                          --benchmarks=fillrandom,readrandom --num=100000 --db=DIR
       cargo xtask bench --help-all       ashlar bench's own help

Instructions are counted by valgrind (apt-get install valgrind), because virtual machines often have no counters of their own.";

const BASELINE: [&str; 3] = [
    "--benchmarks=fillseq,fillrandom,overwrite,readrandom,readseq,readreverse,readmissing,seekrandom,readwhilewriting,stats",
    "--num=1000000",
    "--value_size=100",
];

/// The command of the micro-benchmarks, built as the product is. The program's own arguments follow.
pub const INSIDES: [&str; 7] = ["bench", "--quiet", "--package", "ashlar-bench", "--bench", "insides", "--"];

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    const PRODUCT: [&str; 7] = ["run", "--release", "--quiet", "--package", "ashlar-cli", "--", "bench"];
    let given: Vec<&str> = args.iter().map(String::as_str).collect();
    let words = match given.as_slice() {
        ["baseline"] => [&PRODUCT[..], &BASELINE].concat(),
        ["--help-all"] => [&PRODUCT[..], &["--help"]].concat(),
        ["--counts"] => [&INSIDES[..], &given].concat(),
        [first, ..] if first.starts_with('-') => [&PRODUCT[..], &given].concat(),
        _ => [&INSIDES[..], &given].concat(),
    };
    run::plain(&project::cargo(), &words)
}

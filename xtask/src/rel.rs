//! `rel`: the reliability rigs.

use crate::{project, run};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask rel SUITE [--seed=N] [--time=10m] [--replay=CASE] [--json=FILE]
       cargo xtask rel report FILE …

Builds the program rel optimised, with all checks on, and runs one suite of it; its quick form without --time, which is what
cargo xtask test runs too. What it finds it prints with the words that --replay takes.
  cargo xtask rel help         names of the suites";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let cargo = project::cargo();
    let heavy = ["--profile", "heavy", "--quiet", "--package"];
    if args.first().is_some_and(|suite| suite == "fuzz") {
        run::plain(&cargo, &[&["build"], &heavy[..], &["ashlar-fuzz"]].concat())?;
    }
    let mut words = [&["run"], &heavy[..], &["ashlar-stress", "--bin", "rel"]].concat();
    if args.first().is_some_and(|suite| suite == "bugs") {
        words.extend(["--features", "planted"]);
    }
    words.push("--");
    words.extend(args.iter().map(String::as_str));
    run::plain(&cargo, &words)
}

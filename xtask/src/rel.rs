//! `rel`: the reliability rigs.

use crate::{project, run};
use std::process::Command;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask rel SUITE [--seed=N] [--time=10m] [--replay=CASE] [--json=FILE]
       cargo xtask rel report FILE …

Builds the program rel optimised, with all checks on, and runs one suite of it; its quick form without --time, which is what
cargo xtask test runs too. What it finds it prints with the words that --replay takes.
  cargo xtask rel help         names of the suites

The suite shuttle runs whole engines under a scheduler, which stands under all their locks, signals and atomics: a build of
its own, in target/shuttle, with --cfg shuttle. It takes about two minutes the first time.";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let cargo = project::cargo();
    let heavy = ["--profile", "heavy", "--quiet", "--package"];
    match args.first().map(String::as_str) {
        Some("shuttle") => return under_the_scheduler(args),
        Some("fuzz") => run::plain(&cargo, &[&["build"], &heavy[..], &["ashlar-fuzz"]].concat())?,
        _ => {}
    }
    let mut words = [&["run"], &heavy[..], &["ashlar-stress", "--bin", "rel"]].concat();
    if args.first().is_some_and(|suite| suite == "bugs") {
        words.extend(["--features", "planted"]);
    }
    words.push("--");
    words.extend(args.iter().map(String::as_str));
    run::plain(&cargo, &words)
}

fn under_the_scheduler(args: &[String]) -> Result<(), String> {
    let mut command = Command::new(project::cargo());
    command.args(["run", "--quiet", "--package", "ashlar-stress", "--bin", "rel"]);
    scheduled(&mut command).arg("--").args(args).current_dir(project::root());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rel shuttle: {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

/// Lets a command of cargo build with the scheduler under all that threads meet in.
pub fn scheduled(command: &mut Command) -> &mut Command {
    command.arg("--target-dir").arg(project::scratch().join("shuttle")).env("RUSTFLAGS", "--cfg shuttle")
}

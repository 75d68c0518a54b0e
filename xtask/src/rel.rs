//! `rel`: the reliability rigs.

use crate::{project, run};
use std::path::PathBuf;
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
        Some("shuttle") => return done(under_the_scheduler("run").arg("--").args(args)),
        Some("fuzz") => run::plain(&cargo, &[&["build"], &heavy[..], &["ashlar-fuzz"]].concat())?,
        _ => {}
    }
    let mut command = Command::new(cargo);
    command.arg("run").args(heavy).args(["ashlar-stress", "--bin", "rel"]);
    if args.first().is_some_and(|suite| suite == "bugs") {
        command.args(["--features", "planted"]);
        done(under_the_scheduler("build").args(["--features", "planted"]))?;
        command.env("ASHLAR_SCHEDULED_REL", scheduled_folder().join("debug").join("rel"));
    }
    done(command.arg("--").args(args))
}

fn under_the_scheduler(verb: &str) -> Command {
    let mut command = Command::new(project::cargo());
    command.args([verb, "--quiet", "--package", "ashlar-stress", "--bin", "rel"]);
    scheduled(&mut command);
    command
}

fn done(command: &mut Command) -> Result<(), String> {
    match command.current_dir(project::root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rel: {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

/// The compiler flags for that.
pub const SCHEDULED: &str = "--cfg shuttle";

/// Lets a command of cargo build with the scheduler under all that threads meet in.
pub fn scheduled(command: &mut Command) -> &mut Command {
    command.arg("--target-dir").arg(scheduled_folder()).env("RUSTFLAGS", SCHEDULED)
}

fn scheduled_folder() -> PathBuf {
    project::scratch().join("shuttle")
}

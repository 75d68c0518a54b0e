//! `check`: everything that can be said about the code without running it.

use crate::{project, run};
use std::time::Instant;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask check

  fmt      cargo fmt --check
  tidy     cargo xtask tidy
  clippy   all targets of all crates, warnings are errors
  doc      documentation of all crates, warnings (broken links, missing words) are errors

All four run even if one fails; the first column says which.";

/// A check's name and what it does.
pub type Check = (&'static str, fn() -> Result<(), String>);

/// The checks, cheapest first.
pub const CHECKS: [Check; 4] = [("fmt", fmt), ("tidy", crate::tidy::check), ("clippy", clippy), ("doc", doc)];

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("check takes no {arg}\n\n{HELP}"));
    }
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let start = Instant::now();
        let done = check();
        println!(
            "{:<7} {:>6.1} s  {}",
            name,
            start.elapsed().as_secs_f64(),
            if done.is_ok() { "ok" } else { "FAILED" }
        );
        if let Err(text) = done {
            eprintln!("{text}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn fmt() -> Result<(), String> {
    run::plain(&project::cargo(), &["fmt", "--all", "--check"])
}

fn clippy() -> Result<(), String> {
    run::plain(
        &project::cargo(),
        &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
    )
}

fn doc() -> Result<(), String> {
    let flags = "--deny=warnings";
    let status = std::process::Command::new(project::cargo())
        .args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", flags)
        .current_dir(project::root())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo doc: {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

//! `loom`: the models of what threads meet in, in every order.

use crate::{project, run};
use std::process::Command;
use std::time::Duration;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask loom [--preemptions=N] [FILTER]

Builds the crates whose threads meet without the engine around them, with the model checker loom under their locks, atomics
and epochs, and runs their models: a few threads in every order, each load answering all that the memory model allows.

  ashlar-sync      a signal loses no wake-up; a lead has one leader at a time; a value under a pin or a lease is not freed
                   or taken
  ashlar-memtable  inserts under readers: into a leaf, and into one that is split
  ashlar-cache     a pinned frame against an evictor, and against the close of its table
  ashlar-engine    the writers' queue: each is committed once, one leads at a time, none waits for ever; the rounds of
                   syncs: a sync serves each writer that waits for it
  ashlar-txn       locks of transactions: they exclude, every waiter is served, a circle never closes

  --preemptions=N  threads are interrupted where they need not be at most N times, 3 by default
  FILTER           only models whose name contains it

The build has a target folder of its own, target/loom; it takes a minute or two, the models half a minute.";

const PACKAGES: [&str; 5] = ["ashlar-sync", "ashlar-memtable", "ashlar-cache", "ashlar-engine", "ashlar-txn"];
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let preemptions = args.iter().find_map(|arg| arg.strip_prefix("--preemptions=")).unwrap_or("3");
    let filter = args.iter().find(|arg| !arg.starts_with('-')).map_or("", String::as_str);
    if let Some(flag) = args.iter().find(|arg| arg.starts_with('-') && !arg.starts_with("--preemptions=")) {
        return Err(format!("loom takes no {flag}\n\n{HELP}"));
    }
    let mut command = Command::new(project::cargo());
    command.args(["test", "--release", "--no-fail-fast", "--lib"]);
    command.args(PACKAGES.iter().flat_map(|name| ["--package", name]));
    command.arg("--target-dir").arg(project::scratch().join("loom"));
    command.args([&format!("models::{filter}"), "--", "--test-threads=1"]);
    command.env("RUSTFLAGS", "--cfg loom --cfg crossbeam_loom");
    // The models are small: what would make them fast takes longer to build than it saves.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    command.env("LOOM_MAX_PREEMPTIONS", preemptions).env("LOOM_MAX_BRANCHES", "100000");
    let logs = project::scratch().join("test-logs");
    std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    run::watched(&command, &logs.join("loom.log"), LIMIT, |line| {
        if line.starts_with("test ") || line.contains("panicked") || line.contains("error") {
            println!("{line}");
        }
    })
    .map_err(|e| format!("loom: {e}; see target/test-logs/loom.log"))
}

//! `test`: all of it, in one command, with one line at the end.

use crate::tally::Tally;
use crate::{bench, check, project, rel, run, setup};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask test [--all] [FILTER]

  setup    fetch the judges (see cargo xtask setup --help)
  checks   fmt, tidy (see cargo xtask check --help)
  tests    cargo test --workspace: unit tests, documentation examples, each crate's tests/it at its small scale

That is what a change needs. With --all, for CI, the tests are optimised and run at full scale (ASHLAR_HEAVY=1): with more
inputs, kills and crashes. Four stages are added:
  clippy   all targets of all crates, warnings are errors; beside the tests
  doc      the documentation of all crates builds without a warning
  counts   instructions of the insides in a release build, beside the committed ones (cargo xtask bench --help)
  shuttle  whole engines under a scheduler, in a build of its own (target/shuttle, some minutes the first time)

  FILTER   only tests whose name contains it (and no checks)

Prints measured lines, what was skipped and why, what failed and how, where the time went, and last, alone on its line:
  N passed, N failed, N skipped
A check counts as one test. Full output is in target/test-logs/. A stage that hangs is killed after its limit.";

/// A stage that takes longer hangs. A slow machine may need half of this time, with the build.
const LIMIT: Duration = Duration::from_secs(30 * 60);
const FULL_SCALE_LIMIT: Duration = Duration::from_secs(60 * 60);

struct Stages {
    begun: Instant,
    sum: Tally,
    times: Vec<(String, Duration, String)>,
}

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let all = args.iter().any(|arg| arg == "--all");
    let filters: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--all").collect();
    if let Some(flag) = filters.iter().find(|arg| arg.starts_with('-')) {
        return Err(format!("test takes no {flag}\n\n{HELP}"));
    }
    let logs = project::scratch().join("test-logs");
    fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let mut stages = Stages { begun: Instant::now(), sum: Tally::default(), times: Vec::new() };
    stages.setup()?;
    let checks = if filters.is_empty() { &check::CHECKS[..] } else { &[] };
    // Those that compile fill the time in which tests wait, and take too much of it for a newcomer.
    let compiles = |check: &&check::Check| matches!(check.0, "clippy" | "doc");
    let (long, short): (Vec<_>, Vec<_>) = checks.iter().partition(compiles);
    let long = if all { long } else { Vec::new() };
    short.iter().for_each(|(name, check)| stages.checked(name, timed(*check)));
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if all {
        tests.args(["--profile", "heavy"]).env("ASHLAR_HEAVY", "1");
    }
    tests.args(&filters).env("RUST_TEST_THREADS", test_threads());
    let limit = if all { FULL_SCALE_LIMIT } else { LIMIT };
    std::thread::scope(|scope| {
        let (built, is_built) = mpsc::channel();
        let long = scope.spawn(move || {
            // An error: the build failed. That is no reason to stay silent.
            let _ = is_built.recv();
            long.iter().map(|(name, check)| (*name, timed(*check))).collect::<Vec<_>>()
        });
        stages.run("tests", &logs, &tests, limit, Some(built));
        for (name, outcome) in long.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            stages.checked(name, outcome);
        }
    });
    if all && filters.is_empty() {
        stages.run("counts", &logs, cargo(&bench::INSIDES).arg("--counts"), LIMIT, None);
        stages.scheduled(&logs);
    }
    stages.report()
}

/// Tests wait for disks and other processes about half of their time.
fn test_threads() -> String {
    (2 * std::thread::available_parallelism().map_or(1, usize::from)).to_string()
}

fn timed(check: fn() -> Result<(), String>) -> (Result<(), String>, Duration) {
    let start = Instant::now();
    (check(), start.elapsed())
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(project::cargo());
    command.args(args);
    command
}

impl Stages {
    fn setup(&mut self) -> Result<(), String> {
        println!("== setup");
        let start = Instant::now();
        let lines = setup::judges()?;
        for line in &lines {
            println!("{line}");
        }
        let missing = lines.iter().filter(|line| line.contains("skipped: ")).count();
        let word = if missing == 0 { "ok".to_owned() } else { format!("{missing} judges missing") };
        self.times.push(("setup".into(), start.elapsed(), word));
        Ok(())
    }

    fn checked(&mut self, name: &str, (done, took): (Result<(), String>, Duration)) {
        let word = if done.is_ok() { "ok" } else { "FAILED" };
        match done {
            Ok(()) => self.sum.passed += 1,
            Err(text) => {
                println!("{text}");
                self.sum.failed += 1;
            }
        }
        println!("== {name}: {word}");
        self.times.push((name.into(), took, word.into()));
    }

    /// Skipped where the scheduler cannot be had: nothing else needs that crate.
    fn scheduled(&mut self, logs: &Path) {
        let package = ["--package", "ashlar-stress"];
        let mut wanted = cargo(&["tree", "--quiet"]);
        wanted.args(package).env("RUSTFLAGS", rel::SCHEDULED).current_dir(project::root());
        if wanted.output().is_ok_and(|output| output.status.success()) {
            let mut command = cargo(&["test"]);
            // The build takes longer than the tests.
            command.args(["--config", "profile.dev.opt-level=0"]).args(package);
            rel::scheduled(&mut command).args(["--test", "it", "schedules::"]);
            self.run("shuttle", logs, &command, LIMIT, None);
        } else {
            let why = "[shuttle] whole engines under a scheduler: the crate shuttle cannot be fetched";
            self.times.push(("shuttle".into(), Duration::ZERO, "skipped".into()));
            self.sum.skipped.push(why.into());
        }
    }

    /// Sends to `built` when the first test program runs.
    fn run(
        &mut self,
        name: &str,
        logs: &Path,
        command: &Command,
        limit: Duration,
        mut built: Option<mpsc::Sender<()>>,
    ) {
        println!("== {name}");
        let start = Instant::now();
        let (mut tally, mut compiled) = (Tally::default(), 0);
        let done = run::watched(command, &logs.join(format!("{name}.log")), limit, |line| {
            tally.read(line);
            compiled += usize::from(line.trim_start().starts_with("Compiling "));
            if line.trim_start().starts_with("Compiling ") && compiled % 50 == 0 {
                println!("{compiled} crates begun, {:.0} s", start.elapsed().as_secs_f64());
            }
            if line.trim_start().starts_with("Running ") {
                built.take().map(|built| built.send(()));
            }
            show(line);
        });
        drop(built);
        if let Err(text) = done {
            println!("{name}: {text}");
            // A failed build or a killed stage has no failed test to count.
            tally.failed += usize::from(tally.failed == 0);
        }
        let Tally { figures, skipped, failures, .. } = &mut tally;
        for line in figures.iter_mut().chain(skipped).chain(failures) {
            *line = format!("[{name}] {line}");
        }
        self.times.push((name.into(), start.elapsed(), tally.line()));
        self.sum.add(tally);
    }

    fn report(self) -> Result<(), String> {
        println!("\nfigures");
        self.sum.figures.iter().for_each(|line| println!("  {line}"));
        if !self.sum.skipped.is_empty() {
            println!("\nskipped");
            self.sum.skipped.iter().for_each(|line| println!("  {line}"));
        }
        if !self.sum.failures.is_empty() {
            println!("\nfailed");
            self.sum.failures.iter().for_each(|line| println!("  {line}"));
        }
        println!("\nstage      seconds  result");
        for (name, took, word) in &self.times {
            println!("{name:<10} {:>7.1}  {word}", took.as_secs_f64());
        }
        println!("{:<10} {:>7.1}", "total", self.begun.elapsed().as_secs_f64());
        println!("\n{}", self.sum.line());
        if self.sum.failed == 0 { Ok(()) } else { Err("see above and target/test-logs".into()) }
    }
}

/// Prints the lines of cargo's output that are worth a reader's time: not those of tests that passed.
fn show(line: &str) {
    let progress = ["Compiling ", "Downloaded ", "Downloading "];
    let dull = line.is_empty()
        || (line.starts_with("test ") && line.ends_with(" ok"))
        || (line.starts_with("running ") && (line.ends_with("tests") || line.ends_with("test")))
        || progress.iter().any(|word| line.trim_start().starts_with(word))
        || line.contains("FIGURE ")
        || line.contains("SKIPPED ")
        || line.starts_with("test result: ok. 0 passed");
    if !dull {
        println!("{line}");
    }
}

//! `test`: all of it, in one command, with one line at the end.

use crate::tally::Tally;
use crate::{bench, check, project, rel, run, setup};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask test [--all] [FILTER]

  setup    fetch the judges (see cargo xtask setup --help)
  checks   fmt, tidy, clippy, doc (see cargo xtask check --help)
  tests    cargo test --workspace: unit tests, documentation examples, each crate's tests/it at its small scale

That is what a change needs. CI runs more, with --all:
  counts   instructions of the insides in a release build, beside the committed ones (cargo xtask bench --help)
  heavy    each crate's tests/it once more, optimised and at full scale (ASHLAR_HEAVY=1): judges, kill -9, crashes
  shuttle  whole engines under a scheduler, in a build of its own (target/shuttle, some minutes the first time)

  FILTER   only tests whose name contains it (and no checks)

Prints measured lines, what was skipped and why, what failed and how, where the time went, and last, alone on its line:
  N passed, N failed, N skipped
A check counts as one test. Full output is in target/test-logs/. A stage that hangs is killed after its limit.";

const TESTS_LIMIT: Duration = Duration::from_secs(15 * 60);
const HEAVY_LIMIT: Duration = Duration::from_secs(15 * 60);

struct Stages {
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
    let mut stages = Stages { sum: Tally::default(), times: Vec::new() };
    stages.setup()?;
    if filters.is_empty() {
        for (name, check) in check::CHECKS {
            stages.check(name, check);
        }
    }
    let tests = ["test", "--workspace", "--no-fail-fast"];
    stages.tests("tests", &logs, &[&tests[..], &filters].concat(), TESTS_LIMIT, false);
    if all {
        if filters.is_empty() {
            stages.tests("counts", &logs, &[&bench::INSIDES[..], &["--counts"]].concat(), TESTS_LIMIT, false);
        }
        let packages = with_integration_tests()?;
        let mut heavy = vec!["test", "--profile", "heavy", "--no-fail-fast", "--test", "it"];
        heavy.extend(packages.iter().flat_map(|name| ["--package", name.as_str()]));
        heavy.extend(&filters);
        if !packages.is_empty() {
            stages.tests("heavy", &logs, &heavy, HEAVY_LIMIT, true);
        }
        if filters.is_empty() {
            stages.scheduled(&logs);
        }
    }
    stages.report()
}

/// Crates that have an integration test binary.
fn with_integration_tests() -> Result<Vec<String>, String> {
    let root = project::root();
    let files = project::files(&root, "crates", &["main.rs"]).map_err(|e| e.to_string())?;
    let crates = files.iter().filter(|path| path.ends_with(Path::new("tests/it/main.rs")));
    Ok(crates.filter_map(|path| Some(path.iter().nth(1)?.to_string_lossy().into_owned())).collect())
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

    fn check(&mut self, name: &str, check: fn() -> Result<(), String>) {
        println!("== {name}");
        let start = Instant::now();
        let done = check();
        let word = if done.is_ok() { "ok" } else { "FAILED" };
        match done {
            Ok(()) => self.sum.passed += 1,
            Err(text) => {
                println!("{text}");
                self.sum.failed += 1;
            }
        }
        self.times.push((name.into(), start.elapsed(), word.into()));
    }

    /// Skipped where the scheduler cannot be had: nothing else needs that crate.
    fn scheduled(&mut self, logs: &Path) {
        let cargo = || Command::new(project::cargo());
        let package = ["--package", "ashlar-stress"];
        let mut wanted = cargo();
        wanted
            .args(["tree", "--quiet"])
            .args(package)
            .env("RUSTFLAGS", rel::SCHEDULED)
            .current_dir(project::root());
        if wanted.output().is_ok_and(|output| output.status.success()) {
            let mut command = cargo();
            rel::scheduled(command.arg("test").args(package)).args(["--test", "it", "schedules::"]);
            self.run("shuttle", logs, &command, TESTS_LIMIT);
        } else {
            let why = "[shuttle] whole engines under a scheduler: the crate shuttle cannot be fetched";
            self.times.push(("shuttle".into(), Duration::ZERO, "skipped".into()));
            self.sum.skipped.push(why.into());
        }
    }

    fn tests(&mut self, name: &str, logs: &Path, args: &[&str], limit: Duration, heavy: bool) {
        let mut command = Command::new(project::cargo());
        command.args(args);
        if heavy {
            command.env("ASHLAR_HEAVY", "1");
        }
        self.run(name, logs, &command, limit);
    }

    fn run(&mut self, name: &str, logs: &Path, command: &Command, limit: Duration) {
        println!("== {name}");
        let start = Instant::now();
        let (mut tally, mut compiled) = (Tally::default(), 0);
        let done = run::watched(command, &logs.join(format!("{name}.log")), limit, |line| {
            tally.read(line);
            compiled += usize::from(line.trim_start().starts_with("Compiling "));
            if line.trim_start().starts_with("Compiling ") && compiled % 50 == 0 {
                println!("{compiled} crates begun, {:.0} s", start.elapsed().as_secs_f64());
            }
            show(line);
        });
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
        let total: Duration = self.times.iter().map(|(_, took, _)| *took).sum();
        println!("{:<10} {:>7.1}", "total", total.as_secs_f64());
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

//! The program `rel`: one suite of the reliability rigs at a time (see `--help`).

use ashlar_stress::{
    Budget, Length, Report, bugs, compat, corrupt, filter, fuzz, hostile, limits, meta, power, process,
    report, shuttle, sim, soak, sweep, torture, txn,
};
use ashlar_testkit::heap::CountingHeap;
use clap::{Args, Parser, Subcommand};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The allocator with which the suites refuse memory.
#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

/// Crashes, failing calls and damage, and what must hold afterwards.
///
/// Every suite prints its work and its findings. --replay repeats a finding. The exit status is 1 if there are findings.
#[derive(Parser)]
#[command(name = "rel", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Random histories on a simulated machine with crashes anywhere, full disks and failing calls
    Sim(Flags),
    /// Fixed histories, each time with another failing call, or another refused allocation
    Sweep(Flags),
    /// The same operations with other settings, and rewritten into equal ones
    Meta(Flags),
    /// Every part of every file, damaged in nine ways
    Corrupt {
        #[command(flatten)]
        flags: Flags,
        /// Instead: flips every byte of a table, a WAL file and a MANIFEST, each bit by itself and all bits at once
        #[arg(long)]
        exhaustive: bool,
    },
    /// The same damaged directories for AshlarDB and for RocksDB
    Diff(Flags),
    /// Power cuts of a real ext4 under a database, and of a device that may fail (needs root and FUSE)
    Power(Flags),
    /// Damaged files against every decoder (the program ashlar-fuzz)
    Fuzz(Flags),
    /// Processes killed with signal 9 while they write and while they recover
    Torture {
        #[command(flatten)]
        flags: Flags,
        /// Instead: one kill with a WAL of this size, and the time of the next open
        #[arg(long, value_name = "SIZE", value_parser = size, num_args = 0..=1, default_missing_value = "1GiB")]
        wal: Option<u64>,
        /// Another program writes, through the library that it loads: its words, separated by spaces
        #[arg(long, value_name = "COMMAND", conflicts_with = "wal")]
        through: Option<String>,
    },
    /// Many threads on one database, with a random order of all their steps (cargo xtask rel shuttle)
    Shuttle(Flags),
    /// Other owners, no descriptors, full disks, read-only directories, directories removed during use
    Limits {
        #[command(flatten)]
        flags: Flags,
        /// Instead: workloads that take memory, under caps of 16 MiB and more, beside RocksDB; --replay=NAME or NAME@CAP
        #[arg(long)]
        hostile: bool,
    },
    /// Directories that pass between AshlarDB and releases of RocksDB, at every format level
    Compat(Flags),
    /// The same work for hours: checks that memory, threads, descriptors and files do not grow
    Soak(Flags),
    /// Transactions beside each other and beside plain writes, against a model and in threads
    Txn(Flags),
    /// Compaction filters against a model: what they remove, what snapshots see
    Filter(Flags),
    /// Bugs of other systems, planted on purpose: checks that the suites find them
    Bugs(Flags),
    /// Internal: the child process of a suite
    #[command(hide = true)]
    Child {
        /// The role, and what belongs to it
        words: Vec<String>,
    },
    /// One table of the reports in FILES
    Report {
        /// Written by --json
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// The suites, as `rel report` lists them.
const SUITES: [&str; 18] = [
    "sim",
    "sweep",
    "meta",
    "corrupt",
    "corrupt --exhaustive",
    "diff",
    "fuzz",
    "torture",
    "torture --wal",
    "power",
    "shuttle",
    "limits",
    "limits --hostile",
    "compat",
    "soak",
    "txn",
    "filter",
    "bugs",
];

#[derive(Args)]
struct Flags {
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How long, as 20s, 10m or 2h; without it, the quick form
    #[arg(long, value_parser = duration)]
    time: Option<Duration>,
    /// Only the case of a failure, in its words
    #[arg(long)]
    replay: Option<String>,
    /// Cases at once, in suites that can
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// End with the first failure
    #[arg(long)]
    first: bool,
    /// Appends the report to this file, a line of JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let seconds = match &text[unit..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("20s, 10m or 2h".to_owned()),
    };
    let number: u64 = text[..unit].parse().map_err(|_| "20s, 10m or 2h".to_owned())?;
    Ok(Duration::from_secs(number * seconds))
}

fn size(text: &str) -> Result<u64, String> {
    let wrong = || "1GiB, 64MiB or a number of bytes".to_owned();
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match &text[unit..] {
        "GiB" => 30,
        "MiB" => 20,
        "" => 0,
        _ => return Err(wrong()),
    };
    text[..unit].parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(wrong)
}

fn keep(report: &Report, path: &Path) -> Result<(), String> {
    let line = serde_json::to_string(report).map_err(|e| e.to_string())?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{line}")).map_err(|e| format!("{}: {e}", path.display()))
}

fn suite(flags: Flags, run: impl FnOnce(&Budget) -> Report) -> Result<bool, String> {
    let length = flags.time.map_or(Length::Quick, Length::For);
    let mut budget = Budget::new(flags.seed, length, flags.replay);
    budget.first = flags.first;
    budget.threads = flags.threads;
    let report = run(&budget);
    println!("{report}");
    if let Some(path) = &flags.json {
        keep(&report, path)?;
    }
    Ok(report.failures.is_empty())
}

fn go(command: Command) -> Result<bool, String> {
    if cfg!(shuttle) && !matches!(command, Command::Shuttle(_) | Command::Bugs(_) | Command::Report { .. }) {
        return Err("this build has a scheduler under its threads: it has the suite shuttle only".to_owned());
    }
    match command {
        Command::Sim(flags) => suite(flags, sim::run),
        Command::Sweep(flags) => suite(flags, sweep::run),
        Command::Meta(flags) => suite(flags, meta::run),
        Command::Corrupt { flags, exhaustive: false } => suite(flags, corrupt::run),
        Command::Corrupt { flags, exhaustive: true } => suite(flags, corrupt::exhaustive::run),
        Command::Diff(flags) => suite(flags, corrupt::diff::run),
        Command::Power(flags) => suite(flags, power::run),
        Command::Fuzz(flags) => suite(flags, fuzz::run),
        Command::Torture { flags, wal: None, through } => {
            let door = through.map(|words| torture::Door::new(words.split_whitespace().map(str::to_owned)));
            suite(flags, |budget| torture::run(budget, door.as_ref()))
        }
        Command::Torture { flags, wal: Some(bytes), .. } => {
            suite(flags, |budget| torture::big_log::run(budget, bytes))
        }
        Command::Shuttle(flags) => suite(flags, shuttle::run),
        Command::Limits { flags, hostile: false } => suite(flags, limits::run),
        Command::Limits { flags, hostile: true } => suite(flags, hostile::run),
        Command::Compat(flags) => suite(flags, compat::run),
        Command::Soak(flags) => suite(flags, soak::run),
        Command::Txn(flags) => suite(flags, txn::run),
        Command::Filter(flags) => suite(flags, filter::run),
        Command::Child { words } => process::play(&words).map(|()| true),
        Command::Bugs(flags) => suite(flags, bugs::run),
        Command::Report { files } => {
            let mut reports = Vec::new();
            for path in files {
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                reports.extend(report::parse(&text)?);
            }
            println!("{}", report::table(&SUITES, &reports));
            Ok(reports.iter().all(|report| report.failures.is_empty()))
        }
    }
}

fn main() -> ExitCode {
    bugs::obey();
    match go(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}

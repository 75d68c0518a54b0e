//! `cargo xtask`: one entry for every chore, the same on every machine and in CI.

mod bench;
mod check;
mod coverage;
mod fetch;
mod fuzz;
mod install;
mod installed;
mod jars;
mod loom;
mod natives;
mod nightly;
mod peers;
mod project;
mod rel;
mod run;
mod setup;
mod suite;
mod tally;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
The chores of AshlarDB.

usage: cargo xtask COMMAND [OPTIONS]          cargo xtask COMMAND --help says more

  setup     fetch the stores that tests compare with: RocksDB 7.8.3 with its tools, RocksDB 11.8.1, LevelDB 1.23
  peers     fetch and build the other engines of ashlar-compare
  check     format, lints, layers and sizes, documentation: everything except running code
  test      setup, check, all tests, with --all at full scale; ends with a line \"N passed, N failed, N skipped\"
  bench     measure the engine's parts beside their physical limits, and run ashlar's benchmark; release builds
  coverage  which code the tests run, and which errors they never produced
  install   the C libraries below a prefix, with headers, pkg-config and CMake files
  fuzz      damage real files and feed them to every decoder
  rel       the reliability suites: crashes, failing calls, damage; any duration
  loom      check every order of threads in locks, queue, memtable and cache
  natives   list the native methods of RocksDB's Java classes, from jars
  miri      run the crates with unsafe code under miri, if a nightly compiler is installed
  sanitize  run their tests and ashlardb's under the thread or address sanitizer, if one is installed
  tidy      check the project rules that no compiler checks

Everything is built below the target folder of this checkout; only `setup` and `peers` reach outside
(apt-get, mvn, pip, cargo fetch).";

type Chore = fn(&[String]) -> Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("--help", &[][..]),
    };
    let wants_help = rest.iter().any(|arg| arg == "--help" || arg == "-h");
    let (help, chore): (&str, Chore) = match command {
        "sanitize" => (nightly::SANITIZE_HELP, nightly::sanitize),
        "setup" => (setup::HELP, setup::main),
        "miri" => (nightly::MIRI_HELP, nightly::miri),
        "peers" => (peers::HELP, peers::main),
        "check" => (check::HELP, check::main),
        "test" => (suite::HELP, suite::main),
        "bench" => (bench::HELP, bench::main),
        "coverage" => (coverage::HELP, coverage::main),
        "install" => (install::HELP, install::main),
        "fuzz" => (fuzz::HELP, fuzz::main),
        "loom" => (loom::HELP, loom::main),
        "natives" => (natives::HELP, natives::main),
        "rel" => (rel::HELP, rel::main),
        "tidy" => (tidy::HELP, tidy::main),
        "--help" | "-h" | "help" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("no chore named {other}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if wants_help {
        println!("{help}");
        return ExitCode::SUCCESS;
    }
    match chore(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

//! The program `ashlar`: `ashlar bench` measures, `ashlar db` works on a database from the command line, `ashlar sst`,
//! `ashlar manifest` and `ashlar wal` explain files, `ashlar options` the names of options.
//!
//! 1. A program file named `db_bench` runs `ashlar bench`; one named `ldb` runs `ashlar db`; one named `sst_dump` runs
//!    `ashlar sst`. So scripts keep working.
//! 2. Exit statuses: 0 success, 1 failure (one sentence on standard error), 2 a wrong command line, 3 a repair with
//!    losses. `bench` ends with 1 after a wrong command line, like db_bench.
//! 3. A reader that goes away (`| head`) ends the program quietly. A message that cannot be written changes no status.

#![deny(clippy::print_stderr, reason = "eprintln! panics when it cannot write; see ashlar_bench::say")]

mod bench;
mod bytes_text;
mod cli;
mod db;
mod manifest;
mod options;
mod outcome;
mod sst;
mod wal;

use ashlar_bench::say;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cli::{Cli, Command, LdbCli};
use outcome::Outcome;
use sst::SstCli;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name =
        words.first().and_then(|w| Path::new(w).file_name()).and_then(|n| n.to_str()).unwrap_or("ashlar");
    let rest = words.get(1..).unwrap_or_default();
    let outcome = match name {
        "db_bench" => bench::run(rest, Some("RocksDB")),
        "ldb" => db::run(parse::<LdbCli>(&words).db),
        "sst_dump" => sst::run(&parse::<SstCli>(&words).arguments),
        _ => match parse::<Cli>(&words).command {
            Command::Bench { flags } => bench::run(&flags, None),
            Command::Db(arguments) => db::run(arguments),
            Command::Sst(arguments) => sst::run(&arguments),
            Command::Manifest(arguments) => manifest::run(&arguments),
            Command::Wal(arguments) => wal::run(&arguments),
            Command::Options(arguments) => options::run(&arguments),
        },
    };
    outcome::tell(outcome)
}

/// Parses the command line. On an error, ends the process with a message and status 2. After a directory the parser takes
/// an unknown word for an extra argument, so the message lists the commands.
fn parse<C: Parser>(words: &[OsString]) -> C {
    C::try_parse_from(words).unwrap_or_else(|e| {
        let word = match e.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(word)) if !word.starts_with('-') => Some(word),
            _ => None,
        };
        let of_db = words.get(1).is_some_and(|first| first == "db") || C::command().get_name() == "ldb";
        match word.filter(|_| of_db && e.kind() == ErrorKind::UnknownArgument) {
            Some(word) => {
                say::line(&format!(
                    "unknown command {word:?}, or an argument too many; the commands are {}",
                    db::COMMANDS
                ));
                std::process::exit(2)
            }
            None => e.exit(),
        }
    })
}

/// The result of a command: success, or the reason for its failure.
type Done = Result<(), Outcome>;

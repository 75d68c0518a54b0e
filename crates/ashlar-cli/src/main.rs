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
mod blob;
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
            Command::Db(arguments) => db::run(*arguments),
            Command::Sst(arguments) => sst::run(&arguments),
            Command::Manifest(arguments) => manifest::run(&arguments),
            Command::Wal(arguments) => wal::run(&arguments),
            Command::Options(arguments) => options::run(&arguments),
        },
    };
    outcome::tell(outcome)
}

/// Parses the command line. On an error, ends the process with a message and status 2.
fn parse<C: Parser>(words: &[OsString]) -> C {
    C::try_parse_from(words).unwrap_or_else(|e| match unexpected(&e) {
        Some(text) => {
            say::line(&text);
            std::process::exit(2)
        }
        None => e.exit(),
    })
}

/// The message for an argument that the command does not take: the argument, the usage, and what to do. After a directory
/// the parser takes an unknown command for such an argument, so there the message lists the commands.
fn unexpected(e: &clap::Error) -> Option<String> {
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    let word = text(ContextKind::InvalidArg).filter(|_| e.kind() == ErrorKind::UnknownArgument)?;
    let usage = text(ContextKind::Usage)?;
    let usage = usage.trim();
    let of_command = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let command: Vec<&str> = usage.split_whitespace().filter(of_command).collect();
    let advice = match text(ContextKind::SuggestedArg) {
        Some(similar) => format!("A similar argument is {similar:?}."),
        None if usage.ends_with("[COMMAND]") => format!("The commands are {}.", db::COMMANDS),
        None if word.starts_with('-') => "Put a word that begins with a dash after `--`.".to_owned(),
        None => "Quote an argument that contains spaces.".to_owned(),
    };
    let command = command.join(" ");
    Some(format!(
        "unexpected argument {word:?}\n{usage}\n{advice} `{command} --help` lists what the command takes"
    ))
}

/// The result of a command: success, or the reason for its failure.
type Done = Result<(), Outcome>;

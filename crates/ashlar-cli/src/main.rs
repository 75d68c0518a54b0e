//! The program `ashlar`: `ashlar bench` measures, `ashlar db` works on a database from the command line, `ashlar sst`,
//! `ashlar manifest` and `ashlar wal` explain files, `ashlar options` the names of options.
//!
//! 1. Called by the name `db_bench` it is `ashlar bench`, by the name `ldb` it is `ashlar db`, by the name `sst_dump` it is
//!    `ashlar sst`: scripts keep working.
//! 2. Exit statuses: 0 done, 1 not done (one sentence on standard error), 2 the command line is wrong; `bench` answers a
//!    wrong command line with 1, as db_bench does.
//! 3. A reader that goes away (`| head`) ends the program quietly.

mod bench;
mod bytes_text;
mod cli;
mod db;
mod manifest;
mod options;
mod outcome;
mod sst;
mod wal;

use clap::Parser;
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
        "ldb" => db::run(LdbCli::parse_from(&words).db),
        "sst_dump" => sst::run(&SstCli::parse_from(&words).arguments),
        _ => match Cli::parse_from(&words).command {
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

/// For whoever reads only the types: a command either worked, or says why not.
type Done = Result<(), Outcome>;

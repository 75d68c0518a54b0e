//! The program `ashlar-linkbench`: a social graph under load, on AshlarDB and other engines.
//!
//! 1. Every engine runs in a process of its own: this program again, with the job as one JSON argument ([`child`]).
//! 2. [`config`] reads the property files of the original program; [`generate`] draws ids, degrees and payloads from them.
//! 3. [`store`] names the ten operations. [`kv`] has them on keys and values, [`sql`] as statements on MariaDB's tables.
//! 4. [`phase`] has the load, the requests, and the check that counts and links agree, during the requests and after them.
//! 5. A row whose check fails, whose clients fall behind their rate, or whose operations fail is void and says why. A missing
//!    engine has the row "not here: why". Neither ends the program.
//!
//! The workload and its names are those of Linkbench (Armstrong et al., SIGMOD 2013).

mod child;
mod cli;
mod config;
mod csv;
mod digest;
mod drive;
mod generate;
mod job;
mod kv;
mod mix;
mod model;
mod phase;
mod progress;
mod rows;
mod size;
mod sql;
mod store;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let mut interrupted = false;
    let done = match &cli.child {
        Some(job) => child::run(job),
        None => cli.plan().and_then(|plan| {
            let outcome = drive::run(&plan)?;
            interrupted = plan.stop.asked();
            if outcome.counting == 0 && !outcome.nothing_to_do {
                Err("no row has figures that count: see the reasons above".to_owned())
            } else {
                Ok(())
            }
        }),
    };
    match done {
        Ok(()) if interrupted => ExitCode::from(ashlar_peers::stop::STATUS),
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            ashlar_bench::say::line(&format!("ashlar-linkbench: {why}"));
            ExitCode::FAILURE
        }
    }
}

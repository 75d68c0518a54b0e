//! The program `ashlar-compare`: runs the same work on several engines, so that their figures can be compared.
//!
//! 1. Every run is a separate process: this program again, with the job as one JSON argument ([`child`]).
//! 2. The engines take turns, forwards and backwards (A B, B A, …), so that a machine that slows down slows both.
//! 3. The loop around the engine is one generic function ([`work`]), compiled once per engine.
//! 4. The entries that each engine read are hashed. If engines disagree, the comparison is void and says so. The content of
//!    each database is compared with the written entries at the end ([`oracle`]). A synchronous put must wait ([`drive`]).
//! 5. A missing engine has the row "not here: why", and a failed one a marked row. Neither ends the program or counts as 0.

mod child;
mod cli;
mod command;
mod drive;
mod experiment;
mod figures;
mod java;
mod meter;
mod null;
mod open_loop;
mod oracle;
mod report;
mod tables;
mod job;
mod work;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let mut interrupted = false;
    let done = match (&cli.command, &cli.child) {
        (Some(command), _) => command.run(),
        (None, Some(job)) => child::run(job),
        (None, None) => cli.matrix().and_then(|matrix| {
            drive::run(&matrix)?;
            interrupted = matrix.stop.asked();
            Ok(())
        }),
    };
    match done {
        Ok(()) if interrupted => ExitCode::from(ashlar_peers::stop::STATUS),
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("ashlar-compare: {why}");
            ExitCode::FAILURE
        }
    }
}

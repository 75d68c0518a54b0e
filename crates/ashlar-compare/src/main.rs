//! The program `ashlar-compare`: the same work on several engines, for figures that may be held against each other.
//!
//! 1. Every run is a process of its own: this program again, told by one JSON argument what to do ([`child`]).
//! 2. The engines take turns, forwards and backwards (A B, B A, …), so that a machine that slows down slows both.
//! 3. The loop around the engine is one generic function ([`work`]), compiled once per engine.
//! 4. What each engine read is hashed; engines that disagree make the comparison void, and it says so. What each database holds
//!    in the end is held against what was written ([`oracle`]); a synchronous put must be seen to wait ([`drive`]).
//! 5. An engine that is not here is "not here: why", one that fails is a marked row: never a failure, never a zero.

mod child;
mod cli;
mod command;
mod device;
mod drive;
mod engine;
mod experiment;
mod figures;
mod measure;
mod memory;
mod meter;
mod null;
mod open_loop;
mod oracle;
mod peer;
mod peers;
mod place;
mod report;
mod sampler;
mod settings;
mod space;
mod tables;
mod job;
mod usage;
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
        Ok(()) if interrupted => ExitCode::from(drive::INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("ashlar-compare: {why}");
            ExitCode::FAILURE
        }
    }
}

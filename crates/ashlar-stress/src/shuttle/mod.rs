//! Whole engines under a scheduler that draws the order of every step of every thread (shuttle).
//!
//! A case is a seed: it decides what a few threads do to one database on a simulated machine (writes to two families, merges
//! among them, scans, snapshots, flushes, compactions, settings that change, a log that is handed over by hand, families that
//! come and go, a call that fails, a power cut, a close among all of it), and in which order they and the background threads go
//! on, at every lock, signal and atomic. What must hold:
//!
//! 1. A batch is there as a whole, in both families, or not at all; every later reader finds what was acknowledged, and no
//!    reader sees less than it saw before.
//! 2. After a close all that was acknowledged is there; after a crash a prefix of all writes is, at least to the last one
//!    that was acknowledged as durable for that kind of crash.
//! 3. A batch that was refused is not there: its writer tries it again, and it is there once.
//! 4. What fails, fails for the call that was made to fail, or because the database was closed.
//! 5. No call waits for ever, and nothing panics.
//!
//! A third of the seeds draw each step among all threads that can go on; another one lets threads stop for a while besides,
//! anywhere, until others have done much; the last one gives threads priorities, and changes those at two steps of the run
//! (PCT of depth 3: it finds a mistake that needs three steps of different threads in an order with a known probability).
//! Memory is sequentially consistent here: what weaker orders of atomics allow is loom's to find.
//!
//! The scheduler is there in builds with `--cfg shuttle` only: `cargo xtask rel shuttle`. `--replay=N` makes case N again, twice,
//! and compares the two, as long runs do with one case in sixteen.

#[cfg(shuttle)]
mod actors;
#[cfg(shuttle)]
mod case;
#[cfg(shuttle)]
mod history;
#[cfg(shuttle)]
mod log;
#[cfg(shuttle)]
mod machine;
#[cfg(shuttle)]
mod order;
#[cfg(shuttle)]
mod plan;
#[cfg(shuttle)]
mod play;

use crate::suite::{Budget, Report};

/// Cases of a quick run.
#[cfg(shuttle)]
const CASES: u64 = 600;

/// Case after case.
#[cfg(shuttle)]
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("shuttle", budget);
    let quick = budget.length == crate::suite::Length::Quick;
    case::listen_to_panics();
    budget.each_seed(CASES, &mut report, |seed, report| {
        let twice = budget.replay.is_some() || (!quick && seed % 16 == 0);
        case::run(seed, twice, report);
    });
    report.done(budget)
}

/// Says how to get a build that can.
#[cfg(not(shuttle))]
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("shuttle", budget);
    report.skip("this build has no scheduler under its threads: cargo xtask rel shuttle");
    report.done(budget)
}

//! Whole engines under a scheduler that draws the order of every step of every thread (shuttle).
//!
//! A case is a seed. The seed decides the operations of a few threads on one database on a simulated machine:
//!
//! - writes and merges to two families, scans, snapshots;
//! - flushes, compactions, changes of settings, manual WAL flushes, families created and dropped;
//! - a failing call, a power cut, a close.
//!
//! The seed also decides the order in which all threads proceed at every lock, signal and atomic. Afterwards:
//!
//! 1. A batch is visible in both families, or in none. Every later reader finds all acknowledged batches, and no reader
//!    sees less than it saw before.
//! 2. After a close all acknowledged batches are there. After a crash a prefix of all writes is there, which contains the
//!    last write acknowledged as durable for that kind of crash.
//! 3. A refused batch is not there. Its writer repeats it, and then it is there once.
//! 4. A call fails only because of the planted failure, or because the database is closed.
//! 5. No call waits for ever, and nothing panics.
//!
//! There are three kinds of seeds. The first draws each step among all runnable threads. The second also stops threads for a
//! while, anywhere, until others have done much. The third gives threads priorities and changes them at two steps of the run
//! (PCT of depth 3: it finds a bug that needs three steps of different threads in one order, with a known probability).
//! Memory is sequentially consistent here; the loom models check weaker orders of atomics.
//!
//! The scheduler exists only in builds with `--cfg shuttle`: `cargo xtask rel shuttle`. `--replay=N` runs case N twice and
//! compares the two runs. Long runs do this with one case in sixteen.

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

use ashlar_testkit::suite::{Budget, Report};

/// Cases of a quick run.
#[cfg(shuttle)]
const CASES: u64 = 600;

/// Case after case.
#[cfg(shuttle)]
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("shuttle", budget);
    let quick = budget.length == ashlar_testkit::suite::Length::Quick;
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

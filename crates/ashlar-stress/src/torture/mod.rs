//! Processes that write and are killed with signal 9: at any time, at named calls of the file system, and in the recovery.
//!
//! A case is a directory and some rounds. In each a child process opens it under other settings and writes with several
//! threads, until it is killed; now and then a second one is killed while it recovers. Then we open it ourselves: of every
//! writer's list a prefix must be there that holds all that was acknowledged, the sequence number must be that of these
//! prefixes, nothing but torn ends may have been dropped, every block must verify, and after an orderly close all must be
//! the same again. Now and then RocksDB reads a copy, or recovers the directory in our place.
//!
//! The other form, `--wal=SIZE`, is one kill with a long log (`big_log`).
//!
//! `--replay=N` is the case of seed N. Where a kill falls depends on the machine: only those at named calls fall again
//! where they fell.

pub mod big_log;
pub(crate) mod child;
mod history;
mod kill;
mod plan;
mod points;
mod round;

use crate::suite::{Budget, Report, Watchdog, guarded};
use ashlar_testkit::report;
use std::time::Duration;

/// Cases of a quick run: a few dozen kills.
const CASES: usize = 6;

/// Case after case.
pub fn run(budget: &Budget) -> Report {
    let watchdog = Watchdog::new("torture", Duration::from_secs(300));
    let mut report = Report::new("torture", budget);
    let quick = report::scale(CASES, 5 * CASES) as u64;
    budget.each_seed(quick, &mut report, |seed, piece| {
        watchdog.begins(seed);
        if let Err(e) = guarded(|| round::case(seed, budget, piece)) {
            piece.fail(seed.to_string(), e);
        }
    });
    drop(watchdog);
    report.done(budget)
}

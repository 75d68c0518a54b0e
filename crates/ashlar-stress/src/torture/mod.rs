//! Processes that write and are killed with signal 9: at any time, at named calls of the file system, and in the recovery.
//!
//! A case is a directory and some rounds. In each round a child process opens the directory with other settings and writes
//! with several threads until it is killed. Sometimes a second child is killed during its recovery. Afterwards:
//!
//! 1. Each writer's operations form a prefix that contains every acknowledged operation.
//! 2. The sequence number equals the number of these operations.
//! 3. The recovery dropped only torn tails.
//! 4. Every block verifies, also after a clean close.
//!
//! Sometimes RocksDB reads a copy, or recovers the directory instead of AshlarDB.
//!
//! The other form, `--wal=SIZE`, is one kill with a long log (`big_log`).
//!
//! With `--through=COMMAND` another program writes, for example one of C or Java over `librocksdb.so` (`door`).
//!
//! `--replay=N` repeats the case of seed N. Kills at named calls repeat exactly; the others depend on the machine.

pub mod big_log;
pub(crate) mod child;
mod door;
mod history;
mod kill;
mod plan;
mod points;
mod round;

pub use door::Door;

use ashlar_testkit::report;
use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use std::time::Duration;

/// Cases of a quick run: a few dozen kills.
const CASES: usize = 6;

/// Case after case. With `door` its program writes instead of `rel`.
pub fn run(budget: &Budget, door: Option<&Door>) -> Report {
    let watchdog = Watchdog::new("torture", Duration::from_secs(300));
    let mut report = Report::new("torture", budget);
    // Each round behind a door starts another program, a JVM for example.
    let full = if door.is_some() { CASES } else { 5 * CASES };
    let quick = report::scale(CASES, full) as u64;
    budget.each_seed(quick, &mut report, |seed, piece| {
        let _case = watchdog.begins(seed);
        if let Err(e) = guarded(|| round::case(seed, (budget, door), piece)) {
            piece.fail(seed.to_string(), e);
        }
    });
    drop(watchdog);
    report.done(budget)
}

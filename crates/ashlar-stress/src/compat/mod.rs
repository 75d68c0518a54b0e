//! Directories that pass from release to release: golden ones and new ones, at every format level.
//!
//! A case begins with a directory that RocksDB 7.8.3 or LevelDB 1.23 left, or with none, and goes on in turns: we write at
//! a format level, RocksDB writes as a version that the level promises to be read by. A turn ends in order or as a kill
//! leaves it. Before the first turn we read what is there, and after every turn:
//!
//! 1. We, and every version that the level promises, read a copy: each finds all that was written, and its checksums hold.
//! 2. A version that the level does not promise refuses, or finds all of it too; it never shows less.
//!
//! `--replay=N` is the Nth case.

mod game;

use crate::suite::{Budget, Report, Watchdog, guarded};
use std::time::Duration;

/// Cases of a quick run: every start once, every level some times.
const CASES: u64 = 17;

/// Case after case.
pub fn run(budget: &Budget) -> Report {
    let watchdog = Watchdog::new("compat", Duration::from_secs(120));
    let mut report = Report::new("compat", budget);
    budget.each_seed(CASES, &mut report, |case, piece| {
        watchdog.begins(case);
        if let Err(e) = guarded(|| game::play(case, piece)) {
            piece.fail(case.to_string(), e);
        }
    });
    drop(watchdog);
    report.done(budget)
}

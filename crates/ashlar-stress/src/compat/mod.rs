//! Directories that pass from release to release: golden ones and new ones, at every format level.
//!
//! A case begins with a directory that RocksDB 7.8.3 or LevelDB 1.23 left, or with none, and goes on in turns: we write at
//! a format level, RocksDB writes as a version that the level promises to be read by. A turn ends in order or as a kill
//! leaves it. Before the first turn we read what is there, and after every turn:
//!
//! 1. We, and every version that the level promises, read a copy: each finds all that was written, and its checksums hold.
//! 2. A version that the level does not promise refuses, or finds all of it too; it never shows less.
//!
//! Behind those, directories whose settings are drawn (`drawn`): each kind of finding is made small, and told with the line
//! that replays it.
//!
//! `--replay=N` is the Nth case of the first kind, `--replay=drawn-N` the case of seed N of the second, and
//! `--replay='11.8.1 | ...'` the case of such a line.

mod drawn;
mod game;

use crate::suite::{Budget, Report, Watchdog, guarded};
use std::time::Duration;

/// Cases of a quick run: every start once, every level some times.
const CASES: u64 = 17;

/// Every start, then drawn settings until the time is over.
pub fn run(budget: &Budget) -> Report {
    let watchdog = Watchdog::new("compat", Duration::from_secs(180));
    let mut report = Report::new("compat", budget);
    let is_other = budget.replay.is_some() && budget.replayed("").is_none();
    let cases = if is_other { 0..0 } else { 0..CASES };
    budget.each(cases, &mut report, |case, piece| {
        watchdog.begins(case);
        if let Err(e) = guarded(|| game::play(case, piece)) {
            piece.fail(case.to_string(), e);
        }
    });
    if budget.replayed("").is_none() {
        drawn::run(budget, &mut report, &watchdog);
    }
    drop(watchdog);
    report.done(budget)
}

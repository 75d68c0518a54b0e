//! Passes directories from release to release: golden and new ones, at every format level.
//!
//! A case begins with a directory of RocksDB 7.8.3 or LevelDB 1.23, or without one. Then AshlarDB, at a format level, and a
//! RocksDB that the level promises to support write in turns. A turn ends with a close or with a kill. AshlarDB reads the
//! directory before the first turn. After every turn:
//!
//! 1. AshlarDB and every version that the level promises read a copy. Each finds all entries and valid checksums.
//! 2. A version that the level does not promise refuses the copy, or finds all entries too.
//!
//! Then come directories of LevelDB 1.23 with random settings, with the same turns (`leveldb`), and directories of RocksDB
//! with random settings (`drawn`). Each failure is minimised and printed with its `--replay` line.
//!
//! `--replay=N` is the Nth case of the first kind, `--replay=leveldb-N` and `--replay=drawn-N` are the cases of seed N of the
//! others, and `--replay='11.8.1 | ...'` the case of such a line.

mod drawn;
mod game;
mod leveldb;

use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use std::time::Duration;

/// Cases of a quick run: every start once, every level some times.
const CASES: u64 = 17;
/// Directories of LevelDB, in a quick run and in a long one.
const LEVELDB: u64 = 2;
const LEVELDB_LONG: u64 = 200;

/// Every start, then drawn settings until the time is over.
pub fn run(budget: &Budget) -> Report {
    let watchdog = Watchdog::new("compat", Duration::from_secs(180));
    let mut report = Report::new("compat", budget);
    let is_other = budget.replay.is_some() && budget.replayed("").is_none();
    let cases = if is_other { 0..0 } else { 0..CASES };
    budget.each(cases, &mut report, |case, piece| {
        let _case = watchdog.begins(case);
        if let Err(e) = guarded(|| game::play(case, piece)) {
            piece.fail(case.to_string(), e);
        }
    });
    if budget.replayed("").is_none() {
        run_leveldb(budget, &mut report, &watchdog);
    }
    if budget.replayed("").is_none() && budget.replayed("leveldb-").is_none() {
        drawn::run(budget, &mut report, &watchdog);
    }
    drop(watchdog);
    report.done(budget)
}

fn run_leveldb(budget: &Budget, report: &mut Report, watchdog: &Watchdog) {
    let first = budget.seed;
    let seeds = match (&budget.replay, budget.replayed("leveldb-"), budget.length) {
        (_, Some(seed), _) => seed..seed + 1,
        (Some(_), None, _) => 0..0,
        (None, None, Length::Quick) => first..first + LEVELDB,
        (None, None, Length::For(_)) => first..first + LEVELDB_LONG,
    };
    budget.each(seeds, report, |seed, piece| {
        let _case = watchdog.begins(format!("leveldb-{seed}"));
        if let Err(e) = guarded(|| leveldb::play(seed, piece)) {
            piece.fail(format!("leveldb-{seed}"), e);
        }
    });
}

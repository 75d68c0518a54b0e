//! The limits of a machine: other owners of the directory, the number of open files, the size of the disk, and directories that
//! are removed meanwhile. A refusal has a reason, and acknowledged writes are there afterwards.
//!
//! Where the machine does not let a limit be set (a file system to mount needs root), the case is skipped with the reason.
//! `--replay=NAME` is one case.

mod descriptors;
mod folders;
mod owners;
pub mod roles;
mod small_disk;
mod store;

use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use ashlar_testkit::turns;
use std::path::Path;
use std::time::Duration;

/// What begins the error of a case that cannot be done here.
const SKIPPED: &str = "skipped: ";

/// What a case has: the budget's program for child processes, a folder of its own, the seed, and where to count.
struct Case<'a> {
    budget: &'a Budget,
    folder: &'a Path,
    seed: u64,
    report: &'a mut Report,
}

type Run = fn(&mut Case<'_>) -> Result<(), String>;

const CASES: [(&str, Run); 14] = [
    ("owner", owners::one_owner),
    ("lock-removed", owners::lock_removed),
    ("living-and-killed", owners::living_and_killed),
    ("started-meanwhile", owners::started_meanwhile),
    ("closed", owners::closed),
    ("links", folders::links),
    ("descriptors", descriptors::exhausted),
    ("read-only", folders::read_only),
    ("small-disk", small_disk::filled_and_enlarged),
    ("small-ext4", small_disk::filled_ext4),
    ("removed", folders::removed),
    ("renamed", folders::renamed),
    ("working-directory", folders::working_directory),
    ("table-removed", folders::table_removed),
];

/// Every case, once; in a long run again and again with other seeds.
pub fn run(budget: &Budget) -> Report {
    let watchdog = Watchdog::new("limits", Duration::from_secs(300));
    let mut report = Report::new("limits", budget);
    for seed in budget.seed.. {
        for (name, case) in CASES {
            if budget.replay.as_deref().is_none_or(|only| only == name) && !budget.is_enough(&report) {
                let _turn = turns::beside_others();
                let _case = watchdog.begins(name);
                one(budget, (name, case), seed, &mut report);
            }
        }
        if budget.length == Length::Quick || budget.is_over() || budget.is_enough(&report) {
            break;
        }
    }
    drop(watchdog);
    report.done(budget)
}

fn one(budget: &Budget, (name, case): (&str, Run), seed: u64, report: &mut Report) {
    let Ok(folder) = tempfile::tempdir() else { return report.skip(format!("{name}: no folder for it")) };
    let done = guarded(|| case(&mut Case { budget, folder: folder.path(), seed, report }));
    match done {
        Ok(()) => report.count("cases", 1),
        Err(why) => match why.strip_prefix(SKIPPED) {
            Some(why) => report.skip(format!("{name}: {why}")),
            None => report.fail(name, format!("{name}: {why}")),
        },
    }
}

/// `Err` with `what` where `holds` is false.
fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

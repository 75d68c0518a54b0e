//! The engine on the simulated machine: crashes at any call, disks that fill up, calls that fail, and what must hold
//! afterwards.
//!
//! A history writes and reads, and does what `features` lists, such as transactions, checkpoints, secondaries, values that expire
//! and files behind all data. In `ingested` and `imported`, writes come in other ways.
//!
//! One seed decides everything. What must hold after a crash: the store is the model cut behind some write M; M is not
//! below the last write that was acknowledged as durable for that kind of crash; batches are whole, over all families;
//! the families are those that were created and not dropped; the store takes writes again; a further crash loses nothing
//! of what was found.
//!
//! `--replay=N` makes the history of seed N again, twice, and compares the two; `--replay=disk-N` the full disk of seed
//! N, `--replay=failing-N` its history in which calls fail.

mod behind;
pub(crate) mod check;
mod copies;
mod crashes;
mod expiring;
mod failing;
pub mod features;
mod full_disk;
mod imported;
pub(crate) mod ingested;
mod judged;
pub mod places;
pub mod plan;
mod secondary;
pub mod store;
pub(crate) mod tally;
mod transactions;
mod updates;

pub(crate) use crashes::brief;
use crashes::history;
use failing::failing;
use full_disk::full_disk;

use ashlar_testkit::report::scale;
use ashlar_testkit::suite::{Budget, Length, Report, Watchdog};
use ashlar_testkit::turns;
use judged::Judges;
use std::time::Duration;
use tally::Tally;

/// Histories of a quick run, and of one at full scale. They crash more than two thousand times, and the ninth is the first with
/// blob files in another directory.
const HISTORIES: [usize; 2] = [9, 16];
/// Full disks of a quick run.
const DISKS: u64 = 12;
/// Histories with failing calls of a quick run, and of one at full scale.
const FAILING: [usize; 2] = [5, 10];
/// Histories with failing calls for each other one in a long run: they are short, and find the most.
const FAILING_EACH: u64 = 6;
/// A history takes seconds at most, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(180);

/// Histories with crashes; disks that fill, a third as many in a long run; histories in which calls fail.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("sim", budget);
    let mut judges = Judges::start();
    let mut tally = Tally::default();
    let watchdog = Watchdog::new("sim", PATIENCE);
    if let Some(seed) = budget.replayed("") {
        histories(seed..seed + 1, true, judges.as_mut().ok(), &mut tally, &mut report, &watchdog);
    } else if let Some(seed) = budget.replayed("disk-") {
        disks(seed..seed + 1, judges.as_mut().ok(), &mut tally, &mut report, &watchdog);
    } else if let Some(seed) = budget.replayed("failing-") {
        failures(seed..seed + 1, &mut tally, &mut report, &watchdog);
    } else {
        for seed in budget.seeds(scale(HISTORIES[0], HISTORIES[1]) as u64) {
            if budget.is_enough(&report) {
                break;
            }
            histories(seed..seed + 1, false, judges.as_mut().ok(), &mut tally, &mut report, &watchdog);
            if budget.length == Length::Quick {
                continue;
            }
            if seed % 3 == 0 {
                disks(seed..seed + 1, judges.as_mut().ok(), &mut tally, &mut report, &watchdog);
            }
            let first = seed.wrapping_mul(FAILING_EACH);
            failures(first..first.saturating_add(FAILING_EACH), &mut tally, &mut report, &watchdog);
        }
        if budget.length == Length::Quick && !budget.is_enough(&report) {
            let first = budget.seed + 1;
            disks(first..first + DISKS, judges.as_mut().ok(), &mut tally, &mut report, &watchdog);
            failures(first..first + scale(FAILING[0], FAILING[1]) as u64, &mut tally, &mut report, &watchdog);
        }
    }
    drop(watchdog);
    tally.tell(&mut report);
    if let Err(skip) = judges {
        report.skip(format!("what simulated runs leave, read by RocksDB: {skip}"));
    }
    report.done(budget)
}

/// Histories; one in a hundred, or each that is replayed, is done twice, and its traces are compared.
fn histories(
    seeds: std::ops::Range<u64>,
    replay: bool,
    mut judges: Option<&mut Judges>,
    tally: &mut Tally,
    report: &mut Report,
    watchdog: &Watchdog,
) {
    for seed in seeds {
        let pair = replay || seed % 100 == 7;
        let _turn: Box<dyn std::any::Any> =
            if pair { Box::new(turns::alone()) } else { Box::new(turns::beside_others()) };
        let _case = watchdog.begins(seed);
        let first = history(seed, tally, judges.as_deref_mut());
        if pair {
            let second = history(seed, &mut Tally::default(), None);
            if first != second {
                report.fail(seed.to_string(), format!("two runs differ: {first:?} and {second:?}"));
            }
            tally.pairs += 1;
        }
        if let Err(e) = first {
            report.fail(seed.to_string(), e);
        }
    }
}

fn disks(
    seeds: std::ops::Range<u64>,
    mut judges: Option<&mut Judges>,
    tally: &mut Tally,
    report: &mut Report,
    watchdog: &Watchdog,
) {
    for seed in seeds {
        let _turn = turns::beside_others();
        let _case = watchdog.begins(format!("disk-{seed}"));
        match full_disk(seed, tally, judges.as_deref_mut()) {
            Ok(refused) => report.count("times a full disk refused and resumed", refused),
            Err(e) => report.fail(format!("disk-{seed}"), e),
        }
        report.count("full disks", 1);
    }
}

fn failures(seeds: std::ops::Range<u64>, tally: &mut Tally, report: &mut Report, watchdog: &Watchdog) {
    for seed in seeds {
        let _turn = turns::beside_others();
        let _case = watchdog.begins(format!("failing-{seed}"));
        if let Err(e) = failing(seed, tally) {
            report.fail(format!("failing-{seed}"), e);
        }
        report.count("histories with failing calls", 1);
    }
}

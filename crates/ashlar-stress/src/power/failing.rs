//! Devices that fail: some writes and flushes of ext4 return an error, for a while, again and again.
//!
//! After a failed write, the kernel marks the page as clean. The next `fsync` of the file fails once, and later ones
//! succeed. After a failed write of the journal, ext4 accepts no writes. The database may refuse any call meanwhile, but
//!
//! 1. all data that it reported as durable is in every later crash image, also in those from the time of the failures;
//! 2. when the device works again and ext4 accepts writes, the database accepts them too, in the same handle.
//!
//! A refused batch is in doubt. Its writer repeats it until it is accepted, so that each number has one batch.

use super::Done;
use super::batches::{Writers, open, pass, undisturbed};
use super::machine::{Machine, Stretch};
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::health::{Health, Severity};
use ashlar_testkit::Rng;
use ashlar_testkit::block_log::RecordedDisk;
use ashlar_testkit::harm::HANG;
use ashlar_testkit::suite::{Budget, Report};
use std::error::Error as _;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Times that the device fails and is well again.
const ROUNDS: usize = 4;
/// How long writes may take to be taken again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The percentage of writes and flushes that fail, and whether the journal and the tables of ext4 are spared.
const FAULTS: [(usize, usize, bool); 7] = [
    (10, 0, true),
    (40, 0, true),
    (100, 0, true),
    (100, 0, true),
    (10, 10, true),
    (0, 100, true),
    (20, 10, false),
];

/// A fresh file system on a device that fails, and its cuts.
pub(super) fn life(seed: u64, budget: &Budget, report: &mut Report) -> Result<Done, String> {
    let mut rng = Rng::new(seed);
    let begun = Machine::new(&mut rng).and_then(|machine| Ok((machine.device(budget)?, machine)));
    let (disk, mut machine) = match begun {
        Ok(begun) => begun,
        Err(skip) => {
            report.skip(format!("devices that fail: {}", skip.why()));
            return Ok(Done::Skipped);
        }
    };
    let left = work(&machine, disk, &mut rng, report)?;
    machine.cuts(&left, &mut rng, budget, report)?;
    Ok(Done::Life)
}

/// The state after the device works again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Writes are taken.
    Taken,
    /// Ext4 takes none.
    Shut,
    /// The database must be opened again.
    Fatal,
}

/// Writes while the device fails and does not.
fn work(
    machine: &Machine,
    disk: RecordedDisk,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<Stretch, String> {
    let position = || disk.position().unwrap_or(u64::MAX);
    let writers = Writers::new(open(&machine.setup, &disk.path())?, machine.found, rng, &position);
    let refused = AtomicU64::new(0);
    let again = |e: &Error| {
        refused.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        e.kind() != ErrorKind::Corruption
    };
    let mut passing = rng.fork();
    let (after, ends) = writers.run(rng, &again, || rounds(machine, &writers, &disk, &mut passing, report));
    // First: a writer that ended is one that does not get on.
    ends.map_err(|e| format!("a write on a device that fails: {e}, because of {:?}", e.source()))?;
    let after = match after? {
        After::Taken => sync_in_the_end(&writers, &disk.path())?,
        after => after,
    };
    report.count("calls refused on failing devices", refused.into_inner());
    match after {
        After::Taken => {}
        After::Shut => report.count("file systems that the kernel shut", 1),
        After::Fatal => report.count("databases to be opened again", 1),
    }
    let promises = writers.promises();
    let Writers { db, .. } = writers;
    let closed = db.close();
    if after == After::Taken {
        closed.map_err(|e| format!("close on a device that is well again: {e}"))?;
    }
    drop(db);
    undisturbed(|| disk.unmount())?;
    Ok(Stretch { log: disk.end()?, promises, images: "crash images of failing devices" })
}

/// A sync on a device that is well again. It may be the one that the kernel tells of a page whose write failed before, or of
/// a journal that did: writes that are not synced went on.
fn sync_in_the_end(writers: &Writers<'_>, folder: &Path) -> Result<After, String> {
    let began = Instant::now();
    loop {
        match writers.sync() {
            Ok(()) => return Ok(After::Taken),
            Err(_) if is_shut(folder) => return Ok(After::Shut),
            Err(_) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Err(e) => return Err(format!("{HANG}a sync on a device that is well again: {e}")),
        }
    }
}

/// Ill and well, some times.
fn rounds(
    machine: &Machine,
    writers: &Writers<'_>,
    disk: &RecordedDisk,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<After, String> {
    for _ in 0..ROUNDS {
        fail_for_a_while(machine, disk, rng)?;
        let after = until_taken(writers, disk, rng, report)?;
        if after != After::Taken {
            // Writers that wait for a flush need not wait until its next attempt.
            let _ = writers.db.close();
            return Ok(after);
        }
    }
    Ok(After::Taken)
}

fn fail_for_a_while(machine: &Machine, disk: &RecordedDisk, rng: &mut Rng) -> Result<(), String> {
    let said = |e: std::io::Error| format!("the device does not obey: {e}");
    let time = |most: usize, rng: &mut Rng| Duration::from_millis(rng.between(2, most) as u64);
    let well = time(60, rng);
    pass(well, rng, &disk.path());
    let (writes, flushes, spared) = *rng.pick(&FAULTS).unwrap_or(&FAULTS[0]);
    let from = if spared { machine.front_bytes } else { 0 };
    disk.fail(writes, flushes, from, rng.next_u64()).map_err(said)?;
    let ill = time(120, rng);
    pass(ill, rng, &disk.path());
    disk.heal().map_err(said)
}

/// Waits until each writer got on; now and then the database is asked to resume.
fn until_taken(
    writers: &Writers<'_>,
    disk: &RecordedDisk,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<After, String> {
    let (began, before, was_ill) = (Instant::now(), writers.written(), writers.db.health().severity);
    if rng.percent(30) {
        // The checks below show the effect.
        let _ = writers.db.resume();
    }
    while began.elapsed() < PATIENCE {
        if before.iter().zip(writers.written()).all(|(then, now)| now > *then) {
            report.count("times a device failed and writes were taken again", 1);
            if was_ill >= Severity::Hard {
                report.time("to take writes again", began.elapsed());
            }
            return Ok(After::Taken);
        }
        if writers.db.health().severity == Severity::Fatal {
            return Ok(After::Fatal);
        }
        if is_shut(&disk.path()) {
            return Ok(After::Shut);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Health { severity, cause: why, .. } = writers.db.health();
    Err(format!("{HANG}a device is well again, and writes are refused: {severity:?}, {why:?}"))
}

/// Whether ext4 takes nothing more.
fn is_shut(folder: &Path) -> bool {
    let probe = folder.join("probe");
    let taken = File::create(&probe).and_then(|file| file.sync_all());
    let removed = std::fs::remove_file(&probe);
    taken.and(removed).is_err()
}

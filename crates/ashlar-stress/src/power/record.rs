//! Power cuts by the record of a device: a cut is any place of the record, with any part of the unflushed writes.
//!
//! A seed runs several stretches. In each, writers work on a recorded device. Cuts at random places of the record give
//! images, each of which is mounted and opened. The next stretch begins with one of these images, so that the replay of the
//! journal and the recovery of the database are recorded and cut too.

use super::Done;
use super::batches::{Promise, Writers, between, open, pass, undisturbed};
use super::machine::{Machine, Stretch};
use ashlar_testkit::Rng;
use ashlar_testkit::block_log::RecordedDisk;
use ashlar_testkit::suite::{Budget, Report};
use std::time::Duration;

/// Stretches of a life.
const STRETCHES: usize = 3;

/// A fresh file system, recorded, cut, and so again.
pub(super) fn life(seed: u64, budget: &Budget, report: &mut Report) -> Result<Done, String> {
    let mut rng = Rng::new(seed);
    let begun = Machine::new(&mut rng).and_then(|machine| Ok((machine.device(budget)?, machine)));
    let (mut disk, mut machine) = match begun {
        Ok(begun) => begun,
        Err(skip) => {
            report.skip(format!("cuts by the record of a device: {}", skip.why()));
            return Ok(Done::Skipped);
        }
    };
    for stretch in 1.. {
        let left = work(&machine, disk, &mut rng, report)?;
        machine.cuts(&left, &mut rng, budget, report)?;
        if stretch == STRETCHES || budget.is_over() {
            break;
        }
        disk = machine.device(budget).map_err(|skip| skip.why().to_owned())?;
    }
    Ok(Done::Life)
}

/// Writes for a while, closes and unmounts.
fn work(
    machine: &Machine,
    disk: RecordedDisk,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<Stretch, String> {
    let position = || disk.position().unwrap_or(u64::MAX);
    let writers = Writers::new(open(&machine.setup, &disk.path())?, machine.found, rng, &position);
    let wait = Duration::from_millis(rng.between(5, 400) as u64);
    let mut passing = rng.fork();
    let ((), refused) = writers.run(rng, &|_| false, || pass(wait, &mut passing, &disk.path()));
    refused.map_err(|e| format!("a write on a sound device: {e}"))?;
    let (written, mut promises) = (writers.written(), writers.promises());
    report.count("recorded batches acknowledged", between(machine.found, written));
    let Writers { db, .. } = writers;
    db.close().map_err(|e| format!("close: {e}"))?;
    drop(db);
    undisturbed(|| disk.unmount())?;
    promises.push(Promise { position: position(), durable: written });
    Ok(Stretch { log: disk.end()?, promises, images: "crash images" })
}

//! Power cuts by ext4, which writes nothing to its device from one moment on.
//!
//! Calls that returned after the cut began do not count: a sync during the shutdown of ext4 may succeed and have written
//! nothing. One in seven cuts showed this for plain appends with `fdatasync`, without a database.

use super::batches::{Numbers, WRITERS, Writers, between, found_of, open, pass, setup, undisturbed};
use super::{Done, MOUNTS};
use crate::sim::plan::Setup;
use ashlar_testkit::Rng;
use ashlar_testkit::ext4::Ext4;
use ashlar_testkit::suite::{Budget, Report};
use std::time::Duration;

const MIB: u64 = 256;
/// Cuts that one file system lives through.
const CUTS: u64 = 10;

/// A fresh file system, cut again and again.
pub(super) fn life(seed: u64, budget: &Budget, report: &mut Report) -> Result<Done, String> {
    let mut rng = Rng::new(seed);
    let setup = setup(&mut rng);
    let options = rng.pick(&MOUNTS).copied().unwrap_or_default();
    let disk = match Ext4::new(MIB, options) {
        Ok(disk) => disk,
        Err(skip) => {
            report.skip(format!("cuts by ext4: {}", skip.why()));
            return Ok(Done::Skipped);
        }
    };
    let mut found = [0; WRITERS];
    for _ in 0..CUTS {
        if budget.is_over() {
            break;
        }
        found = cut(&disk, &setup, found, &mut rng, report)?;
    }
    Ok(Done::Life)
}

/// Writes, cuts the power, boots, and looks.
fn cut(
    disk: &Ext4,
    setup: &Setup,
    found: Numbers,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<Numbers, String> {
    let writers = Writers::new(open(setup, &disk.path())?, found, rng, &|| 0);
    let wait = Duration::from_millis(rng.between(5, 400) as u64);
    let mut passing = rng.fork();
    let ((cut, written, durable), _refused) = writers.run(rng, &|_| false, || {
        pass(wait, &mut passing, &disk.path());
        let (written, durable) = (writers.written(), writers.durable());
        let cut = disk.cut();
        // Writers that wait for a flush need not wait until its next attempt.
        let _ = writers.db.close();
        (cut, written, durable)
    });
    cut.map_err(|e| format!("the power cannot be cut: {e}"))?;
    drop(writers);
    undisturbed(|| disk.boot())?;
    report.count("power cuts", 1);
    report.count("batches acknowledged", between(found, written));
    report.count("batches durable by promise", between(found, durable));
    let db = open(setup, &disk.path())?;
    let left = found_of(&db, durable)?;
    report.count("unsynced batches that went", between(left, written));
    db.close().map_err(|e| format!("close: {e}"))?;
    Ok(left)
}

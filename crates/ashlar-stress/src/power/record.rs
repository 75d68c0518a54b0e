//! Power cuts by the record of a device: any place of it is a cut, and what was not flushed by then is left in any part.
//!
//! A life is some stretches. In each, writers work on a recorded device; of the record, images are made for cuts at random
//! places, each mounted and opened by itself. The next stretch begins with one of these images: so the replay of the
//! journal and the recovery of the database are recorded too, and cut.
//!
//! What was promised at a cut: promises carry the record's length at their moment; those up to the cut's length count.

use super::batches::{Numbers, Promise, WRITERS, Writers, between, found_of, open, pass, setup, undisturbed};
use super::{Done, MOUNTS};
use crate::sim::plan::Setup;
use crate::suite::{Budget, Report};
use ashlar_testkit::Rng;
use ashlar_testkit::block_log::{Event, Image, Log, RecordedDisk, Replay, Survivors};
use ashlar_testkit::ext4::{Blank, Ext4};
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 48;
/// Stretches of a life.
const STRETCHES: usize = 3;
/// Images of a stretch.
const IMAGES: usize = 12;

/// A file system, and what is known of the database on it.
pub(super) struct Machine {
    pub(super) setup: Setup,
    pub(super) options: &'static str,
    pub(super) image: Vec<u8>,
    pub(super) found: Numbers,
}

/// What a stretch left.
pub(super) struct Stretch {
    pub(super) log: Log,
    pub(super) promises: Vec<Promise>,
    pub(super) written: Numbers,
}

/// A fresh file system, recorded, cut, and so again.
pub(super) fn life(seed: u64, budget: &Budget, report: &mut Report) -> Result<Done, String> {
    let mut rng = Rng::new(seed);
    let setup = setup(&mut rng);
    let options = rng.pick(&MOUNTS).copied().unwrap_or_default();
    let began = Blank::new(MIB).and_then(|blank| {
        let disk = device(budget, &blank.image, options)?;
        Ok((disk, blank.image))
    });
    let (first, image) = match began {
        Ok(began) => began,
        Err(skip) => {
            report.skip(format!("cuts by the record of a device: {skip}"));
            return Ok(Done::Skipped);
        }
    };
    let mut machine = Machine { setup, options, image, found: [0; WRITERS] };
    let mut disk = Some(first);
    for _ in 0..STRETCHES {
        let disk = match disk.take() {
            Some(disk) => disk,
            None => device(budget, &machine.image, options).map_err(|skip| skip.to_string())?,
        };
        let stretch = work(&machine, disk, &mut rng)?;
        report.count("recorded batches acknowledged", between(machine.found, stretch.written));
        machine.cuts(&stretch, &mut rng, budget, report)?;
        if budget.is_over() {
            break;
        }
    }
    Ok(Done::Life)
}

/// A recorded device with the file system of an image.
pub(super) fn device(
    budget: &Budget,
    image: &[u8],
    options: &str,
) -> Result<RecordedDisk, ashlar_testkit::Skip> {
    RecordedDisk::new(Command::new(&budget.program).args(["child", "block-log"]), image, options)
}

/// Writes for a while, then closes and unmounts, with or without order.
fn work(machine: &Machine, disk: RecordedDisk, rng: &mut Rng) -> Result<Stretch, String> {
    let position = || disk.position().unwrap_or(u64::MAX);
    let writers = Writers::new(open(&machine.setup, &disk.path())?, machine.found, rng, &position);
    let wait = Duration::from_millis(rng.between(5, 400) as u64);
    let mut passing = rng.fork();
    let ((), refused) = writers.run(rng, &|_| false, || pass(wait, &mut passing, &disk.path()));
    refused.map_err(|e| format!("a write on a sound device: {e}"))?;
    let (written, mut promises) = (writers.written(), writers.promises());
    let Writers { db, .. } = writers;
    db.close().map_err(|e| format!("close: {e}"))?;
    drop(db);
    undisturbed(|| disk.unmount())?;
    promises.push(Promise { position: position(), durable: written });
    Ok(Stretch { log: disk.end()?, promises, written })
}

impl Machine {
    /// Images of cuts at random places of a stretch, each looked at; one of them is the machine from now on.
    pub(super) fn cuts(
        &mut self,
        stretch: &Stretch,
        rng: &mut Rng,
        budget: &Budget,
        report: &mut Report,
    ) -> Result<(), String> {
        let Stretch { log, promises, written: _ } = stretch;
        let count = |kind: Event| log.events().filter(|event| **event == kind).count() as u64;
        report.count("block flushes recorded", count(Event::Flush));
        report.count("block writes that failed", count(Event::FailedWrite));
        report.count("block flushes that failed", count(Event::FailedFlush));
        let writes = log.events().filter(|event| matches!(event, Event::Write { .. })).count();
        report.count("block writes recorded", writes as u64);
        let cuts = draw(log, rng);
        let next = rng.below(IMAGES);
        let mut replay = Replay::new(log, std::mem::take(&mut self.image));
        let mut chosen = None;
        for (i, cut) in cuts.into_iter().enumerate() {
            if budget.is_over() {
                break;
            }
            let survivors = *rng.pick(&Survivors::ALL).unwrap_or(&Survivors::None);
            let image = replay.cut(cut, survivors, rng);
            let position = log.position(cut);
            let promised = promises.iter().rfind(|promise| promise.position <= position);
            let durable = promised.map_or([0; WRITERS], |promise| promise.durable);
            let found = self.boot(&image, durable).map_err(|what| {
                let place = format!("cut {cut} of {} with {survivors:?}", log.len());
                format!("{place}: {what}; {}", kept(&image))
            })?;
            report.count("crash images", 1);
            report.count("block writes that went", image.gone);
            report.count("block writes torn", image.torn);
            report.count("batches durable by promise in images", between(self.found, durable));
            if i == next {
                chosen = Some((image.bytes, found));
            }
        }
        if let Some((image, found)) = chosen {
            (self.image, self.found) = (image, found);
        }
        Ok(())
    }

    /// Mounts an image, opens the database, and looks.
    fn boot(&self, image: &Image, durable: Numbers) -> Result<Numbers, String> {
        let disk = Ext4::of_image(&image.bytes, self.options)?;
        let db = open(&self.setup, &disk.path())?;
        let found = found_of(&db, durable)?;
        db.close().map_err(|e| format!("close: {e}"))?;
        drop(db);
        undisturbed(|| disk.unmount())?;
        Ok(found)
    }
}

/// Places to cut, in their order: half of them anywhere, and half where more than one write is not flushed.
fn draw(log: &Log, rng: &mut Rng) -> Vec<usize> {
    let mut volatile = 0;
    let rich: Vec<usize> = (1..)
        .zip(log.events())
        .filter(|(_, event)| {
            volatile = if **event == Event::Flush { 0 } else { volatile + 1 };
            volatile > 1
        })
        .map(|(cut, _)| cut)
        .collect();
    let anywhere = |rng: &mut Rng| rng.between(1, log.len());
    let mut cuts: Vec<usize> = (0..IMAGES)
        .map(|i| if i % 2 == 0 { anywhere(rng) } else { rng.pick(&rich).copied().unwrap_or(1) })
        .collect();
    cuts.sort_unstable();
    cuts
}

/// Keeps an image in which something was found, and says where.
fn kept(image: &Image) -> String {
    let kept = || {
        let mut file = tempfile::Builder::new().prefix("ashlar-power-").suffix(".img").tempfile()?;
        std::io::Write::write_all(&mut file, &image.bytes)?;
        file.keep().map_err(|e| e.error)
    };
    match kept() {
        Ok((_, path)) => format!("the image is kept: {}", path.display()),
        Err(e) => format!("the image cannot be kept: {e}"),
    }
}

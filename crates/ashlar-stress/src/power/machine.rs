//! The start of a stretch on recorded devices: an image, and the known state of the database on it.
//!
//! Each promise has the record's length at its moment. At a cut, the promises up to the cut's length count.

use super::MOUNTS;
use super::batches::{Numbers, Promise, WRITERS, between, found_of, open, setup, undisturbed};
use crate::sim::plan::Setup;
use ashlar_testkit::block_log::{Event, Image, Log, RecordedDisk, Replay, Survivors};
use ashlar_testkit::ext4::{Blank, Ext4};
use ashlar_testkit::suite::{Budget, Report};
use ashlar_testkit::{Rng, Skip};
use std::process::Command;
use std::time::Instant;

const MIB: u64 = 64;
/// Images of a stretch.
const IMAGES: usize = 12;

/// A file system, and the known state of the database on it.
pub(super) struct Machine {
    pub(super) setup: Setup,
    options: &'static str,
    image: Vec<u8>,
    /// Where files begin on it.
    pub(super) front_bytes: u64,
    /// Batches that are there.
    pub(super) found: Numbers,
}

/// The result of a stretch.
pub(super) struct Stretch {
    pub(super) log: Log,
    pub(super) promises: Vec<Promise>,
    /// What images of it count as.
    pub(super) images: &'static str,
}

impl Machine {
    /// Settings of a seed, and a fresh file system.
    pub(super) fn new(rng: &mut Rng) -> Result<Machine, Skip> {
        let setup = setup(rng);
        let options = rng.pick(&MOUNTS).copied().unwrap_or_default();
        let Blank { image, front_bytes } = Blank::new(MIB)?;
        Ok(Machine { setup, options, image, front_bytes, found: [0; WRITERS] })
    }

    /// A recorded device with its file system.
    pub(super) fn device(&self, budget: &Budget) -> Result<RecordedDisk, Skip> {
        let mut server = Command::new(&budget.program);
        RecordedDisk::new(server.args(["child", "block-log"]), &self.image, self.options)
    }

    /// Images of cuts at random places of a stretch, each looked at; one of them is the machine from now on.
    pub(super) fn cuts(
        &mut self,
        stretch: &Stretch,
        rng: &mut Rng,
        budget: &Budget,
        report: &mut Report,
    ) -> Result<(), String> {
        let Stretch { log, promises, images } = stretch;
        let count = |kind: Event| log.events().filter(|event| **event == kind).count() as u64;
        report.count("block flushes recorded", count(Event::Flush));
        report.count("block writes that failed", count(Event::FailedWrite));
        report.count("block flushes that failed", count(Event::FailedFlush));
        let writes = log.events().filter(|event| matches!(event, Event::Write { .. })).count();
        report.count("block writes recorded", writes as u64);
        let cuts = draw(log, rng);
        let next = rng.below(IMAGES);
        let mut replay = Replay::new(log, self.image.clone());
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
            let began = Instant::now();
            let found = self.boot(&image, durable).map_err(|what| {
                let place = format!("cut {cut} of {} with {survivors:?}", log.len());
                format!("{place}: {what}; {}", kept(&image))
            })?;
            report.time("to look at an image", began.elapsed());
            report.count(images, 1);
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

/// Places to cut, in their order: half of them anywhere, half where more than one write is not flushed, and the end.
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
    let mut cuts: Vec<usize> = (1..IMAGES)
        .map(|i| if i % 2 == 0 { anywhere(rng) } else { rng.pick(&rich).copied().unwrap_or(1) })
        .collect();
    cuts.push(log.len());
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

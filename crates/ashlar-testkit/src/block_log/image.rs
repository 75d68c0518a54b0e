//! Crash images: what a device may hold when its power is cut at a place of its log.
//!
//! 1. All writes before the last flush are there, in their order.
//! 2. Of those behind it, each is there, is not, or is there in some of its sectors. What an older write had put where a
//!    newer one is missing shows: that is how a device that reorders its writes looks afterwards.
//!
//! 3. The first 4 KiB hold ext4's superblock, which no journal covers; ext4 takes them to be written whole or not at all,
//!    and refuses to mount what has half of it.
//!
//! A device owes a flush only those writes that were answered before the flush was asked for. The log has one that came
//! between as covered, which is kinder than some devices.

use super::log::{Event, Log};
use crate::Rng;

/// What is written whole or not at all.
pub const SECTOR: usize = 512;
const SUPERBLOCK_SECTORS: usize = 8;

/// Which writes after the last flush survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// Nothing.
    None,
    /// Everything.
    All,
    /// Those up to one of them, which is torn; nothing after it.
    InOrder,
    /// Each in two whole.
    Half,
    /// All but one in eight.
    Most,
    /// One in eight.
    Few,
    /// Each sector in two.
    Sectors,
    /// Each whole, gone or torn.
    Mixed,
}

impl Survivors {
    /// All ways.
    pub const ALL: [Survivors; 8] = [
        Survivors::None,
        Survivors::All,
        Survivors::InOrder,
        Survivors::Half,
        Survivors::Most,
        Survivors::Few,
        Survivors::Sectors,
        Survivors::Mixed,
    ];
}

/// How much of one write.
#[derive(Clone, Copy)]
enum Share {
    Whole,
    Gone,
    Torn,
}

/// An image, and which writes after the last flush survived.
#[derive(Debug)]
pub struct Image {
    /// The device.
    pub bytes: Vec<u8>,
    /// Writes that are not there.
    pub gone: u64,
    /// Writes of which some sectors are there.
    pub torn: u64,
}

/// A log played again on the device it began on, from cut to cut.
#[derive(Debug)]
pub struct Replay<'a> {
    log: &'a Log,
    /// The device, with all events before `flushed`.
    bytes: Vec<u8>,
    /// The place right after a flush, or 0.
    flushed: usize,
}

impl Replay<'_> {
    /// Begins with the device as it was before the log.
    pub fn new(log: &Log, base: Vec<u8>) -> Replay<'_> {
        Replay { log, bytes: base, flushed: 0 }
    }

    /// An image of the moment when `cut` events had happened. Cuts come in ascending order: one before the last flush of an
    /// earlier cut is taken for that flush.
    pub fn cut(&mut self, cut: usize, survivors: Survivors, rng: &mut Rng) -> Image {
        let flush =
            self.log.events().take(cut).rposition(|event| *event == Event::Flush).map_or(0, |at| at + 1);
        for event in self.log.events().take(flush).skip(self.flushed) {
            if let Event::Write { offset, data } = event {
                put(&mut self.bytes, *offset, self.log.data(data), |_| true);
            }
        }
        self.flushed = self.flushed.max(flush);
        let mut image = Image { bytes: self.bytes.clone(), gone: 0, torn: 0 };
        let volatile: Vec<&Event> = self.log.events().take(cut).skip(self.flushed).collect();
        let last = rng.below(volatile.len() + 1);
        for (at, event) in volatile.into_iter().enumerate() {
            let Event::Write { offset, data } = event else { continue };
            let data = self.log.data(data);
            match share(survivors, at.cmp(&last), rng) {
                Share::Whole => put(&mut image.bytes, *offset, data, |_| true),
                Share::Gone => image.gone += 1,
                Share::Torn => {
                    image.torn += 1;
                    tear(&mut image.bytes, *offset, data, rng);
                }
            }
        }
        image
    }
}

fn share(survivors: Survivors, place: std::cmp::Ordering, rng: &mut Rng) -> Share {
    let whole = |whole: bool| if whole { Share::Whole } else { Share::Gone };
    match survivors {
        Survivors::None => Share::Gone,
        Survivors::All => Share::Whole,
        Survivors::InOrder if place.is_eq() => Share::Torn,
        Survivors::InOrder => whole(place.is_lt()),
        Survivors::Half => whole(rng.percent(50)),
        Survivors::Most => whole(rng.below(8) != 0),
        Survivors::Few => whole(rng.below(8) == 0),
        Survivors::Sectors => Share::Torn,
        Survivors::Mixed => *rng.pick(&[Share::Whole, Share::Gone, Share::Torn]).unwrap_or(&Share::Gone),
    }
}

/// Some sectors of a write: the first ones, or any.
pub(super) fn tear(device: &mut [u8], offset: u64, data: &[u8], rng: &mut Rng) {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX) / SECTOR;
    let superblock = rng.percent(50);
    let first = rng.percent(50).then(|| rng.below(data.len() / SECTOR + 1));
    put(device, offset, data, |sector| match first {
        _ if begin.saturating_add(sector) < SUPERBLOCK_SECTORS => superblock,
        Some(first) => sector < first,
        None => rng.percent(50),
    });
}

/// Writes those sectors that `wanted` says, by their number in the write.
fn put(device: &mut [u8], offset: u64, data: &[u8], mut wanted: impl FnMut(usize) -> bool) {
    let Some(place) = usize::try_from(offset).ok().and_then(|offset| device.get_mut(offset..)) else {
        return;
    };
    let sectors = place.chunks_mut(SECTOR).zip(data.chunks(SECTOR)).enumerate();
    for (_, (old, new)) in sectors.filter(|(sector, _)| wanted(*sector)) {
        if let Some(old) = old.get_mut(..new.len()) {
            old.copy_from_slice(new);
        }
    }
}

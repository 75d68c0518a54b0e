//! Reads among tombstones.
//!
//! Ranges: on loaded data, every tenth key (at most 100,000) has a range tombstone that covers only this key. Gets of drawn
//! keys must miss exactly the covered keys.
//!
//! Points: all keys but the last thousand are deleted one by one, as the head of a queue is. A new cursor must find the first
//! entry that is left. Keys that do not sort like their numbers (`uuid`, `url`) leave some of the tombstones behind it.

use super::{Done, Stream};
use crate::job::{Job, Step};
use crate::meter::{Kind, Meter};
use ashlar_bench::Random;
use ashlar_peers::peer::{Cursor, Peer, Read, Result};

const RANGES: u64 = 100_000;
const LEAST_STRIDE: u64 = 10;
const LIVE: u64 = 1000;

/// The distance between the numbers of two covered keys.
fn stride(keys: u64) -> u64 {
    (keys / RANGES).max(LEAST_STRIDE)
}

/// Deletes the ranges.
pub fn make_ranges<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let s = &job.settings;
    let (mut begin, mut end) = (s.keys(), s.keys().missing());
    let covered = usize::try_from(stride(job.keys)).map_err(|e| e.to_string())?;
    // A missing key is the next key that there could be.
    (0..job.keys)
        .step_by(covered)
        .try_for_each(|number| peer.delete_range(begin.key(number), end.key(number)))
}

/// Gets drawn keys. All of them were loaded.
pub fn get_among_ranges<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let stride = stride(job.keys);
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Reads as u64);
    let mut done = Done::default();
    let mut reader = peer.reader()?;
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let number = random.below(job.keys);
        done.asks(number);
        let found = reader.get(maker.key(number), |value| done.saw(value))?;
        meter.ended(Kind::Read, 1);
        done.found += u64::from(found);
        done.wrong += u64::from(found == number.is_multiple_of(stride));
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

/// The number of the first key that is left.
fn first_left(keys: u64) -> u64 {
    keys - LIVE.min(keys.div_ceil(10))
}

/// Deletes the keys, from the first on.
pub fn make_points<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let mut maker = job.settings.keys();
    (0..first_left(job.keys)).try_for_each(|number| peer.delete(maker.key(number)))
}

/// Opens a cursor and moves it to the first entry, `step.ops` times.
pub fn first_live<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let mut maker = job.settings.keys();
    let left = (first_left(job.keys)..job.keys).map(|number| maker.key(number).to_vec());
    let wanted = left.min().unwrap_or_default();
    let mut done = Done::default();
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let mut cursor = peer.cursor()?;
        let entry = cursor.first()?;
        done.wrong += u64::from(entry.is_none_or(|(key, _)| *key != *wanted));
        if let Some((key, value)) = entry {
            done.found += 1;
            done.saw(key);
            done.saw(value);
        }
        cursor.check()?;
        meter.ended(Kind::Scan, 1);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

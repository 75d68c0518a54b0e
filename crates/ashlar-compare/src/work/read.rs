//! Reads by one thread.

use super::{Done, Stream};
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter, STEPS};
use ashlar_bench::Random;
use ashlar_peers::peer::{Cursor, Keys, Peer, Read, Result};

/// Keys of a call for many.
const TOGETHER: u64 = 64;

/// Gets drawn keys, or missing ones beside them.
pub fn get<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let missing = step.workload == Workload::Readmissing;
    let mut maker = if missing { s.keys().missing() } else { s.keys() };
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
        done.ops += 1;
        done.cut = meter.over();
    }
    done.wrong = if missing { done.found } else { 0 };
    Ok(done)
}

/// Gets the same keys as [`get`], [`TOGETHER`] in a call.
pub fn multi_get<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Reads as u64);
    let mut done = Done::default();
    let mut keys = Keys::new(s.key_bytes);
    let mut reader = peer.reader()?;
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let count = TOGETHER.min(step.ops - done.ops);
        keys.clear();
        for _ in 0..count {
            let number = random.below(job.keys);
            done.asks(number);
            keys.push(maker.key(number));
        }
        done.found += reader.multi_get(&keys, |value| done.saw(value))?;
        meter.ended(Kind::Read, count);
        done.ops += count;
        done.cut = meter.over();
    }
    Ok(done)
}

/// Seeks drawn keys and steps ten entries from each.
pub fn seek<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    const STEPS: usize = 10;
    let s = &job.settings;
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Seeks as u64);
    let mut done = Done::default();
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let number = random.below(job.keys);
        done.asks(number);
        let key = maker.key(number);
        let mut cursor = peer.cursor()?;
        let mut entry = cursor.seek(key)?;
        done.found += u64::from(entry.is_some_and(|(at, _)| at == key));
        for _ in 0..STEPS {
            let Some((key, value)) = entry else { break };
            done.saw(key);
            done.saw(value);
            entry = cursor.next()?;
        }
        cursor.check()?;
        meter.ended(Kind::Scan, 1);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok(done)
}

/// Scans all entries in order, or in reverse order, again and again until it has read `least` entries.
pub fn scan<P: Peer, const REVERSE: bool>(peer: &P, least: u64, meter: &mut Meter) -> Result<Done> {
    let mut done = Done::default();
    meter.begin();
    loop {
        let mut cursor = peer.cursor()?;
        let mut entry = if REVERSE { cursor.last()? } else { cursor.first()? };
        while let Some((key, value)) = entry {
            done.saw(key);
            done.saw(value);
            done.ops += 1;
            entry = if REVERSE { cursor.prev()? } else { cursor.next()? };
            if done.ops.is_multiple_of(STEPS) {
                meter.ended(Kind::Steps, STEPS);
            }
        }
        cursor.check()?;
        done.found = done.ops;
        if done.ops >= least || done.ops == 0 {
            meter.untimed(done.ops % STEPS);
            return Ok(done);
        }
    }
}

/// Brings every block into the cache: gets every fourth key, so that no block is left out.
pub fn warm<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let mut reader = peer.reader()?;
    let mut maker = job.settings.keys();
    for number in (0..job.keys).step_by(4) {
        reader.get(maker.key(number), |_| ())?;
    }
    Ok(())
}

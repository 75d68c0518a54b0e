//! Reads by one thread.

use super::{Done, Stream, Until};
use crate::job::{Job, Step};
use crate::peer::{Cursor, Peer, Read, Result};
use ashlar_bench::{KeyMaker, Random};

/// Gets drawn keys.
pub fn get<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<Done> {
    let s = &job.settings;
    let mut maker = KeyMaker::new(s.key_bytes);
    let mut random = Random::new(s.seed, Stream::Reads as u64);
    let mut done = Done::default();
    let mut reader = peer.reader()?;
    let until = Until::new(step.seconds);
    while done.ops < step.ops && !done.cut {
        let key = maker.key(random.below(job.keys));
        let found = reader.get(key, |value| done.saw(value))?;
        done.found += u64::from(found);
        done.ops += 1;
        done.cut = until.over(done.ops);
    }
    Ok(done)
}

/// Seeks drawn keys and steps ten entries from each.
pub fn seek<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<Done> {
    const STEPS: usize = 10;
    let s = &job.settings;
    let mut maker = KeyMaker::new(s.key_bytes);
    let mut random = Random::new(s.seed, Stream::Seeks as u64);
    let mut done = Done::default();
    let until = Until::new(step.seconds);
    while done.ops < step.ops && !done.cut {
        let key = maker.key(random.below(job.keys));
        let mut cursor = peer.cursor()?;
        cursor.seek(key)?;
        done.found += u64::from(cursor.entry().is_some_and(|(at, _)| at == key));
        for _ in 0..STEPS {
            let Some((key, value)) = cursor.entry() else { break };
            done.saw(key);
            done.saw(value);
            cursor.next()?;
        }
        cursor.check()?;
        done.ops += 1;
        done.cut = until.over(done.ops);
    }
    Ok(done)
}

/// Reads everything in order, as often as it takes to see `least` entries.
pub fn scan<P: Peer>(peer: &P, least: u64) -> Result<Done> {
    let mut done = Done::default();
    loop {
        let mut cursor = peer.cursor()?;
        cursor.first()?;
        while let Some((key, value)) = cursor.entry() {
            done.saw(key);
            done.saw(value);
            done.ops += 1;
            cursor.next()?;
        }
        cursor.check()?;
        done.found = done.ops;
        if done.ops >= least || done.ops == 0 {
            return Ok(done);
        }
    }
}

/// Brings every block into the cache: gets every fourth key, so that no block is left out.
pub fn warm<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let mut reader = peer.reader()?;
    let mut maker = KeyMaker::new(job.settings.key_bytes);
    for number in (0..job.keys).step_by(4) {
        reader.get(maker.key(number), |_| ())?;
    }
    Ok(())
}

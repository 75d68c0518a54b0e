//! Writes at a fixed rate. The due time of a write does not depend on the engine.
//!
//! A latency counts from the due time, so an engine that stalls is charged for the writes that wait. A closed loop hides
//! them, because it issues fewer operations during a stall.

use crate::job::Job;
use crate::meter::{Kind, Meter};
use crate::work::{Done, Stream};
use ashlar_bench::{KeyMaker, Random, Values};
use ashlar_peers::meter::wait_until;
use ashlar_peers::peer::{Peer, Result};
use std::time::Duration;

/// The entries, in the order of their due times.
struct Source {
    maker: KeyMaker,
    values: Values,
    random: Random,
}

impl Source {
    fn new(job: &Job) -> Source {
        let s = &job.settings;
        Source {
            maker: s.keys(),
            values: Values::new(s.seed, s.compress_ratio, s.value_bytes),
            random: Random::new(s.seed, Stream::Paced as u64),
        }
    }

    fn next(&mut self, job: &Job) -> (u64, &[u8], &[u8]) {
        let number = self.random.below(job.keys);
        (number, self.maker.key(number), self.values.next(job.settings.value_bytes))
    }
}

/// Puts the first `puts` entries, as fast as possible.
pub fn replay<P: Peer>(peer: &P, job: &Job, puts: u64) -> Result<()> {
    let mut source = Source::new(job);
    (0..puts).try_for_each(|_| {
        let (_, key, value) = source.next(job);
        peer.put(key, value)
    })
}

/// Puts `job.keys` drawn keys, `job.rate` per second.
pub fn put<P: Peer>(peer: &P, job: &Job, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let mut source = Source::new(job);
    let mut done = Done::default();
    let start = meter.begin_paced(job.rate);
    for i in 0..job.keys {
        let due = start + Duration::from_secs_f64(i as f64 / job.rate);
        wait_until(due);
        let (number, key, value) = source.next(job);
        done.asks(number);
        peer.put(key, value)?;
        meter.ended_due(Kind::Write, due);
        done.ops += 1;
    }
    done.bytes = done.ops * (s.key_bytes + s.value_bytes) as u64;
    Ok(done)
}

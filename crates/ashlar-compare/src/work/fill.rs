//! Puts: in key order or drawn, into an empty or a loaded database, one by one or in batches. Deletes of drawn keys.

use super::{Done, Stream};
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::{KeyMaker, Random, Values};
use ashlar_peers::peer::{Entries, Peer, Result};
use ashlar_peers::settings::Settings;

/// The entries of a step, one after the other.
struct Source {
    maker: KeyMaker,
    values: Values,
    random: Option<Random>,
    keys: u64,
    next: u64,
    value_bytes: usize,
}

impl Source {
    fn new(s: &Settings, keys: u64, workload: Workload) -> Source {
        let stream = match workload {
            Workload::Fillseq | Workload::Bulkload => None,
            Workload::Overwrite => Some(Stream::Again),
            _ => Some(Stream::Load),
        };
        Source {
            maker: s.keys(),
            values: Values::new(s.seed, s.compress_ratio, s.value_bytes),
            random: stream.map(|stream| Random::new(s.seed, stream as u64)),
            keys,
            next: 0,
            value_bytes: s.value_bytes,
        }
    }

    #[inline]
    fn next(&mut self) -> (u64, &[u8], &[u8]) {
        let number = self.random.as_mut().map_or(self.next, |random| random.below(self.keys));
        self.next += 1;
        (number, self.maker.key(number), self.values.next(self.value_bytes))
    }
}

/// Puts the step's entries.
pub fn put<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let mut source = Source::new(s, job.keys, step.workload);
    let mut done = Done::default();
    meter.begin();
    if step.batch > 1 {
        let mut entries = Entries::new(s.key_bytes, s.value_bytes);
        while done.ops < step.ops && !done.cut {
            let count = step.batch.min(step.ops - done.ops);
            batch(peer, &mut source, &mut entries, count, &mut done)?;
            meter.ended(Kind::Write, count);
            done.ops += count;
            done.cut = meter.over();
        }
    } else {
        while done.ops < step.ops && !done.cut {
            let (number, key, value) = source.next();
            peer.put(key, value)?;
            meter.ended(Kind::Write, 1);
            done.asks(number);
            done.ops += 1;
            done.cut = meter.over();
        }
    }
    done.cut &= done.ops < step.ops;
    done.bytes = done.ops * (s.key_bytes + s.value_bytes) as u64;
    Ok(done)
}

/// Deletes drawn keys.
pub fn delete<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let s = &job.settings;
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Deletes as u64);
    let mut done = Done::default();
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let number = random.below(job.keys);
        done.asks(number);
        peer.delete(maker.key(number))?;
        meter.ended(Kind::Write, 1);
        done.ops += 1;
        done.cut = meter.over();
    }
    done.bytes = done.ops * s.key_bytes as u64;
    Ok(done)
}

/// Puts a tenth of the keys again, drawn, with other values.
pub fn overwrite_some<P: Peer>(peer: &P, job: &Job) -> Result<()> {
    let step = Step::new("overwrite", Workload::Overwrite, (job.keys / 10).max(1));
    put(peer, job, &step, &mut Meter::new(0.0)).map(drop)
}

/// Puts the entries that an interrupted fill has left after its first `done`.
pub fn complete<P: Peer>(peer: &P, job: &Job, step: &Step, done: &Done) -> Result<()> {
    let s = &job.settings;
    let mut source = Source::new(s, job.keys, step.workload);
    for _ in 0..done.ops {
        source.next();
    }
    let mut entries = Entries::new(s.key_bytes, s.value_bytes);
    // Few enough for a transaction in a small cache.
    let each = ((1 << 20) / (s.key_bytes + s.value_bytes) as u64).clamp(1, 100);
    let mut left = step.ops - done.ops;
    while left > 0 {
        let count = each.min(left);
        batch(peer, &mut source, &mut entries, count, &mut Done::default())?;
        left -= count;
    }
    Ok(())
}

fn batch<P: Peer>(
    peer: &P,
    source: &mut Source,
    entries: &mut Entries,
    count: u64,
    done: &mut Done,
) -> Result<()> {
    entries.clear();
    for _ in 0..count {
        let (number, key, value) = source.next();
        done.asks(number);
        entries.push(key, value);
    }
    peer.put_all(entries)
}

//! Puts by several threads at once. Thread `t` of `n` draws its keys among the numbers that leave `t` when divided by `n`. So two
//! threads never put the same key, and the content does not depend on their order.

use super::{Done, Stream, together};
use crate::job::{Job, Step};
use crate::meter::{Kind, Meter};
use ashlar_bench::{KeyMaker, Random, Values};
use ashlar_peers::peer::{Peer, Result, Write};

/// The entries of a thread, one after the other.
struct Share {
    maker: KeyMaker,
    values: Values,
    random: Random,
    value_bytes: usize,
    index: u64,
    threads: u64,
    keys: u64,
}

impl Share {
    /// The share of thread `index`, which takes its values from the buffer of `values`.
    fn new(job: &Job, step: &Step, values: &Values, index: u64) -> Share {
        let s = &job.settings;
        let threads = u64::from(step.threads);
        Share {
            maker: s.keys(),
            values: values.for_thread(usize::try_from(index).unwrap_or_default()),
            random: Random::new(s.seed, Stream::Threads as u64 + (index << 8)),
            value_bytes: s.value_bytes,
            index,
            threads,
            keys: (job.keys / threads).max(1),
        }
    }

    #[inline]
    fn next(&mut self) -> (u64, &[u8], &[u8]) {
        let number = self.random.below(self.keys) * self.threads + self.index;
        (number, self.maker.key(number), self.values.next(self.value_bytes))
    }
}

/// Puts with `step.threads` threads, each `step.ops` times or until the clock says so.
///
/// # Errors
/// "not offered:" if the peer is not driven by several writing threads.
pub fn put<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let writers = (0..step.threads).map(|_| peer.writer()).collect::<Result<Vec<_>>>()?;
    let values = &values(job);
    let each: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0_u64..)
            .zip(writers)
            .map(|(index, writer)| {
                scope.spawn(move || one(writer, job, step, Share::new(job, step, values, index)))
            })
            .collect();
        let ended = threads.into_iter();
        ended.map(|t| t.join().unwrap_or_else(|_| Err("a writer panicked".into()))).collect()
    });
    let ops = each.iter().map(|one| one.as_ref().map_or(0, |(done, _)| done.ops)).collect();
    Ok(Done { each: ops, ..together(each, meter)? })
}

/// The buffer of values that all threads share.
fn values(job: &Job) -> Values {
    let s = &job.settings;
    Values::new(s.seed, s.compress_ratio, s.value_bytes)
}

fn one<W: Write>(mut writer: W, job: &Job, step: &Step, mut share: Share) -> Result<(Done, Meter)> {
    let mut done = Done::default();
    let mut meter = Meter::new(step.seconds);
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let (number, key, value) = share.next();
        writer.put(key, value)?;
        meter.ended(Kind::Write, 1);
        done.asks(number);
        done.ops += 1;
        done.cut = meter.over();
    }
    done.cut &= done.ops < step.ops;
    done.bytes = done.ops * (job.settings.key_bytes + job.settings.value_bytes) as u64;
    Ok((done, meter))
}

/// Puts the first `each[t]` entries of every thread `t`, one thread after the other.
pub fn replay<P: Peer>(peer: &P, job: &Job, step: &Step, each: &[u64]) -> Result<()> {
    let values = values(job);
    for (index, &ops) in (0_u64..).zip(each) {
        let mut share = Share::new(job, step, &values, index);
        for _ in 0..ops {
            let (_, key, value) = share.next();
            peer.put(key, value)?;
        }
    }
    Ok(())
}

//! Gets by many threads, alone or beside a writer that puts at full speed or at a rate. The writer's puts do not count as
//! operations.

use super::{Done, Stream, together};
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use ashlar_bench::{Random, Values};
use ashlar_peers::peer::{Peer, Read, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Reads with `step.threads` threads, each `step.ops` times or until the clock says so.
///
/// # Errors
/// "not offered:" if the engine allows fewer reading threads.
pub fn read<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let readers = (0..step.threads).map(|_| peer.reader()).collect::<Result<Vec<_>>>()?;
    let left = AtomicUsize::new(readers.len());
    let writes = step.workload == Workload::Readwhilewriting;
    let (seen, puts) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0_u64..)
            .zip(readers)
            .map(|(index, reader)| {
                let left = &left;
                scope.spawn(move || {
                    let done = one(reader, job, step, index);
                    // The pair of the load below: an end seen there is all that matters.
                    left.fetch_sub(1, Ordering::Relaxed);
                    done
                })
            })
            .collect();
        // The writer is this thread: an engine's writer need not be fit for others.
        let pace = Pace { start: Instant::now(), rate: job.rate };
        let reading = || left.load(Ordering::Relaxed) > 0;
        let puts = if writes { write(peer, job, |puts| pace.due(puts, reading)) } else { Ok(0) };
        let seen: Vec<_> = threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("a reader panicked".into())))
            .collect();
        (seen, puts)
    });
    Ok(Done { puts: puts?, ..together(seen, meter)? })
}

/// The pace of a writer.
struct Pace {
    start: Instant,
    /// Puts per second; 0: full speed.
    rate: f64,
}

impl Pace {
    /// Waits until the next put is due, after `puts` of them; false when `reading` ended before.
    fn due(&self, puts: u64, reading: impl Fn() -> bool) -> bool {
        const NAP: Duration = Duration::from_millis(1);
        while self.rate > 0.0 && reading() {
            let due = Duration::from_secs_f64(puts as f64 / self.rate);
            let left = due.saturating_sub(self.start.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        reading()
    }
}

fn one<R: Read>(mut reader: R, job: &Job, step: &Step, index: u64) -> Result<(Done, Meter)> {
    let s = &job.settings;
    let mut maker = s.keys();
    let mut random = Random::new(s.seed, Stream::Reads as u64 + (index << 8));
    let mut done = Done::default();
    let mut meter = Meter::new(step.seconds);
    meter.begin();
    while done.ops < step.ops && !done.cut {
        let number = random.below(job.keys);
        done.asks(number);
        done.found += u64::from(reader.get(maker.key(number), |value| done.saw(value))?);
        meter.ended(Kind::Read, 1);
        done.ops += 1;
        done.cut = meter.over();
    }
    Ok((done, meter))
}

/// Puts drawn keys while `go_on`, called with the number of puts, returns true. Returns the number of puts.
pub fn write<P: Peer>(peer: &P, job: &Job, go_on: impl Fn(u64) -> bool) -> Result<u64> {
    let s = &job.settings;
    let mut maker = s.keys();
    let mut values = Values::new(s.seed, s.compress_ratio, s.value_bytes);
    let mut random = Random::new(s.seed, Stream::Again as u64);
    let mut puts = 0;
    while go_on(puts) {
        peer.put(maker.key(random.below(job.keys)), values.next(s.value_bytes))?;
        puts += 1;
    }
    Ok(puts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_writer_keeps_its_rate_and_stops_with_the_readers() {
        let pace = Pace { start: Instant::now(), rate: 1000.0 };
        assert!((0..20).all(|puts| pace.due(puts, || true)));
        assert!(pace.start.elapsed() >= Duration::from_millis(19));
        assert!(!pace.due(1_000_000, || pace.start.elapsed() < Duration::from_millis(40)));
        let free = Pace { rate: 0.0, ..pace };
        assert!(free.due(1_000_000, || true) && !free.due(0, || false));
    }
}

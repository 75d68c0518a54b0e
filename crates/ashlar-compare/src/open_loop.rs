//! Writes at a fixed rate: the next one is due when it is due, whether the engine is ready or not.
//!
//! A latency counts from the moment the write was due, so an engine that stalls is charged for the queue behind it. A
//! closed loop hides that: it simply asks less often.

use crate::job::Job;
use crate::peer::{Peer, Result};
use crate::work::{Done, Stream};
use ashlar_bench::{KeyMaker, Random, Values};
use ashlar_report::record::{From, Latency};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Shorter waits are spun away: a sleep is not that exact.
const SLEEP_FROM: Duration = Duration::from_micros(300);
const HOUR_NANOS: u64 = 3_600_000_000_000;

/// What is put, in the order in which it is due.
struct Source {
    maker: KeyMaker,
    values: Values,
    random: Random,
}

impl Source {
    fn new(job: &Job) -> Source {
        let s = &job.settings;
        Source {
            maker: KeyMaker::new(s.key_bytes),
            values: Values::new(s.seed, s.compress_ratio, s.value_bytes),
            random: Random::new(s.seed, Stream::Paced as u64),
        }
    }

    fn next(&mut self, job: &Job) -> (&[u8], &[u8]) {
        (self.maker.key(self.random.below(job.keys)), self.values.next(job.settings.value_bytes))
    }
}

/// Puts the first `puts` entries, as fast as it goes.
pub fn replay<P: Peer>(peer: &P, job: &Job, puts: u64) -> Result<()> {
    let mut source = Source::new(job);
    (0..puts).try_for_each(|_| {
        let (key, value) = source.next(job);
        peer.put(key, value)
    })
}

/// Puts `job.keys` drawn keys, `job.rate` per second.
pub fn put<P: Peer>(peer: &P, job: &Job) -> Result<(Done, Latency)> {
    let s = &job.settings;
    let mut source = Source::new(job);
    let mut seen = Histogram::<u64>::new_with_bounds(1, HOUR_NANOS, 3).map_err(|e| e.to_string())?;
    let start = Instant::now();
    for i in 0..job.keys {
        let due = start + Duration::from_secs_f64(i as f64 / job.rate);
        wait_until(due);
        let (key, value) = source.next(job);
        peer.put(key, value)?;
        let nanos = u64::try_from(due.elapsed().as_nanos()).unwrap_or(HOUR_NANOS);
        seen.saturating_record(nanos);
    }
    let bytes = job.keys * (s.key_bytes + s.value_bytes) as u64;
    Ok((Done { ops: job.keys, bytes, ..Done::default() }, latency(&seen, From::Intended, Some(job.rate))))
}

fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SLEEP_FROM { std::thread::sleep(left - SLEEP_FROM / 2) } else { std::hint::spin_loop() }
    }
}

/// Percentiles, in microseconds, of nanoseconds.
pub fn latency(seen: &Histogram<u64>, from: From, rate: Option<f64>) -> Latency {
    let at = |part| seen.value_at_quantile(part) as f64 / 1000.0;
    Latency {
        from,
        rate,
        count: seen.len(),
        mean: seen.mean() / 1000.0,
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: seen.max() as f64 / 1000.0,
    }
}

//! An engine that does nothing: the time of a loop around it is the driver's own cost.
//!
//! The loop makes keys and values, reads the clock, keeps latencies, and reads a value of the right length to its end, as
//! around every engine.

use crate::job::{Job, Step, Workload};
use crate::meter::Meter;
use crate::work::{self, PER_PREFIX};
use ashlar_peers::engine::EngineName;
use ashlar_peers::operations::{Operations, Transact};
use ashlar_peers::peer::{Cursor, Entries, Keys, Lent, NoWriter, Peer, Read, Result};
use ashlar_peers::settings::Settings;
use std::hint::black_box;
use std::path::Path;

/// The runs of a loop, and the most operations and seconds of each: enough to measure nanoseconds, in a short time.
const RUNS: usize = 5;
const OPS: u64 = 20_000;
const SECONDS: f64 = 0.01;

/// Microseconds of the driver per operation of `step`, by one thread: the least of some runs, because whatever disturbs one
/// only adds. `None` for an open loop, which waits, and for workloads of few calls.
pub fn overhead(job: &Job, step: &Step) -> Option<f64> {
    let workload = match step.workload {
        Workload::Openloop => return None,
        workload if workload.calls_long() => return None,
        Workload::Readwhilewriting => Workload::Readrandom,
        other => other,
    };
    let short = Step { workload, threads: 1, ops: step.ops.min(OPS), ..step.clone() };
    let once = |_| {
        let mut meter = Meter::new(SECONDS);
        let done = work::run(&Null::of(&job.settings), job, &short, &mut meter).ok()?;
        Some(meter.elapsed().as_secs_f64() * 1e6 / done.ops.max(1) as f64)
    };
    (0..RUNS).filter_map(once).min_by(f64::total_cmp)
}

/// Accepts every write, and returns one entry for every read.
struct Null {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Null {
    fn of(settings: &Settings) -> Null {
        Null { key: vec![1; settings.key_bytes], value: vec![1; settings.value_bytes] }
    }
}

impl Operations for Null {
    type Transactions<'a> = &'a Null;

    fn transactions(&self) -> Result<&Null> {
        Ok(self)
    }

    fn scan_prefix(&self, prefix: &[u8], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        (0..PER_PREFIX).for_each(|_| see(black_box(prefix), black_box(&self.value)));
        Ok(())
    }
}

impl Transact for &Null {
    fn increment(&mut self, keys: [&[u8]; 2]) -> Result<bool> {
        black_box(keys);
        Ok(true)
    }
}

impl Peer for Null {
    type Cursor<'a> = Same<'a>;
    type Reader<'a> = Same<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = NoWriter;

    fn open(_: EngineName, _: &Path, settings: &Settings, _: Option<&str>) -> Result<Self> {
        Ok(Null::of(settings))
    }

    fn version(&self) -> String {
        "nothing".into()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        black_box((key, value));
        Ok(())
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        black_box(entries.bytes());
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        black_box(key);
        Ok(())
    }

    fn reader(&self) -> Result<Same<'_>> {
        Ok(Same { entry: self, left: OPS })
    }

    fn cursor(&self) -> Result<Same<'_>> {
        self.reader()
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// The same entry again and again.
struct Same<'a> {
    entry: &'a Null,
    left: u64,
}

impl Read for Same<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        black_box(key);
        see(black_box(&self.entry.value));
        Ok(true)
    }

    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(&[u8])) -> Result<u64> {
        Ok(keys.iter().map(|key| see(black_box((key, &self.entry.value)).1)).count() as u64)
    }
}

impl Same<'_> {
    /// The current entry. `None`: the cursor is off the end.
    #[inline]
    fn entry(&self) -> Option<Lent<'_>> {
        (self.left > 0).then(|| (black_box(&self.entry.key[..]), black_box(&self.entry.value[..])))
    }
}

impl Cursor for Same<'_> {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        Ok(self.entry())
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        black_box(key);
        Ok(self.entry())
    }

    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        self.left -= 1;
        Ok(self.entry())
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        Ok(self.entry())
    }

    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        self.next()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time depends on the build and on other work of the machine; every record has the figure.
    #[test]
    fn every_loop_runs_on_nothing() {
        let job = crate::job::sample();
        for &workload in <Workload as clap::ValueEnum>::value_variants() {
            let step = Step::new("x", workload, 5000);
            match overhead(&job, &step) {
                None => assert!([Workload::Openloop, Workload::Compact].contains(&workload)),
                Some(us) => assert!(us > 0.0 && us < 1000.0, "{workload:?}: {us}"),
            }
        }
    }
}

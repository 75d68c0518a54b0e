//! What was seen of a process while it worked on one engine, as the parts of a record.

use crate::measure::{self, Moment, Passed};
use crate::meter::Second;
use crate::peer::{Peer, Result, Written};
use crate::sampler::{self, Sample};
use crate::space::Taken;
use ashlar_report::record::{Amplification, Counters, Cpu, Memory, Record, Series, Space};
use std::path::Path;

/// The work around which something was observed.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Whether the engine's counters of writes belong to it.
    pub writes: bool,
    /// Bytes of keys and values that it wrote; `None` if it only read.
    pub bytes: Option<u64>,
    /// What the directory takes afterwards.
    pub taken: Taken,
    /// The user's bytes in the directory, if known.
    pub live: Option<u64>,
    /// Its seconds.
    pub seconds: &'a [Second],
}

/// The counters of the system and of the engine around some work.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The samples taken during the work.
    pub samples: Vec<Sample>,
    /// From the beginning to the end of the work.
    pub worked: Passed,
    /// The same until background work was idle.
    pub settled: Passed,
    /// At the end.
    pub memory: Memory,
    /// What the engine reported of its writes before the work.
    pub wrote: Written,
    /// What the engine reports of its writes after the work.
    pub written: Written,
    /// Tables per level.
    pub levels: Vec<u64>,
    /// The engine's version.
    pub version: String,
}

impl Observed {
    /// Does `work` on `peer`, whose database is in `dir`. Afterwards flushes and waits until background work is idle, if
    /// `settles` says so of what was done.
    ///
    /// # Errors
    /// Those of `work`, or the settling failed.
    pub fn during<P: Peer, T>(
        peer: &P,
        dir: &Path,
        work: impl FnOnce() -> Result<T>,
        settles: impl FnOnce(&T) -> Result<bool>,
    ) -> Result<(T, Observed)> {
        let wrote = peer.written();
        measure::forget_peak();
        let start = Moment::now();
        let (done, samples) = sampler::during(dir, work);
        let (done, end) = (done?, Moment::now());
        if settles(&done)? {
            peer.settle()?;
        }
        let settled = Moment::now();
        let observed = Observed {
            samples,
            worked: start.until(&end),
            settled: start.until(&settled),
            memory: measure::memory(),
            wrote,
            written: peer.written(),
            levels: peer.levels(),
            version: peer.version(),
        };
        Ok((done, observed))
    }

    /// Puts everything that was observed into a record, and leaves its other fields as they are.
    pub fn fill(&self, of: &Observation<'_>, record: &mut Record) {
        let configured_bytes = record.mem.configured_bytes;
        record.engine.version.clone_from(&self.version);
        record.series = self.series(of.seconds);
        record.cpu = self.cpu();
        (record.io_end, record.io) = (self.worked.io.clone(), self.settled.io.clone());
        record.mem = Memory { configured_bytes, ..self.memory.clone() };
        record.engine_counters = self.counters(of.writes);
        record.space = self.space(of.taken, of.live);
        record.amp = self.amplification(of.bytes, &record.engine_counters, &record.space);
    }

    /// Seconds after the work until background work was idle.
    pub fn settling(&self) -> f64 {
        (self.settled.seconds - self.worked.seconds).max(0.0)
    }

    /// Second by second; nothing of a run that did not last one.
    fn series(&self, seconds: &[Second]) -> Option<Series> {
        let samples = &self.samples[..self.samples.len().min(seconds.len())];
        let sampled = |of: fn(&Sample) -> u64| samples.iter().map(of).collect();
        (!seconds.is_empty()).then(|| Series {
            interval_s: 1.0,
            ops: seconds.iter().map(|second| second.ops).collect(),
            longest_us: seconds.iter().map(|second| second.longest / 1000).collect(),
            write_bytes: sampled(|sample| sample.written),
            rss: sampled(|sample| sample.rss),
            du: sampled(|sample| sample.du),
        })
    }

    /// Processor time, switches and faults, settling included.
    fn cpu(&self) -> Cpu {
        Cpu {
            process_s: Some(self.settled.cpu),
            thread_s: Some(self.worked.cpu_thread),
            ..self.settled.usage.clone()
        }
    }

    /// The engine's own counters; those of writes only where the work wrote.
    fn counters(&self, writes: bool) -> Counters {
        let more = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).filter(|_| writes).map(|(now, then)| now.saturating_sub(then))
        };
        let stalled = self.written.stalled.zip(self.wrote.stalled);
        Counters {
            flush_bytes: more(self.written.flush, self.wrote.flush),
            compact_write_bytes: more(self.written.compaction, self.wrote.compaction),
            stall_s: stalled.filter(|_| writes).map(|(now, then)| (now - then).max(0.0)),
            levels: self.levels.clone(),
            ..Counters::default()
        }
    }

    /// The directory, which takes `taken`, of which `live` bytes are the user's, if known.
    fn space(&self, taken: Taken, live: Option<u64>) -> Space {
        let peak = self.samples.iter().map(|sample| sample.du).max().unwrap_or(0);
        Space {
            du: Some(taken.allocated),
            apparent: Some(taken.apparent),
            peak: Some(peak.max(taken.allocated)),
            logical_live: live,
            after_compact: None,
        }
    }

    /// Costs per byte, of work that wrote `bytes` of keys and values; `None` for work that only read.
    fn amplification(&self, bytes: Option<u64>, counters: &Counters, space: &Space) -> Amplification {
        let per_byte = |written: u64| Some(written as f64 / bytes?.max(1) as f64);
        let live = space.logical_live.filter(|&bytes| bytes > 0);
        let per_live = |bytes: Option<u64>| Some(bytes? as f64 / live? as f64);
        let flush = counters.flush_bytes.filter(|&bytes| bytes > 0);
        let both = counters.flush_bytes.zip(counters.compact_write_bytes).map(|(f, c)| f + c);
        Amplification {
            wa_proc: self.settled.io.proc_wchar.and_then(per_byte),
            wa_eng: both.and_then(per_byte),
            wa_tree: both.zip(flush).map(|(both, flush)| both as f64 / flush as f64),
            sa_du: per_live(space.du),
            sa_app: per_live(space.apparent),
            sa_peak: per_live(space.peak),
            ..Amplification::default()
        }
    }
}

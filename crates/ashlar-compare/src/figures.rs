//! The result of a step, and its record.

use crate::job::{Job, Step, Workload};
use crate::measure::Passed;
use crate::meter::Meter;
use crate::peer::Written;
use crate::sampler::Sample;
use crate::space::Taken;
use crate::work::Done;
use ashlar_report::record::{
    Amplification, Counters, Cpu, Engine, Hashes, Limit, Memory, Ops, Phase, Record, SCHEMA, Series, Space,
};

/// All that was seen of a step.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The work of the loop.
    pub done: Done,
    /// The times, per operation and per second.
    pub meter: Meter,
    /// The samples taken during the loop.
    pub samples: Vec<Sample>,
    /// Microseconds of the driver per operation.
    pub driver_us: Option<f64>,
    /// From the beginning to the end of the loop.
    pub worked: Passed,
    /// The same until background work was idle.
    pub settled: Passed,
    /// At the end.
    pub memory: Memory,
    /// The bytes that the engine reported as written before the step.
    pub wrote: Written,
    /// The bytes that the engine reports as written after the step.
    pub written: Written,
    /// Tables per level.
    pub levels: Vec<u64>,
    /// The engine's statistics.
    pub version: String,
}

impl Figures {
    /// The record of `step`; the directory takes `taken`, of which `live` bytes are the user's.
    pub fn record(&self, job: &Job, step: &Step, taken: Taken, live: u64) -> Record {
        let writes = step.workload.writes();
        let mut params = job.settings.params(job.keys);
        (params.threads, params.batch) = (step.threads, step.batch);
        params.limit = if self.done.cut { Limit::Time } else { Limit::Count };
        if step.workload == Workload::Transactions {
            params.options.insert("conflicts".into(), self.done.conflicts.to_string());
        }
        let seconds = self.meter.elapsed().as_secs_f64();
        let counters = self.counters(writes);
        let space = self.space(taken, live);
        Record {
            schema: SCHEMA,
            experiment: job.experiment.clone(),
            row: step.row.clone(),
            title: step.title.clone(),
            workload: step.workload.text().to_owned(),
            class: job.settings.class,
            size: job.size.clone(),
            engine: Engine { name: job.engine.text().to_owned(), version: self.version.clone() },
            params,
            ops: Some(self.ops(step)),
            phase: Some(Phase {
                seconds,
                settle_seconds: writes.then(|| self.settling()),
                load_seconds: None,
            }),
            latency_us: self.meter.latencies(),
            series: self.series(),
            cpu: self.cpu(),
            mem: Memory { configured_bytes: Some(job.settings.memory_bytes()), ..self.memory.clone() },
            amp: self.amplification(writes, &counters, &space),
            io_end: self.worked.io.clone(),
            io: self.settled.io.clone(),
            engine_counters: counters,
            space,
            hash: self.hashes(step),
            ..Record::default()
        }
    }

    /// Seconds after the loop until background work was idle.
    fn settling(&self) -> f64 {
        (self.settled.seconds - self.worked.seconds).max(0.0)
    }

    fn ops(&self, step: &Step) -> Ops {
        let done = &self.done;
        let settling = if step.counts_settling { self.settling() } else { 0.0 };
        let seconds = self.meter.elapsed().as_secs_f64() + settling;
        let each = |seconds: f64| seconds * 1e6 / done.ops.max(1) as f64;
        Ops {
            total: done.ops,
            per_sec: done.ops as f64 / seconds.max(1e-9),
            found: (!step.workload.writes()).then_some(done.found),
            errors: 0,
            user_bytes: done.bytes,
            us_wall_op: each(seconds),
            us_thread_op: Some(each(seconds * f64::from(step.threads))),
            us_cpu_op: Some(each(self.settled.cpu)),
            us_cpu_thread_op: (step.threads == 1).then_some(each(self.worked.cpu_thread)),
            driver_overhead_us: self.driver_us,
            instructions_op: None,
        }
    }

    /// Second by second; nothing of a run that did not last one.
    fn series(&self) -> Option<Series> {
        let seconds = self.meter.seconds();
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

    fn cpu(&self) -> Cpu {
        Cpu {
            process_s: Some(self.settled.cpu),
            thread_s: Some(self.worked.cpu_thread),
            ..self.settled.usage.clone()
        }
    }

    fn counters(&self, writes: bool) -> Counters {
        let more = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).filter(|_| writes).map(|(now, then)| now.saturating_sub(then))
        };
        Counters {
            flush_bytes: more(self.written.flush, self.wrote.flush),
            compact_write_bytes: more(self.written.compaction, self.wrote.compaction),
            levels: self.levels.clone(),
            ..Counters::default()
        }
    }

    fn space(&self, taken: Taken, live: u64) -> Space {
        let peak = self.samples.iter().map(|sample| sample.du).max().unwrap_or(0);
        Space {
            du: Some(taken.allocated),
            apparent: Some(taken.apparent),
            peak: Some(peak.max(taken.allocated)),
            logical_live: Some(live),
            after_compact: None,
        }
    }

    fn amplification(&self, writes: bool, counters: &Counters, space: &Space) -> Amplification {
        let per_byte = |bytes: u64| bytes as f64 / self.done.bytes.max(1) as f64;
        let live = space.logical_live.filter(|&bytes| bytes > 0);
        let per_live = |bytes: Option<u64>| Some(bytes? as f64 / live? as f64);
        let flush = counters.flush_bytes.filter(|&bytes| bytes > 0);
        let both = counters.flush_bytes.zip(counters.compact_write_bytes).map(|(f, c)| f + c);
        Amplification {
            wa_proc: self.settled.io.proc_wchar.filter(|_| writes).map(per_byte),
            wa_eng: both.map(per_byte),
            wa_tree: both.zip(flush).map(|(both, flush)| both as f64 / flush as f64),
            sa_du: per_live(space.du),
            sa_app: per_live(space.apparent),
            sa_peak: per_live(space.peak),
            ..Amplification::default()
        }
    }

    /// Sums can be compared only if every engine did the same work.
    fn hashes(&self, step: &Step) -> Hashes {
        let hex = |sum: u64| format!("{sum:016x}");
        let beside_writes = step.workload == Workload::Readwhilewriting;
        Hashes {
            ops: (!self.done.cut).then(|| hex(self.done.asked)),
            reads: (!self.done.cut && !beside_writes).then(|| hex(self.done.digest)),
            data: None,
        }
    }
}

//! The result of a step, and its record.

use crate::job::{Job, Step, Workload};
use crate::meter::Meter;
use crate::work::Done;
use ashlar_peers::observed::{Observation, Observed};
use ashlar_peers::space::Taken;
use ashlar_report::record::{Engine, Hashes, Limit, Memory, Ops, Phase, Record, SCHEMA};

/// All that was seen of a step.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The work of the loop.
    pub done: Done,
    /// The times, per operation and per second.
    pub meter: Meter,
    /// Microseconds of the driver per operation.
    pub driver_us: Option<f64>,
    /// What system and engine counted.
    pub observed: Observed,
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
        let mut record = Record {
            schema: SCHEMA,
            experiment: job.experiment.clone(),
            row: step.row.clone(),
            title: step.title.clone(),
            workload: step.workload.text().to_owned(),
            class: job.settings.class,
            size: job.size.clone(),
            engine: Engine { name: job.engine.text().to_owned(), ..Engine::default() },
            params,
            ops: Some(self.ops(step)),
            phase: Some(Phase {
                seconds,
                settle_seconds: writes.then(|| self.observed.settling()),
                load_seconds: None,
            }),
            latency_us: self.meter.latencies(),
            mem: Memory { configured_bytes: Some(job.settings.memory_bytes()), ..Memory::default() },
            hash: self.hashes(step),
            ..Record::default()
        };
        let (bytes, seconds) = (writes.then_some(self.done.bytes), self.meter.seconds());
        let of = Observation { writes, bytes, taken, live: Some(live), seconds };
        self.observed.fill(&of, &mut record);
        record
    }

    fn ops(&self, step: &Step) -> Ops {
        let done = &self.done;
        let settling = if step.counts_settling { self.observed.settling() } else { 0.0 };
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
            us_cpu_op: Some(each(self.observed.settled.cpu)),
            us_cpu_thread_op: (step.threads == 1).then_some(each(self.observed.worked.cpu_thread)),
            driver_overhead_us: self.driver_us,
            instructions_op: None,
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

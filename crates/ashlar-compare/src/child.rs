//! One process: opens the engine, does its steps on one database, holds what is there against what was written, and prints a
//! record for each step that counts.

use crate::engine::EngineName;
use crate::job::{Before, Job, Step, Workload};
use crate::measure::{Moment, Passed, forget_peak, peak_memory};
use crate::open_loop;
use crate::oracle::Oracle;
use crate::peer::{Peer, Result, Written};
#[cfg(feature = "fjall")]
use crate::peers::Fjall;
#[cfg(feature = "redb")]
use crate::peers::Redb;
use crate::peers::{Ashlar, Flawed, RocksDb, Shim};
use crate::work::{self, Done};
use ashlar_report::record::{
    Amplification, Counters, Cpu, Engine, Hashes, Latency, Limit, Memory, Ops, Phase, Record, SCHEMA, Space,
    Status,
};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Does what `job`, in JSON, says.
pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).map_err(|e| format!("--child: {e}"))?;
    match job.engine {
        EngineName::Ashlardb => on::<Ashlar>(&job),
        EngineName::Rocksdb => on::<RocksDb>(&job),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => on::<Fjall>(&job),
        #[cfg(feature = "redb")]
        EngineName::Redb => on::<Redb>(&job),
        EngineName::TestSlow | EngineName::TestCareless | EngineName::TestForgetful => on::<Flawed>(&job),
        _ => on::<Shim>(&job),
    }
}

fn on<P: Peer>(job: &Job) -> Result<()> {
    let dir = Path::new(&job.dir);
    let peer = P::open(job.engine, dir, &job.settings, job.library.as_deref())?;
    let oracle = Oracle::default();
    let mut records = Vec::new();
    let mut same_data = true;
    for step in &job.steps {
        prepare(&peer, job, step)?;
        let (done, mut record) = measured(&peer, job, step)?;
        if !same_data {
            record.hash.reads = None;
        }
        same_data &= leaves_same_data(step, &done);
        if done.cut && matches!(step.workload, Workload::Fillseq | Workload::Fillrandom) {
            work::complete(&peer, job, step, &done)?;
        }
        work::replay(&oracle, job, step, &done)?;
        if step.measured {
            record.space = space(dir, &oracle);
            let live = record.space.logical_live.filter(|&bytes| bytes > 0);
            let per_live = |bytes: Option<u64>| Some(bytes? as f64 / live? as f64);
            record.amp.sa_du = per_live(record.space.du);
            record.amp.sa_app = per_live(record.space.apparent);
            records.push(record);
        }
    }
    let data = oracle.check(&peer);
    for mut record in records {
        match &data {
            Ok(sum) => record.hash.data = Some(format!("{sum:016x}")),
            Err(why) => record.status = Status::Void { why: why.clone() },
        }
        println!("{}", serde_json::to_string(&record).map_err(|e| e.to_string())?);
    }
    peer.close()
}

/// False when how much was written depends on the engine's speed: then later steps read other data on each.
fn leaves_same_data(step: &Step, done: &Done) -> bool {
    let fill = matches!(step.workload, Workload::Fillseq | Workload::Fillrandom);
    let writes = fill || step.workload == Workload::Overwrite || done.puts > 0;
    fill || !writes || (!done.cut && step.workload != Workload::Readwhilewriting)
}

fn prepare<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<()> {
    if step.before != Before::Nothing {
        peer.settle()?;
    }
    match (step.before, step.workload) {
        (Before::Warm, Workload::Readseq) => work::scan(peer, 1).map(drop),
        (Before::Warm, _) => work::warm(peer, job),
        _ => Ok(()),
    }
}

fn measured<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<(Done, Record)> {
    let wrote = peer.written();
    forget_peak();
    let start = Moment::now();
    let (done, latency_us) = perform(peer, job, step)?;
    let end = Moment::now();
    let writes = step.workload.writes();
    if writes {
        peer.settle()?;
    }
    let settled = Moment::now();
    let (passed, all) = (start.until(&end), start.until(&settled));
    let counted = since(peer.written(), wrote, writes);
    let per_byte = |bytes: u64| bytes as f64 / done.bytes.max(1) as f64;
    let flush_and_compact = counted.flush_bytes.zip(counted.compact_write_bytes).map(|(f, c)| f + c);
    // Sums can be held together only where every engine did the same.
    let comparable = !done.cut && step.threads == 1;
    let mut params = job.settings.params(job.keys);
    params.threads = step.threads;
    params.batch = step.batch;
    params.limit = if done.cut { Limit::Time } else { Limit::Count };
    let record = Record {
        schema: SCHEMA,
        experiment: job.experiment.clone(),
        row: step.row.clone(),
        title: step.title.clone(),
        workload: step.workload.text().to_owned(),
        class: job.settings.class,
        size: job.size.clone(),
        engine: Engine { name: job.engine.text().to_owned(), version: peer.version() },
        params,
        ops: Some(ops(&done, &passed, all.cpu, step)),
        phase: Some(Phase {
            seconds: passed.seconds,
            settle_seconds: writes.then_some(all.seconds - passed.seconds),
            load_seconds: None,
        }),
        latency_us,
        cpu: Cpu { process_s: Some(all.cpu), thread_s: Some(passed.cpu_thread), ..all.switches },
        io_end: passed.io,
        mem: Memory {
            configured_bytes: Some(job.settings.memory_bytes()),
            rss_peak: peak_memory(),
            ..Memory::default()
        },
        amp: Amplification {
            wa_proc: all.io.proc_wchar.filter(|_| writes).map(per_byte),
            wa_eng: flush_and_compact.map(per_byte),
            wa_tree: flush_and_compact
                .zip(counted.flush_bytes.filter(|&bytes| bytes > 0))
                .map(|(all, flush)| all as f64 / flush as f64),
            ..Amplification::default()
        },
        io: all.io,
        engine_counters: Counters { levels: peer.levels(), ..counted },
        hash: Hashes { reads: comparable.then(|| format!("{:016x}", done.digest)), ..Hashes::default() },
        ..Record::default()
    };
    Ok((done, record))
}

/// What `done` cost; `all` is the processor time that counts for it.
fn ops(done: &Done, passed: &Passed, all: f64, step: &Step) -> Ops {
    let each = |seconds: f64| seconds * 1e6 / done.ops.max(1) as f64;
    Ops {
        total: done.ops,
        per_sec: done.ops as f64 / passed.seconds.max(1e-9),
        found: (!step.workload.writes()).then_some(done.found),
        user_bytes: done.bytes,
        us_wall_op: each(passed.seconds),
        us_thread_op: Some(each(passed.seconds * f64::from(step.threads))),
        us_cpu_op: Some(each(all)),
        us_cpu_thread_op: (step.threads == 1).then_some(each(passed.cpu_thread)),
        ..Ops::default()
    }
}

/// Latencies by kind of operation.
type Latencies = BTreeMap<String, Latency>;

fn perform<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<(Done, Latencies)> {
    if step.workload == Workload::Openloop {
        let (done, latency) = open_loop::put(peer, job)?;
        return Ok((done, BTreeMap::from([("write".to_owned(), latency)])));
    }
    Ok((work::run(peer, job, step)?, BTreeMap::new()))
}

fn since(now: Written, then: Written, writes: bool) -> Counters {
    let more = |now: Option<u64>, then: Option<u64>| {
        now.zip(then).filter(|_| writes).map(|(now, then)| now.saturating_sub(then))
    };
    Counters {
        flush_bytes: more(now.flush, then.flush),
        compact_write_bytes: more(now.compaction, then.compaction),
        ..Counters::default()
    }
}

/// What the directory takes, and what of it is the user's.
fn space(dir: &Path, oracle: &Oracle) -> Space {
    let (mut du, mut apparent) = (0, 0);
    let mut open = vec![dir.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // A file that goes while we look counts as gone.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                du += meta.blocks() * 512;
                apparent += meta.len();
            }
        }
    }
    Space {
        du: Some(du),
        apparent: Some(apparent),
        logical_live: Some(oracle.live_bytes()),
        ..Space::default()
    }
}

//! One process: opens the engine, does its workloads on one database, prints a record for each.

use crate::engine::EngineName;
use crate::measure::{Moment, Passed, forget_peak, peak_memory};
use crate::open_loop;
use crate::peer::{Peer, Result, Written};
#[cfg(feature = "fjall")]
use crate::peers::Fjall;
#[cfg(feature = "redb")]
use crate::peers::Redb;
use crate::peers::{Ashlar, Flawed, RocksDb, Shim};
use crate::task::{Task, Workload};
use crate::work::{self, Done, Stream};
use ashlar_report::record::{
    Amplification, Counters, Cpu, Engine, Hashes, Latency, Memory, Ops, Phase, Record, SCHEMA,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Does what `task`, in JSON, says.
pub fn run(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task).map_err(|e| format!("--child: {e}"))?;
    match task.engine {
        EngineName::Ashlardb => on::<Ashlar>(&task),
        EngineName::Rocksdb => on::<RocksDb>(&task),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => on::<Fjall>(&task),
        #[cfg(feature = "redb")]
        EngineName::Redb => on::<Redb>(&task),
        EngineName::TestSlow | EngineName::TestCareless | EngineName::TestForgetful => on::<Flawed>(&task),
        _ => on::<Shim>(&task),
    }
}

fn on<P: Peer>(task: &Task) -> Result<()> {
    let mut peer = P::open(task.engine, Path::new(&task.dir), &task.settings, task.library.as_deref())?;
    let mut filled = false;
    for &workload in &task.workloads {
        let needs_data = workload == Workload::Overwrite || !workload.writes();
        if needs_data && !filled {
            work::put(&peer, &task.settings, task.keys, Some(Stream::Load))?;
            peer.settle()?;
        }
        filled = true;
        let record = measured(&mut peer, task, workload)?;
        let line = serde_json::to_string(&record).map_err(|e| e.to_string())?;
        println!("{line}");
    }
    peer.close()
}

fn measured<P: Peer>(peer: &mut P, task: &Task, workload: Workload) -> Result<Record> {
    match workload {
        Workload::Readrandom | Workload::Seekrandom => work::warm(peer, task)?,
        Workload::Readseq => drop(work::scan(peer, 1)?),
        _ => {}
    }
    let wrote = peer.written();
    forget_peak();
    let start = Moment::now();
    let (done, latency) = perform(peer, task, workload)?;
    let end = Moment::now();
    if workload.writes() {
        peer.settle()?;
    }
    let settled = Moment::now();
    let (passed, all) = (start.until(&end), start.until(&settled));
    let writes = workload.writes();
    let counted = since(peer.written(), wrote, writes);
    let per_byte = |bytes: u64| bytes as f64 / done.bytes.max(1) as f64;
    let flush_and_compact = counted.flush_bytes.zip(counted.compact_write_bytes).map(|(f, c)| f + c);
    Ok(Record {
        schema: SCHEMA,
        workload: workload.text().to_owned(),
        engine: Engine { name: task.engine.text().to_owned(), version: peer.version() },
        params: task.settings.params(task.keys),
        ops: Some(ops(&done, &passed, all.cpu, writes)),
        phase: Some(Phase {
            seconds: passed.seconds,
            settle_seconds: Some(all.seconds - passed.seconds),
            load_seconds: None,
        }),
        latency_us: latency,
        cpu: Cpu { process_s: Some(all.cpu), thread_s: Some(passed.cpu_thread), ..all.switches },
        io_end: passed.io,
        mem: Memory {
            configured_bytes: Some(task.settings.memory_bytes()),
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
        hash: Hashes { reads: Some(format!("{:016x}", done.digest)), ..Hashes::default() },
        ..Record::default()
    })
}

/// What `done` cost; `all` is the processor time that counts for it.
fn ops(done: &Done, passed: &Passed, all: f64, writes: bool) -> Ops {
    let each = |seconds: f64| seconds * 1e6 / done.ops.max(1) as f64;
    Ops {
        total: done.ops,
        per_sec: done.ops as f64 / passed.seconds.max(1e-9),
        found: (!writes).then_some(done.found),
        user_bytes: done.bytes,
        us_wall_op: each(passed.seconds),
        us_cpu_op: Some(each(all)),
        us_cpu_thread_op: Some(each(passed.cpu_thread)),
        ..Ops::default()
    }
}

/// Latencies by kind of operation.
type Latencies = BTreeMap<String, Latency>;

fn perform<P: Peer>(peer: &mut P, task: &Task, workload: Workload) -> Result<(Done, Latencies)> {
    let (s, keys) = (&task.settings, task.keys);
    let done = match workload {
        Workload::Fillseq => work::put(peer, s, keys, None),
        Workload::Fillrandom => work::put(peer, s, keys, Some(Stream::Load)),
        Workload::Overwrite => work::put(peer, s, keys, Some(Stream::Again)),
        Workload::Readrandom => work::get(peer, task),
        Workload::Seekrandom => work::seek(peer, task),
        // Fast scans are repeated, or there would be nothing to measure.
        Workload::Readseq => work::scan(peer, (keys * 2).max(3_000_000.min(keys * 20))),
        Workload::Openloop => {
            let (done, latency) = open_loop::put(peer, task)?;
            return Ok((done, BTreeMap::from([("write".to_owned(), latency)])));
        }
    }?;
    Ok((done, BTreeMap::new()))
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

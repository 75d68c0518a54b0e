//! One process: opens the engine, does its workloads on one database, prints a record for each.

use crate::measure::{Moment, forget_peak, peak_memory};
use crate::open_loop;
use crate::peer::{Peer, Result, Written};
use crate::peers::{Ashlar, RocksDb};
use crate::record::{Amplification, Counters, Cpu, Engine, Io, Latency, Memory, Ops, Params, Phase, Record};
use crate::settings::{EngineName, Task, Workload};
use crate::work::{self, Done, Stream};
use std::path::Path;

/// Does what `task`, in JSON, says.
pub fn run(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task).map_err(|e| format!("--child: {e}"))?;
    match task.engine {
        EngineName::Ashlardb => on::<Ashlar>(&task),
        EngineName::Rocksdb => on::<RocksDb>(&task),
    }
}

fn on<P: Peer>(task: &Task) -> Result<()> {
    let mut peer = P::open(Path::new(&task.dir), &task.settings, task.library.as_deref())?;
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
    Ok(Record {
        schema: 1,
        workload,
        rep: 0,
        order: 0,
        engine: Engine { name: task.engine, version: peer.version() },
        params: Params {
            keys: task.keys,
            durability: task.settings.durability().to_owned(),
            settings: task.settings.clone(),
        },
        ops: Ops::of(&done, &passed, all.cpu),
        phase: Phase { seconds: passed.seconds, settle_seconds: all.seconds - passed.seconds },
        cpu: Cpu { process_s: all.cpu, thread_s: passed.cpu_thread },
        io: Io { proc_wchar: all.wchar, proc_write: all.write_bytes },
        mem: Memory { rss_peak: peak_memory() },
        amp: Amplification {
            wa_proc: all.wchar.filter(|_| writes).map(per_byte),
            wa_eng: counted.flush_bytes.zip(counted.compact_write_bytes).map(|(f, c)| per_byte(f + c)),
        },
        engine_counters: counted,
        latency_us: latency,
        levels: peer.levels(),
        hash: format!("{:016x}", done.digest),
    })
}

fn perform<P: Peer>(peer: &mut P, task: &Task, workload: Workload) -> Result<(Done, Option<Latency>)> {
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
            return open_loop::put(peer, task).map(|(done, latency)| (done, Some(latency)));
        }
    }?;
    Ok((done, None))
}

fn since(now: Written, then: Written, writes: bool) -> Counters {
    let more = |now: Option<u64>, then: Option<u64>| {
        now.zip(then).filter(|_| writes).map(|(now, then)| now.saturating_sub(then))
    };
    Counters {
        flush_bytes: more(now.flush, then.flush),
        compact_write_bytes: more(now.compaction, then.compaction),
    }
}

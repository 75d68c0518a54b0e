//! The child process: opens the engine, runs the steps of a job on one database, checks the content of the database, and
//! prints a record for each measured step.

use crate::figures::Figures;
use crate::job::{Job, Step, TreeState, Workload};
use crate::meter::Meter;
use crate::null;
use crate::oracle::Oracle;
use crate::work::{self, Done};
use ashlar_peers::memory::Held;
use ashlar_peers::observed::Observed;
use ashlar_peers::peer::{Peer, Result};
use ashlar_peers::peers::{self, Work};
use ashlar_peers::process::end_with_parent;
use ashlar_peers::space::taken;
use ashlar_report::record::Status;
use std::path::Path;

/// Runs `job`, which is JSON.
pub fn run(job: &str) -> Result<()> {
    end_with_parent();
    let job: Job = serde_json::from_str(job).map_err(|e| format!("--child: {e}"))?;
    peers::with(job.engine, On(&job))
}

/// The job, on the type of its engine.
struct On<'a>(&'a Job);

impl Work for On<'_> {
    type Output = Result<()>;

    fn on<P: Peer>(self) -> Result<()> {
        on::<P>(self.0)
    }
}

fn on<P: Peer>(job: &Job) -> Result<()> {
    let dir = Path::new(&job.dir);
    let threads = job.steps.iter().map(|step| step.threads).max().unwrap_or(1);
    let mut held = Held::enter(job.engine, &job.settings, (job.keys, threads), job.group.as_deref())?;
    let peer = P::open(job.engine, dir, &job.settings, job.shared_object.as_deref())?;
    if job.probe {
        return probe(peer, job);
    }
    let oracle = Oracle::default();
    let mut records = Vec::new();
    let mut same_data = true;
    let mut alone = 0.0;
    for step in &job.steps {
        let step = &remaining(step, &oracle);
        prepare(&peer, job, step)?;
        let paced = Job { rate: alone * step.share, ..job.clone() };
        let paced = if step.share > 0.0 { &paced } else { job };
        let figures = held.tight(|| measured(&peer, paced, step))?;
        let done = figures.done.clone();
        if step.workload == Workload::Overwrite {
            alone = done.ops as f64 / figures.observed.worked.seconds.max(1e-9);
        }
        let read_same = same_data;
        same_data &= leaves_same_data(step, &done);
        if done.cut && step.workload.loads() {
            work::complete(&peer, job, step, &done)?;
        }
        work::replay(&oracle, job, step, &done)?;
        work::verify_copies(&peer, job, step, &oracle)?;
        held.set_oracle(oracle.memory_bytes());
        if step.measured {
            let mut record = figures.record(job, step, taken(dir), oracle.live_bytes());
            record.hash.reads = record.hash.reads.filter(|_| read_same);
            held.note(&mut record);
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

/// Does the steps and nothing else: no counter is read, nothing is checked. (Nor the processor clock: valgrind has none.)
fn probe<P: Peer>(peer: P, job: &Job) -> Result<()> {
    for step in &job.steps {
        prepare(&peer, job, step)?;
        work::run(&peer, job, step, &mut Meter::new(0.0))?;
        if step.workload.writes() && step.settles {
            peer.settle()?;
        }
    }
    peer.close()
}

/// False if the amount of written data depends on the engine's speed: then later steps read different data on each engine.
fn leaves_same_data(step: &Step, done: &Done) -> bool {
    let fill = step.workload.loads();
    let writes = step.workload.writes() || done.puts > 0;
    fill || !writes || (!done.cut && step.workload != Workload::Readwhilewriting)
}

/// `step`, with the entries that remain when all is compacted: what the loads before it left.
fn remaining(step: &Step, oracle: &Oracle) -> Step {
    let ops = if step.workload.compacts() { oracle.entries() } else { step.ops };
    Step { ops, ..step.clone() }
}

fn prepare<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<()> {
    work::make(peer, job, step)?;
    match step.tree {
        TreeState::Loaded => {}
        TreeState::Idle => peer.settle()?,
        TreeState::Settled => peer.compact()?,
    }
    match step.workload {
        _ if !step.warm => Ok(()),
        Workload::Readseq | Workload::Readreverse => {
            let once = Step::new("warm", Workload::Readseq, 1);
            work::run(peer, job, &once, &mut Meter::new(0.0)).map(drop)
        }
        _ => work::warm(peer, job),
    }
}

fn measured<P: Peer>(peer: &P, job: &Job, step: &Step) -> Result<Figures> {
    let driver_us = null::overhead(job, step);
    let mut meter = Meter::new(step.seconds);
    let work = || work::run(peer, job, step, &mut meter);
    let (done, observed) = Observed::during(peer, Path::new(&job.dir), work, |done: &Done| {
        if done.wrong > 0 {
            return Err(format!("{} of {} answers of {} are wrong", done.wrong, done.ops, step.row));
        }
        Ok(step.workload.writes() && step.settles)
    })?;
    Ok(Figures { done, meter, driver_us, observed })
}

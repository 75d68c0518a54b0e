//! One run: the threads, the close, the next open, and the open after a crash.

use super::actors::{Actor, World, look};
use super::history::{self, FAMILIES};
use super::log::{Ack, Log};
use super::machine;
use super::plan::Plan;
use crate::sim::store::listing;
use ashlar_base::error::IoKind;
use ashlar_base::stats::Ticker;
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_options::ReadOptions;
use ashlar_sync::shuttle::thread;
use ashlar_testkit::Rng;
use ashlar_testkit::harm::LOST_WRITE;
use ashlar_testkit::harm::PANIC;
use std::sync::Arc;

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The findings.
    pub findings: Vec<String>,
    /// The hash of all calls to the machine.
    pub hash: u64,
    /// The counts of the work.
    pub figures: Vec<(&'static str, u64)>,
}

/// Runs the case once.
pub fn run(plan: Plan) -> Outcome {
    let mut outcome = Outcome::default();
    let sim = SimEnv::new(plan.seed);
    if let Err(what) = play(plan, &sim, &mut outcome) {
        outcome.findings.push(what);
    }
    outcome.hash = sim.trace_hash();
    outcome.figures.push(("calls made to fail", sim.injected()));
    outcome
}

fn play(mut plan: Plan, sim: &SimEnv, outcome: &mut Outcome) -> Result<(), String> {
    let env = machine::env(sim, plan.low);
    let world = Arc::new(begin(&plan, sim, env.clone())?);
    let mut threads = Vec::new();
    for actor in plan.actors.iter().copied() {
        let (world, mut rng) = (Arc::clone(&world), plan.rng.fork());
        threads.push(thread::spawn(move || actor.play(&world, &mut rng)));
    }
    if threads.into_iter().any(|thread| thread.join().is_err()) {
        return Err(format!("{PANIC}in a thread of the case"));
    }
    let (acks, kept, started) = end(world, &plan.actors, &mut plan.rng, outcome);
    let writes = sim.calls_of(CallClass::Write);
    env.jobs.close();
    drop(env);
    if sim.calls_of(CallClass::Write) != writes {
        outcome.findings.push("a closed database went on to change files".to_owned());
    }
    sim.heal();
    if outcome.findings.is_empty() {
        closed(&plan, sim, &kept, &started).map_err(|e| format!("after the close: {e}"))?;
        for (at, mode, image) in sim.photographs() {
            outcome.figures.push(("crashes", 1));
            let found = crashed(&plan, &image, &acks, &started, (at, mode));
            found.map_err(|e| format!("after a crash before call {at}, {mode:?}: {e}"))?;
        }
    }
    Ok(())
}

/// The open database, and what is to happen to it.
fn begin(plan: &Plan, sim: &SimEnv, env: Env) -> Result<World, String> {
    let db = plan.open(env)?;
    if let Some((class, after, repeat)) = plan.fault {
        sim.fail_call(class, sim.calls_of(class) + after, repeat, IoKind::Other);
    }
    if let Some((after, mode)) = plan.crash {
        sim.photograph_at(sim.calls_of(CallClass::Change) + after, mode);
    }
    Ok(World {
        sim: sim.clone(),
        families: FAMILIES.iter().filter_map(|name| db.family(name)).collect(),
        db,
        holds_back: plan.db.manual_wal_flush,
        family: plan.family.clone(),
        writers: plan.writers,
        value_bytes: plan.value_bytes,
        log: Log::new(plan.writers, plan.fault.is_some()),
    })
}

/// Asks once more when all have done their work, and closes. What was acknowledged, what of it the close kept, and what was
/// begun.
fn end(
    world: Arc<World>,
    actors: &[Actor],
    rng: &mut Rng,
    outcome: &mut Outcome,
) -> (Vec<Ack>, Vec<Ack>, Vec<u64>) {
    if !actors.iter().any(|actor| matches!(actor, Actor::Closer)) {
        at_rest(&world, rng);
    }
    world.log.close_begins();
    if let Err(e) = world.db.close() {
        world.log.close_failed(&e);
    }
    let ticker = |ticker| world.db.statistics().ticker(ticker);
    outcome.figures.extend([
        ("batches that others committed", ticker(Ticker::WriteOther)),
        ("runs that flushed", u64::from(ticker(Ticker::FlushWriteBytes) > 0)),
        ("runs that compacted", u64::from(ticker(Ticker::CompactWriteBytes) > 0)),
        ("runs that stalled", u64::from(ticker(Ticker::StallMicros) > 0)),
    ]);
    outcome.findings.extend(world.log.findings());
    let acks = world.log.acks();
    outcome.figures.push(("batches acknowledged", acks.len() as u64));
    (acks, world.log.kept(), world.log.started())
}

/// When all is done, all that was acknowledged is there, and nothing else, unless calls failed.
fn at_rest(world: &World, rng: &mut Rng) {
    let (acknowledged, started) = (world.log.acknowledged(), world.log.started());
    if !world.log.faulty && acknowledged != started {
        world.log.find(format!("{acknowledged:?} of {started:?} batches were acknowledged"));
    }
    for (at, name) in FAMILIES.iter().enumerate() {
        match look(world, at, None, rng) {
            Ok(shown) => {
                let all = shown.map_or(Ok(()), |shown| between(&shown, &acknowledged, &started));
                all.unwrap_or_else(|e| world.log.find(format!("at the end, {name}: {e}")));
            }
            Err(e) => world.log.failed("at the end", &e),
        }
    }
}

/// After a close all that was acknowledged is there, unless the close said that what was held back may not be.
fn closed(plan: &Plan, sim: &SimEnv, kept: &[Ack], started: &[u64]) -> Result<(), String> {
    let last = |writer| kept.iter().filter(|ack| ack.writer == writer).map(|ack| ack.number).max();
    let acknowledged: Vec<u64> = (0..plan.writers).map(|writer| last(writer).unwrap_or(0)).collect();
    between(&reopened(plan, sim)?, &acknowledged, started)
}

/// A kill leaves what was acknowledged, a power cut what was synced and all that was written before it; and in any case a
/// prefix of all writes.
fn crashed(
    plan: &Plan,
    image: &SimEnv,
    acks: &[Ack],
    started: &[u64],
    (at, mode): (u64, CrashMode),
) -> Result<(), String> {
    let shown = reopened(plan, image)?;
    let promised =
        |ack: &&Ack| ack.calls.is_some_and(|calls| calls < at) && (ack.synced || mode == CrashMode::KILL);
    let floor = acks.iter().filter(promised).map(|ack| ack.seq).max();
    let there = |ack: &&Ack| ack.number <= shown[ack.writer];
    let last = acks.iter().filter(there).map(|ack| ack.seq).max().max(floor);
    match acks.iter().find(|ack| Some(ack.seq) <= last && !there(ack)) {
        Some(lost) => {
            let whole = format!("{shown:?} are there, acknowledged up to {floor:?}");
            Err(format!("{LOST_WRITE}{whole}; {lost:?} is missing before {last:?}"))
        }
        None => between(&shown, &vec![0; plan.writers], started),
    }
}

/// Opens what is there, and closes it again. The batches of each writer it shows, in both families.
fn reopened(plan: &Plan, sim: &SimEnv) -> Result<Vec<u64>, String> {
    let env = machine::env(sim, plan.low);
    let db = plan.open(env.clone())?;
    let mut shown = Vec::new();
    for (at, name) in FAMILIES.iter().enumerate() {
        let family = db.family(name).ok_or_else(|| format!("there is no {name}"))?;
        let entries = listing(&db, &family, ReadOptions::default(), false);
        let entries = entries.map_err(|e| format!("listing {name}: {e}"))?;
        shown.push(history::judge(&entries, at, plan.writers, plan.value_bytes)?);
    }
    db.verify_checksums(|_| ()).map_err(|e| format!("checksums: {e}"))?;
    db.close().map_err(|e| format!("close: {e}"))?;
    drop(db);
    env.jobs.close();
    if shown[0] != shown[1] {
        return Err(format!("half batches: {:?} and, in the other family, {:?}", shown[0], shown[1]));
    }
    Ok(shown.swap_remove(0))
}

/// # Errors
/// A writer of which less is shown than was acknowledged, or more than it began.
fn between(shown: &[u64], low: &[u64], high: &[u64]) -> Result<(), String> {
    if shown.iter().zip(low).any(|(shown, low)| shown < low) {
        return Err(format!(
            "{LOST_WRITE}{shown:?} batches of the writers are there, {low:?} were acknowledged"
        ));
    }
    if shown.iter().zip(high).any(|(shown, high)| shown > high) {
        return Err(format!("{shown:?} batches of the writers are there; {high:?} were begun"));
    }
    Ok(())
}

//! One fixed list of steps, run again and again with another call failing: once, or from there on for good.
//!
//! A step that meets the failure says so or does its work all the same; nothing acknowledged is lost, then or after a
//! crash; nothing hangs. When the calls work again the store opens and takes writes.

use super::check::Crash;
use super::crashes::{brief, from_env};
use super::plan::{Setup, Step, steps};
use super::store::{Store, open};
use super::tally::Tally;
use ashlar_base::error::{IoKind, ShutdownKind};
use ashlar_engine::health::Severity;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::Op;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Which call fails.
#[derive(Clone, Copy, Debug)]
struct Fault {
    class: CallClass,
    at: u64,
    repeat: Repeat,
}

fn script(seed: u64) -> (Setup, Vec<Step>) {
    let mut rng = Rng::new(seed);
    let mut setup = Setup::draw(&mut rng);
    setup.family.write_buffer_bytes = 64 << 10;
    setup.family.max_write_buffers = 2;
    setup.unlogged = false;
    let mut steps = steps(&setup, &mut rng, 70);
    let flush = |name: &str| Step::Op(Op::Flush { family: name.to_owned() });
    for (at, step) in [
        (12, flush("one")),
        (20, Step::SyncWal),
        (26, Step::Drop("one")),
        (31, flush("default")),
        (38, Step::Create("one")),
        (45, Step::Op(Op::Reopen)),
        (52, flush("two")),
        (60, Step::Op(Op::Compact { family: "default".to_owned() })),
        (64, Step::Idle),
    ] {
        steps.insert(at.min(steps.len()), step);
    }
    (setup, steps)
}

/// Runs the script. `Err`: what is wrong.
fn run(seed: u64, fault: Option<Fault>, counts: &mut [u64; 4]) -> Result<(), String> {
    let (setup, steps) = script(seed);
    let sim = SimEnv::new(seed);
    if let Some(Fault { class, at, repeat }) = fault {
        let kind = if at % 3 == 0 { IoKind::NoSpace } else { IoKind::Other };
        sim.fail_call(class, at, repeat, kind);
    }
    let mut store = match Store::new(sim.clone(), setup.clone()) {
        Ok(store) => store,
        Err(e) if fault.is_none() => return Err(e),
        Err(_) => {
            sim.heal();
            return open(&sim, &setup).map(drop).map_err(|e| format!("after a first open that failed: {e}"));
        }
    };
    store.faulty = fault.is_some();
    for (at, step) in steps.iter().enumerate() {
        store.step(step).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
    }
    if fault.is_none() {
        let sim = &store.sim;
        counts.clone_from(
            &[CallClass::Write, CallClass::Sync, CallClass::Change, CallClass::Read].map(|c| sim.calls_of(c)),
        );
        return store.compare_all();
    }
    judge(&mut store)
}

/// The power goes, the process dies, or the store is closed and opened: what was promised is there.
fn judge(store: &mut Store) -> Result<(), String> {
    let mut rng = Rng::new(store.failures);
    let promise = store.promise.clone();
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let image = store.sim.crash(mode);
        Crash::of(store, &promise, false).check(&image, mode, &mut rng, &mut Tally::default())?;
    }
    store.sim.heal();
    go_on(store)?;
    let failures = store.failures;
    store.step(&Step::Op(Op::Reopen))?;
    if store.failures > failures {
        let again = open(&store.sim, &store.setup);
        let db = again.map_err(|e| format!("does not open though every call works again: {e}"))?;
        let (m, names) = Crash::of(store, &promise, false).look(&db)?;
        store.adopt(store.sim.clone(), db, m, names);
    }
    store.faulty = false;
    let last = Step::Op(Op::Write { changes: Vec::new(), sync: true });
    for step in [last, Step::Idle, Step::SyncWal, Step::Op(Op::Reopen)] {
        store.step(&step).map_err(|e| format!("when every call works again: {}: {e}", brief(&step)))?;
    }
    store.compare_all()
}

/// Every call works again: the same handle takes writes, unless it says that only a new open helps.
fn go_on(store: &mut Store) -> Result<(), String> {
    let resumed = store.db.resume();
    let (severity, cause) = store.db.health();
    match resumed {
        Ok(()) if severity < Severity::Hard => {}
        Err(e)
            if severity >= Severity::Fatal
                || e.kind() == ashlar_base::ErrorKind::Shutdown(ShutdownKind::Closed) =>
        {
            return Ok(());
        }
        other => return Err(format!("does not resume: {other:?}, {severity:?}, {cause:?}")),
    }
    store.settle_doubt()?;
    store.faulty = false;
    let last = Step::Op(Op::Write { changes: Vec::new(), sync: true });
    for step in [last, Step::Idle, Step::SyncWal] {
        store.step(&step).map_err(|e| format!("resumed in the same handle: {}: {e}", brief(&step)))?;
    }
    store.compare_all()?;
    // A purge that failed may still pause.
    store.sim.env().jobs.drive(10_000);
    let (severity, cause) = store.db.health();
    if severity != Severity::Well {
        return Err(format!("stays {severity:?}: {cause:?}"));
    }
    let promise = store.promise.clone();
    let mut rng = Rng::new(7);
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let image = store.sim.crash(mode);
        Crash::of(store, &promise, false).check(&image, mode, &mut rng, &mut Tally::default())?;
    }
    store.faulty = true;
    Ok(())
}

/// What the watchdog is told when all cases are over.
const OVER: u64 = u64::MAX - 1;

/// Ends the process when a case takes for ever: a loop inside a step cannot be left in any other way.
fn watch(progress: &Arc<AtomicU64>) {
    let progress = Arc::clone(progress);
    #[expect(clippy::disallowed_methods, reason = "a watchdog over the simulation is outside of it")]
    std::thread::spawn(move || {
        let mut before = u64::MAX;
        loop {
            std::thread::sleep(Duration::from_secs(20));
            let now = progress.load(Ordering::Relaxed);
            if now == OVER {
                return;
            }
            if now == before {
                eprintln!("HANG in case {now}: replay with ASHLAR_SIM_FAULT={now}");
                std::process::exit(101);
            }
            before = now;
        }
    });
}

fn cases(counts: &[u64; 4]) -> Vec<Fault> {
    let mut cases = Vec::new();
    let [write, sync, _, read] = *counts;
    for (class, n) in [(CallClass::Write, write), (CallClass::Sync, sync), (CallClass::Read, read)] {
        for at in 1..=n {
            for repeat in [Repeat::Once, Repeat::Sticky] {
                cases.push(Fault { class, at, repeat });
            }
        }
    }
    // From here on nothing changes any more.
    cases.extend((1..=write + sync).map(|at| Fault { class: CallClass::Change, at, repeat: Repeat::Sticky }));
    cases
}

#[test]
fn every_call_may_fail() {
    let _readers = crate::beside_others();
    let seed = from_env("ASHLAR_SIM_SCRIPT").unwrap_or(3);
    let mut counts = [0; 4];
    run(seed, None, &mut counts).unwrap();
    let cases = cases(&counts);
    let one = from_env("ASHLAR_SIM_FAULT");
    let progress = Arc::new(AtomicU64::new(0));
    watch(&progress);
    let mut failures = Vec::new();
    for (i, fault) in cases.iter().enumerate().filter(|(i, _)| one.is_none_or(|one| one == *i as u64)) {
        progress.store(i as u64, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, Some(*fault), &mut [0; 4])));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(e)) => failures.push(format!("case {i}, {fault:?}: {e}")),
            Err(_) => failures.push(format!("case {i}, {fault:?}: panic")),
        }
    }
    progress.store(OVER, Ordering::Relaxed);
    println!(
        "failing calls: {} cases over {} writes, {} syncs, {} reads: {} failures",
        cases.len(),
        counts[0],
        counts[1],
        counts[3],
        failures.len()
    );
    let shown: Vec<&str> = failures.iter().take(8).map(String::as_str).collect();
    assert!(failures.is_empty(), "replay with ASHLAR_SIM_FAULT=case\n{}", shown.join("\n"));
}

//! Calls that fail in the middle of histories, once or for a while, syncs in each of their four ways: nothing that was
//! acknowledged is lost, then, after a crash, or when the calls work again.

use super::check::{Crash, any_mode};
use super::crashes::{FEATURES, brief};
use super::features::{Which, among};
use super::plan::{Setup, Step, steps};
use super::store::Store;
use super::tally::{Tally, flavour};
use ashlar_base::ErrorKind;
use ashlar_base::error::{IoKind, ShutdownKind};
use ashlar_engine::health::{Health, Severity};
use ashlar_env::sim::{CallClass, Repeat, SimEnv, SyncFault};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::Op;
use ashlar_testkit::suite::guarded;

const OPERATIONS: usize = 300;

/// The history of a seed in which calls fail.
///
/// # Errors
/// What does not hold.
pub fn failing(seed: u64, tally: &mut Tally) -> Result<(), String> {
    guarded(|| run(seed, tally))
}

fn run(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let setup = Setup { unlogged: false, ..Setup::draw(&mut rng) }.placed(&mut Rng::new(!seed)).featured();
    let steps = steps(&setup, &mut rng, OPERATIONS);
    let steps = among(steps, &setup, Which::Writes, &mut Rng::new(seed ^ FEATURES));
    let mut store = Store::new(SimEnv::new(seed), setup)?;
    let mut steps = steps.iter().enumerate();
    'run: loop {
        for (at, step) in steps.by_ref().take(rng.between(5, 40)) {
            store.step(step).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
        }
        let fault = *rng.pick(&SyncFault::ALL).unwrap_or(&SyncFault::Kept);
        let before = store.sim.clone();
        let (injected, syncs) = (before.injected(), before.failed_syncs());
        trouble(&mut store, fault, &mut rng);
        for _ in 0..rng.between(10, 40) {
            let Some((at, step)) = steps.next() else { break 'run };
            let what = |e| format!("{fault:?}, step {at}, {}: {e}", brief(step));
            store.step(step).map_err(what)?;
            if rng.percent(6) {
                crash(&store, &mut rng, tally).map_err(what)?;
            }
        }
        tally.failed += before.injected() - injected;
        *tally.failed_syncs.entry(flavour(fault)).or_default() += before.failed_syncs() - syncs;
        recover(&mut store).map_err(|e| format!("{fault:?}, when calls work again: {e}"))?;
        crash(&store, &mut rng, tally).map_err(|e| format!("{fault:?}, resumed: {e}"))?;
    }
    recover(&mut store)?;
    tally.feature(&store.features);
    Ok(())
}

/// Plans a few failures among the next calls.
fn trouble(store: &mut Store, fault: SyncFault, rng: &mut Rng) {
    store.faulty = true;
    store.sim.set_sync_fault(fault);
    for _ in 0..rng.between(1, 3) {
        // Syncs more often: they are what the four ways are about.
        let classes = [CallClass::Sync, CallClass::Sync, CallClass::Write, CallClass::Read, CallClass::Any];
        let class = *rng.pick(&classes).unwrap_or(&CallClass::Sync);
        let reach = if class == CallClass::Sync { 12 } else { 60 };
        let at = store.sim.calls_of(class) + rng.between(1, reach) as u64;
        let repeat = if rng.percent(25) { Repeat::Sticky } else { Repeat::Once };
        let kind = if rng.percent(30) { IoKind::NoSpace } else { IoKind::Other };
        store.sim.fail_call(class, at, repeat, kind);
    }
}

fn crash(store: &Store, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
    let mode = any_mode(rng);
    let promise = store.promise.clone();
    let image = store.sim.crash(mode);
    Crash::of(store, &promise, false).check(&image, mode, &mut rng.fork(), tally).map(drop)
}

/// Every call works again: the handle resumes, or says that only a new open helps, and then that does.
fn recover(store: &mut Store) -> Result<(), String> {
    store.sim.heal();
    let resumed = store.db.resume();
    let Health { severity, cause, .. } = store.db.health();
    match resumed {
        Ok(()) if severity < Severity::Full => store.settle_doubt()?,
        Err(e) if severity >= Severity::Fatal || e.kind() == ErrorKind::Shutdown(ShutdownKind::Closed) => {
            store.step(&Step::Op(Op::Reopen))?;
        }
        other => return Err(format!("does not resume: {other:?}, {severity:?}, {cause:?}")),
    }
    store.faulty = false;
    // All writes in memory are in tables now: no read misses what a sync dropped from the cache.
    store.sim.set_sync_fault(SyncFault::Kept);
    store.step(&Step::Op(Op::Write { changes: Vec::new(), sync: true }))?;
    store.compare_all()
}

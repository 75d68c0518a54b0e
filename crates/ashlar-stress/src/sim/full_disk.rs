//! A disk fills up and then gets free space again. Meanwhile deletions are accepted. Afterwards writes resume in the same
//! handle, and no acknowledged write is lost. A crash at any moment leaves the promised state, and RocksDB reads it too.

use super::check::{Crash, any_mode};
use super::crashes::{FEATURES, brief};
use super::features::{Which, among};
use super::judged::Judges;
use super::plan::{DEFAULT, Setup, Step, steps};
use super::store::Store;
use super::tally::Tally;
use ashlar_base::Error;
use ashlar_engine::health::{Health, Severity};
use ashlar_env::sim::{CallClass, SimEnv};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::{Change, Op, draw_key};
use ashlar_testkit::suite::guarded;
use std::path::Path;
use std::time::Duration;

/// Steps that leave the handle alone.
fn lasting(step: &Step) -> bool {
    !matches!(step, Step::Op(Op::Reopen))
}

fn crash(store: &Store, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
    let mode = any_mode(rng);
    let image = store.sim.crash(mode);
    // There is room when the image is opened after the crash.
    image.set_capacity(u64::MAX);
    let promise = store.promise.clone();
    Crash::of(store, &promise, false).check(&image, mode, &mut rng.fork(), tally).map(drop)
}

/// What heals by itself has healed when the longest pause is over.
fn healed(store: &mut Store) -> Result<(), String> {
    let start = ashlar_env::Clock::now(store.sim.clock());
    let passed = |store: &Store| ashlar_env::Clock::now(store.sim.clock()) - start;
    while store.db.health().severity >= Severity::Full && passed(store) < Duration::from_secs(61) {
        if store.sim.env().jobs.drive(1) == 0 {
            break;
        }
    }
    match store.db.health() {
        Health { severity, cause: Some(cause), .. } if severity >= Severity::Full => {
            Err(format!("still {severity:?} after {:?} with room: {cause}", passed(store)))
        }
        _ => {
            // Retries failed compactions now, so that no writer gets their error before.
            store.db.resume().map_err(|e| format!("with room: {e}"))?;
            store.settle_doubt()
        }
    }
}

/// Whether it is the log that lacks room.
fn lacks_log_room(store: &Store) -> bool {
    let Health { severity, cause, .. } = store.db.health();
    let of_log = |e: &Error| e.path().and_then(Path::extension).is_some_and(|extension| extension == "log");
    severity == Severity::Full && cause.as_ref().is_some_and(of_log)
}

/// A deletion, which a full disk takes as long as the log has room for it.
fn delete(store: &mut Store, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
    if store.db.health().severity != Severity::Full {
        return Ok(());
    }
    let (family, key, sync) = (DEFAULT.to_owned(), draw_key(rng), rng.percent(20));
    let (failures, of_log) = (store.failures, lacks_log_room(store));
    store.step(&Step::Op(Op::Write { changes: vec![Change::Delete { family, key }], sync }))?;
    if store.failures == failures {
        tally.deleted[usize::from(of_log)] += 1;
    }
    Ok(())
}

/// The history of a seed on a disk that fills again and again. Counts how often writes were refused and resumed.
///
/// # Errors
/// What does not hold.
pub fn full_disk(seed: u64, tally: &mut Tally, judges: Option<&mut Judges>) -> Result<u64, String> {
    guarded(|| run(seed, tally, judges))
}

fn run(seed: u64, tally: &mut Tally, mut judges: Option<&mut Judges>) -> Result<u64, String> {
    let mut rng = Rng::new(seed);
    let setup = Setup { unlogged: false, ..Setup::draw(&mut rng) }.placed(&mut Rng::new(!seed)).featured();
    let mut steps = steps(&setup, &mut rng, 500);
    if seed % 2 == 1 {
        steps = among(steps, &setup, Which::Writes, &mut Rng::new(seed ^ FEATURES));
    }
    let mut store = Store::new(SimEnv::new(seed), setup)?;
    let mut refused = 0;
    let mut steps = steps.iter().filter(|s| lasting(s)).enumerate();
    'run: loop {
        for (at, step) in steps.by_ref().take(rng.between(5, 40)) {
            store.step(step).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
        }
        store.sim.set_capacity(store.sim.used_bytes() + rng.below(200 << 10) as u64);
        store.faulty = true;
        for _ in 0..rng.between(20, 60) {
            let Some((at, step)) = steps.next() else { break 'run };
            store.step(step).map_err(|e| format!("full, step {at}, {}: {e}", brief(step)))?;
            delete(&mut store, &mut rng, tally).map_err(|e| format!("full, after step {at}: {e}"))?;
            if rng.percent(4) {
                crash(&store, &mut rng, tally).map_err(|e| format!("full, after step {at}: {e}"))?;
            }
        }
        refused += u64::from(store.db.health().severity >= Severity::Full);
        if let Some(judges) = judges.as_deref_mut().filter(|_| lacks_log_room(&store) && store.is_certain()) {
            judges.read(&store, false, &mut tally.judged).map_err(|e| format!("full, judged: {e}"))?;
        }
        store.sim.set_capacity(u64::MAX);
        let begin = store.sim.calls_of(CallClass::Change);
        for _ in 0..3 {
            let next = begin + rng.between(1, 30) as u64;
            store.sim.photograph_at(next, any_mode(&mut rng));
        }
        let promise = store.promise.clone();
        healed(&mut store)?;
        // Those planned in an earlier round came after what was promised then.
        for (at, mode, photograph) in store.sim.photographs().into_iter().filter(|p| p.0 > begin) {
            let checked = Crash::of(&store, &promise, false).check(&photograph, mode, &mut rng.fork(), tally);
            checked.map_err(|e| format!("crash while resuming, before call {at}: {e}"))?;
        }
        store.faulty = false;
        store.compare_all().map_err(|e| format!("resumed: {e}"))?;
    }
    store.sim.set_capacity(u64::MAX);
    healed(&mut store)?;
    store.faulty = false;
    store.compare_all()?;
    store.step(&Step::Op(Op::Reopen))?;
    store.compare_all()?;
    tally.feature(&store.features);
    Ok(refused)
}

//! A disk that fills up and is given room again: writes resume in the same handle, nothing acknowledged is lost, and a
//! crash at any moment of it finds a store as it was promised.

use super::check::{Crash, any_mode};
use super::crashes::{brief, from_env};
use super::plan::{Setup, Step, steps};
use super::store::{Store, open};
use super::tally::Tally;
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::Severity;
use ashlar_engine::options::{ReadOptions, WriteOptions};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::Op;
use std::time::Duration;

/// Steps that leave the handle alone.
fn lasting(step: &Step) -> bool {
    !matches!(step, Step::Op(Op::Reopen))
}

fn crash(store: &Store, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
    let mode = any_mode(rng);
    let image = store.sim.crash(mode);
    // Whoever opens it after the crash has made room.
    image.set_capacity(u64::MAX);
    let promise = store.promise.clone();
    Crash::of(store, &promise, false).check(&image, mode, &mut rng.fork(), tally).map(drop)
}

/// What heals by itself has healed when the longest pause is over.
fn healed(store: &mut Store) -> Result<(), String> {
    let start = ashlar_env::Clock::now(store.sim.clock());
    let passed = |store: &Store| ashlar_env::Clock::now(store.sim.clock()) - start;
    while store.db.health().0 >= Severity::Hard && passed(store) < Duration::from_secs(61) {
        if store.sim.env().jobs.drive(1) == 0 {
            break;
        }
    }
    match store.db.health() {
        (severity, Some(cause)) if severity >= Severity::Hard => {
            Err(format!("still {severity:?} after {:?} with room: {cause}", passed(store)))
        }
        _ => {
            // Compactions that failed: tried now, so that no writer is told of the failure before.
            store.db.resume().map_err(|e| format!("with room: {e}"))?;
            store.settle_doubt()
        }
    }
}

/// One run: the disk fills again and again. Counts how often writes were refused and resumed.
fn run(seed: u64, tally: &mut Tally) -> Result<u64, String> {
    let mut rng = Rng::new(seed);
    let setup = Setup { unlogged: false, ..Setup::draw(&mut rng) };
    let steps = steps(&setup, &mut rng, 500);
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
            if rng.percent(4) {
                crash(&store, &mut rng, tally).map_err(|e| format!("full, after step {at}: {e}"))?;
            }
        }
        refused += u64::from(store.db.health().0 == Severity::Hard);
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
    Ok(refused)
}

#[test]
fn a_full_disk_heals_in_the_same_handle() {
    let _readers = crate::beside_others();
    let first = from_env("ASHLAR_SIM_SEED");
    let count = from_env("ASHLAR_SIM_SEEDS").unwrap_or(if first.is_some() { 1 } else { 12 });
    let first = first.unwrap_or(1);
    let mut tally = Tally::default();
    let mut refused = 0;
    for seed in first..first + count {
        refused += run(seed, &mut tally).unwrap_or_else(|e| panic!("ASHLAR_SIM_SEED={seed}: {e}"));
    }
    println!("full disk: {count} seeds, writes refused and resumed {refused} times");
    assert!(first != 1 || refused > 0, "no run was ever refused");
}

fn put(db: &Db, key: &str, sync: bool) -> Result<(), Error> {
    let family = db.family("default").expect("always there");
    let mut batch = WriteBatch::new();
    batch.put(family.id(), key.as_bytes(), key.as_bytes())?;
    db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() }).map(drop)
}

fn holds(db: &Db, key: &str) -> bool {
    let family = db.family("default").expect("always there");
    let found = db.get(&family, key.as_bytes(), &ReadOptions::default()).expect("reads work");
    found.is_some_and(|v| v.into_vec() == key.as_bytes())
}

fn fresh() -> Store {
    let mut rng = Rng::new(1);
    Store::new(SimEnv::new(1), Setup { unlogged: false, ..Setup::draw(&mut rng) }).expect("an empty machine")
}

#[test]
fn a_failed_write_is_out_and_its_sequence_is_not_used_again() {
    let _readers = crate::beside_others();
    let store = fresh();
    put(&store.db, "before", false).expect("a write");
    let seq = store.db.visible();
    let sim = &store.sim;
    sim.fail_call(CallClass::Write, sim.calls_of(CallClass::Write) + 1, Repeat::Once, IoKind::NoSpace);
    let failed = put(&store.db, "failed", false).expect_err("the disk is full");
    assert_eq!(failed.kind(), ErrorKind::Indeterminate);
    assert_eq!(store.db.health().0, Severity::Hard);
    let refused = put(&store.db, "refused", false).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Io(IoKind::NoSpace), "the cause is told");
    assert!(holds(&store.db, "before"), "reads go on");
    store.db.resume().expect("there is room again");
    assert_eq!(store.db.health().0, Severity::Well);
    put(&store.db, "after", true).expect("a write");
    assert_eq!(store.db.visible().get(), seq.get() + 2, "one sequence is left out");
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let image = store.sim.crash(mode);
        let db = open(&image, &store.setup).expect("opens");
        let found = ["before", "failed", "refused", "after"].map(|key| holds(&db, key));
        assert_eq!(found, [true, false, false, true], "{mode:?}");
    }
}

#[test]
fn a_failed_sync_is_final_for_its_file_alone() {
    let _readers = crate::beside_others();
    let store = fresh();
    put(&store.db, "unsynced", false).expect("a write");
    let sim = &store.sim;
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    put(&store.db, "in doubt", true).expect_err("the sync failed");
    // By itself, with nobody asking.
    while store.db.health().0 != Severity::Well && sim.env().jobs.drive(1) > 0 {}
    assert_eq!(store.db.health().0, Severity::Well);
    let image = sim.crash(CrashMode::DROP_ALL);
    let db = open(&image, &store.setup).expect("opens");
    assert!(holds(&db, "unsynced") && holds(&db, "in doubt"), "both are in tables");
}

#[test]
fn unlinks_that_fail_are_tried_again_and_forgotten() {
    let _readers = crate::beside_others();
    let store = fresh();
    put(&store.db, "key", false).expect("a write");
    let family = store.db.family("default").expect("always there");
    let sim = &store.sim;
    let logs = || {
        let names = sim.env().fs.list(store.db.path()).expect("a directory");
        names.iter().filter(|e| e.name.ends_with(".log")).count()
    };
    store.db.flush(std::slice::from_ref(&family)).expect("a flush");
    store.db.wait_for_background().expect("idle");
    put(&store.db, "key", false).expect("a write");
    // A commit and the log's switch pass; the purge behind them does not.
    let mut at = sim.calls_of(CallClass::Write);
    while store.db.health().0 == Severity::Well {
        sim.heal();
        at = sim.calls_of(CallClass::Write).max(at) + 1;
        sim.fail_call(CallClass::Write, at, Repeat::Sticky, IoKind::Other);
        let _ = store.db.flush(std::slice::from_ref(&family));
        sim.env().jobs.drive(3);
        if store.db.health().0 >= Severity::Hard {
            sim.heal();
            store.db.resume().expect("every call works");
        }
        put(&store.db, "key", false).map(drop).unwrap_or_default();
    }
    sim.heal();
    sim.env().jobs.drive(1000);
    assert_eq!((store.db.health().0, logs()), (Severity::Well, 1));
}

#[test]
fn a_family_can_be_dropped_to_make_room() {
    let _readers = crate::beside_others();
    let mut store = fresh();
    store.step(&Step::Create("one")).expect("a family");
    let sim = &store.sim;
    let sync = sim.calls_of(CallClass::Sync) + 1;
    sim.fail_call(CallClass::Sync, sync, Repeat::Once, IoKind::NoSpace);
    put(&store.db, "key", true).expect_err("the disk is full");
    assert_eq!(store.db.health().0, Severity::Hard);
    let one = store.db.family("one").expect("made above");
    store.db.drop_family(&one).expect("allowed in a hard state");
    store.db.resume().expect("there is room again");
    put(&store.db, "key", true).expect("a write");
    assert!(store.db.family("one").is_none() && holds(&store.db, "key"));
}

//! What failed and heals: single writes, syncs, unlinks and drops on the simulated machine.

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::Severity;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_stress::sim::plan::{Setup, Step};
use ashlar_stress::sim::store::{Store, open};
use ashlar_testkit::Rng;
use ashlar_testkit::turns::beside_others;

fn put(db: &Db, key: &str, sync: bool) -> Result<(), Error> {
    let family = db.family("default").expect("always there");
    let mut batch = WriteBatch::new();
    batch.put(family.id(), key.as_bytes(), key.as_bytes())?;
    db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() }).map(drop)
}

fn holds(db: &Db, key: &str) -> bool {
    let family = db.family("default").expect("always there");
    let found = db.get(&family, key.as_bytes(), ReadOptions::default()).expect("reads work");
    found.is_some_and(|v| v.into_vec() == key.as_bytes())
}

fn fresh() -> Store {
    let mut setup = Setup { unlogged: false, ..Setup::draw(&mut Rng::new(1)) };
    setup.db.manual_wal_flush = false;
    Store::new(SimEnv::new(1), setup).expect("an empty machine")
}

/// A memtable that failed writes filled without an entry in it counts as full and has nothing to flush: writers went around
/// in circles.
#[test]
fn room_that_a_failed_write_took_is_won_back() {
    let _readers = beside_others();
    for logged in [true, false] {
        let store = fresh();
        let family = store.db.family("default").expect("always there");
        let mut batch = WriteBatch::new();
        let value = vec![1; store.setup.family.write_buffer_bytes + 1];
        batch.put(family.id(), b"large", &value).expect("small enough");
        let sim = &store.sim;
        if logged {
            // The first call asks for room.
            let write = sim.calls_of(CallClass::Write) + 2;
            sim.fail_call(CallClass::Write, write, Repeat::Once, IoKind::NoSpace);
        } else {
            sim.set_capacity(sim.used_bytes());
        }
        let failed = store.db.write(&mut batch, WriteOptions::default()).expect_err("the disk is full");
        let expected = if logged { ErrorKind::Indeterminate } else { ErrorKind::Io(IoKind::NoSpace) };
        assert_eq!(failed.kind(), expected, "{failed}");
        sim.set_capacity(u64::MAX);
        store.db.resume().expect("there is room again");
        put(&store.db, "after", false).expect("a write");
        assert!(holds(&store.db, "after"));
    }
}

#[test]
fn a_failed_write_is_out_and_its_sequence_is_not_used_again() {
    let _readers = beside_others();
    let store = fresh();
    put(&store.db, "before", false).expect("a write");
    let seq = store.db.visible();
    let sim = &store.sim;
    sim.fail_call(CallClass::Write, sim.calls_of(CallClass::Write) + 1, Repeat::Once, IoKind::NoSpace);
    let failed = put(&store.db, "failed", false).expect_err("the disk is full");
    assert_eq!(failed.kind(), ErrorKind::Indeterminate);
    assert_eq!(store.db.health().severity, Severity::Hard);
    let refused = put(&store.db, "refused", false).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Io(IoKind::NoSpace), "the cause is reported");
    assert!(holds(&store.db, "before"), "reads go on");
    store.db.resume().expect("there is room again");
    assert_eq!(store.db.health().severity, Severity::Healthy);
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
    let _readers = beside_others();
    let store = fresh();
    put(&store.db, "unsynced", false).expect("a write");
    let sim = &store.sim;
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    put(&store.db, "in doubt", true).expect_err("the sync failed");
    // By itself, without a request.
    while store.db.health().severity != Severity::Healthy && sim.env().jobs.drive(1) > 0 {}
    assert_eq!(store.db.health().severity, Severity::Healthy);
    let image = sim.crash(CrashMode::DROP_ALL);
    let db = open(&image, &store.setup).expect("opens");
    assert!(holds(&db, "unsynced") && holds(&db, "in doubt"), "both are in tables");
}

#[test]
fn unlinks_that_fail_are_tried_again_and_forgotten() {
    let _readers = beside_others();
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
    while store.db.health().severity == Severity::Healthy {
        sim.heal();
        at = sim.calls_of(CallClass::Write).max(at) + 1;
        sim.fail_call(CallClass::Write, at, Repeat::Sticky, IoKind::Other);
        let _ = store.db.flush(std::slice::from_ref(&family));
        sim.env().jobs.drive(3);
        if store.db.health().severity >= Severity::Hard {
            sim.heal();
            store.db.resume().expect("every call works");
        }
        put(&store.db, "key", false).map(drop).unwrap_or_default();
    }
    sim.heal();
    sim.env().jobs.drive(1000);
    assert_eq!((store.db.health().severity, logs()), (Severity::Healthy, 1));
}

#[test]
fn a_family_can_be_dropped_to_make_room() {
    let _readers = beside_others();
    let mut store = fresh();
    store.step(&Step::Create("one")).expect("a family");
    let sim = &store.sim;
    let sync = sim.calls_of(CallClass::Sync) + 1;
    sim.fail_call(CallClass::Sync, sync, Repeat::Once, IoKind::NoSpace);
    put(&store.db, "key", true).expect_err("the disk is full");
    assert_eq!(store.db.health().severity, Severity::Hard);
    let one = store.db.family("one").expect("made above");
    store.db.drop_family(&one).expect("allowed in a hard state");
    store.db.resume().expect("there is room again");
    put(&store.db, "key", true).expect("a write");
    assert!(store.db.family("one").is_none() && holds(&store.db, "key"));
}

//! Two-phase commit under random crashes: each transaction is where its last call left it, in both families, exactly once.

use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, Repeat, SimEnv};
use ashlar_testkit::{Rng, report};
use ashlardb::prelude::*;
use ashlardb::{Builder, IoKind, StringAppend};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nowhere,
    Prepared,
    Committed,
    RolledBack,
}

type States = BTreeMap<u64, At>;

const DATA: [DataMode; 5] =
    [DataMode::DropAll, DataMode::Prefix, DataMode::Pages, DataMode::TornPage, DataMode::ZeroTail];
const DIRS: [DirMode; 3] = [DirMode::DropAll, DirMode::Prefix, DirMode::Subset];

fn builder(sim: &SimEnv) -> Builder {
    let merges = |f: ashlardb::FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
    let builder = Db::builder("/db").env(sim.env()).default_family(merges).family("other", merges);
    builder.tune(|_, family| family.write_buffer_bytes = 64 << 10)
}

fn mode(rng: &mut Rng) -> CrashMode {
    match rng.below(6) {
        0 => CrashMode::KILL,
        _ => CrashMode { data: DATA[rng.below(DATA.len())], dirs: DIRS[rng.below(DIRS.len())] },
    }
}

/// How often each transaction is in the value of `all`, in both families; and the names of the undecided ones.
fn found(db: &Db) -> ([BTreeMap<u64, usize>; 2], Vec<u64>) {
    let count = |value: Option<ashlardb::View>| {
        let mut counts = BTreeMap::new();
        let text = value.map(|value| String::from_utf8(value.to_vec()).unwrap()).unwrap_or_default();
        for id in text.split(',').filter(|id| !id.is_empty()) {
            *counts.entry(id.parse().unwrap()).or_default() += 1;
        }
        counts
    };
    let counts = [db.get("all").unwrap(), db.family("other").unwrap().get("all").unwrap()].map(count);
    let undecided = db.prepared_transactions().unwrap();
    let undecided =
        undecided.iter().map(|t| String::from_utf8(t.name().unwrap()).unwrap().parse().unwrap()).collect();
    (counts, undecided)
}

/// Every transaction is where it was before a step or behind it.
fn check(db: &Db, before: &States, after: &States, what: &str) {
    let (counts, undecided) = found(db);
    for (id, after) in after {
        let before = before.get(id).unwrap_or(&At::Nowhere);
        let in_both = counts.each_ref().map(|counts| counts.get(id).copied().unwrap_or(0));
        let at = match (in_both, undecided.contains(id)) {
            ([0, 0], true) => At::Prepared,
            ([1, 1], false) => At::Committed,
            ([0, 0], false) if [*before, *after].contains(&At::RolledBack) => At::RolledBack,
            ([0, 0], false) => At::Nowhere,
            other => panic!("{what}: transaction {id}: {other:?}"),
        };
        assert!(at == *before || at == *after, "{what}: transaction {id} is {at:?}: {before:?} to {after:?}");
    }
}

/// One step of a history.
fn step(db: &mut Db, sim: &SimEnv, rng: &mut Rng, states: &mut States) {
    let undecided: Vec<u64> =
        states.iter().filter(|(_, at)| **at == At::Prepared).map(|(id, _)| *id).collect();
    match rng.below(12) {
        0..=2 => {
            let options = TransactionOptions::new().write_options(WriteOptions::synced());
            let t = db.begin_with(options.lock_timeout(Duration::ZERO)).unwrap();
            let id = states.len() as u64;
            t.set_name(id.to_string()).unwrap();
            t.untracked().merge("all", id.to_string()).unwrap();
            let other = db.family("other").unwrap();
            t.family(&other).untracked().merge("all", id.to_string()).unwrap();
            t.put(format!("own {id}"), "v".repeat(rng.below(3000))).unwrap();
            t.prepare().unwrap();
            states.insert(id, At::Prepared);
        }
        3..=5 if !undecided.is_empty() => {
            let id = undecided[rng.below(undecided.len())];
            let t = db.transaction_by_name(id.to_string()).unwrap().unwrap();
            let commit = rng.percent(60);
            if commit { t.commit() } else { t.rollback() }.unwrap();
            // A handle that was taken over has default options: its decision is durable with the next sync.
            db.sync().unwrap();
            states.insert(id, if commit { At::Committed } else { At::RolledBack });
        }
        6..=7 => db.put("plain", "v".repeat(rng.below(30_000))).unwrap(),
        8 => db.family("other").unwrap().flush().unwrap(),
        9 => db.flush().unwrap(),
        10 => match db.family("lags") {
            Ok(family) => db.drop_family(&family).unwrap(),
            Err(_) => db.create_family("lags").unwrap().put("k", "v").unwrap(),
        },
        11 if rng.percent(50) => {
            db.close().unwrap();
            *db = builder(sim).open().unwrap();
        }
        _ => {}
    }
}

#[test]
fn random_crashes_leave_each_transaction_where_it_was() {
    let mut images = 0;
    for seed in 0..12 {
        let (mut rng, sim) = (Rng::new(seed), SimEnv::new(seed));
        let mut db = builder(&sim).open().unwrap();
        let mut states = States::new();
        for at in 0..40 {
            let (before, from) = (states.clone(), sim.calls_of(CallClass::Change));
            for _ in 0..2 {
                sim.photograph_at(from + 1 + rng.below(16) as u64, mode(&mut rng));
            }
            step(&mut db, &sim, &mut rng, &mut states);
            let end = sim.calls_of(CallClass::Change);
            let mut all: Vec<_> =
                sim.photographs().into_iter().filter(|(at, ..)| *at > from && *at <= end).collect();
            if rng.percent(10) {
                let mode = mode(&mut rng);
                all.push((end, mode, sim.crash(mode)));
                // Behind the step, only its end counts.
                let what = format!("seed {seed}, behind step {at}, {mode:?}");
                let image = sim.crash(mode);
                let crashed = builder(&image).open().unwrap_or_else(|e| panic!("{what}: {e}"));
                check(&crashed, &states, &states, &what);
            }
            for (call, mode, image) in all {
                let what = format!("seed {seed}, step {at}, change {}, {mode:?}", call - from);
                let crashed = builder(&image).open().unwrap_or_else(|e| panic!("{what}: {e}"));
                check(&crashed, &before, &states, &what);
                images += 1;
                // A second crash, behind the recovery, keeps what the first one left.
                if rng.percent(20) {
                    let (counts, undecided) = found(&crashed);
                    let again = builder(&image.crash(CrashMode::DROP_ALL)).open();
                    let again = again.unwrap_or_else(|e| panic!("{what}, again: {e}"));
                    assert_eq!(found(&again), (counts, undecided), "{what}, again");
                }
            }
        }
        db.close().unwrap();
    }
    report::figure(&format!("two-phase commit: {images} crashes, each transaction where it was"));
    assert!(images > 300, "{images}");
}

#[test]
fn a_sync_that_fails_before_a_new_wal_file_is_recovered_from() {
    let mut failed = 0;
    for at in 1..12 {
        let sim = SimEnv::new(at);
        let db = builder(&sim).open().unwrap();
        let t = db.begin_with(TransactionOptions::new().write_options(WriteOptions::synced())).unwrap();
        t.set_name("t").unwrap();
        t.put("own", "v").unwrap();
        t.prepare().unwrap();
        db.put("plain", "unsynced").unwrap();
        sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + at, Repeat::Once, IoKind::Other);
        failed += u64::from(db.flush().is_err());
        sim.heal();
        db.resume().unwrap();
        db.put("plain", "resumed").unwrap();
        db.sync().unwrap();
        let again = builder(&sim.crash(CrashMode::KILL)).open().unwrap();
        assert_eq!(again.get("plain").unwrap().unwrap(), b"resumed", "call {at}");
        assert_eq!(again.prepared_transactions().unwrap().len(), 1, "call {at}");
    }
    assert!(failed > 1, "{failed} flushes failed");
}

/// An open database: the transaction `early` is durable, then come an unsynced write and the transaction `late`.
fn early_and_late(seed: u64) -> (SimEnv, Db) {
    let sim = SimEnv::new(seed);
    let db = builder(&sim).open().unwrap();
    let prepare = |name: &str, options: WriteOptions| {
        let t = db.begin_with(TransactionOptions::new().write_options(options)).unwrap();
        t.set_name(name).unwrap();
        t.put(name, "v").unwrap();
        t.prepare().unwrap();
    };
    prepare("early", WriteOptions::synced());
    db.put("between", "v").unwrap();
    prepare("late", WriteOptions::default());
    (sim, db)
}

/// Opens what each crash left: `early` is there, and `late` only with the write before it. Returns how often it was.
fn check_order(sim: &SimEnv, open: impl Fn(&SimEnv) -> Db, power: bool) -> usize {
    let mut both = 0;
    for (call, mode, image) in sim.photographs() {
        let db = open(&image);
        let names = db.prepared_transactions().unwrap();
        let names: Vec<_> = names.iter().map(|t| String::from_utf8(t.name().unwrap()).unwrap()).collect();
        let (late, between) = (names.contains(&"late".to_owned()), db.get("between").unwrap().is_some());
        assert!(names.contains(&"early".to_owned()), "call {call}, {mode:?}: {names:?}");
        assert!(late && between || power && !late, "call {call}, {mode:?}: late {late}, between {between}");
        both += usize::from(late);
    }
    both
}

#[test]
fn a_power_cut_during_an_open_takes_no_write_before_a_transaction_that_it_leaves() {
    for data in DATA {
        let (sim, db) = early_and_late(1);
        // What was not synced stays so over a close.
        db.close().unwrap();
        let from = sim.calls_of(CallClass::Change);
        (1..60).for_each(|at| sim.photograph_at(from + at, CrashMode { data, dirs: DirMode::KeepAll }));
        let opened = builder(&sim).open().unwrap();
        assert!(check_order(&sim, |image| builder(image).open().unwrap(), true) > 0);
        drop(opened);
    }
}

#[test]
fn a_kill_during_an_open_that_moves_the_wal_loses_nothing() {
    let (sim, _db) = early_and_late(2);
    let image = sim.crash(CrashMode::KILL);
    let from = image.calls_of(CallClass::Change);
    (1..60).for_each(|at| image.photograph_at(from + at, CrashMode::KILL));
    let moved = |image: &SimEnv| builder(image).options("wal_dir=/logs").open().unwrap();
    let opened = moved(&image);
    assert!(check_order(&image, moved, false) > 0);
    drop(opened);
}

#[test]
fn a_power_cut_while_writes_resume_takes_no_write_before_a_transaction_that_it_leaves() {
    for data in DATA {
        let (sim, db) = early_and_late(3);
        sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
        assert!(db.sync().is_err());
        sim.heal();
        let from = sim.calls_of(CallClass::Change);
        (1..60).for_each(|at| sim.photograph_at(from + at, CrashMode { data, dirs: DirMode::KeepAll }));
        db.resume().unwrap();
        assert!(check_order(&sim, |image| builder(image).open().unwrap(), true) > 0);
    }
}

#[test]
fn a_power_cut_during_an_open_that_moves_the_wal_loses_nothing_that_was_synced() {
    let moved = |image: &SimEnv| builder(image).options("wal_dir=/logs").open().unwrap();
    for (data, dirs) in DATA.iter().flat_map(|data| [(*data, DirMode::KeepAll), (*data, DirMode::DropAll)]) {
        let sim = SimEnv::new(4);
        let db = builder(&sim).open().unwrap();
        let t = db.begin_with(TransactionOptions::new().write_options(WriteOptions::synced())).unwrap();
        t.set_name("t").unwrap();
        // The copy in the new WAL file has several pages, so that a crash can tear it.
        t.put("own", "v".repeat(20_000)).unwrap();
        t.prepare().unwrap();
        db.writing(WriteOptions::synced()).put("k", "v").unwrap();
        db.close().unwrap();
        let from = sim.calls_of(CallClass::Change);
        (1..60).for_each(|at| sim.photograph_at(from + at, CrashMode { data, dirs }));
        drop(moved(&sim));
        let images = sim.photographs();
        assert!(images.len() > 20, "{}", images.len());
        for (call, mode, image) in images {
            let again = moved(&image);
            assert_eq!(again.get("k").unwrap().as_deref(), Some(&b"v"[..]), "call {call}, {mode:?}");
            assert_eq!(again.prepared_transactions().unwrap().len(), 1, "call {call}, {mode:?}");
        }
    }
}

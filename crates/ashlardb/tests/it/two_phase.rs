//! Two-phase commit: what is prepared survives closes, flushes and power cuts, holds its locks, and is decided on once.

use crate::repair::crashed_before_each;
use crate::store::listing;
use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, Repeat, SimEnv};
use ashlar_testkit::Rng;
use ashlardb::prelude::*;
use ashlardb::{BackupEngine, BackupOptions};
use ashlardb::{Builder, BusyKind, ErrorKind, IoKind, Result, StringAppend};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DIR: &str = "/db";

fn builder(sim: &SimEnv) -> Builder {
    let merges = |f: ashlardb::FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
    Db::builder(DIR).env(sim.env()).default_family(merges).family("other", merges)
}

fn open(sim: &SimEnv) -> Db {
    builder(sim).open().unwrap()
}

fn synced() -> TransactionOptions {
    TransactionOptions::new().write_options(WriteOptions::synced()).lock_timeout(Duration::ZERO)
}

/// A prepared transaction that appends `value` to `key`.
fn prepared(db: &Db, name: &str, key: &str, value: &str) -> Transaction {
    let t = db.begin_with(synced()).unwrap();
    t.set_name(name).unwrap();
    t.merge(key, value).unwrap();
    t.prepare().unwrap();
    t
}

fn value(db: &Db, key: &str) -> Option<String> {
    db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn names(db: &Db) -> Vec<String> {
    let all = db.prepared_transactions().unwrap();
    all.iter().map(|t| String::from_utf8(t.name().unwrap()).unwrap()).collect()
}

fn kind<T>(answer: Result<T>) -> Option<ErrorKind> {
    answer.err().map(|e| e.kind())
}

const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);

#[test]
fn a_prepared_transaction_changes_nothing_before_its_commit() {
    let db = open(&SimEnv::new(1));
    db.put("k", "0").unwrap();
    let t = prepared(&db, "x", "k", "1");
    let before = db.sequence();
    assert!(t.is_prepared() && t.is_active() && t.name().as_deref() == Some(b"x"));
    assert_eq!((value(&db, "k").as_deref(), t.get("k").unwrap().as_deref()), (Some("0"), Some(&b"0,1"[..])));
    assert_eq!(listing(t.scan(..)), [(b"k".to_vec(), b"0,1".to_vec())]);
    t.commit().unwrap();
    assert_eq!((value(&db, "k").as_deref(), db.sequence().get()), (Some("0,1"), before.get() + 1));
    let t = prepared(&db, "x", "k", "2");
    t.rollback().unwrap();
    assert_eq!((value(&db, "k").as_deref(), db.sequence().get()), (Some("0,1"), before.get() + 1));
    assert!(db.prepared_transactions().unwrap().is_empty());
    // Nothing is left locked.
    prepared(&db, "x", "k", "3").commit().unwrap();
    assert_eq!(value(&db, "k").as_deref(), Some("0,1,3"));
}

#[test]
fn it_is_there_after_opens_flushes_and_compactions_and_holds_its_locks() {
    let sim = SimEnv::new(2);
    let mut db = open(&sim);
    db.put("k", "0").unwrap();
    drop(prepared(&db, "commits", "k", "1"));
    drop(prepared(&db, "rolls back", "l", "1"));
    for round in 0..4 {
        db.put(format!("plain {round}"), "v").unwrap();
        db.flush().unwrap();
        if round % 2 == 0 {
            db.put(format!("logged {round}"), "v").unwrap();
        }
        db.compact().unwrap();
        db.close().unwrap();
        db = open(&sim);
        assert_eq!(db.recovery().undecided.len(), 2, "{}", db.recovery());
        assert!(db.recovery().is_clean() && db.recovery().read_only.is_empty(), "{}", db.recovery());
        let other = db.begin_with(synced()).unwrap();
        assert_eq!(kind(other.put("k", "mine")), Some(ErrorKind::TimedOut), "round {round}");
        assert_eq!(kind(other.put("l", "mine")), Some(ErrorKind::TimedOut));
        other.put("free", "mine").unwrap();
        assert_eq!(names(&db), ["commits", "rolls back"]);
    }
    let t = db.transaction_by_name("commits").unwrap().unwrap();
    assert_eq!((t.len(), t.get("k").unwrap().as_deref()), (1, Some(&b"0,1"[..])));
    t.commit().unwrap();
    db.transaction_by_name("rolls back").unwrap().unwrap().rollback().unwrap();
    for _ in 0..2 {
        assert_eq!((value(&db, "k").as_deref(), value(&db, "l")), (Some("0,1"), None));
        assert!(names(&db).is_empty());
        db.flush().unwrap();
    }
    prepared(&db, "again", "l", "2").commit().unwrap();
    db.close().unwrap();
    let db = open(&sim);
    assert!(db.recovery().undecided.is_empty(), "{}", db.recovery());
    assert_eq!((value(&db, "k").as_deref(), value(&db, "l").as_deref()), (Some("0,1"), Some("2")));
    assert_eq!(listing(db.scan(..)).len(), 2 + 4 + 2);
}

#[test]
fn a_handle_comes_back_by_name_and_belongs_to_one_at_a_time() {
    let db = open(&SimEnv::new(3));
    let t = prepared(&db, "x", "k", "1");
    assert_eq!(kind(db.transaction_by_name("x")), INVALID, "a handle has it");
    assert!(db.prepared_transactions().unwrap().is_empty() && db.transaction_by_name("y").unwrap().is_none());
    let id = t.id();
    drop(t);
    let other = db.begin_with(synced()).unwrap();
    assert_eq!(kind(other.set_name("x")), INVALID);
    assert_eq!(kind(other.put("k", "mine")), Some(ErrorKind::TimedOut));
    let t = db.transaction_by_name("x").unwrap().unwrap();
    assert_eq!((t.id(), t.len(), t.tracked_keys()), (id, 1, 1));
    t.commit().unwrap();
    assert_eq!(value(&db, "k").as_deref(), Some("1"));
    other.put("k", "mine").unwrap();
    other.set_name("x").unwrap();
    drop(other);
    // A name is free after the drop of a transaction that was not prepared.
    db.begin().unwrap().set_name("x").unwrap();
}

#[test]
fn wrong_use_ends_in_an_error() {
    let db = open(&SimEnv::new(4));
    let t = db.begin_with(synced()).unwrap();
    assert_eq!(kind(t.prepare()), INVALID, "no name");
    for name in [&b""[..], &[b'n'; 513]] {
        assert_eq!(kind(t.set_name(name)), INVALID);
    }
    t.set_name([b'n'; 512]).unwrap();
    assert_eq!(kind(t.set_name("another")), INVALID);
    let named_alike = db.begin().unwrap();
    assert_eq!(kind(named_alike.set_name([b'n'; 512])), INVALID);
    t.set_savepoint().unwrap();
    t.put("k", "v").unwrap();
    t.prepare().unwrap();
    let after = [
        t.prepare(),
        t.put("l", "v"),
        t.untracked().put("l", "v"),
        t.get_for_update("k").map(drop),
        t.get_for_share("l").map(drop),
        t.set_savepoint(),
        t.rollback_to_savepoint(),
        t.pop_savepoint(),
        t.set_snapshot(),
        t.set_snapshot_on_next_operation(),
        t.clear_snapshot(),
        t.set_name("late"),
    ];
    for answer in after {
        let e = answer.unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("is prepared"), "{e}");
    }
    t.commit().unwrap();
    assert_eq!(
        (kind(t.commit()), kind(t.rollback()), kind(t.prepare()), t.name()),
        (INVALID, INVALID, INVALID, None)
    );
    assert_eq!(value(&db, "k").as_deref(), Some("v"));

    let optimistic = db.begin_with(TransactionOptions::optimistic()).unwrap();
    let refused = Some(ErrorKind::NotSupported);
    assert_eq!((kind(optimistic.set_name("o")), kind(optimistic.prepare())), (refused, refused));

    let unlogged =
        db.begin_with(TransactionOptions::new().write_options(WriteOptions::new().disable_wal(true)));
    let unlogged = unlogged.unwrap();
    unlogged.set_name("unlogged").unwrap();
    unlogged.put("u", "v").unwrap();
    assert_eq!(kind(unlogged.prepare()), INVALID);
    unlogged.commit().unwrap();

    // A family that is gone at the prepare is an error, where a commit would leave it out.
    let gone = db.create_family("gone").unwrap();
    let late = db.begin().unwrap();
    late.set_name("late").unwrap();
    late.family(&gone).untracked().put("k", "v").unwrap();
    db.drop_family(&gone).unwrap();
    assert_eq!((kind(late.prepare()), late.is_prepared()), (INVALID, false));
    drop(late);

    // An empty transaction may be prepared.
    let empty = db.begin().unwrap();
    empty.set_name("empty").unwrap();
    empty.prepare().unwrap();
    drop(empty);
    assert_eq!(names(&db), ["empty"]);
    db.transaction_by_name("empty").unwrap().unwrap().commit().unwrap();
    db.close().unwrap();
    let closed = Some(ErrorKind::Shutdown(ashlardb::ShutdownKind::Closed));
    assert_eq!((kind(db.prepared_transactions()), kind(db.transaction_by_name("x"))), (closed, closed));
}

#[test]
fn views_and_read_only_opens_show_nothing_of_it_and_decide_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("k", "0").unwrap();
    let t = db.begin_with(synced()).unwrap();
    t.set_name("x").unwrap();
    t.put("k", "1").unwrap();
    t.prepare().unwrap();
    let (view, secondary) = (Db::open_read_only(&dir).unwrap(), Db::open_secondary(&dir).unwrap());
    assert_eq!(view.recovery().undecided.len(), 1);
    assert_eq!(
        (value(&view, "k").as_deref(), value(&secondary.db(), "k").as_deref()),
        (Some("0"), Some("0"))
    );
    for view in [&view, &secondary.db()] {
        assert_eq!(kind(view.prepared_transactions()), Some(ErrorKind::NotSupported));
        assert_eq!(kind(view.transaction_by_name("x")), Some(ErrorKind::NotSupported));
        let own = view.begin().unwrap();
        own.set_name("x").unwrap();
        assert_eq!(kind(own.prepare()), Some(ErrorKind::NotSupported));
    }
    t.commit().unwrap();
    secondary.catch_up().unwrap();
    assert_eq!(
        (value(&view, "k").as_deref(), value(&secondary.db(), "k").as_deref()),
        (Some("0"), Some("1"))
    );
}

#[test]
fn optimistic_transactions_do_not_slip_under_it() {
    let db = open(&SimEnv::new(5));
    let conflict = Some(ErrorKind::Busy(BusyKind::Conflict));
    let begin = || db.begin_with(TransactionOptions::optimistic()).unwrap();
    let early = begin();
    early.put("k", "early").unwrap();
    let t = prepared(&db, "x", "k", "1");
    assert_eq!(kind(early.commit()), conflict);
    let late = begin();
    late.get_for_update("k").unwrap();
    late.put("l", "late").unwrap();
    assert_eq!(kind(late.commit()), conflict);
    t.commit().unwrap();
    assert_eq!((value(&db, "k").as_deref(), value(&db, "l")), (Some("1"), None));
    let after = begin();
    after.put("k", "after").unwrap();
    after.commit().unwrap();
    assert_eq!(value(&db, "k").as_deref(), Some("after"));
}

#[test]
fn a_conflict_is_found_at_the_prepare() {
    let db = open(&SimEnv::new(6));
    let t = db.begin_with(synced()).unwrap();
    t.set_name("x").unwrap();
    t.get_for_update("k").unwrap();
    db.put("k", "plain").unwrap();
    assert_eq!(kind(t.prepare()), Some(ErrorKind::Busy(BusyKind::Conflict)));
    assert!(t.is_active() && !t.is_prepared() && db.prepared_transactions().unwrap().is_empty());
    t.rollback().unwrap();
    // After the prepare a plain write is overwritten.
    let t = db.begin_with(synced()).unwrap();
    t.set_name("x").unwrap();
    t.put("k", "transaction").unwrap();
    t.prepare().unwrap();
    db.put("k", "plain").unwrap();
    t.commit().unwrap();
    assert_eq!(value(&db, "k").as_deref(), Some("transaction"));
}

/// The commit leaves out what was written to a family that is gone, here and in the replay.
#[test]
fn a_dropped_family_takes_its_part_along() {
    for (decided_after_open, names_of_both) in [(false, true), (true, true), (false, false), (true, false)] {
        let sim = SimEnv::new(7);
        let db = open(&sim);
        let other = db.family("other").unwrap();
        let t = db.begin_with(synced()).unwrap();
        t.set_name("x").unwrap();
        t.family(&other).put("gone", "v").unwrap();
        if names_of_both {
            t.put("stays", "v").unwrap();
            t.family(&other).put("gone too", "v").unwrap();
        }
        t.prepare().unwrap();
        db.drop_family(&other).unwrap();
        let db = if decided_after_open {
            drop(t);
            db.close().unwrap();
            let merges = |f: ashlardb::FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
            let db = Db::builder(DIR).env(sim.env()).default_family(merges).open().unwrap();
            db.transaction_by_name("x").unwrap().unwrap().commit().unwrap();
            db
        } else {
            t.commit().unwrap();
            db
        };
        db.put("behind", "v").unwrap();
        let want = if names_of_both { 2 } else { 1 };
        assert_eq!(listing(db.scan(..)).len(), want);
        let crashed = sim.crash(CrashMode::KILL);
        let db = Db::builder(DIR).env(crashed.env()).open().unwrap();
        assert!(db.recovery().is_clean(), "{}", db.recovery());
        assert_eq!(listing(db.scan(..)).len(), want);
    }
}

/// The state that a crash may leave: what `x` appends, and what is undecided.
fn state_of(sim: &SimEnv, what: &str) -> (Vec<String>, Vec<String>) {
    let db = builder(sim).create(false).open().unwrap_or_else(|e| panic!("{what}: {e}"));
    let lost =
        db.recovery().dropped.iter().any(|dropped| dropped.remains.as_ref().is_some_and(|r| r.batches > 0));
    assert!(!lost, "{what}: {}", db.recovery());
    let family = db.family("other").unwrap();
    let read =
        |value: Option<ashlardb::View>| value.map_or("-".into(), |v| String::from_utf8(v.to_vec()).unwrap());
    let values = vec![read(db.get("k").unwrap()), read(family.get("k").unwrap())];
    let undecided = names(&db);
    // Decided on after the crash, it comes to the same.
    if let Some(t) = db.transaction_by_name("x").unwrap() {
        t.commit().unwrap();
        assert_eq!(read(db.get("k").unwrap()), "0,1", "{what}");
        assert_eq!(read(family.get("k").unwrap()), "0,1", "{what}");
        db.flush().unwrap();
        db.close().unwrap();
        let db = open(sim);
        assert_eq!(read(db.get("k").unwrap()), "0,1", "{what}");
        assert!(names(&db).is_empty(), "{what}");
    }
    (values, undecided)
}

/// A crash before any change that the steps make leaves the state before a step or the state after it, and a synced step
/// counts once it has returned.
#[test]
fn a_power_cut_at_any_step_leaves_all_of_a_transaction_or_nothing() {
    type Step = fn(&Db);
    let steps: [(&str, Step); 6] = [
        ("prepare", |db| {
            let t = db.begin_with(synced()).unwrap();
            t.set_name("x").unwrap();
            t.merge("k", "1").unwrap();
            t.family(&db.family("other").unwrap()).merge("k", "1").unwrap();
            t.prepare().unwrap();
        }),
        ("flush", |db| {
            db.put("plain", "v").unwrap();
            db.flush().unwrap();
        }),
        ("flush of one", |db| {
            db.family("other").unwrap().put("plain", "v").unwrap();
            db.family("other").unwrap().flush().unwrap();
        }),
        ("commit", |db| {
            let t = db.transaction_by_name("x").unwrap().unwrap();
            t.commit().unwrap();
            db.sync().unwrap();
        }),
        ("flush of one after", |db| db.family("other").unwrap().flush().unwrap()),
        ("flush after", |db| db.flush().unwrap()),
    ];
    let none = (vec!["0".to_owned(); 2], vec![]);
    let undecided = (vec!["0".to_owned(); 2], vec!["x".to_owned()]);
    let committed = (vec!["0,1".to_owned(); 2], vec![]);
    let after = [&undecided, &undecided, &undecided, &committed, &committed, &committed];
    let any_names = CrashMode { data: DataMode::DropAll, dirs: DirMode::Subset };
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL, any_names] {
        let sim = SimEnv::new(8);
        let db = open(&sim);
        db.put("k", "0").unwrap();
        db.family("other").unwrap().put("k", "0").unwrap();
        db.sync().unwrap();
        let mut images = 0;
        let mut before = &none;
        for ((name, step), after) in steps.iter().zip(after) {
            // The number of changes is not known before: calls that are not reached take no photograph.
            let from = sim.calls_of(CallClass::Change);
            (1..=60).for_each(|at| sim.photograph_at(from + at, mode));
            step(&db);
            let end = sim.calls_of(CallClass::Change);
            for (at, _, image) in sim.photographs().into_iter().filter(|(at, ..)| *at > from && *at <= end) {
                let what = format!("{mode:?}, {name}, change {}", at - from);
                let found = state_of(&image, &what);
                assert!(found == *before || found == *after, "{what}: {found:?}");
                images += 1;
            }
            assert_eq!(state_of(&sim.crash(mode), name), *after, "{mode:?} behind {name}");
            before = after;
        }
        assert!(images > 20, "{images}");
        db.close().unwrap();
    }
}

/// A database with "0" at the key "k" of two families.
fn two_values(sim: &SimEnv) -> Db {
    let db = open(sim);
    db.put("k", "0").unwrap();
    db.family("other").unwrap().put("k", "0").unwrap();
    db
}

/// The transaction "x", which merges "1" into both values of [`two_values`].
fn merging(db: &Db) -> Transaction {
    let t = db.begin_with(synced()).unwrap();
    t.set_name("x").unwrap();
    t.merge("k", "1").unwrap();
    t.family(&db.family("other").unwrap()).merge("k", "1").unwrap();
    t
}

/// A crash before any change of an open that finds an undecided transaction leaves it undecided.
#[test]
fn an_open_that_crashes_keeps_it() {
    let sim = SimEnv::new(9);
    let db = two_values(&sim);
    let t = merging(&db);
    t.prepare().unwrap();
    drop(t);
    db.close().unwrap();
    drop(db);
    let undecided = (vec!["0".to_owned(); 2], vec!["x".to_owned()]);
    let images = crashed_before_each(&sim, 30, |run| open(run).close().unwrap());
    assert!(images.len() > 20);
    for (what, image) in images {
        assert_eq!(state_of(&image, &what), undecided, "{what}");
    }
}

/// The WAL fails, and the engine goes on in another file: undecided transactions are in that file.
#[test]
fn a_failed_wal_takes_nothing_undecided_along() {
    for decides in [None, Some(true), Some(false)] {
        let sim = SimEnv::new(10);
        let db = two_values(&sim);
        let t = merging(&db);
        t.prepare().unwrap();
        let at = sim.calls_of(CallClass::Write) + 1;
        sim.fail_call(CallClass::Write, at, Repeat::Once, IoKind::Other);
        let failed = match decides {
            None => db.put("plain", "v"),
            Some(true) => t.commit(),
            Some(false) => t.rollback(),
        };
        assert!(failed.is_err() && t.is_prepared(), "{decides:?}");
        sim.heal();
        db.resume().unwrap();
        let (undecided, none) = ((vec!["0".to_owned(); 2], vec!["x".to_owned()]), Vec::<String>::new());
        assert_eq!(state_of(&sim.crash(CrashMode::DROP_ALL), "resumed"), undecided);
        match decides {
            Some(false) => t.rollback().unwrap(),
            _ => t.commit().unwrap(),
        }
        let want = if decides == Some(false) { "0" } else { "0,1" };
        assert_eq!(state_of(&sim.crash(CrashMode::DROP_ALL), "decided"), (vec![want.to_owned(); 2], none));
    }
}

/// A sync fails behind a prepare or a commit: the handle says what holds, and a crash after the resume agrees.
#[test]
fn a_failed_sync_leaves_what_the_handle_says() {
    for commits in [false, true] {
        let sim = SimEnv::new(13);
        let db = two_values(&sim);
        db.sync().unwrap();
        let t = merging(&db);
        if commits {
            t.prepare().unwrap();
        }
        sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
        let failed = if commits { t.commit() } else { t.prepare() };
        assert!(failed.is_err());
        assert_eq!((t.is_prepared(), t.is_active()), (!commits, !commits));
        sim.heal();
        db.resume().unwrap();
        let (undecided, none) = (vec!["x".to_owned()], Vec::<String>::new());
        let (values, names) = if commits { ("0,1", none) } else { ("0", undecided) };
        assert_eq!(value(&db, "k").as_deref(), Some(values));
        assert_eq!(state_of(&sim.crash(CrashMode::DROP_ALL), "resumed"), (vec![values.to_owned(); 2], names));
        if !commits {
            t.commit().unwrap();
            assert_eq!(value(&db, "k").as_deref(), Some("0,1"));
        }
    }
}

/// Random transactions, prepared, committed, rolled back and reopened, beside a map.
#[test]
fn random_histories_agree_with_a_map() {
    for seed in 0..40 {
        history(seed);
    }
}

type Changes = Vec<(String, String)>;

fn history(seed: u64) {
    let (mut rng, sim) = (Rng::new(seed), SimEnv::new(seed));
    let small = |sim: &SimEnv| builder(sim).tune(|_, f| f.write_buffer_bytes = 64 << 10).open().unwrap();
    let mut db = small(&sim);
    let mut model: BTreeMap<String, String> = BTreeMap::new();
    let mut undecided: BTreeMap<String, Changes> = BTreeMap::new();
    let mut handles: BTreeMap<String, Transaction> = BTreeMap::new();
    for step in 0..120 {
        let what = format!("seed {seed}, step {step}");
        match rng.below(10) {
            0..=2 => {
                let name = format!("t{step}");
                let t = db.begin_with(synced()).unwrap();
                let mut changes = Changes::new();
                for _ in 0..rng.below(4) {
                    let (key, value) = (format!("k{}", rng.below(30)), format!("{step}"));
                    let held = undecided.values().flatten().any(|(held, _)| *held == key);
                    assert_eq!(t.merge(&key, &value).is_err(), held, "{what}: {key}");
                    if !held {
                        changes.push((key, value));
                    }
                }
                t.set_name(&name).unwrap();
                t.prepare().unwrap_or_else(|e| panic!("{what}: {e}"));
                undecided.insert(name.clone(), changes);
                handles.insert(name, t);
            }
            3..=5 => {
                let Some(name) = undecided.keys().nth(rng.below(undecided.len().max(1))).cloned() else {
                    continue;
                };
                let t = handles.remove(&name).or_else(|| db.transaction_by_name(&name).unwrap()).unwrap();
                let changes = undecided.remove(&name).unwrap();
                if rng.percent(30) {
                    t.rollback().unwrap();
                    continue;
                }
                t.commit().unwrap_or_else(|e| panic!("{what}: {e}"));
                for (key, value) in changes {
                    model.entry(key).and_modify(|old| *old = format!("{old},{value}")).or_insert(value);
                }
            }
            6 => drop(handles.pop_first()),
            7 => {
                let value = "v".repeat(rng.below(20_000));
                db.put("plain", &value).unwrap();
                model.insert("plain".to_owned(), value);
            }
            8 => db.flush().unwrap(),
            _ => {
                handles.clear();
                db.close().unwrap();
                db = small(&sim);
                assert!(db.recovery().is_clean(), "{what}: {}", db.recovery());
                assert_eq!(names(&db), undecided.keys().cloned().collect::<Vec<_>>(), "{what}");
            }
        }
        let found: BTreeMap<String, String> = listing(db.scan(..))
            .into_iter()
            .map(|(k, v)| (String::from_utf8(k).unwrap(), String::from_utf8(v).unwrap()))
            .collect();
        assert!(found == model, "{what}");
    }
}

/// A checkpoint and a backup have the undecided transactions, and the database goes on beside them.
#[test]
fn checkpoints_and_backups_carry_it() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path().join("db")).unwrap();
    for (at, round) in ["logged", "flushed"].into_iter().enumerate() {
        let t = db.begin().unwrap();
        t.set_name("x").unwrap();
        t.put("k", round).unwrap();
        t.prepare().unwrap();
        if at == 1 {
            db.put("plain", "v").unwrap();
            db.flush().unwrap();
        }
        let (copy, restored) = (home.path().join(round), home.path().join(format!("{round} restored")));
        db.checkpoint(&copy).unwrap();
        let mut backups = BackupEngine::open(home.path().join("backups")).unwrap();
        backups.create_backup_with(&db, &BackupOptions::new(), |_| ()).unwrap();
        t.commit().unwrap();
        backups.restore_latest(&restored).unwrap();
        for copy in [copy, restored] {
            let copy = Db::open(copy).unwrap();
            assert_eq!(copy.recovery().undecided.len(), 1, "{}", copy.recovery());
            assert_ne!(value(&copy, "k").as_deref(), Some(round));
            copy.transaction_by_name("x").unwrap().unwrap().commit().unwrap();
            assert_eq!(value(&copy, "k").as_deref(), Some(round));
        }
    }
}

/// A repair, with and without the MANIFEST, keeps what is undecided.
#[test]
fn a_repair_keeps_it() {
    for (torn, without_manifest) in [(false, false), (false, true), (true, false)] {
        let sim = SimEnv::new(14);
        let db = open(&sim);
        db.put("k", "0").unwrap();
        db.family("other").unwrap().put("k", "0").unwrap();
        prepared(&db, "commits", "l", "1").commit().unwrap();
        let t = db.begin_with(synced()).unwrap();
        t.set_name("x").unwrap();
        t.merge("k", "1").unwrap();
        t.family(&db.family("other").unwrap()).merge("k", "1").unwrap();
        t.prepare().unwrap();
        db.flush().unwrap();
        prepared(&db, "rolls back", "l", "2").rollback().unwrap();
        db.put("plain", "v").unwrap();
        drop(t);
        db.close().unwrap();
        drop(db);
        let (env, dir) = (sim.env(), Path::new(DIR));
        for entry in env.fs.list(dir).unwrap() {
            let path = dir.join(&entry.name);
            if without_manifest && (entry.name.starts_with("MANIFEST") || entry.name == "CURRENT") {
                env.fs.remove(&path).unwrap();
            } else if torn && entry.name.ends_with(".log") {
                let mut bytes = vec![0; entry.len as usize];
                env.fs.open_read(&path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
                let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else { continue };
                env.fs.open_write(&path).unwrap().write_at(&[bytes[last] ^ 16], last as u64).unwrap();
            }
        }
        let what = format!("{torn}, {without_manifest}");
        let report = builder(&sim).repair(|_| {}).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(report.remarks.iter().any(|remark| remark.contains("'x'")), "{what}: {report}");
        let undecided = (vec!["0".to_owned(); 2], vec!["x".to_owned()]);
        assert_eq!(state_of(&sim, &what), undecided, "{what}: {report}");
    }
}

/// A check finds nothing wrong with prepared transactions.
#[test]
fn a_check_knows_them() {
    let sim = SimEnv::new(12);
    let db = open(&sim);
    for round in 0..3 {
        drop(prepared(&db, &format!("stays {round}"), &format!("s{round}"), "1"));
        prepared(&db, "commits", "k", "1").commit().unwrap();
        prepared(&db, "rolls back", "k", "2").rollback().unwrap();
        db.put("plain", "v").unwrap();
        if round == 1 {
            db.family("other").unwrap().put("plain", "v").unwrap();
            db.family("other").unwrap().flush().unwrap();
        }
    }
    let crashed = sim.crash(CrashMode::KILL);
    let env = crashed.env();
    let found = ashlardb::check_database(&env, Path::new(DIR), &mut |_| ()).unwrap();
    assert!(found.is_sound() && found.holes.is_empty(), "{found}");
    let db = open(&crashed);
    assert_eq!((names(&db).len(), value(&db, "k").as_deref()), (3, Some("1,1,1")));
}

/// A follower gets a prepared transaction as one batch, at its commit, wherever the WAL files end in between.
#[test]
fn a_follower_gets_it_at_its_commit() {
    let home = tempfile::tempdir().unwrap();
    let builder = Db::builder(home.path().join("db")).options("WAL_ttl_seconds=86400");
    let mut db = builder.clone().open().unwrap();
    let (mut copy, mut next) = (BTreeMap::<Vec<u8>, Vec<u8>>::new(), 1);
    let mut rng = Rng::new(11);
    for round in 0..60 {
        match rng.below(5) {
            0 => {
                let t = db.begin().unwrap();
                t.set_name(format!("t{round}")).unwrap();
                (0..rng.below(3)).for_each(|n| t.put(format!("k{round} {n}"), "v").unwrap());
                t.prepare().unwrap();
            }
            1..=2 => {
                let all = db.prepared_transactions().unwrap();
                for (at, t) in all.into_iter().enumerate() {
                    match (rng.below(3), at) {
                        (0, _) => t.rollback().unwrap(),
                        (1, _) => t.commit().unwrap(),
                        _ => drop(t),
                    }
                }
            }
            3 => db.put(format!("plain {round}"), "v").unwrap(),
            _ if rng.percent(50) => db.flush().unwrap(),
            _ => {
                db.close().unwrap();
                db = builder.clone().open().unwrap();
            }
        }
        if rng.percent(40) {
            for update in db.updates_since(ashlardb::SeqNum::new(next).unwrap()).unwrap() {
                let update = update.unwrap();
                assert!(update.sequence().get() >= next);
                for change in update.changes().unwrap() {
                    let ashlardb::Change::Put { key, value, .. } = change else { panic!("{change:?}") };
                    copy.insert(key.to_vec(), value.to_vec());
                }
                next = update.sequence().get() + u64::from(update.len());
            }
            assert_eq!(
                copy.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>(),
                listing(db.scan(..))
            );
        }
    }
    assert!(copy.len() > 15, "{}", copy.len());
}

//! Levels, claims and sequence numbers; failures and crashes at every call of an ingestion.

use super::*;
use crate::batch::WriteBatch;
use ashlar_base::ValueType;
use ashlar_base::error::IoKind;
use ashlar_compaction::Running;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_env::{EntryKind, Env, JobExecutor};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};

const DIR: &str = "/db";

fn open(env: Env) -> Result<Db> {
    let mut options = FamilyOptions::default();
    options.compaction.automatic = false;
    let db = Db::open(env, Path::new(DIR), DbOptions::default(), Vec::new(), options)?;
    Ok(db)
}

/// A file outside the directory of the database.
fn file(env: &Env, name: &str, entries: &[(&str, &str)]) -> PathBuf {
    env.fs.create_dir_all(Path::new("/out")).unwrap();
    env.fs.sync_dir(Path::new("/")).unwrap();
    let path = Path::new("/out").join(name);
    let mut writer = sst_writer(env, &path, &FamilyOptions::default()).unwrap();
    for (key, value) in entries {
        match value.strip_prefix("..") {
            Some(end) => writer.delete_range(key.as_bytes(), end.as_bytes()).unwrap(),
            None => writer.add(ValueType::Put, key.as_bytes(), value.as_bytes()).unwrap(),
        }
    }
    writer.finish().unwrap();
    path
}

fn put(db: &Db, family: &str, key: &str, value: &str) -> Result<SeqNum> {
    let mut batch = WriteBatch::new();
    batch.put(db.family(family).unwrap().id(), key.as_bytes(), value.as_bytes())?;
    db.write(&mut batch, WriteOptions::default())
}

fn get(db: &Db, family: &str, key: &str) -> Option<String> {
    let found = db.get(&db.family(family).unwrap(), key.as_bytes(), ReadOptions::default()).unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn ingest(db: &Db, files: &[PathBuf], options: IngestOptions) -> Result<Vec<Ingested>> {
    db.ingest(&[(db.family("default").unwrap(), files.to_vec())], options)
}

fn levels(ingested: &[Ingested]) -> Vec<u8> {
    ingested.iter().map(|file| file.level.0).collect()
}

#[test]
fn a_file_goes_as_deep_as_the_order_allows() {
    let env = Env::mem();
    let db = open(env.clone()).unwrap();
    let first = ingest(&db, &[file(&env, "1", &[("d", "1"), ("p", "1")])], IngestOptions::new()).unwrap();
    assert_eq!((levels(&first), first[0].sequence.get()), (vec![6], 1));
    // Within the range of the table, but not over one of its keys: above it, as it does not fit beside it.
    let within = ingest(&db, &[file(&env, "2", &[("f", "2"), ("g", "2")])], IngestOptions::new()).unwrap();
    assert_eq!(levels(&within), [0]);
    let beside = ingest(&db, &[file(&env, "3", &[("q", "3"), ("r", "3")])], IngestOptions::new()).unwrap();
    assert_eq!(levels(&beside), [6]);
    // An exclusive end touches the next table.
    let range = ingest(&db, &[file(&env, "4", &[("a", "..d")])], IngestOptions::new()).unwrap();
    assert_eq!(levels(&range), [6]);
    // Files of one call: the later one counts, and stands above.
    let both = [file(&env, "5", &[("x", "old")]), file(&env, "6", &[("x", "new"), ("y", "6")])];
    let both = ingest(&db, &both, IngestOptions::new()).unwrap();
    assert_eq!(levels(&both), [6, 0]);
    assert_eq!(get(&db, "default", "x").as_deref(), Some("new"));
    let refused = ingest(&db, &[file(&env, "7", &[("f", "7")])], IngestOptions::new().bottommost_only(true));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Aborted);
    assert_eq!(get(&db, "default", "f").as_deref(), Some("2"));
    assert_eq!(db.visible().get(), 6);
    put(&db, "default", "d", "later").unwrap();
    assert_eq!(db.visible().get(), 7);
    db.close().unwrap();
    let db = open(env).unwrap();
    assert_eq!(get(&db, "default", "d").as_deref(), Some("later"));
    assert_eq!(get(&db, "default", "p").as_deref(), Some("1"));
}

#[test]
fn a_running_compaction_keeps_its_output_level() {
    let env = Env::mem();
    let db = open(env.clone()).unwrap();
    let family = db.family("default").unwrap();
    let claim = Running {
        output_level: Level(5),
        deepest: Level(5),
        runs: 1,
        smallest: b"c".to_vec(),
        largest: b"m".to_vec(),
    };
    // Base level: 5 has a table.
    ingest(&db, &[file(&env, "0", &[("zz", "0")])], IngestOptions::new()).unwrap();
    db.core().state().running.insert(family.id(), vec![claim.clone()]);
    let files = [file(&env, "1", &[("a", "1"), ("b", "1")]), file(&env, "2", &[("m", "2")])];
    let placed = ingest(&db, &files, IngestOptions::new()).unwrap();
    assert_eq!(levels(&placed), [6, 6]);
    let claim = Running { output_level: Level(6), deepest: Level(6), ..claim };
    db.core().state().running.insert(family.id(), vec![claim.clone()]);
    let placed = ingest(&db, &[file(&env, "3", &[("d", "3")])], IngestOptions::new()).unwrap();
    assert_eq!(levels(&placed), [0]);
    // Tables move up, across the base level.
    let claim = Running { output_level: Level(2), ..claim };
    db.core().state().running.insert(family.id(), vec![claim.clone()]);
    let placed = ingest(&db, &[file(&env, "4", &[("f", "4")])], IngestOptions::new()).unwrap();
    assert_eq!(levels(&placed), [0]);
    assert_eq!(db.core().state().running[&family.id()], [claim], "the claims of ingestions are over");
    db.core().state().running.clear();
}

#[test]
fn only_memtables_with_keys_in_the_range_are_flushed() {
    let env = Env::mem();
    let db = open(env.clone()).unwrap();
    db.create_family("other", FamilyOptions::default()).unwrap();
    put(&db, "default", "b", "memtable").unwrap();
    put(&db, "other", "b", "memtable").unwrap();
    let tables = |family: &str| db.live_files(&db.family(family).unwrap()).unwrap().len();
    // Around the key, and not over it.
    let around = file(&env, "1", &[("a", "1"), ("c", "..d")]);
    let refused = ingest(&db, std::slice::from_ref(&around), IngestOptions::new().flush(false)).unwrap_err();
    assert!(refused.kind() == ErrorKind::Aborted && refused.to_string().contains("memtable"), "{refused}");
    let beside = file(&env, "2", &[("c", "1"), ("d", "1")]);
    ingest(&db, &[beside], IngestOptions::new().flush(false)).unwrap();
    assert_eq!((tables("default"), tables("other")), (1, 0));
    ingest(&db, &[around], IngestOptions::new()).unwrap();
    assert_eq!((tables("default"), tables("other")), (3, 0));
    assert_eq!(get(&db, "default", "b").as_deref(), Some("memtable"));
    assert_eq!(get(&db, "default", "c"), None);
    assert_eq!(get(&db, "default", "d").as_deref(), Some("1"));
}

/// What each family holds: before and after the ingestion of `script`.
type State = Vec<(&'static str, &'static str, Option<&'static str>)>;

const BEFORE: [(&str, &str, Option<&str>); 5] = [
    ("default", "a", Some("0")),
    ("default", "k", Some("0")),
    ("default", "z", Some("0")),
    ("other", "k", Some("0")),
    ("other", "n", None),
];

fn after() -> State {
    let changed = |(family, key, value)| match (family, key) {
        ("default", "k") => (family, key, Some("second")),
        ("default", "z") => (family, key, None),
        ("other", "k" | "n") => (family, key, Some("third")),
        _ => (family, key, value),
    };
    BEFORE.into_iter().map(changed).collect()
}

fn state_of(db: &Db) -> Vec<(&'static str, &'static str, Option<String>)> {
    BEFORE.into_iter().map(|(family, key, _)| (family, key, get(db, family, key))).collect()
}

fn same(found: &[(&str, &str, Option<String>)], expected: &State) -> bool {
    found.iter().zip(expected).all(|((_, _, found), (_, _, expected))| found.as_deref() == *expected)
}

/// A database and the files that `script` ingests.
fn prepared(sim: &SimEnv) -> Db {
    let env = sim.env();
    let db = open(env.clone()).unwrap();
    db.create_family("other", FamilyOptions::default()).unwrap();
    for (family, key, value) in BEFORE {
        if let Some(value) = value {
            put(&db, family, key, value).unwrap();
        }
    }
    file(&env, "first", &[("k", "first"), ("z", "first")]);
    file(&env, "second", &[("k", "second"), ("y", "..zz")]);
    file(&env, "third", &[("k", "third"), ("n", "third")]);
    db
}

fn script(db: &Db, mode: IngestMode) -> Result<Vec<Ingested>> {
    let path = |name: &str| Path::new("/out").join(name);
    let parts = [
        (db.family("default").unwrap(), vec![path("first"), path("second")]),
        (db.family("other").unwrap(), vec![path("third")]),
    ];
    db.ingest(&parts, IngestOptions::new().mode(mode))
}

/// The tables in the directory that no version names, after a purge.
fn strays(env: &Env, db: &Db) -> usize {
    db.wait_for_background().unwrap();
    let files = env.fs.list(Path::new(DIR)).unwrap();
    let tables = files.iter().filter(|entry| entry.kind == EntryKind::File && entry.name.ends_with(".sst"));
    let live: usize = db.families().iter().map(|family| db.live_files(family).unwrap().len()).sum();
    tables.count() - live
}

/// Whether the files were there.
fn check_after_crash(env: Env, mode: IngestMode, known: Option<&State>, context: &str) -> bool {
    let db = open(env.clone()).unwrap_or_else(|e| panic!("{context}: {e}"));
    let found = state_of(&db);
    let fits = match known {
        Some(known) => same(&found, known),
        None => same(&found, &BEFORE.to_vec()) || same(&found, &after()),
    };
    assert!(fits, "{context}: {found:?}");
    let whole = same(&found, &after());
    if !whole {
        // Nothing that is left behind prevents the next attempt.
        script(&db, mode).unwrap_or_else(|e| panic!("{context}: {e}"));
        assert!(same(&state_of(&db), &after()), "{context}");
    }
    put(&db, "default", "k", "newest").unwrap();
    assert_eq!(get(&db, "default", "k").as_deref(), Some("newest"), "{context}");
    db.flush(&db.families()).unwrap();
    assert_eq!(strays(&env, &db), 0, "{context}");
    db.close().unwrap();
    whole
}

#[test]
fn all_or_nothing_is_there_after_a_crash_at_every_call() {
    for mode in [IngestMode::Link, IngestMode::Copy, IngestMode::Move] {
        let sim = SimEnv::new(1);
        let db = prepared(&sim);
        db.sync_wal().unwrap();
        let calls = {
            let sim = SimEnv::new(1);
            let db = prepared(&sim);
            db.sync_wal().unwrap();
            let begin = sim.calls_of(CallClass::Change);
            script(&db, mode).unwrap();
            begin + 1..=sim.calls_of(CallClass::Change)
        };
        let all = match mode {
            IngestMode::Link => CrashMode::all(),
            _ => vec![CrashMode::DROP_ALL, CrashMode::KILL],
        };
        let step = ashlar_testkit::report::scale(3, 1);
        for at in calls.clone().step_by(step) {
            all.iter().for_each(|crash| sim.photograph_at(at, *crash));
        }
        script(&db, mode).unwrap();
        let (mut before, mut whole) = (0, 0);
        let last = all.iter().map(|mode| (0, *mode, sim.crash(*mode)));
        for (at, crash, crashed) in sim.photographs().into_iter().chain(last.collect::<Vec<_>>()) {
            let context = format!("{mode:?}, call {at} of {calls:?}, {crash:?}");
            match check_after_crash(crashed.env(), mode, None, &context) {
                true => whole += 1,
                false => before += 1,
            }
        }
        let least = 12 / step * all.len();
        assert!(before >= least && whole >= all.len(), "{mode:?}: {before} before, {whole} after");
    }
}

#[test]
fn what_was_written_before_is_durable_with_an_ingestion() {
    let sim = SimEnv::new(1);
    let db = prepared(&sim);
    let lost = open(sim.crash(CrashMode::DROP_ALL).env()).unwrap();
    assert!(!same(&state_of(&lost), &BEFORE.to_vec()), "the writes are durable without it");
    put(&db, "other", "unrelated", "1").unwrap();
    script(&db, IngestMode::Link).unwrap();
    assert_eq!(db.durable(), db.visible());
    let found = open(sim.crash(CrashMode::DROP_ALL).env()).unwrap();
    assert!(same(&state_of(&found), &after()));
    assert_eq!(get(&found, "other", "unrelated").as_deref(), Some("1"));
}

#[test]
fn a_call_that_fails_leaves_everything_as_it_was_or_succeeds() {
    for mode in [IngestMode::Link, IngestMode::Copy, IngestMode::Move] {
        let (mut failed, mut succeeded) = (0, 0);
        for at in 1.. {
            let sim = SimEnv::new(at);
            let db = prepared(&sim);
            db.sync_wal().unwrap();
            let before = sim.calls_of(CallClass::Change);
            sim.fail_call(CallClass::Change, before + at, Repeat::Once, IoKind::NoSpace);
            let done = script(&db, mode);
            let injected = sim.injected();
            sim.heal();
            let context = format!("{mode:?}, change {at}: {:?}", done.as_ref().err());
            let expected = if done.is_ok() { after() } else { BEFORE.to_vec() };
            assert!(same(&state_of(&db), &expected), "{context}: {:?}", state_of(&db));
            let sources = ["first", "second", "third"]
                .map(|name| sim.env().fs.metadata(&Path::new("/out").join(name)).unwrap().is_some());
            if done.is_err() {
                assert_eq!(sources, [true; 3], "{context}");
            }
            failed += usize::from(done.is_err());
            succeeded += usize::from(done.is_ok());
            // Either way the state is what a crash leaves.
            check_after_crash(sim.crash(CrashMode::KILL).env(), mode, Some(&expected), &context);
            if injected == 0 {
                break;
            }
        }
        assert!(failed > 5 && succeeded > 0, "{mode:?}: {failed} failed, {succeeded} succeeded");
    }
}

/// From one call on, all fail: it is not known whether the commit came through, and the next open finds all or nothing.
#[test]
fn a_call_after_which_all_fail_leaves_all_or_nothing() {
    let mut failed = 0;
    for at in 1.. {
        let sim = SimEnv::new(at);
        let db = prepared(&sim);
        db.sync_wal().unwrap();
        let before = sim.calls_of(CallClass::Change);
        sim.fail_call(CallClass::Change, before + at, Repeat::Sticky, IoKind::Other);
        let done = script(&db, IngestMode::Move);
        let injected = sim.injected();
        let context = format!("change {at}: {:?}", done.as_ref().err());
        let expected = if done.is_ok() { after() } else { BEFORE.to_vec() };
        assert!(same(&state_of(&db), &expected), "{context}: {:?}", state_of(&db));
        failed += usize::from(done.is_err());
        for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
            let known = done.is_ok().then_some(&expected);
            check_after_crash(sim.crash(mode).env(), IngestMode::Link, known, &context);
        }
        // The same handle goes on, once calls succeed again; what it then holds, the next open finds.
        sim.heal();
        while db.health().severity > crate::health::Severity::Healthy && sim.jobs().drive(1) > 0 {}
        if db.health().severity == crate::health::Severity::Healthy {
            assert!(same(&state_of(&db), &expected), "{context}, resumed");
            check_after_crash(sim.crash(CrashMode::KILL).env(), IngestMode::Link, Some(&expected), &context);
        }
        if injected == 0 {
            break;
        }
    }
    assert!(failed > 10, "{failed} failed");
}

/// Writes that skipped the WAL and came before are there when the files are, with `atomic_flush` in every family.
#[test]
fn unlogged_writes_are_flushed_before_files_become_durable() {
    for atomic in [false, true] {
        let sim = SimEnv::new(1);
        let options = DbOptions { atomic_flush: atomic, ..DbOptions::default() };
        let open = |sim: &SimEnv| {
            Db::open(sim.env(), Path::new(DIR), options.clone(), Vec::new(), FamilyOptions::default())
                .unwrap()
        };
        let db = open(&sim);
        db.create_family("other", FamilyOptions::default()).unwrap();
        for family in ["default", "other"] {
            let mut batch = WriteBatch::new();
            batch.put(db.family(family).unwrap().id(), b"unlogged", b"1").unwrap();
            db.write(&mut batch, WriteOptions { disable_wal: true, ..WriteOptions::default() }).unwrap();
        }
        ingest(&db, &[file(&sim.env(), "1", &[("a", "1")])], IngestOptions::new()).unwrap();
        let db = open(&sim.crash(CrashMode::DROP_ALL));
        assert_eq!(get(&db, "default", "a").as_deref(), Some("1"));
        assert_eq!(get(&db, "default", "unlogged").as_deref(), Some("1"));
        assert_eq!(get(&db, "other", "unlogged").is_some(), atomic);
    }
}

/// RocksDB writes to such families by ingestion only.
#[test]
fn a_family_that_takes_no_writes_takes_files() {
    let env = Env::mem();
    let db = open(env.clone()).unwrap();
    let options = FamilyOptions { disallow_memtable_writes: true, ..FamilyOptions::default() };
    let family = db.create_family("files", options).unwrap();
    assert!(put(&db, "files", "a", "1").is_err());
    db.ingest(&[(family, vec![file(&env, "1", &[("a", "1")])])], IngestOptions::new()).unwrap();
    assert_eq!(get(&db, "files", "a").as_deref(), Some("1"));
}

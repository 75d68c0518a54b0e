//! Events to listeners, and the log.

use super::Store;
use ashlar_base::error::IoKind;
use ashlar_engine::Db;
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use ashlar_options::{DbOptions, FamilyOptions};
use ashlar_options::{Event, EventListener, StallCondition};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A listener that records events.
#[derive(Default)]
pub(super) struct Ear(pub(super) Mutex<Vec<Event>>);

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Ear {
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().iter().map(Event::name).collect()
    }

    pub(super) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}

fn listening() -> (DbOptions, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let mut options = DbOptions::default();
    options.listeners.add(ear.clone());
    (options, ear)
}

pub(super) fn text(env: &Env, name: &str) -> String {
    let file = env.fs.open_read(&Path::new("/db").join(name)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn background_work_is_told_in_order() {
    // Files that readers in other tests hold are neither removed nor reported as removed.
    let _alone = crate::alone();
    let (options, ear) = listening();
    let store = Store::open(SimEnv::new(5).env(), options);
    for round in 0..2u8 {
        ear.forget();
        (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), &[round; 50]));
        store.flush();
        let told = ear.names();
        assert_eq!(told, ["memtable_sealed", "flush_started", "table_file_creation", "flush_finished"]);
    }
    ear.forget();
    store.compact();
    store.db.close().unwrap();
    let told = ear.names();
    assert_eq!(told[..3], ["compaction_started", "table_file_creation", "compaction_finished"], "{told:?}");
    assert_eq!(told[3..], ["table_file_deletion"; 2]);
    let events = ear.0.lock().unwrap();
    let Event::CompactionCompleted(done) = &events[2] else { panic!("{:?}", events[2]) };
    assert_eq!(
        (done.family.as_str(), done.reason, done.outputs, (done.input_entries, done.output_entries)),
        ("default", "manual", 1, (200, 100))
    );
    assert_eq!(
        (done.inputs[0].1.len(), done.levels[0], done.levels[usize::from(done.output_level.0)]),
        (2, 0, 1)
    );
}

#[test]
fn a_failure_and_its_end_are_told() {
    let _readers = crate::beside_others();
    let (options, ear) = listening();
    let sim = SimEnv::new(6);
    let store = Store::open(sim.env(), options);
    store.put(b"k", b"v");
    ear.forget();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    let flushed = store.db.flush(std::slice::from_ref(&store.family));
    let told = ear.names();
    assert!(told.contains(&"background_error"), "{told:?}, {flushed:?}");
    store.flush();
    let told = ear.names();
    assert!(told.contains(&"error_recovered") && told.contains(&"flush_finished"), "{told:?}");
    assert!(text(&sim.env(), "LOG").contains("[ERROR] "));
}

#[test]
fn a_flush_of_a_resume_has_a_begin_and_an_end() {
    let _readers = crate::beside_others();
    let (options, ear) = listening();
    let sim = SimEnv::new(8);
    let store = Store::open(sim.env(), options);
    store.put(b"k", b"v");
    ear.forget();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    store.db.sync_wal().unwrap_err();
    store.db.resume().unwrap();
    let names = ear.names();
    let flushes: Vec<_> = names.iter().filter(|name| name.starts_with("flush_")).collect();
    assert_eq!(flushes, [&"flush_started", &"flush_finished"], "{names:?}");
}

/// Each compaction that began has one end, with its number: after a failure, and after the retry. Only a close sends none.
#[test]
fn a_compaction_that_fails_has_an_end() {
    let _readers = crate::beside_others();
    let (options, ear) = listening();
    let sim = SimEnv::new(9);
    let store = Store::open(sim.env(), options);
    for round in 0..2 {
        store.put(b"k", &[round]);
        store.flush();
    }
    ear.forget();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    let failed = store.db.compact_range(&store.family, None, None);
    store.compact();
    let ends = |event: &Event| match event {
        Event::CompactionBegin(compaction) => Some((compaction.job, "begin")),
        Event::CompactionCompleted(compaction) => Some((compaction.job, "done")),
        Event::CompactionFailed { compaction, .. } => Some((compaction.job, "failed")),
        _ => None,
    };
    let told: Vec<_> = ear.0.lock().unwrap().iter().filter_map(ends).collect();
    let first = told[0].0;
    let expected = [(first, "begin"), (first, "failed"), (first + 1, "begin"), (first + 1, "done")];
    assert_eq!(told, expected, "{failed:?}");
}

#[test]
fn writers_that_are_held_are_told_of() {
    let _readers = crate::beside_others();
    let (options, ear) = listening();
    let mut family = FamilyOptions::default();
    family.compaction.l0_trigger = 2;
    family.compaction.l0_slowdown = 2;
    family.compaction.l0_stop = 3;
    let db = Db::open(SimEnv::new(7).env(), Path::new("/db"), options, vec![], family).unwrap();
    let store = Store { family: db.family("default").unwrap(), db };
    for _ in 0..6 {
        (0..100u32).for_each(|n| store.put(&n.to_be_bytes(), &[1; 50]));
        store.flush();
    }
    store.db.wait_for_background().unwrap();
    let events = ear.0.lock().unwrap();
    let changes = events.iter().filter_map(|event| match event {
        Event::StallConditionsChanged { before, now } => Some((*before, *now)),
        _ => None,
    });
    let changes: Vec<_> = changes.collect();
    assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0), "{changes:?}");
    assert!(changes.first().is_none_or(|first| first.0 == StallCondition::Normal), "{changes:?}");
}

/// The lines that `benchmark.sh` reads, and the lines of the events.
#[test]
fn the_log_tells_the_same() {
    let _readers = crate::beside_others();
    let env = SimEnv::new(8).env();
    let store = Store::open(env.clone(), DbOptions::default());
    store.put(b"k", b"v");
    store.flush();
    store.db.close().unwrap();
    let log = text(&env, "LOG");
    let fifth =
        |mark: &str| log.lines().find(|l| l.contains(mark)).unwrap().split(' ').nth(4).map(str::to_owned);
    assert!(fifth("RocksDB version:").unwrap().starts_with("AshlarDB-"), "{log}");
    assert!(fifth("Git sha").is_some());
    let events: Vec<_> = log.lines().filter(|l| l.contains(" EVENT_LOG_v1 {\"time_micros\": ")).collect();
    assert_eq!(events.len(), 4, "{log}");
    assert!(
        events[3].contains("\"event\": \"flush_finished\"")
            && events[3].ends_with("\"lsm_state\": [1, 0, 0, 0, 0, 0, 0]}")
    );
    let old = |env: &Env| {
        env.fs.list(Path::new("/db")).unwrap().iter().filter(|e| e.name.starts_with("LOG.old.")).count()
    };
    assert_eq!(old(&env), 0);
    drop(Store::open(env.clone(), DbOptions::default()));
    assert_eq!(old(&env), 1);
    let mut silent = DbOptions::default();
    silent.info_log.enabled = false;
    drop(Store::open(env.clone(), silent));
    assert_eq!(old(&env), 1);
}

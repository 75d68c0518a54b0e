//! The health states under real failures. In every state that allows work to begin, the test runs every kind of work
//! and lets every call fail in turn. Each time the state must match the table, reads must work, and writes must be
//! accepted or refused as the state says. All acknowledged data must be there: at once, after recovery, and after a
//! crash.

use ashlar_base::error::IoKind;
use ashlar_base::ext::merge_operator::MergeOperator;
use ashlar_base::{Error, ErrorKind, FamilyId};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::health::Severity;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_env::{Env, JobExecutor};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_options::{Event, EventListener};
use ashlar_testkit::report;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const DIR: &str = "/db";
const NO_SPACE: ErrorKind = ErrorKind::Io(IoKind::NoSpace);
const OTHER: ErrorKind = ErrorKind::Io(IoKind::Other);

/// Background errors: the kind of work, and the kind of error.
type Told = Vec<(&'static str, ErrorKind)>;

/// A listener that records events.
#[derive(Default)]
struct Ear {
    told: Mutex<Told>,
    /// Whether the database has recovered since the last error.
    recovered: AtomicBool,
}

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        match event {
            Event::BackgroundError { work, cause } => {
                self.recovered.store(false, Ordering::SeqCst);
                self.told.lock().unwrap().push((work, cause.kind()));
            }
            Event::ErrorRecovered => self.recovered.store(true, Ordering::SeqCst),
            _ => {}
        }
    }
}

/// A database of two families, and the writes it has acknowledged.
struct Store {
    sim: SimEnv,
    db: Db,
    ear: Arc<Ear>,
    acked: BTreeSet<u32>,
    next: u32,
}

fn open(env: Env, ear: &Arc<Ear>) -> Db {
    let mut options = DbOptions::default();
    options.listeners.add(Arc::<Ear>::clone(ear));
    let mut family = FamilyOptions::default();
    family.compaction.automatic = false;
    let listed = |name: &str| OpenFamily { name: name.to_owned(), options: family.clone() };
    Db::open(env, Path::new(DIR), options, vec![listed("default"), listed("other")], family.clone()).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn holds_in(db: &Db, family: &str, acked: &BTreeSet<u32>) -> bool {
    let family = db.family(family).unwrap();
    acked.iter().all(|n| db.get(&family, &key(*n), ReadOptions::default()).unwrap().is_some())
}

fn holds(db: &Db, acked: &BTreeSet<u32>) -> bool {
    holds_in(db, "default", acked) && holds_in(db, "other", acked)
}

impl Store {
    /// Two tables in each family, and data in memory.
    fn well() -> Store {
        let (sim, ear) = (SimEnv::new(1), Arc::<Ear>::default());
        let db = open(sim.env(), &ear);
        let mut store = Store { sim, db, ear, acked: BTreeSet::new(), next: 0 };
        for round in 0..3 {
            (0..3).for_each(|_| store.put(true).unwrap());
            if round < 2 {
                store.db.flush(&store.db.families()).unwrap();
            }
        }
        store.db.wait_for_background().unwrap();
        store
    }

    fn put(&mut self, sync: bool) -> Result<(), Error> {
        let (mut batch, number) = (WriteBatch::new(), self.next);
        for family in self.db.families() {
            batch.put(family.id(), &key(number), &[7; 100]).unwrap();
        }
        self.next += 1;
        self.db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() })?;
        self.acked.insert(number);
        Ok(())
    }

    fn delete(&mut self) -> Result<(), Error> {
        let mut batch = WriteBatch::new();
        batch.delete(FamilyId::DEFAULT, b"none").unwrap();
        self.db.write(&mut batch, WriteOptions::default()).map(drop)
    }

    /// The store after a write and a flush in which a call failed; all calls work again.
    fn failed(fault: Fault) -> Store {
        let mut store = Store::well();
        store.fail(fault);
        let _ = store.put(true);
        let _ = store.db.flush(&store.db.families());
        store.sim.heal();
        store
    }

    /// The store after the WAL found the disk full; the disk has space again.
    fn without_room() -> Store {
        let mut store = Store::well();
        store.sim.set_capacity(store.sim.used_bytes());
        while store.put(false).is_ok() {}
        assert_eq!(store.told(), [("log's room", NO_SPACE)]);
        store.sim.set_capacity(u64::MAX);
        store
    }

    /// The store after a failed creation of a family. The next open may find the family, so the next commit begins a
    /// new MANIFEST.
    fn in_doubt() -> Store {
        let store = Store::well();
        store.fail(Fault { class: CallClass::Sync, at: 1, repeat: Repeat::Once, kind: OTHER });
        assert!(store.db.create_family("lost", FamilyOptions::default()).is_err());
        store.sim.heal();
        store
    }

    fn told(&self) -> Told {
        self.ear.told.lock().unwrap().clone()
    }

    fn severity(&self) -> Severity {
        self.db.health().severity
    }

    fn fail(&self, fault: Fault) {
        let at = self.sim.calls_of(fault.class) + fault.at;
        let ErrorKind::Io(kind) = fault.kind else { unreachable!("calls fail with I/O errors") };
        self.sim.fail_call(fault.class, at, fault.repeat, kind);
    }
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    class: CallClass,
    at: u64,
    repeat: Repeat,
    kind: ErrorKind,
}

/// The state in which the work begins.
#[derive(Clone, Copy, Debug)]
enum Before {
    Well,
    /// The outcome of a MANIFEST commit is unknown, and nothing needs the MANIFEST yet.
    Doubt,
    /// The WAL could not reserve space.
    LogFull,
    /// A flush found the disk full.
    Full(Fault),
    /// A WAL or MANIFEST failed.
    Hard(Fault),
}

impl Before {
    /// Each state, reached by the first call whose failure leads to it.
    fn all() -> [Before; 6] {
        let found = |told, kind| {
            let fault = |at| Fault { class: CallClass::Change, at, repeat: Repeat::Once, kind };
            let leads = |fault: &Fault| Store::failed(*fault).told() == [(told, kind)];
            (1..100).map(fault).find(leads).unwrap()
        };
        [
            Before::Well,
            Before::Doubt,
            Before::Full(found("flush", NO_SPACE)),
            Before::LogFull,
            Before::Hard(found("log", OTHER)),
            Before::Hard(found("MANIFEST", OTHER)),
        ]
    }

    fn store(self) -> Store {
        let (store, expected) = match self {
            Before::Well => (Store::well(), Severity::Healthy),
            Before::Doubt => (Store::in_doubt(), Severity::Healthy),
            Before::LogFull => (Store::without_room(), Severity::Full),
            Before::Full(fault) => (Store::failed(fault), Severity::Full),
            Before::Hard(fault) => (Store::failed(fault), Severity::Hard),
        };
        assert_eq!(store.severity(), expected, "{self:?}: {:?}", store.db.health());
        store
    }
}

/// The work in which a call fails.
#[derive(Clone, Copy, Debug)]
enum Work {
    Put,
    Delete,
    Flush,
    Compact,
    Resume,
    Create,
    Change,
}

impl Work {
    const ALL: [Work; 7] =
        [Work::Put, Work::Delete, Work::Flush, Work::Compact, Work::Resume, Work::Create, Work::Change];

    /// Runs until an error is reported or nothing is left to do.
    fn run(self, store: &mut Store) -> Result<(), Error> {
        let family = store.db.family("default").unwrap();
        let done = match self {
            Work::Put => store.put(true),
            Work::Delete => store.delete(),
            Work::Flush => store.db.flush(&store.db.families()),
            Work::Compact => store.db.compact_range(&family, None, None),
            Work::Resume => store.db.resume(),
            Work::Create => store.db.create_family("made", FamilyOptions::default()).map(drop),
            Work::Change => store.db.set_options(&family, &[("disable_auto_compactions", "true")]).map(drop),
        };
        while store.told().is_empty() && store.sim.jobs().drive(1) > 0 {}
        done
    }
}

/// The severity of an error by its source: the table of the documentation.
fn table(work: &str, kind: ErrorKind) -> Severity {
    match (work, kind) {
        ("log" | "MANIFEST", _) => Severity::Hard,
        ("CURRENT", _) => Severity::Fatal,
        ("flush" | "log's room", NO_SPACE) => Severity::Full,
        ("next log" | "flush" | "compaction" | "purge" | "OPTIONS file", _) => Severity::Soft,
        other => panic!("no row for {other:?}"),
    }
}

/// Runs one case: returns the reported errors; `None`: the fault hit no call.
fn case(before: Before, work: Work, fault: Fault) -> Option<Told> {
    let mut store = before.store();
    let ill = store.severity();
    store.ear.told.lock().unwrap().clear();
    let injected = store.sim.injected();
    let begun = store.sim.env().clock.now();
    store.fail(fault);
    let done = work.run(&mut store);
    // A request that meets readers of other threads pauses. A retry may be due by then.
    let later = store.sim.env().clock.now() > begun;
    let hit = store.sim.injected() > injected;
    store.sim.heal();
    let (told, state) = (store.told(), store.severity());
    let what = format!("{before:?} {work:?} {fault:?}: {told:?}, {state:?}");
    let worst = told.iter().map(|(work, kind)| table(work, *kind)).max().unwrap_or_default();
    assert!(state <= worst.max(ill), "worse than the reported errors: {what}");
    let only_an_open_helps = done.is_err_and(|e| e.to_string().contains("open it again"));
    assert!(!only_an_open_helps || state == Severity::Fatal, "the error of the call: {what}");
    // An error may be reported after the earlier state has ended, and a retry may end the state that the error caused.
    let healed = later && store.ear.recovered.load(Ordering::SeqCst) && state == Severity::Healthy;
    assert!(told.len() != 1 || healed || state == worst || state == worst.max(ill), "{what}");
    check(&mut store, &what);
    hit.then_some(told)
}

/// Checks the promises of a state, with all calls working again.
fn check(store: &mut Store, what: &str) {
    let state = store.severity();
    assert!(holds(&store.db, &store.acked), "reads go on: {what}");
    assert_eq!(store.put(true).is_ok(), state < Severity::Full, "{what}");
    assert_eq!(store.delete().is_ok(), state < Severity::Hard, "{what}");
    let files = || store.sim.env().fs.list(Path::new(DIR)).unwrap().len();
    let before = files();
    while store.sim.jobs().drive(100) > 0 {}
    if state == Severity::Fatal {
        assert_eq!((store.severity(), files()), (state, before), "for good, and nothing is removed: {what}");
    } else {
        assert_eq!(store.severity(), Severity::Healthy, "by itself: {what}");
        store.put(true).unwrap();
    }
    assert!(holds(&store.db, &store.acked), "healed: {what}");
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let left = open(store.sim.crash(mode).env(), &Arc::default());
        assert!(holds(&left, &store.acked), "{mode:?}: {what}");
    }
}

/// Every call of every work fails in this state: its severity, how many calls, and what failed first.
fn failures_after(before: Before) -> (Severity, usize, BTreeSet<&'static str>) {
    let (mut cases, mut met) = (0, BTreeSet::new());
    // Whether calls fail once or permanently, and whether even or odd calls fail for lack of space.
    let plans = [(Repeat::Once, 0), (Repeat::Sticky, 0), (Repeat::Once, 1), (Repeat::Sticky, 1)];
    let plans = &plans[..report::scale(2, 4)];
    for work in Work::ALL {
        for class in [CallClass::Read, CallClass::Write, CallClass::Sync] {
            for (repeat, odd) in plans {
                let fault = |at| {
                    let kind = if at % 2 == *odd { NO_SPACE } else { OTHER };
                    Fault { class, at, repeat: *repeat, kind }
                };
                for told in (1..).map_while(|at| case(before, work, fault(at))) {
                    cases += 1;
                    met.extend(told.first().map(|(work, _)| *work));
                }
            }
        }
    }
    (before.store().severity(), cases, met)
}

#[test]
fn every_call_that_fails_leads_where_the_table_says() {
    let _readers = crate::beside_others();
    let mut edges: BTreeMap<Severity, BTreeSet<&str>> = BTreeMap::new();
    let mut cases = 0;
    std::thread::scope(|scope| {
        let states: Vec<_> =
            Before::all().into_iter().map(|before| scope.spawn(move || failures_after(before))).collect();
        for state in states {
            let (ill, count, met) = state.join().unwrap();
            cases += count;
            edges.entry(ill).or_default().extend(met);
        }
    });
    let expected = [
        (
            Severity::Healthy,
            &["CURRENT", "MANIFEST", "OPTIONS file", "compaction", "flush", "log", "log's room", "purge"][..],
        ),
        (Severity::Full, &["MANIFEST", "OPTIONS file", "compaction", "flush", "log", "log's room", "purge"]),
        (Severity::Hard, &["CURRENT", "MANIFEST", "flush", "log", "purge"]),
    ];
    let met: Vec<_> =
        edges.iter().map(|(ill, works)| (*ill, works.iter().copied().collect::<Vec<_>>())).collect();
    assert!(met.iter().map(|(ill, works)| (*ill, &works[..])).eq(expected), "every edge: {met:?}");
    report::figure(&format!("health: {cases} failing calls, states and what failed there: {met:?}"));
}

/// The disturbance while the engine resumes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    Drop,
    Close,
    Resume,
    /// Another call fails: resuming starts again.
    Failure,
}

#[test]
fn resuming_is_disturbed_at_every_step() {
    let _readers = crate::beside_others();
    let hard = Before::all()[4];
    for disturbance in [Disturbance::Drop, Disturbance::Close, Disturbance::Resume, Disturbance::Failure] {
        let driven = (0..).take_while(|steps| disturbed(hard, disturbance, *steps)).count();
        assert!(driven > 5, "{disturbance:?}: {driven} steps");
    }
}

/// Disturbs the resuming after `steps` steps of background work; false: it had fewer steps.
fn disturbed(hard: Before, disturbance: Disturbance, steps: usize) -> bool {
    let mut store = hard.store();
    let driven = store.sim.jobs().drive(steps);
    match disturbance {
        Disturbance::Drop => store.db.drop_family(&store.db.family("other").unwrap()).unwrap(),
        Disturbance::Close => drop(store.db.close()),
        Disturbance::Resume => store.db.resume().unwrap(),
        Disturbance::Failure => {
            store.fail(Fault { class: CallClass::Change, at: 1, repeat: Repeat::Once, kind: NO_SPACE });
            store.sim.jobs().drive(1);
            store.sim.heal();
        }
    }
    let what = format!("{disturbance:?} after {steps} steps");
    if disturbance != Disturbance::Close {
        while store.sim.jobs().drive(100) > 0 {}
        assert_eq!(store.severity(), Severity::Healthy, "{what}");
        store.put(true).unwrap();
    }
    let left = open(store.sim.crash(CrashMode::KILL).env(), &Arc::default());
    assert!(holds_in(&left, "default", &store.acked), "{what}");
    driven == steps
}

/// Corruption found by a compaction: no write is accepted, other data is readable, and `resume` does not help. Also:
/// after a failed creation of a family, at whichever call, an orderly close leaves neither the family nor a torn
/// record.
#[test]
fn a_close_leaves_no_doubt() {
    let _readers = crate::beside_others();
    for class in [CallClass::Write, CallClass::Sync] {
        for at in 1..=2 {
            let store = Store::well();
            store.fail(Fault { class, at, repeat: Repeat::Once, kind: OTHER });
            let made = store.db.create_family("lost", FamilyOptions::default());
            store.sim.heal();
            store.db.close().unwrap();
            let again = open(store.sim.env(), &Arc::default());
            assert!(again.recovery().is_clean(), "{class:?} {at}: {}", again.recovery());
            assert_eq!(again.family("lost").is_some(), made.is_ok(), "{class:?} {at}");
            assert!(holds(&again, &store.acked), "{class:?} {at}");
        }
    }
}

#[test]
fn corruption_is_for_the_operator() {
    let _readers = crate::beside_others();
    let mut store = Store::well();
    let env = store.sim.env();
    let family = store.db.family("default").unwrap();
    let table = store.db.live_files(&family).unwrap()[0].number;
    store.db.close().unwrap();
    let path = Path::new(DIR).join(format!("{:06}.sst", table.0));
    env.fs.open_write(&path).unwrap().write_at(&[0xff; 8], 20).unwrap();
    store.db = open(env, &store.ear);
    let family = store.db.family("default").unwrap();
    assert_eq!(store.db.compact_range(&family, None, None).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(
        (store.severity(), store.told()),
        (Severity::Corrupt, vec![("compaction", ErrorKind::Corruption)])
    );
    assert!(store.put(false).is_err() && store.delete().is_err());
    assert!(store.db.resume().is_err());
    while store.sim.jobs().drive(100) > 0 {}
    assert_eq!(store.severity(), Severity::Corrupt);
    let read = |n: u32| store.db.get(&family, &key(n), ReadOptions::default());
    assert!(read(8).unwrap().is_some(), "in memory");
    let wrong = store.acked.iter().filter(|n| read(**n).is_err()).count();
    assert_eq!(wrong, 3, "those of the damaged table");
    assert!(store.db.flush(&[Arc::clone(&family)]).is_err());
}

/// A user's merge operator that panics in the background.
#[derive(Debug)]
struct Panics(AtomicBool);

impl MergeOperator for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>, Error> {
        assert!(!self.0.load(Ordering::Relaxed), "a test");
        Ok(b"merged".to_vec())
    }
}

#[test]
fn a_panic_in_the_background_is_fatal_and_nothing_more() {
    let _readers = crate::beside_others();
    let env = Env::mem();
    let operator = Arc::new(Panics(AtomicBool::new(true)));
    let family = FamilyOptions { merge_operator: Some(operator.clone()), ..FamilyOptions::default() };
    let open =
        || Db::open(env.clone(), Path::new(DIR), DbOptions::default(), vec![], family.clone()).unwrap();
    let db = open();
    let write = |db: &Db, fill: &dyn Fn(&mut WriteBatch)| {
        let mut batch = WriteBatch::new();
        fill(&mut batch);
        db.write(&mut batch, WriteOptions::default())
    };
    write(&db, &|b| b.put(FamilyId::DEFAULT, b"k", b"v").unwrap()).unwrap();
    write(&db, &|b| b.put(FamilyId::DEFAULT, b"merged", b"base").unwrap()).unwrap();
    write(&db, &|b| b.merge(FamilyId::DEFAULT, b"merged", b"more").unwrap()).unwrap();
    db.flush(&db.families()).unwrap_err();
    assert_eq!(db.health().severity, Severity::Fatal);
    let refused = write(&db, &|b| b.put(FamilyId::DEFAULT, b"l", b"v").unwrap()).unwrap_err();
    assert!(refused.to_string().contains("open it again"), "{refused}");
    let read = |db: &Db, key: &[u8]| {
        db.get(&db.family("default").unwrap(), key, ReadOptions::default()).unwrap().is_some()
    };
    assert!(read(&db, b"k") && db.resume().is_err());
    let _ = db.close();
    drop(db);
    operator.0.store(false, Ordering::Relaxed);
    let db = open();
    assert!(read(&db, b"k") && read(&db, b"merged"), "another open finds it all");
}

//! A writer that makes all its changes at once, at each call of a read-only open.

use super::{dir, open, open_read_only, put, small, state};
use ashlar_base::ErrorKind;
use ashlar_base::error::BusyKind;
use ashlar_engine::Db;
use ashlar_env::Env;
use ashlar_env::sim::{SimEnv, Watched};
use ashlar_options::DbOptions;
use ashlar_recovery::list_families;
use ashlar_testkit::KeyValue;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type State = Vec<(String, Vec<KeyValue>)>;

/// A writer, and every state it went through.
struct Writer {
    db: Db,
    count: usize,
    states: Vec<State>,
}

impl Writer {
    fn new(sim: &SimEnv) -> Writer {
        Writer::over(sim.env())
    }

    fn over(env: Env) -> Writer {
        let db = open(env);
        let mut writer = Writer { states: vec![state(&db)], db, count: 0 };
        for _ in 0..3 {
            writer.write(12);
            writer.db.flush(&writer.db.families()).unwrap();
        }
        writer.write(5);
        writer
    }

    fn write(&mut self, count: usize) {
        for _ in 0..count {
            self.count += 1;
            let family = self.db.families().swap_remove(self.count % 2);
            put(
                &self.db,
                &family,
                &format!("key{:02}", self.count * 7 % 20),
                &format!("{:0200}", self.count),
            );
            self.states.push(state(&self.db));
        }
    }

    /// Writes, moves all data to other tables and another WAL file, and deletes the old files.
    fn turn_over(&mut self) {
        self.write(2);
        self.db.flush(&self.db.families()).unwrap();
        self.write(1);
        for family in self.db.families() {
            self.db.compact_range(&family, None, None).unwrap();
        }
        self.db.wait_for_background().unwrap();
        self.write(2);
    }
}

/// The result of a read-only open beside a writer.
struct Opened {
    calls: u64,
    reader: ashlar_base::Result<Db>,
    /// The states of the writer during the open.
    states: Vec<State>,
    // The file system does not own the writer: memory that is freed late would close a database on an arbitrary thread.
    _writer: Arc<Mutex<Writer>>,
}

/// Opens while the writer replaces all files before each call whose number satisfies `when`.
fn open_beside(when: impl Fn(u64) -> bool + Send + Sync + 'static) -> Opened {
    let sim = SimEnv::new(3);
    let writer = Arc::new(Mutex::new(Writer::new(&sim)));
    let from = writer.lock().unwrap().states.len() - 1;
    let (doer, over) = (Arc::downgrade(&writer), Arc::new(AtomicBool::new(false)));
    let is_over = Arc::clone(&over);
    let (fs, calls) = Watched::with(&sim.env(), move |call, _| {
        if let Some(writer) = doer.upgrade().filter(|_| !is_over.load(Ordering::Relaxed) && when(call)) {
            writer.lock().unwrap().turn_over();
        }
    });
    let reader = open_read_only(Env { fs, ..sim.env() }, dir());
    over.store(true, Ordering::Relaxed);
    let states = writer.lock().unwrap().states.split_off(from);
    Opened { calls: calls.load(Ordering::Relaxed), reader, states, _writer: writer }
}

#[test]
fn at_every_single_call_a_whole_state_is_seen() {
    let _readers = crate::beside_others();
    let Opened { calls, reader, states, _writer } = open_beside(|_| false);
    assert!(state(&reader.unwrap()) == states[0] && calls > 20, "{calls} calls");
    let mut later = 0;
    for at in 1..=calls {
        let Opened { reader, states, _writer, .. } = open_beside(move |call| call == at);
        let reader = reader.unwrap_or_else(|e| panic!("overtaken at call {at}: {e}"));
        assert!(reader.recovery().is_clean(), "overtaken at call {at}: {}", reader.recovery());
        let seen = state(&reader);
        let which = states.iter().position(|s| *s == seen);
        later += usize::from(
            which.unwrap_or_else(|| panic!("overtaken at call {at}: a state that never was")) > 0,
        );
    }
    assert!(later > 0);
    ashlar_testkit::report::figure(&format!(
        "read-only open overtaken by flush, compaction and deletion at each of {calls} calls: {later} times a later state, \
         0 torn states, 0 errors"
    ));
}

#[test]
fn a_writer_too_fast_is_said_to_be_so() {
    let _readers = crate::beside_others();
    for every in [3, 40] {
        let Opened { calls, reader, states, _writer } =
            open_beside(move |call| call % every == 0 && call < 1000);
        match reader {
            Ok(db) => assert!(states.contains(&state(&db)), "every {every}"),
            Err(e) => {
                assert!(matches!(
                    e.kind(),
                    ErrorKind::Corruption | ErrorKind::NotSupported | ErrorKind::Io(_) | ErrorKind::Busy(_)
                ));
                assert!(e.to_string().contains("Open it again when it is idle"), "{calls} calls: {e}");
            }
        }
    }
}

/// The writer flushes each time the open lists the directory, also between the two looks of an attempt at the MANIFEST.
/// So every attempt finds that its first WAL file is not needed any more.
#[test]
fn wal_files_deleted_under_every_attempt_make_the_open_busy() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(5);
    let mut options = small();
    options.compaction.automatic = false;
    (options.compaction.l0_slowdown, options.compaction.l0_stop) = (100_000, 100_000);
    let db = Arc::new(Db::open(sim.env(), dir(), DbOptions::default(), vec![], options).unwrap());
    let write = |db: &Db, count: u64| {
        put(db, &db.family("default").unwrap(), "key", &count.to_string());
    };
    write(&db, 0);
    let (writer, clock) = (Arc::downgrade(&db), sim.env().clock);
    let (fs, _) = Watched::with(&sim.env(), move |call, path| {
        if let Some(db) = writer.upgrade().filter(|_| path == dir()) {
            write(&db, call);
            db.flush(&db.families()).unwrap();
            clock.sleep(Duration::from_millis(100));
        }
    });
    let e = open_read_only(Env { fs, ..sim.env() }, dir()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Locked), "{e}");
    assert!(e.to_string().contains("other processes deleted WAL files during the open"), "{e}");
    assert!(e.to_string().contains("Open it again when it is idle"), "{e}");
    let reader = open_read_only(sim.env(), dir()).unwrap();
    assert!(state(&reader) == state(&db), "the directory is idle");
}

/// `list_families` took records that the writer appended between two reads for damage.
#[test]
fn families_are_listed_beside_a_writer() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(5);
    let writer = Arc::new(Mutex::new(Writer::new(&sim)));
    let doer = Arc::clone(&writer);
    let (fs, calls) = Watched::with(&sim.env(), move |call, _| {
        // A file that grew before each call would have no end.
        if call % 3 == 0 {
            return;
        }
        let mut writer = doer.lock().unwrap();
        writer.write(1);
        writer.db.flush(&writer.db.families()).unwrap();
    });
    for _ in 0..20 {
        let listed = list_families(&Env { fs: Arc::clone(&fs), ..sim.env() }, dir()).unwrap();
        assert_eq!(listed, ["default", "one"]);
    }
    assert!(calls.load(Ordering::Relaxed) > 60);
}

/// `verify_db` took records that a commit appended between two reads for damage.
#[test]
fn a_manifest_that_grows_during_its_verification_is_sound() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(6);
    let writer: Arc<Mutex<Option<Writer>>> = Arc::default();
    let (doer, flushes) = (Arc::clone(&writer), Arc::new(AtomicU64::new(0)));
    let (counted, verifier) = (Arc::clone(&flushes), std::thread::current().id());
    let fs = Watched::writing(&sim.env(), move |_, _| {
        if std::thread::current().id() != verifier || counted.load(Ordering::Relaxed) == 100 {
            return;
        }
        // The flush reads too, and finds the writer taken.
        let taken = doer.lock().unwrap().take();
        let Some(mut taken) = taken else { return };
        taken.write(1);
        taken.db.flush(&taken.db.families()).unwrap();
        counted.fetch_add(1, Ordering::Relaxed);
        *doer.lock().unwrap() = Some(taken);
    });
    let made = Writer::over(Env { fs, ..sim.env() });
    let db = made.db.clone();
    *writer.lock().unwrap() = Some(made);
    for _ in 0..10 {
        let report = db.verify_db(|_| {}).unwrap();
        assert!(report.is_sound(), "{report}");
    }
    assert!(flushes.load(Ordering::Relaxed) > 20);
    drop(writer.lock().unwrap().take());
    db.close().unwrap();
}

#[test]
fn damage_that_stays_is_damage() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(4);
    let writer = Writer::new(&sim);
    // A table that the closed database names: a directory listing may include tables that a compaction left or is about
    // to delete.
    writer.db.wait_for_background().unwrap();
    let families = writer.db.families();
    let live = families.iter().flat_map(|f| writer.db.live_files(f).unwrap()).next().unwrap();
    let table = format!("{:06}.sst", live.number.0);
    writer.db.close().unwrap();
    sim.env().fs.remove(&dir().join(&table)).unwrap();
    let (fs, calls) = Watched::with(&sim.env(), |_, _| {});
    let e = open_read_only(Env { fs, ..sim.env() }, dir()).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains(&table), "{e}");
    assert!(calls.load(Ordering::Relaxed) < 100, "one attempt is enough: {calls:?} calls");
}

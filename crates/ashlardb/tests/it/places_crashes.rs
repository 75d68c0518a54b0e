//! Changes of `wal_dir` under crashes.

use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlardb::Builder;
use ashlardb::prelude::*;

fn builder(sim: &SimEnv) -> Builder {
    Db::builder("/db").env(sim.env())
}

fn put(db: &Db, key: &str) {
    db.writing(WriteOptions::synced()).put(key, "v").unwrap();
}

/// A crashed change leaves a WAL file whose number a later open gives out again, in the directory that it knows.
#[test]
fn a_change_of_wal_dir_that_crashed_and_is_made_again_loses_nothing() {
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL] {
        let sim = SimEnv::new(1);
        let db = builder(&sim).wal_dir("/a").open().unwrap();
        put(&db, "first");
        // With nothing to replay, the opens use the same numbers.
        db.flush().unwrap();
        db.close().unwrap();
        let from = sim.calls_of(CallClass::Change);
        (1..60).for_each(|at| sim.photograph_at(from + at, mode));
        drop(builder(&sim).wal_dir("/b").open().unwrap());
        let images = sim.photographs();
        assert!(images.len() > 20, "{}", images.len());
        for (call, _, image) in images {
            let db = builder(&image).open().unwrap();
            put(&db, "second");
            let killed = image.crash(CrashMode::KILL);
            let again = builder(&killed).wal_dir("/b").open().unwrap();
            for key in ["first", "second"] {
                assert!(again.get(key).unwrap().is_some(), "{mode:?}, call {call}: {key}");
            }
        }
    }
}

/// The WAL file in the database directory, torn, counted as one with writes beside those of the former directory: the database
/// did not open.
#[test]
fn a_change_back_to_the_database_directory_that_crashed_leaves_the_former_wal_dir() {
    for mode in CrashMode::all() {
        let sim = SimEnv::new(2);
        let db = builder(&sim).wal_dir("/a").open().unwrap();
        put(&db, "first");
        // The next WAL file begins with a copy of the transaction.
        let undecided = db.begin().unwrap();
        undecided.set_name("undecided").unwrap();
        undecided.put("third", vec![b'x'; 3000]).unwrap();
        undecided.prepare().unwrap();
        drop(undecided);
        put(&db, "synced behind it");
        db.close().unwrap();
        let from = sim.calls_of(CallClass::Change);
        (1..60)
            .step_by(ashlar_testkit::report::scale(3, 1))
            .for_each(|at| sim.photograph_at(from + at, mode));
        drop(builder(&sim).wal_dir("/db").open().unwrap());
        for (call, _, image) in sim.photographs() {
            let db = builder(&image).open().unwrap_or_else(|e| panic!("{mode:?}, call {call}: {e}"));
            assert!(db.get("first").unwrap().is_some(), "{mode:?}, call {call}");
            assert_eq!(db.prepared_transactions().unwrap().len(), 1, "{mode:?}, call {call}");
        }
    }
}

//! Compactions on request, paused and aborted, and compactions that the end of a snapshot starts.

use crate::pauses::in_pauses;
use ashlar_base::error::{IoKind, ShutdownKind};
use ashlar_base::{ErrorKind, FamilyId, FileNumber, Level};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use ashlar_env::{Env, Lane};
use ashlar_options::{
    CompactFilesOptions, CompactRangeOptions, CompactionOptions, DbOptions, FamilyOptions, ReadOptions,
    WriteOptions,
};
use ashlar_read::iter::{DbIter, KeyBounds};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const DIR: &str = "/db";

fn open(env: &Env, automatic: bool) -> Db {
    let family = FamilyOptions {
        compaction: CompactionOptions {
            l0_trigger: 2,
            target_file_bytes: 4096,
            base_level_bytes: 1 << 20,
            automatic,
            ..CompactionOptions::default()
        },
        ..FamilyOptions::default()
    };
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(env.clone(), Path::new(DIR), DbOptions::default(), vec![default], family).unwrap()
}

fn default(db: &Db) -> Arc<Family> {
    db.family("default").unwrap()
}

/// Writes a table of the keys in `range`, each with `value`, or deleted.
fn table(db: &Db, range: std::ops::Range<u32>, value: Option<&[u8]>) {
    write(db, range, value);
    db.flush(&[default(db)]).unwrap();
}

fn write(db: &Db, range: std::ops::Range<u32>, value: Option<&[u8]>) {
    let mut batch = WriteBatch::new();
    for i in range {
        let key = format!("key{i:06}");
        match value {
            // Every value is different, so that no codec compresses all of them into one block.
            Some(value) => {
                let spread = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                batch.put(FamilyId::DEFAULT, key.as_bytes(), &[value, &spread[..]].concat()).unwrap();
            }
            None => batch.delete(FamilyId::DEFAULT, key.as_bytes()).unwrap(),
        }
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
}

fn count(db: &Db) -> usize {
    let mut it = db.iter(&default(db), KeyBounds::default(), ReadOptions::default()).unwrap();
    it.first().unwrap();
    let mut count = 0;
    while it.entry().is_some() {
        count += 1;
        it.next().unwrap();
    }
    count
}

/// The number of tables by level.
fn levels(db: &Db) -> Vec<usize> {
    db.shape(&default(db)).levels.iter().map(|(tables, _)| *tables).collect()
}

/// Numbers of the table files in the directory.
fn table_files(env: &Env) -> Vec<FileNumber> {
    let names = env.fs.list(Path::new(DIR)).unwrap().into_iter().map(|e| e.name);
    let mut numbers: Vec<_> =
        names.filter_map(|n| Some(FileNumber(n.strip_suffix(".sst")?.parse().ok()?))).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_request_is_cut_into_parts_that_make_one_tree() {
    let _alone = crate::alone();
    let sim = SimEnv::new(1);
    let db = open(&sim.env(), false);
    table(&db, 0..4000, Some(b"old"));
    table(&db, 1000..3000, Some(b"new"));
    table(&db, 2500..3500, None);
    assert_eq!(levels(&db), [3, 0, 0, 0, 0, 0, 0]);
    db.compact_range(&default(&db), None, None).unwrap();
    db.wait_for_background().unwrap();
    let after = levels(&db);
    assert!(after[..6].iter().sum::<usize>() == 0 && after[6] > 4, "{after:?}");
    assert_eq!(count(&db), 3000);
    let value = db.get(&default(&db), b"key001500", ReadOptions::default()).unwrap();
    assert!(value.unwrap().starts_with(b"new"));
    assert_eq!(table_files(&sim.env()).len(), after[6], "no file is left over");
    db.close().unwrap();
    let again = open(&sim.env(), false);
    assert_eq!((count(&again), levels(&again)), (3000, after));
}

/// The tables of a load in key order go down as they are; with a deletion among them they are rewritten.
#[test]
fn a_load_in_key_order_is_written_once() {
    // Files that were replaced are gone once no other reader of the process has them.
    let _alone = crate::alone();
    let sim = SimEnv::new(4);
    let db = open(&sim.env(), false);
    (0..4).for_each(|i| table(&db, i * 200..(i + 1) * 200, Some(b"a")));
    let loaded = table_files(&sim.env());
    db.compact_range(&default(&db), None, None).unwrap();
    assert_eq!((levels(&db), table_files(&sim.env())), (vec![0, 0, 0, 0, 0, 0, 4], loaded.clone()));
    assert_eq!(count(&db), 800);

    table(&db, 0..200, Some(b"b"));
    db.compact_range(&default(&db), None, None).unwrap();
    assert_eq!(count(&db), 800);
    assert!(
        loaded.iter().all(|number| !table_files(&sim.env()).contains(number)),
        "the next request rewrites all"
    );

    table(&db, 800..1000, Some(b"a"));
    table(&db, 1000..1200, None);
    let files = table_files(&sim.env());
    db.compact_range(&default(&db), None, None).unwrap();
    assert_eq!((count(&db), db.shape(&default(&db)).levels[0].0), (1000, 0));
    assert!(table_files(&sim.env()).iter().all(|number| !files.contains(number)), "no deletion is left");
}

#[test]
fn ranges_go_to_the_level_that_was_asked_for() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(2);
    let db = open(&sim.env(), false);
    table(&db, 0..500, Some(b"a"));
    table(&db, 500..1000, Some(b"b"));
    let options = CompactRangeOptions::new().exclusive(true).max_subcompactions(2).rewrite_deepest(false);
    let options = options.target_level(Level(2));
    db.compact_range_with(&default(&db), None, None, options).unwrap();
    let after = levels(&db);
    assert!(after[2] > 0 && after.iter().sum::<usize>() == after[2], "{after:?}");
    assert_eq!(count(&db), 1000);
    table(&db, 0..1, Some(b"c"));
    let to_the_top = options.target_level(Level(0));
    let refused = db.compact_range_with(&default(&db), None, None, to_the_top).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    assert_eq!(count(&db), 1000);
}

#[test]
fn files_are_compacted_by_their_numbers() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(3);
    let db = open(&sim.env(), false);
    table(&db, 0..100, Some(b"old"));
    table(&db, 200..300, Some(b"aside"));
    table(&db, 50..150, Some(b"new"));
    let files = table_files(&sim.env());
    let newest = *files.last().unwrap();
    db.compact_files(&default(&db), &[newest], Level(3), CompactFilesOptions::new()).unwrap();
    let after = levels(&db);
    assert!(after[0] == 1 && after[3] > 0, "the older one came along, the other did not: {after:?}");
    assert_eq!(count(&db), 250);
    let gone = db.compact_files(&default(&db), &[newest], Level(3), CompactFilesOptions::new()).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::InvalidArgument, "{gone}");
}

#[test]
fn paused_work_waits_and_goes_on() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(4);
    let db = open(&sim.env(), true);
    db.pause_background_work().unwrap();
    db.pause_background_work().unwrap();
    write(&db, 0..100, Some(b"x"));
    assert_eq!(db.flush(&[default(&db)]).unwrap_err().kind(), ErrorKind::Aborted);
    db.continue_background_work().unwrap();
    assert_eq!(db.compact_range(&default(&db), None, None).unwrap_err().kind(), ErrorKind::Aborted);
    db.continue_background_work().unwrap();
    assert_eq!(db.continue_background_work().unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.compact_range(&default(&db), None, None).unwrap();
    assert_eq!((count(&db), db.health().severity), (100, Severity::Healthy));
    db.pause_background_work().unwrap();
    write(&db, 100..200, Some(b"x"));
    db.close().unwrap();
    assert_eq!(count(&open(&sim.env(), true)), 200);
}

#[test]
fn aborted_compactions_leave_nothing_behind() {
    let _readers = crate::beside_others();
    for steps in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
        let sim = SimEnv::new(5);
        let env = sim.env();
        assert!(env.jobs.width(Lane::Low) > 1, "parts are run at once");
        let db = open(&env, false);
        table(&db, 0..9000, Some(b"old"));
        table(&db, 0..9000, Some(b"new"));
        let files = table_files(&env);
        db.close().unwrap();
        let db = open(&env, true);
        env.jobs.drive(steps);
        db.abort_compactions().unwrap();
        let refused = db.compact_range(&default(&db), None, None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Aborted, "{refused}");
        db.wait_for_background().unwrap();
        if levels(&db)[0] > 0 {
            assert_eq!(table_files(&env), files, "after {steps} steps");
        }
        assert_eq!((count(&db), db.health().severity), (9000, Severity::Healthy));
        db.resume_compactions().unwrap();
        db.wait_for_background().unwrap();
        assert_eq!((levels(&db)[0], count(&db)), (0, 9000));
        assert_eq!(db.resume_compactions().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// A database with two tables that a compaction will replace, and a cursor that reads them.
fn read_and_overwritten(env: &Env) -> (Db, DbIter) {
    let db = open(env, false);
    table(&db, 0..900, Some(b"old"));
    table(&db, 0..900, Some(b"new"));
    let mut cursor = db.iter(&default(&db), KeyBounds::default(), ReadOptions::default()).unwrap();
    cursor.first().unwrap();
    (db, cursor)
}

#[test]
fn a_request_ends_when_what_it_replaced_is_removed() {
    let _alone = crate::alone();
    for env in [SimEnv::new(9).env(), Env::mem()] {
        let (db, cursor) = read_and_overwritten(&env);
        let unneeded = || table_files(&env).len() - levels(&db).iter().sum::<usize>();
        db.compact_range(&default(&db), None, None).unwrap();
        assert_eq!(unneeded(), 2, "the cursor reads them");
        drop(cursor);
        table(&db, 0..10, Some(b"newer"));
        db.compact_range(&default(&db), None, None).unwrap();
        assert_eq!(unneeded(), 0);
        table(&db, 0..10, Some(b"newest"));
        db.compact_files(&default(&db), &table_files(&env), Level(6), CompactFilesOptions::new()).unwrap();
        assert_eq!((unneeded(), count(&db)), (0, 900));
    }
}

/// Regression: the request returned as soon as one purge had run, although a thread held the replaced version meanwhile.
#[test]
fn a_request_waits_for_a_reader_that_soon_ends() {
    let _alone = crate::alone();
    let reader = Arc::new(Mutex::new(None));
    let (held, pauses) = (Arc::clone(&reader), Arc::new(AtomicU64::new(0)));
    let paused = Arc::clone(&pauses);
    let env = in_pauses(&Env::mem(), move || {
        if paused.fetch_add(1, Ordering::Relaxed) == 2 {
            drop(held.lock().unwrap().take());
        }
    });
    let (db, cursor) = read_and_overwritten(&env);
    *reader.lock().unwrap() = Some(cursor);
    db.compact_range(&default(&db), None, None).unwrap();
    assert_eq!(table_files(&env).len(), levels(&db).iter().sum::<usize>());
    assert_eq!(pauses.load(Ordering::Relaxed), 3, "no pause after the reader's end");
}

/// Regression: the last purge before the wait had met a reader, and the replaced files stayed.
#[test]
fn a_wait_for_the_background_removes_files_that_a_reader_has_kept() {
    let _alone = crate::alone();
    let env = Env::mem();
    let (db, cursor) = read_and_overwritten(&env);
    db.compact_range(&default(&db), None, None).unwrap();
    let unneeded = || table_files(&env).len() - levels(&db).iter().sum::<usize>();
    db.wait_for_background().unwrap();
    assert_eq!(unneeded(), 2, "the cursor reads them");
    drop(cursor);
    db.wait_for_background().unwrap();
    assert_eq!(unneeded(), 0);
}

#[test]
fn a_request_does_not_wait_for_files_that_cannot_be_removed() {
    let _alone = crate::alone();
    let request = |fail_at: Option<u64>| {
        let sim = SimEnv::new(10);
        let db = open(&sim.env(), false);
        table(&db, 0..900, Some(b"old"));
        table(&db, 0..900, Some(b"new"));
        if let Some(at) = fail_at {
            sim.fail_call(CallClass::Write, at, Repeat::Sticky, IoKind::Other);
        }
        let done = db.compact_range(&default(&db), None, None);
        let calls = sim.calls_of(CallClass::Write);
        let unneeded = table_files(&sim.env()).len() - levels(&db).iter().sum::<usize>();
        sim.heal();
        (calls, done.is_ok(), unneeded)
    };
    let (calls, is_done, unneeded) = request(None);
    assert_eq!((is_done, unneeded), (true, 0));
    // The last calls of all remove files.
    let hits = (calls.saturating_sub(12)..=calls).map(|at| request(Some(at)));
    let kept = hits.filter(|(_, is_done, unneeded)| *is_done && *unneeded > 0).count();
    assert!(kept > 0, "no failure hit the purge");
}

/// A purge is due after a compaction, and the close comes before it.
#[test]
fn a_close_leaves_no_table_that_nobody_needs() {
    let _alone = crate::alone();
    for seed in 0..20 {
        let env = SimEnv::new(seed).env();
        let db = open(&env, false);
        table(&db, 0..900, Some(b"old"));
        table(&db, 0..900, Some(b"new"));
        db.compact_range(&default(&db), None, None).unwrap();
        let live = db.shape(&default(&db)).bytes();
        db.close().unwrap();
        let tables = env.fs.list(Path::new(DIR)).unwrap().into_iter().filter(|e| e.name.ends_with(".sst"));
        let left: u64 = tables.map(|e| env.fs.open_read(&Path::new(DIR).join(e.name)).unwrap().len()).sum();
        assert_eq!(left, live, "seed {seed}");
    }
}

/// Regression, found by `rel shuttle --replay=414`: the error wrongly said that compactions were aborted.
#[test]
fn a_close_tells_who_waits_for_a_compaction() {
    let _readers = crate::beside_others();
    let db = open(&Env::mem(), false);
    table(&db, 0..9000, Some(b"old"));
    table(&db, 0..9000, Some(b"new"));
    db.set_db_options(&[("rate_limiter_bytes_per_sec", "20000")]).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| db.compact_range(&default(&db), None, None));
        while db.property_int(&default(&db), "rocksdb.num-running-compactions") != Some(1) {
            std::thread::yield_now();
        }
        db.close().unwrap();
        let told = waits.join().unwrap().unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Shutdown(ShutdownKind::Closed), "{told}");
    });
}

#[test]
fn the_end_of_a_snapshot_frees_what_it_held() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(6);
    let db = open(&sim.env(), true);
    table(&db, 0..1000, Some(b"x"));
    let (first, second) = (db.snapshot().unwrap(), db.snapshot().unwrap());
    table(&db, 0..900, None);
    db.wait_for_background().unwrap();
    let held = db.shape(&default(&db)).bytes();
    assert!(held > 4000, "{held} bytes");
    drop(first);
    db.wait_for_background().unwrap();
    assert_eq!(db.shape(&default(&db)).bytes(), held, "one still needs it");
    drop(second);
    sim.env().jobs.drive(1000);
    db.wait_for_background().unwrap();
    assert_eq!(count(&db), 100);
    let left = db.shape(&default(&db)).bytes();
    assert!(left * 3 < held, "{left} of {held} bytes are left");
}

#[test]
fn a_dropped_family_stops_its_compactions() {
    let _alone = crate::alone();
    let sim = SimEnv::new(7);
    let env = sim.env();
    let db = open(&env, true);
    let before = table_files(&env).len();
    let family = db.create_family("other", (*default(&db).options()).clone()).unwrap();
    for round in 0..2u8 {
        let mut batch = WriteBatch::new();
        for i in 0..9000u32 {
            batch.put(family.id(), &i.to_be_bytes(), &[round; 20]).unwrap();
        }
        db.write(&mut batch, WriteOptions::default()).unwrap();
        db.flush(&[Arc::clone(&family)]).unwrap();
    }
    env.jobs.drive(6);
    db.drop_family(&family).unwrap();
    drop(family);
    db.wait_for_background().unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(table_files(&env).len(), before, "its files are gone");
    assert_eq!(db.health().severity, Severity::Healthy);
}

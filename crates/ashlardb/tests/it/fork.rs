//! What a child gets of a database that was open when the process forked, and what is left to the parent.

use crate::child::Limited;
use ashlar_testkit::fork::child;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, Error, ErrorKind, Health, Severity, ShutdownKind};
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

const FORKED: ErrorKind = ErrorKind::Shutdown(ShutdownKind::Forked);

/// In a process of its own: the test program has threads that hold locks at any time.
fn in_a_process(what: &str, dir: &Path) -> String {
    let limited = Limited { addresses: 16 << 30, time: Duration::from_secs(90) };
    limited.run(&format!("fork\t{what}\t{}", dir.to_str().unwrap()))
}

/// What the process `what` does.
pub fn steps(what: &str, dir: &Path) -> String {
    match what {
        "calls" => calls(dir),
        "drops" => drops(dir),
        "own" => own(dir),
        _ => panic!("no such steps: {what}"),
    }
}

fn opened(dir: &Path) -> Db {
    let db = Db::open(dir).unwrap();
    for i in 0..100 {
        db.put(format!("before{i:03}"), vec![1; 200]).unwrap();
    }
    db.flush().unwrap();
    db.put("before100", "in the log").unwrap();
    db
}

/// The parent goes on and closes; returns what another open finds.
fn go_on(db: Db, dir: &Path) -> String {
    for i in 0..50 {
        db.writing(WriteOptions::synced()).put(format!("behind{i:03}"), "1").unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    for i in 50..100 {
        db.writing(WriteOptions::synced()).put(format!("behind{i:03}"), "1").unwrap();
    }
    let locked = child(|| kind(Db::open(dir)));
    assert_eq!(locked.unwrap(), format!("{:?}", ErrorKind::Busy(BusyKind::Locked)));
    db.close().unwrap();
    let db = Db::open(dir).unwrap();
    let count = |prefix: &str| db.prefix(prefix).map(|entry| entry.map(drop)).filter(Result::is_ok).count();
    let found = format!("{} {} {}", count("before"), count("behind"), count("child"));
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    db.close().unwrap();
    found
}

fn kind<T: Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(e) => format!("{:?}", e.kind()),
    }
}

/// The child calls what there is.
fn calls(dir: &Path) -> String {
    let db = opened(dir);
    let family = db.create_family("family").unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut cursor = db.scan(..).cursor().unwrap();
    cursor.next().unwrap();
    let mut tailing = db.scan(..).tailing().unwrap();
    tailing.next().unwrap();
    let mut scan = db.scan(..);
    scan.next().unwrap().unwrap();
    let (t, indexed) = (db.begin().unwrap(), db.indexed_batch());
    t.put("before000", "locked").unwrap();
    let prepared = db.begin().unwrap();
    prepared.set_name("prepared").unwrap();
    prepared.prepare().unwrap();
    indexed.put("child", "1").unwrap();
    let mut changed = t.scan(..).cursor().unwrap();
    let said = child(|| {
        let mut wrong = Vec::new();
        let mut look = |call: &str, answer: String| {
            if answer != format!("{FORKED:?}") {
                wrong.push(format!("{call}: {answer}"));
            }
        };
        macro_rules! refused {
            ($($call:expr),* $(,)?) => { $(look(stringify!($call), kind($call));)* };
        }
        let batch = WriteBatch::new();
        batch.put("child", "1").unwrap();
        refused![
            db.put("child", "1"),
            db.delete("before000"),
            db.writing(WriteOptions::synced()).put("child", "1"),
            db.write(batch),
            family.put("child", "1"),
            db.get("before000"),
            family.get("before000"),
            db.multi_get(["before000"]),
            db.key_may_exist("before000"),
            db.explain_get("before000"),
            snapshot.get("before000"),
            snapshot.pins(),
            db.scan(..).cursor().map(drop),
            db.scan(..).next().unwrap(),
            snapshot.scan(..).next().unwrap(),
            scan.next().unwrap(),
            cursor.next(),
            cursor.prev(),
            cursor.first(),
            cursor.last(),
            cursor.seek("before001"),
            cursor.columns(),
            tailing.next(),
            tailing.seek("before001"),
            db.scan(..).tailing().map(drop),
            db.locking(TransactionOptions::new()).put("child", "1"),
            t.get("before000"),
            t.put("child", "1"),
            t.lock_range("child"..),
            t.get_for_update("before001"),
            t.set_savepoint(),
            t.set_name("child"),
            t.prepare(),
            t.commit(),
            t.rollback(),
            prepared.get("before000"),
            prepared.commit(),
            prepared.rollback(),
            db.prepared_transactions().map(drop),
            db.transaction_by_name("prepared").map(drop),
            changed.next(),
            indexed.get("child"),
            indexed.write(),
            db.begin().map(drop),
            db.transaction(|t| t.put("child", "1")),
            db.deadlocks().map(drop),
            db.snapshot().map(drop),
            db.family("family").map(drop),
            db.create_family("child").map(drop),
            db.drop_family(&family),
            db.pins(),
            db.sync(),
            db.flush_wal(true),
            db.flush(),
            family.flush(),
            db.compact(),
            db.verify_db(|_| ()).map(drop),
            db.verify_checksums(|_| ()).map(drop),
            db.set_db_options(&[("max_background_jobs", "4")]),
            family.set_options(&[("write_buffer_size", "1000000")]),
            db.pause_background_work(),
            db.continue_background_work(),
            db.abort_compactions(),
            db.resume_compactions(),
            db.wait_for_background(),
            db.quarantine("000010.sst").map(drop),
            family.live_files().map(drop),
            db.resume(),
            db.close(),
        ];
        let Health { severity, cause, .. } = db.health();
        let cause = cause.map(|cause| cause.kind());
        let told =
            (severity, cause, db.families().len(), db.property("rocksdb.stats"), db.pressure().stopped);
        if told != (Severity::Fatal, Some(FORKED), 0, None, false) {
            wrong.push(format!("{told:?}"));
        }
        wrong.join("\n")
    });
    assert_eq!(said.as_deref(), Ok(""));
    assert!(t.is_active());
    drop((family, snapshot, cursor, tailing, scan, changed, t, indexed));
    go_on(db, dir)
}

#[test]
fn a_child_is_refused_every_call_and_the_parent_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(in_a_process("calls", &dir.path().join("db")), "101 100 0");
}

/// The child drops what it has of the parent's, each in turn.
fn drops(dir: &Path) -> String {
    let db = opened(dir);
    let family = db.create_family("family").unwrap();
    let gone = db.create_family("gone").unwrap();
    gone.put("k", "v").unwrap();
    db.drop_family(&gone).unwrap();
    let snapshot = db.snapshot().unwrap();
    let mut cursor = db.scan(..).cursor().unwrap();
    cursor.next().unwrap();
    let view = db.get("before000").unwrap();
    let statistics = std::sync::Arc::clone(db.statistics());
    db.writing(WriteOptions::new().disable_wal(true)).put("before101", "in memory alone").unwrap();
    let (t, indexed) = (db.begin().unwrap(), db.indexed_batch());
    t.put("child", "locked").unwrap();
    indexed.put("child", "1").unwrap();
    let prepared = db.begin().unwrap();
    prepared.set_name("prepared").unwrap();
    prepared.prepare().unwrap();
    let mut held = Some((snapshot, cursor, view, family, gone, statistics, t, prepared, indexed, db));
    let said = child(|| {
        drop(held.take());
        // The parent has it open, and reading beside it is fine.
        let reader = Db::open_read_only(dir).unwrap();
        let found = kind(reader.get("before100").map(|value| value.is_some()));
        reader.close().unwrap();
        format!("{} {found}", kind(Db::open(dir)))
    });
    assert_eq!(said, Ok(format!("{:?} true", ErrorKind::Busy(BusyKind::Locked))));
    let (.., db) = held.unwrap();
    assert!(db.get("before101").unwrap().is_some());
    go_on(db, dir)
}

#[test]
fn a_child_that_drops_its_copy_of_a_handle_ends_and_leaves_lock_and_files_to_the_parent() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(in_a_process("drops", &dir.path().join("db")), "102 100 0");
}

/// The child opens databases of its own, that of the parent too once the parent has closed it.
fn own(dir: &Path) -> String {
    let mut db = Some(opened(dir));
    let beside = dir.with_extension("beside");
    let said = child(|| {
        let own = Db::open(&beside).unwrap();
        own.put("k", "v").unwrap();
        own.flush().unwrap();
        drop(db.take());
        own.compact().unwrap();
        own.close().unwrap();
        kind(Db::open(&beside).unwrap().get("k").map(|value| value.is_some()))
    });
    assert_eq!(said.as_deref(), Ok("true"));
    let held = db.take().unwrap();
    held.close().unwrap();
    let said = child(|| {
        let own = Db::open(dir).unwrap();
        own.put("before101", "").unwrap();
        drop(held);
        // What the parent's handle was must not have given this one's lock away.
        let twice = child(|| kind(Db::open(dir)));
        own.close().unwrap();
        twice.unwrap()
    });
    assert_eq!(said, Ok(format!("{:?}", ErrorKind::Busy(BusyKind::Locked))));
    go_on(Db::open(dir).unwrap(), dir)
}

#[test]
fn a_child_may_open_databases_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(in_a_process("own", &dir.path().join("db")), "102 100 0");
}

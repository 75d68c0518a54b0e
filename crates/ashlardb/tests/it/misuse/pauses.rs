//! Requests that need background work while none is done, and a writer that waits for it.

use super::kind;
use ashlar_testkit::within;
use ashlardb::{
    BusyKind, CompactRangeOptions, Db, ErrorKind, FileNumber, Level, Read as _, Write as _, WriteOptions,
};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

const SECONDS: u64 = 30;
const ABORTED: Option<ErrorKind> = Some(ErrorKind::Aborted);

fn opened() -> (TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let text = "write_buffer_size=65536;max_write_buffer_number=2;level0_file_num_compaction_trigger=2;\
                level0_slowdown_writes_trigger=4;level0_stop_writes_trigger=4";
    let db = Db::builder(dir.path()).options(text).open().unwrap();
    (dir, db)
}

/// Writes until a write would wait, and not for a flush that is under way. Returns how many keys there are.
fn fill(db: &Db) -> usize {
    let impatient = db.writing(WriteOptions::new().no_slowdown(true));
    let (mut keys, mut refused) = (0, 0);
    while refused < 50 {
        if impatient.put(format!("k{keys:04}"), [7; 4096]).is_ok() {
            (keys, refused) = (keys + 1, 0);
        } else {
            refused += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    keys
}

/// A writer that waits for background work, and leads the others meanwhile.
fn waiting_writer(db: &Db) -> JoinHandle<ashlardb::Result<()>> {
    let db = db.clone();
    let writer = std::thread::spawn(move || db.put("waits", [7; 4096]));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!writer.is_finished(), "the memtables are full");
    writer
}

fn requests(db: &Db) -> Vec<(&'static str, Option<ErrorKind>)> {
    let family = db.default_family();
    vec![
        ("flush", kind(db.flush())),
        ("flush of a family", kind(family.flush())),
        ("compact", kind(db.compact())),
        ("compact_range", kind(family.compact_range(.., CompactRangeOptions::default()))),
        ("compact_files", kind(family.compact_files(&[FileNumber(1)], Level(1)))),
        ("create_family", kind(db.create_family("new"))),
        ("wait_for_background", kind(db.wait_for_background())),
    ]
}

/// They waited for the writer, which waited for a flush that the pause forbade.
#[test]
fn requests_while_a_writer_waits_for_paused_work_are_aborted() {
    let (dir, db) = opened();
    db.create_family("old").unwrap();
    db.pause_background_work().unwrap();
    let keys = fill(&db);
    assert!(keys > 10);
    let writer = waiting_writer(&db);
    for (what, answer) in within(SECONDS, "the requests", {
        let db = db.clone();
        move || requests(&db)
    }) {
        assert!(answer == ABORTED || what == "compact_files" && answer.is_some(), "{what}: {answer:?}");
    }
    let dropping = {
        let db = db.clone();
        move || kind(db.drop_family(&db.family("old").unwrap()))
    };
    assert_eq!(within(SECONDS, "drop_family", dropping), ABORTED);
    assert!(!writer.is_finished());
    db.continue_background_work().unwrap();
    within(SECONDS, "the writer", move || writer.join().unwrap()).unwrap();
    within(SECONDS, "afterwards", {
        let db = db.clone();
        move || {
            db.flush()?;
            db.compact()?;
            db.wait_for_background()
        }
    })
    .unwrap();
    assert_eq!(db.scan(..).count(), keys + 1);
    drop((db, dir));
}

#[test]
fn a_flush_behind_a_writer_that_aborted_compactions_hold_up_is_aborted() {
    let (_dir, db) = opened();
    db.abort_compactions().unwrap();
    let keys = fill(&db);
    let writer = waiting_writer(&db);
    // Level 0 is full, and no compaction may empty it: the flush must not wait for the writer either.
    let flush = {
        let db = db.clone();
        move || kind(db.flush())
    };
    assert_eq!(within(SECONDS, "a flush", flush), ABORTED);
    db.resume_compactions().unwrap();
    within(SECONDS, "the writer", move || writer.join().unwrap()).unwrap();
    assert_eq!(db.scan(..).count(), keys + 1);
}

#[test]
fn without_due_work_a_pause_lets_callers_go() {
    let (_dir, db) = opened();
    db.put("k", "v").unwrap();
    db.pause_background_work().unwrap();
    within(SECONDS, "the wait", {
        let db = db.clone();
        move || db.wait_for_background()
    })
    .unwrap();
    within(SECONDS, "a family", {
        let db = db.clone();
        move || db.create_family("f").map(drop)
    })
    .unwrap();
    assert_eq!(
        kind(within(SECONDS, "a flush", {
            let db = db.clone();
            move || db.flush()
        })),
        ABORTED
    );
    db.continue_background_work().unwrap();
    db.flush().unwrap();
}

#[test]
fn a_close_ends_a_writer_that_waits_for_work_that_is_not_done() {
    for paused in [true, false] {
        let (dir, db) = opened();
        if paused { db.pause_background_work() } else { db.abort_compactions() }.unwrap();
        let keys = fill(&db);
        let writer = waiting_writer(&db);
        within(SECONDS, "close", {
            let db = db.clone();
            move || db.close()
        })
        .unwrap();
        let written = within(SECONDS, "the writer", move || writer.join().unwrap()).is_ok();
        drop(db);
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(db.scan(..).count(), keys + usize::from(written));
    }
}

/// Tells when a close has begun to flush, and holds the flush up for a moment.
#[derive(Debug, Default)]
struct Sealed(std::sync::atomic::AtomicBool);

impl ashlardb::EventListener for Sealed {
    fn on_event(&self, event: &ashlardb::Event) {
        if matches!(event, ashlardb::Event::MemtableSealed { .. }) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// The pause kept the close from flushing, and all writes without a log were lost.
#[test]
fn a_pause_during_a_close_is_refused_and_the_close_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sealed = std::sync::Arc::new(Sealed::default());
    let db = Db::builder(dir.path()).listener(sealed.clone()).open().unwrap();
    for n in 0..1000_u32 {
        db.writing(WriteOptions::new().disable_wal(true)).put(n.to_be_bytes(), "v").unwrap();
    }
    let other = db.clone();
    let pausing = std::thread::spawn(move || {
        while !sealed.0.load(std::sync::atomic::Ordering::SeqCst) {
            std::thread::yield_now();
        }
        other.pause_background_work()
    });
    within(SECONDS, "close", move || db.close()).unwrap();
    assert!(matches!(kind(pausing.join().unwrap()), Some(ErrorKind::Shutdown(_))));
    assert_eq!(Db::open(dir.path()).unwrap().scan(..).count(), 1000);
}

/// Those that were in the queue when the leader began to wait, waited with it. The stop was visible nowhere.
#[test]
fn queued_writers_that_must_not_wait_are_refused_while_the_leader_waits() {
    let (_dir, db) = opened();
    db.pause_background_work().unwrap();
    let transactions: Vec<_> = (0..3)
        .map(|n: u8| {
            let db = db.clone();
            std::thread::spawn(move || {
                (0..100).try_for_each(|key: u8| db.transaction(|t| t.put([n, key], [7; 2048])))
            })
        })
        .collect();
    let hurried: Vec<_> = (0..4)
        .map(|n: u8| {
            let db = db.clone();
            std::thread::spawn(move || {
                let (hurried, mut refused) = (db.writing(WriteOptions::new().no_slowdown(true)), 0);
                while refused < 300 {
                    match hurried.put([9, n], "v") {
                        Ok(()) => {}
                        Err(e) if e.kind() == ErrorKind::Busy(BusyKind::Stalled) => refused += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
            })
        })
        .collect();
    within(SECONDS, "the writers that must not wait", || {
        hurried.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert!(transactions.iter().all(|writer| !writer.is_finished()), "the memtables are full");
    assert!(db.pressure().stopped);
    assert_eq!(db.property("rocksdb.is-write-stopped").unwrap(), "1");
    db.continue_background_work().unwrap();
    within(SECONDS, "the transactions", || {
        transactions.into_iter().for_each(|writer| writer.join().unwrap().unwrap());
    });
    db.wait_for_background().unwrap();
    assert!(!db.pressure().stopped);
    assert_eq!(db.scan([0]..[9]).count(), 300);
}

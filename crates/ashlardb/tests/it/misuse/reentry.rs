//! Callbacks that call their own database, close it, or end its last handle.

use super::callbacks::{Callback, Trap, trapped};
use super::kind;
use crate::store::listing;
use ashlar_testkit::within;
use ashlardb::{
    CompactRangeOptions, Db, ErrorKind, FileNumber, IngestOptions, Level, Read as _, Write as _, WriteBatch,
    WriteOptions,
};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SECONDS: u64 = 30;
const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);

const CALLBACKS: [Callback; 7] = [
    Callback::Comparator,
    Callback::MergeOperator,
    Callback::CompactionFilter,
    Callback::Listener("memtable_sealed"),
    Callback::Listener("flush_started"),
    Callback::Listener("flush_finished"),
    Callback::Listener("table_file_creation"),
];

/// A database with a key that springs the trap when it is written, flushed or compacted again.
fn opened(callback: Callback) -> (TempDir, Arc<Trap>, Db) {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let db = trapped(dir.path(), callback, &trap).open().unwrap();
    db.create_family("f").unwrap();
    db.put("trap", "0").unwrap();
    if callback == Callback::MergeOperator {
        db.merge("trap", "1").unwrap();
    }
    (dir, trap, db)
}

/// Lets the callback be called: inside the leader of a write, or inside a job.
fn spring(callback: Callback, db: &Db) -> ashlardb::Result<()> {
    match callback {
        Callback::Comparator => db.put("trap2", "v"),
        Callback::CompactionFilter => db.compact(),
        _ => db.flush(),
    }
}

type Answers = Vec<(&'static str, Option<ErrorKind>)>;

/// Every call that changes something or waits.
fn calls(db: &Db) -> Answers {
    let family = db.default_family();
    vec![
        ("put", kind(db.put("k", "v"))),
        ("delete", kind(db.delete("k"))),
        ("put of a family", kind(family.put("k", "v"))),
        ("sync", kind(db.sync())),
        ("flush_wal", kind(db.flush_wal(true))),
        ("flush", kind(db.flush())),
        ("flush of a family", kind(family.flush())),
        ("compact", kind(db.compact())),
        ("compact_range", kind(family.compact_range(.., CompactRangeOptions::default()))),
        ("ingest", kind(db.ingest(&["file.sst"], IngestOptions::new()))),
        ("compact_files", kind(family.compact_files(&[FileNumber(1)], Level(1)))),
        ("delete_files_in_ranges", kind(family.delete_files_in_ranges(&[..]))),
        ("create_family", kind(db.create_family("new"))),
        ("drop_family", kind(db.family("f").and_then(|f| db.drop_family(&f)))),
        ("wait_for_background", kind(db.wait_for_background())),
        ("pause_background_work", kind(db.pause_background_work())),
        ("abort_compactions", kind(db.abort_compactions())),
        ("resume", kind(db.resume())),
        ("quarantine", kind(db.quarantine("000001.sst"))),
        ("set_options", kind(family.set_options(&[("write_buffer_size", "1000000")]))),
        ("set_db_options", kind(db.set_db_options(&[("max_open_files", "100")]))),
        ("close", kind(db.close())),
    ]
}

fn sent(trap: &Trap) -> Receiver<Answers> {
    let (send, answers) = channel();
    let send = Mutex::new(send);
    trap.once(move |db| {
        let db = db.unwrap();
        let answers = calls(db);
        // Reads are welcome.
        assert!(db.get("trap").is_ok() && db.snapshot().is_ok());
        send.lock().unwrap().send(answers).unwrap();
    });
    answers
}

/// Each of them waited for the thread that called it.
#[test]
fn calls_that_change_or_wait_are_refused_inside_a_callback() {
    for callback in CALLBACKS {
        let (dir, trap, db) = opened(callback);
        trap.holds(Some(db.clone()));
        let answers = sent(&trap);
        let what = format!("{callback:?}");
        within(SECONDS, &what, {
            let db = db.clone();
            move || spring(callback, &db)
        })
        .unwrap();
        for (call, answer) in answers.recv_timeout(Duration::from_secs(SECONDS)).unwrap() {
            assert_eq!(answer, INVALID, "{call} inside {callback:?}");
        }
        trap.holds(None);
        within(SECONDS, &what, move || {
            db.put("later", "v")?;
            db.flush()?;
            db.drop_family(&db.family("f")?)?;
            db.close()
        })
        .unwrap();
        let db = trapped(dir.path(), callback, &Arc::default()).open().unwrap();
        assert!(db.get("later").unwrap().is_some(), "{callback:?}");
    }
}

/// The write held the state while it compared the ends.
#[test]
fn calls_are_refused_inside_the_comparator_of_a_range_deletion() {
    let (dir, trap, db) = opened(Callback::Comparator);
    trap.holds(Some(db.clone()));
    let answers = sent(&trap);
    within(SECONDS, "a range deletion", {
        let db = db.clone();
        move || db.delete_range("trap", "trap5")
    })
    .unwrap();
    for (call, answer) in answers.recv_timeout(Duration::from_secs(SECONDS)).unwrap() {
        assert_eq!(answer, INVALID, "{call}");
    }
    trap.holds(None);
    within(SECONDS, "a close", move || db.close()).unwrap();
    let db = trapped(dir.path(), Callback::Comparator, &Arc::default()).open().unwrap();
    assert_eq!(db.get("trap").unwrap(), None);
}

thread_local! {
    static BATCH: WriteBatch = WriteBatch::new();
}

/// They panicked: the batch was borrowed.
#[test]
fn a_batch_that_is_being_written_answers_a_callback_and_is_written_whole() {
    let callback = Callback::Listener("memtable_sealed");
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let db = trapped(dir.path(), callback, &trap).default_family(|f| f.write_buffer(65536)).open().unwrap();
    let (send, answers) = channel();
    let send = Mutex::new(send);
    trap.once(move |_| {
        let answer = BATCH.with(|batch| {
            batch.clear();
            let refused = kind(batch.put("k", "v"));
            (
                batch.len(),
                batch.byte_len(),
                batch.is_empty(),
                batch.clone().len(),
                refused,
                format!("{batch:?}"),
            )
        });
        send.lock().unwrap().send(answer).unwrap();
    });
    BATCH.with(|batch| {
        let mut written = 0;
        while !trap.is_sprung() {
            for _ in 0..3 {
                batch.put(format!("{written:05}"), [1; 1000]).unwrap();
                written += 1;
            }
            let bytes = batch.byte_len();
            db.write(batch).unwrap();
            assert!(batch.is_empty() && batch.byte_len() < bytes);
            if let Ok((len, in_write, empty, cloned, refused, _)) = answers.try_recv() {
                assert_eq!((len, in_write, empty, cloned, refused), (3, bytes, false, 0, INVALID));
            }
        }
        assert_eq!(listing(db.scan(..)).len(), written);
    });
}

/// A read holds nothing that a call waits for.
#[test]
fn calls_inside_a_callback_of_a_read_are_served() {
    for callback in [Callback::Comparator, Callback::MergeOperator] {
        let (_dir, trap, db) = opened(callback);
        trap.holds(Some(db.clone()));
        let (send, answers) = channel();
        let send = Mutex::new(send);
        trap.once(move |db| {
            let db = db.unwrap();
            let answers = (db.put("a", "v"), db.flush(), db.compact(), db.create_family("new").map(drop));
            send.lock().unwrap().send(answers).unwrap();
        });
        let reader = db.clone();
        within(SECONDS, "a get", move || reader.get("trap")).unwrap();
        let (put, flush, compact, create) = answers.recv_timeout(Duration::from_secs(SECONDS)).unwrap();
        assert!(put.is_ok() && flush.is_ok() && compact.is_ok() && create.is_ok(), "{callback:?}");
        trap.holds(None);
        within(SECONDS, "a close", move || db.close()).unwrap();
    }
}

/// Waits until the directory can be opened: the LOCK is free.
fn reopened(dir: &Path, callback: Callback) -> Db {
    let end = Instant::now() + Duration::from_secs(SECONDS);
    loop {
        match trapped(dir, callback, &Arc::default()).open() {
            Err(e) if matches!(e.kind(), ErrorKind::Busy(_)) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => return opened.unwrap(),
        }
    }
}

/// The job waited for its own end, with the LOCK in its hand.
#[test]
fn the_last_handle_may_end_inside_a_callback_of_a_job() {
    for callback in [
        Callback::MergeOperator,
        Callback::Listener("flush_started"),
        Callback::Listener("flush_finished"),
        Callback::Listener("table_file_creation"),
    ] {
        let (dir, trap, db) = opened(callback);
        for n in 0..100 {
            db.put(format!("k{n}"), "v").unwrap();
        }
        // The handle that flushes ends before the job begins: the job waits for the pause.
        let (go, wait) = channel::<()>();
        let handle = Mutex::new(Some(db.clone()));
        trap.once(move |_| {
            wait.recv_timeout(Duration::from_secs(SECONDS)).unwrap();
            drop(handle.lock().unwrap().take());
        });
        let flushing = std::thread::spawn({
            let engine_only = db.clone();
            move || {
                let _ = engine_only.flush();
            }
        });
        drop(db);
        // The flush holds a handle until it returns: the callback goes first or last, and either must do.
        go.send(()).unwrap();
        let what = format!("{callback:?}");
        within(SECONDS, &what, move || flushing.join().unwrap());
        let path = dir.path().to_path_buf();
        let db = within(SECONDS + 5, &what, move || reopened(&path, callback));
        assert_eq!(listing(db.scan(..)).len(), 101, "{what}");
    }
}

/// A memtable that fills is flushed though no call waits for it: the job's callback has the last handle for certain.
#[test]
fn the_last_handle_of_all_ends_inside_a_listener() {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let callback = Callback::Listener("flush_finished");
    let db = trapped(dir.path(), callback, &trap).default_family(|f| f.write_buffer(65536)).open().unwrap();
    let ((inside, entered), (go, wait)) = (channel::<()>(), channel::<()>());
    let handle = Mutex::new(Some(db.clone()));
    trap.once(move |_| {
        inside.send(()).unwrap();
        wait.recv_timeout(Duration::from_secs(SECONDS)).unwrap();
        drop(handle.lock().unwrap().take());
    });
    let mut keys = 0;
    let impatient = db.writing(WriteOptions::new().no_slowdown(true));
    while entered.try_recv().is_err() {
        // The job that could make room waits inside the listener.
        match impatient.put(format!("k{keys:05}"), [7; 1000]) {
            Ok(()) => keys += 1,
            Err(e) => assert!(matches!(e.kind(), ErrorKind::Busy(_)), "{e}"),
        }
    }
    drop(db);
    go.send(()).unwrap();
    let path = dir.path().to_path_buf();
    let db = within(SECONDS + 5, "an open", move || reopened(&path, callback));
    assert_eq!(listing(db.scan(..)).len(), keys);
}

/// On a thread of the user nothing waits for the read, so the close goes on below it.
#[test]
fn a_close_inside_the_merge_operator_of_a_read_returns() {
    let (_dir, trap, db) = opened(Callback::MergeOperator);
    trap.holds(Some(db.clone()));
    trap.once(|db| drop(db.unwrap().close()));
    let answer = within(SECONDS, "a get", {
        let db = db.clone();
        move || db.get("trap").map(drop)
    });
    assert!(answer.is_ok() || answer.unwrap_err().kind() != ErrorKind::Corruption);
    trap.holds(None);
    within(SECONDS, "close", move || db.close()).unwrap();
}

/// One executor serves both: the job of one database must not wait for a job of the other.
#[test]
fn a_listener_must_not_wait_for_another_database_of_the_same_executor() {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let env = ashlardb::Env::os().unwrap();
    let callback = Callback::Listener("flush_finished");
    let open = |name: &str, trap: &Arc<Trap>| {
        trapped(&dir.path().join(name), callback, trap).env(env.clone()).open().unwrap()
    };
    let (a, b) = (open("a", &trap), open("b", &Arc::default()));
    b.put("k", "v").unwrap();
    trap.holds(Some(b.clone()));
    let (send, answer) = channel();
    trap.once(move |b| send.send(kind(b.unwrap().flush())).unwrap());
    a.put("k", "v").unwrap();
    within(SECONDS, "a flush", {
        let a = a.clone();
        move || a.flush()
    })
    .unwrap();
    assert_eq!(answer.recv_timeout(Duration::from_secs(SECONDS)), Ok(INVALID));
    // On a thread of its own it is a call like every other.
    b.flush().unwrap();
    trap.holds(None);
    drop((a, b));
}

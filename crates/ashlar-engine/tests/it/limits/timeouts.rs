//! `WriteOptions::timeout`: how long a write waits for background work, alone, behind other writers, and in transactions.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_env::{Clock, Env};
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, Event, EventListener, FamilyOptions, WriteOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const DIR: &str = "/data/db";
const DEFAULT: &str = "default";

/// Two write buffers of 64 KiB.
fn family() -> FamilyOptions {
    let mut family =
        FamilyOptions { write_buffer_bytes: 64 << 10, max_write_buffers: 2, ..FamilyOptions::default() };
    family.table.compression = Compression::None;
    family
}

fn open(env: Env, options: DbOptions, family: FamilyOptions) -> Db {
    let default = OpenFamily { name: DEFAULT.to_owned(), options: family.clone() };
    Db::open(env, Path::new(DIR), options, vec![default], family).expect("opens")
}

fn batch(key: u64, bytes: usize) -> WriteBatch {
    let mut batch = WriteBatch::new();
    let key = format!("{key:08}");
    batch.put(ashlar_base::FamilyId::DEFAULT, key.as_bytes(), &vec![7; bytes]).expect("small");
    batch
}

fn put(db: &Db, key: u64, bytes: usize, options: WriteOptions) -> Result<()> {
    db.write(&mut batch(key, bytes), options).map(drop)
}

fn within(longest: Duration) -> WriteOptions {
    WriteOptions { timeout: Some(longest), ..WriteOptions::default() }
}

/// A database whose flushes take more than half a second, with all memtables full.
fn stopped(sim: &SimEnv) -> Db {
    let db = open(sim.env(), DbOptions { rate_limit_bytes: 100_000, ..DbOptions::default() }, family());
    let hurried = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    let refused = (0..400).find_map(|key| put(&db, key, 1000, hurried).err()).expect("two buffers fill");
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Stalled));
    db
}

#[test]
fn a_write_waits_no_longer_than_its_timeout() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(7);
    // A flush of a memtable takes more than half a second.
    let db = open(sim.env(), DbOptions { rate_limit_bytes: 100_000, ..DbOptions::default() }, family());
    let now = || sim.clock().now();
    let mut key = 0;
    let short = Duration::from_millis(50);
    let refused = loop {
        let before = now();
        key += 1;
        match put(&db, key, 1000, within(short)) {
            Ok(()) => assert!(now() - before <= short, "key {key} took {:?}", now() - before),
            Err(e) => {
                assert!(now() - before <= short, "{:?}", now() - before);
                break e;
            }
        }
        assert!(key < 10_000, "no memtable was ever full");
    };
    assert_eq!(refused.kind(), ErrorKind::TimedOut, "{refused}");
    assert!(
        refused.to_string().contains("would have waited longer than 50ms for background work"),
        "{refused}"
    );
    let none = db.get(
        &db.family(DEFAULT).expect("there"),
        format!("{key:08}").as_bytes(),
        ashlar_options::ReadOptions::default(),
    );
    assert!(none.expect("reads").is_none(), "nothing was written");
    assert_eq!(put(&db, key, 10, within(Duration::ZERO)).expect_err("no time").kind(), ErrorKind::TimedOut);
    put(&db, key, 1000, within(Duration::from_secs(60))).expect("there is time");
    db.wait_for_background().expect("caught up");
    put(&db, key + 1, 1000, within(Duration::ZERO)).expect("there is room");
}

#[test]
fn no_slowdown_never_waits_for_the_timeout() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(8);
    let db = stopped(&sim);
    let before = sim.clock().now();
    let hurried = WriteOptions { no_slowdown: true, ..within(Duration::from_secs(60)) };
    let refused = put(&db, 1000, 1000, hurried).expect_err("it would wait");
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Stalled));
    assert_eq!(sim.clock().now(), before, "it waited");
}

/// A write that can never succeed is refused at once, also while writers are stopped.
#[test]
fn a_wrong_write_is_refused_before_it_waits() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(9);
    let db = stopped(&sim);
    let before = sim.clock().now();
    let odd = WriteOptions { sync: true, disable_wal: true, ..within(Duration::from_secs(1)) };
    assert_eq!(put(&db, 1000, 1000, odd).expect_err("refused").kind(), ErrorKind::InvalidArgument);
    assert_eq!(sim.clock().now(), before, "it waited");
    let mut checked = 0;
    let refused = db.write_checked(&mut batch(1000, 1000), within(Duration::from_millis(10)), &mut || {
        checked += 1;
        Err(Error::invalid("the check"))
    });
    assert_eq!((refused.expect_err("refused").message(), checked), ("the check", 1));
    assert_eq!(sim.clock().now(), before, "it waited");
}

/// The wait counts as a stop, and is part of the write's time.
#[test]
fn the_wait_is_counted() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(10);
    let db = stopped(&sim);
    let family = db.family(DEFAULT).expect("always there");
    let total = || {
        let counts = db.property_map(&family, "rocksdb.cf-write-stall-stats").expect("a map");
        counts["total-stops"].parse::<u64>().expect("a number")
    };
    let short = within(Duration::from_millis(50));
    let refusals = (0..10_000).map(|key| (total(), put(&db, key, 1000, short).err()));
    // The first flushes end within the time: the rate lets them pass.
    let (before, refused) = refusals.into_iter().find(|(_, e)| e.is_some()).expect("flushes take longer");
    assert_eq!((refused.map(|e| e.kind()), total()), (Some(ErrorKind::TimedOut), before + 1));
    let refused = put(&db, 1000, 1000, within(Duration::ZERO)).expect_err("full");
    assert_eq!((refused.kind(), total()), (ErrorKind::TimedOut, before + 1), "it did not wait");
}

/// Three tables in level 0, which slow writers. Compactions are aborted.
fn slowed(env: Env) -> Db {
    let mut shape = FamilyOptions { write_buffer_bytes: 64 << 20, ..family() };
    let c = &mut shape.compaction;
    (c.l0_trigger, c.l0_slowdown, c.l0_stop) = (2, 2, 4);
    let db = open(env, DbOptions::default(), shape);
    db.abort_compactions().expect("none begins");
    let default = db.family(DEFAULT).expect("always there");
    for table in 0..3 {
        put(&db, table, 1000, WriteOptions::default()).expect("a write");
        db.flush(std::slice::from_ref(&default)).expect("a flush");
    }
    assert!(!db.pressure().stopped && db.pressure().delay_per_mebibyte > Duration::ZERO);
    db
}

/// Bytes of a write that is delayed by `delay`.
fn bytes_of(db: &Db, delay: Duration) -> usize {
    let bytes = (delay.as_nanos() << 20) / db.pressure().delay_per_mebibyte.as_nanos();
    assert!((10_000..20_000_000).contains(&bytes), "{bytes}");
    usize::try_from(bytes).expect("small")
}

#[test]
fn a_delay_that_is_too_long_is_refused_at_once() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(11);
    let db = slowed(sim.env());
    let bytes = bytes_of(&db, Duration::from_millis(80));
    let took = |longest, low_priority| {
        let before = sim.clock().now();
        let options = WriteOptions { low_priority, ..within(longest) };
        (put(&db, 1000, bytes, options).map_err(|e| e.kind()), sim.clock().now() - before)
    };
    assert_eq!(took(Duration::from_millis(40), false), (Err(ErrorKind::TimedOut), Duration::ZERO));
    let (written, delay) = took(Duration::from_millis(150), false);
    assert!(written.is_ok() && (70..150).contains(&delay.as_millis()), "{written:?} {delay:?}");
    // A low priority costs another delay, of at most 100 ms, before that one.
    assert_eq!(took(Duration::from_millis(60), true), (Err(ErrorKind::TimedOut), Duration::ZERO));
    let (refused, delay) = took(Duration::from_millis(150), true);
    assert_eq!(refused, Err(ErrorKind::TimedOut));
    assert!((90..=150).contains(&delay.as_millis()), "{delay:?}");
    assert!(took(Duration::from_millis(300), true).0.is_ok());
}

/// Sends a message when a flush begins. The flush then waits until the test drops its end of the second channel.
#[derive(Debug)]
struct Held(Mutex<(Sender<()>, Receiver<()>)>);

impl EventListener for Held {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::FlushBegin(_)) {
            let ends = self.0.lock().expect("no panic");
            // Both ends are gone after a test that failed.
            let _ = ends.0.send(());
            let _ = ends.1.recv();
        }
    }
}

/// A checkpoint flushes what is not logged, and leads the writers meanwhile.
#[test]
fn a_write_behind_the_flush_of_a_copy_has_its_timeout() {
    let _readers = crate::beside_others();
    let ((tell, begun), (hold, release)) = (channel(), channel());
    let mut options = DbOptions::default();
    options.listeners.add(Arc::new(Held(Mutex::new((tell, release)))));
    let db = open(Env::mem(), options, FamilyOptions { write_buffer_bytes: 64 << 20, ..family() });
    put(&db, 1, 1000, WriteOptions { disable_wal: true, ..WriteOptions::default() }).expect("a write");
    thread::scope(|scope| {
        // Dropped also if an assertion fails.
        let hold = hold;
        let copy = scope.spawn(|| db.hold_files("a copy").expect("holds").moment().map(drop));
        begun.recv().expect("the flush begins");
        let hurried = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
        let refused = put(&db, 3, 10, hurried).expect_err("it would wait");
        assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Stalled));
        let refused = put(&db, 4, 10, within(Duration::from_millis(50))).expect_err("it would wait longer");
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        drop::<Sender<()>>(hold);
        copy.join().expect("no panic").expect("the copy's moment");
    });
    put(&db, 5, 10, WriteOptions::default()).expect("the copy is over");
}

/// Ten writers, each of which is delayed in turn.
#[test]
fn a_writer_leaves_the_queue_at_its_deadline() {
    let _readers = crate::beside_others();
    let db = slowed(Env::mem());
    let bytes = bytes_of(&db, Duration::from_millis(90));
    let longest = Duration::from_millis(120);
    let (mut late, mut written) = (Vec::new(), 0);
    thread::scope(|scope| {
        // Writers without a timeout hold the lead for as long, one after the other.
        for key in 90..98 {
            let db = &db;
            scope.spawn(move || put(db, key, bytes, WriteOptions::default()).expect("a write"));
        }
        let writers: Vec<_> = (0..10)
            .map(|key| {
                let db = &db;
                scope.spawn(move || {
                    let mut batch = batch(key, bytes);
                    let before = Instant::now();
                    (db.write(&mut batch, within(longest)), before.elapsed())
                })
            })
            .collect();
        for writer in writers {
            match writer.join().expect("no panic") {
                (Ok(_), _) => written += 1,
                (Err(e), took) => {
                    assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}");
                    late.push(took);
                }
            }
        }
    });
    let longest_wait = late.iter().max().expect("some were late");
    // Without leaving, the last one waits for some 700 ms.
    assert!(*longest_wait < 4 * longest, "{longest_wait:?}, {written} written");
    assert!(late.len() >= 6, "{written} written");
}

/// A plain write, and that of a transaction, wait behind a writer that waits for a flush.
#[test]
fn a_write_behind_a_stopped_writer_has_its_timeout() {
    let _readers = crate::beside_others();
    let db = open(Env::mem(), DbOptions::default(), family());
    db.pause_background_work().expect("pauses");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..400).for_each(|key| put(&db, key, 1000, WriteOptions::default()).expect("a write"));
            over.store(true, Ordering::Relaxed);
        });
        while !db.pressure().stopped {
            thread::sleep(Duration::from_millis(1));
        }
        let short = Duration::from_millis(20);
        let plain = || put(&db, 1000, 1000, within(short));
        let checked = || {
            let mut check = || -> Result<()> { panic!("the lead is not free") };
            db.write_checked(&mut batch(1000, 1000), within(short), &mut check).map(drop)
        };
        let hurried = || {
            let options = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
            db.write_checked(&mut batch(1000, 1000), options, &mut || Ok(())).map(drop)
        };
        let stalled = ErrorKind::Busy(BusyKind::Stalled);
        let writes: [(&dyn Fn() -> Result<()>, _); 3] =
            [(&plain, ErrorKind::TimedOut), (&checked, ErrorKind::TimedOut), (&hurried, stalled)];
        // In a thread of its own: a write that does not end fails the test, and does not stop it.
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                while !ended.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(10) {
                    thread::sleep(Duration::from_millis(5));
                }
                db.continue_background_work().expect("was paused");
            });
            for (write, kind) in writes {
                let before = Instant::now();
                let refused = write();
                assert!(!over.load(Ordering::Relaxed), "it waited for the end of the stop");
                assert_eq!(refused.expect_err("it would wait").kind(), kind);
                assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
            }
            ended.store(true, Ordering::Relaxed);
        });
    });
    put(&db, 1000, 1000, within(Duration::from_secs(60))).expect("the stop is over");
}

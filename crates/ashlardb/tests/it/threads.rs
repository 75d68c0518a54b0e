//! Many threads on one database.

use crate::child::Kind;
use crate::store::{Shape, Store, files, listing};
use ashlar_testkit::report;
use ashlardb::{Db, FormatLevel, Read as _, Write as _, WriteBatch, WriteOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 4;
const KEYS: u64 = 50;

fn key(writer: u64, number: u64) -> Vec<u8> {
    format!("w{writer}-{number:03}").into_bytes()
}

fn count(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Every writer sets all its keys in two families to its next count in one batch.
fn write(db: &Db, writer: u64, published: &AtomicU64, stop: &AtomicBool) -> u64 {
    let (one, mut next) = (db.family("one").unwrap(), 1_u64);
    while !stop.load(Ordering::Relaxed) {
        let mut value = next.to_le_bytes().to_vec();
        value.resize(100, writer as u8);
        let batch = WriteBatch::new();
        for number in 0..KEYS {
            batch.put(key(writer, number), &value).unwrap();
            batch.family(&one).put(key(writer, number), &value).unwrap();
        }
        db.writing(WriteOptions::new().sync(next % 64 == 0)).write(batch).unwrap();
        published.store(next, Ordering::Release);
        next += 1;
    }
    next - 1
}

/// Readers see whole batches only, never an older count than one that was published before they looked, and never less
/// than they saw before.
fn read(db: &Db, published: &[AtomicU64], stop: &AtomicBool) -> u64 {
    let (one, mut looks) = (db.family("one").unwrap(), 0);
    let mut seen = [0_u64; WRITERS as usize];
    while !stop.load(Ordering::Relaxed) {
        for writer in 0..WRITERS {
            let floor = published[writer as usize].load(Ordering::Acquire);
            let got = db.get(key(writer, 7)).unwrap().map_or(0, |v| count(&v));
            let snapshot = db.snapshot().unwrap();
            let prefix = format!("w{writer}-");
            let a = listing(snapshot.prefix(&prefix));
            let b = listing(snapshot.family(&one).prefix(&prefix).rev());
            let counts: Vec<u64> = a.iter().chain(&b).map(|(_, v)| count(v)).collect();
            let now = counts.first().copied().unwrap_or(0);
            assert!(counts.iter().all(|&c| c == now), "half a batch: {counts:?}");
            assert!(counts.is_empty() || counts.len() as u64 == 2 * KEYS, "{} entries", counts.len());
            assert!(got >= floor && now >= got && now >= seen[writer as usize], "{floor} {got} {now}");
            seen[writer as usize] = now;
            looks += 1;
        }
    }
    looks
}

#[test]
fn readers_see_whole_batches_that_only_grow() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape::small(FormatLevel::default());
    let db = shape.builder(dir.path()).open().unwrap();
    let stop = AtomicBool::new(false);
    let published: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let (written, looks) = std::thread::scope(|scope| {
        let (db, stop, published) = (&db, &stop, &published);
        let writers: Vec<_> =
            (0..WRITERS).map(|w| scope.spawn(move || write(db, w, &published[w as usize], stop))).collect();
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(move || read(db, published, stop))).collect();
        let end = Instant::now() + Duration::from_secs(report::scale(3, 20) as u64);
        while Instant::now() < end && !writers.iter().any(|w| w.is_finished()) {
            std::thread::sleep(Duration::from_millis(300));
            db.flush().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let written: Vec<u64> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        (written, readers.into_iter().map(|r| r.join().unwrap()).sum::<u64>())
    });
    db.close().unwrap();
    drop(db);
    let db = shape.builder(dir.path()).open().unwrap();
    for (writer, last) in (0..WRITERS).zip(&written) {
        let entries = listing(db.scan(..).prefix(format!("w{writer}-")));
        assert!(entries.len() as u64 == KEYS && entries.iter().all(|(_, v)| count(v) == *last));
    }
    let batches: u64 = written.iter().sum();
    assert!(batches > 50 && looks > 50, "{batches} batches, {looks} looks");
    report::figure(&format!(
        "threads: {batches} batches by 4 writers, {looks} looks by 4 readers, 0 violations"
    ));
}

#[test]
fn closing_among_busy_threads_loses_nothing_acknowledged() {
    let mut all = 0;
    for round in 0..report::scale(10, 60) {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape::small(FormatLevel::default());
        let db = shape.builder(dir.path()).open().unwrap();
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|w| {
                    let db = db.clone();
                    scope.spawn(move || {
                        let mut done = 0_u64;
                        while db.put(key(w, done), done.to_le_bytes()).is_ok() {
                            done += 1;
                        }
                        done
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(5 + 7 * round as u64));
            db.close().unwrap();
            // The directory is free the moment `close` returns: nothing may be written to it any more.
            let again = shape.builder(dir.path()).open().unwrap();
            let found = (0..WRITERS).map(|w| listing(again.scan(..).prefix(format!("w{w}-"))).len() as u64);
            let found: Vec<u64> = found.collect();
            let done: Vec<u64> = writers.into_iter().map(|w| w.join().unwrap()).collect();
            for (f, d) in found.iter().zip(&done) {
                // A write that was refused may be in; one that was acknowledged is.
                assert!(f >= d && *f <= d + 1, "{found:?} found, {done:?} acknowledged");
            }
            done
        });
        all += acknowledged.iter().sum::<u64>();
    }
    // In one round the close may come before any write does.
    assert!(all > 100, "{all} writes acknowledged");
}

#[test]
fn nothing_changes_in_a_directory_after_its_close() {
    for round in 0..report::scale(6, 100) as u64 {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), Shape::small(FormatLevel::default()));
        // Enough that flushes and compactions are under way; more or less of them in every round.
        Kind::Random.ops(round).take(4000 + 400 * round as usize % 4000).for_each(|op| store.apply(&op));
        store.close();
        let at_close = files(dir.path());
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(at_close, files(dir.path()), "round {round}");
    }
}

//! Transactions of both kinds: no update is lost, no state is seen that no order of the transactions explains, locks wait,
//! time out and are released, and a commit is whole after a kill.

use crate::indexed::{compare, open as open_families, operate};
use crate::store::listing;
use ashlar_testkit::Rng;
use ashlardb::prelude::*;
use ashlardb::{
    BusyKind, ErrorKind, IngestOptions, Read, ReadOptions, Reader, Result, SstWriter, UInt64Add, Write,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::scope;
use std::time::Duration;
use tempfile::TempDir;

pub const CONFLICT: ErrorKind = ErrorKind::Busy(BusyKind::Conflict);

pub fn fresh() -> (TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    (dir, db)
}

pub fn kinds() -> [TransactionOptions; 2] {
    [TransactionOptions::new(), TransactionOptions::optimistic()]
}

pub fn kind<T>(answer: Result<T>) -> ErrorKind {
    answer.err().expect("an error").kind()
}

pub fn number(value: Option<impl AsRef<[u8]>>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(value.as_ref()).unwrap().parse().unwrap())
}

/// Threads move money between accounts; the sum stays, in every snapshot, while tables are flushed and compacted.
#[test]
fn a_bank_keeps_its_sum_under_both_kinds() {
    const ACCOUNTS: usize = 8;
    for options in kinds() {
        let (dir, db) = fresh();
        let account = |n: usize| format!("account/{n}");
        (0..ACCOUNTS).for_each(|n| db.put(account(n), "100").unwrap());
        let options = options.attempts(1000);
        let moved = AtomicUsize::new(0);
        scope(|scope| {
            for thread in 0..3 {
                let (db, moved) = (&db, &moved);
                scope.spawn(move || {
                    let mut rng = Rng::new(thread);
                    for _ in 0..120 {
                        let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
                        if from == to {
                            continue;
                        }
                        let amount = rng.below(30) as u64;
                        let done = db.transaction_with(options, |t| {
                            let (a, b) = (
                                number(t.get_for_update(account(from))?),
                                number(t.get_for_update(account(to))?),
                            );
                            if a < amount {
                                return Ok(false);
                            }
                            t.put(account(from), (a - amount).to_string())?;
                            t.put(account(to), (b + amount).to_string())?;
                            Ok(true)
                        });
                        moved.fetch_add(usize::from(done.unwrap()), Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                for round in 0..20 {
                    let sum: u64 = db.snapshot().unwrap().scan(..).map(|e| number(Some(e.unwrap().1))).sum();
                    assert_eq!(sum, 100 * ACCOUNTS as u64);
                    if round % 4 == 0 {
                        db.flush().unwrap();
                    }
                    if round == 10 {
                        db.compact().unwrap();
                    }
                }
            });
        });
        assert!(moved.load(Ordering::Relaxed) > 100);
        db.close().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let sum: u64 = db.scan(..).map(|e| number(Some(e.unwrap().1))).sum();
        assert_eq!(sum, 100 * ACCOUNTS as u64);
    }
}

/// Transactions of both kinds and plain writes with a check of their own: whatever is mixed, each increment counts.
#[test]
fn no_increment_is_lost_when_both_kinds_are_mixed() {
    let (_dir, db) = fresh();
    let (done, conflicts) = (AtomicU64::new(0), AtomicUsize::new(0));
    scope(|scope| {
        for options in [kinds(), kinds()].concat() {
            let (db, done, conflicts) = (&db, &done, &conflicts);
            scope.spawn(move || {
                for _ in 0..100 {
                    let t = db.begin_with(options).unwrap();
                    let tried = t.get_for_update("n").and_then(|n| {
                        t.put("n", (number(n) + 1).to_string())?;
                        t.commit()
                    });
                    match tried.map_err(|e| e.kind()) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(CONFLICT) => conflicts.fetch_add(1, Ordering::Relaxed) as u64,
                        Err(e) => panic!("{e:?}"),
                    };
                }
            });
        }
    });
    assert_eq!(number(db.get("n").unwrap()), done.load(Ordering::Relaxed));
    assert_eq!(done.load(Ordering::Relaxed) as usize + conflicts.load(Ordering::Relaxed), 400);
}

fn ingest(db: &Db, change: fn(&mut SstWriter) -> Result<()>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made.sst");
    let mut file = SstWriter::create(&path).unwrap();
    change(&mut file).unwrap();
    file.finish().unwrap();
    db.ingest(&[&path], IngestOptions::new()).unwrap();
}

/// A plain write between the read and the commit is a conflict for both kinds, in the memtable and in tables; the write
/// stays. So is a deletion that a compaction has removed without a trace.
#[test]
fn a_plain_write_in_between_is_a_conflict_wherever_it_went() {
    type Between = fn(&Db);
    let betweens: [(&str, Between); 8] = [
        ("put", |db| db.put("k", "theirs").unwrap()),
        ("flushed put", |db| {
            db.put("k", "theirs").unwrap();
            db.flush().unwrap();
        }),
        ("compacted put", |db| {
            db.put("k", "theirs").unwrap();
            db.compact().unwrap();
        }),
        ("delete", |db| db.delete("k").unwrap()),
        ("compacted delete", |db| {
            db.delete("k").unwrap();
            db.compact().unwrap();
        }),
        ("range delete", |db| {
            db.delete_range("k", "z").unwrap();
            db.compact().unwrap();
        }),
        ("ingested put", |db| ingest(db, |file| file.put("k", "theirs"))),
        ("ingested range delete", |db| ingest(db, |file| file.delete_range("k", "z"))),
    ];
    for options in [kinds(), kinds().map(|o| o.snapshot(true))].concat() {
        for (name, between) in betweens {
            let (_dir, db) = fresh();
            db.put("k", "first").unwrap();
            db.put("other", "x").unwrap();
            db.compact().unwrap();
            let t = db.begin_with(options).unwrap();
            // A later write of another transaction's key, so that what is tracked next is tracked after the first snapshot.
            t.get_for_update("before").unwrap();
            db.put("k", "second").unwrap();
            if options == options.snapshot(true) {
                assert_eq!(t.get("k").unwrap().as_deref(), Some(&b"first"[..]));
                t.set_snapshot().unwrap();
            }
            assert_eq!(t.get_for_update("k").unwrap().as_deref(), Some(&b"second"[..]), "{name}");
            t.put("k", "mine").unwrap();
            t.put("also", "mine").unwrap();
            between(&db);
            let theirs = db.get("k").unwrap();
            let e = t.commit().unwrap_err();
            assert_eq!(e.kind(), CONFLICT, "{name} {options:?}: {e}");
            assert!(e.to_string().contains("key 'k' of family \"default\""), "{e}");
            assert!(t.is_active() && kind(t.commit()) == CONFLICT, "it stays a conflict");
            t.rollback().unwrap();
            assert_eq!((db.get("k").unwrap(), db.get("also").unwrap()), (theirs, None));
        }
    }
}

/// A compaction may remove a deletion of a key that the transaction's first snapshot does not have. What was read decides.
#[test]
fn a_deletion_that_a_compaction_removed_is_a_conflict_with_the_read_of_a_value() {
    for options in kinds() {
        let (_dir, db) = fresh();
        let t = db.begin_with(options).unwrap();
        assert!(t.get_for_update("first").unwrap().is_none());
        db.put("k", "young").unwrap();
        assert!(t.get_for_update("k").unwrap().is_some() && t.get_for_update("absent").unwrap().is_none());
        t.put("k", "mine").unwrap();
        for key in ["k", "absent"] {
            db.put(key, "theirs").unwrap();
            db.delete(key).unwrap();
        }
        db.compact().unwrap();
        let e = t.commit().unwrap_err();
        assert_eq!(e.kind(), CONFLICT);
        assert!(e.to_string().contains("key 'k' of family \"default\" was deleted"), "{e}");
    }
    // A key that had no value and has none is as it was read, whatever came and went.
    let (_dir, db) = fresh();
    let t = db.begin().unwrap();
    assert!(t.get_for_update("absent").unwrap().is_none());
    db.put("absent", "theirs").unwrap();
    db.delete("absent").unwrap();
    db.compact().unwrap();
    t.put("absent", "mine").unwrap();
    t.commit().unwrap();
    assert_eq!(db.get("absent").unwrap().as_deref(), Some(&b"mine"[..]));
}

/// Writes to other keys, flushes and compactions are no conflict.
#[test]
fn what_does_not_touch_the_keys_is_no_conflict() {
    for options in [kinds(), kinds().map(|o| o.snapshot(true))].concat() {
        let (_dir, db) = fresh();
        db.put("k", "1").unwrap();
        db.put("gone", "1").unwrap();
        db.delete("gone").unwrap();
        let t = db.begin_with(options).unwrap();
        assert!(t.get_for_update("k").unwrap().is_some() && t.get_for_update("gone").unwrap().is_none());
        t.put("new", "1").unwrap();
        t.get_for_update("new").unwrap();
        t.put("gone", "2").unwrap();
        for n in 0..100 {
            db.put(format!("other{n}"), "x").unwrap();
        }
        db.compact().unwrap();
        db.put("later", "x").unwrap();
        t.commit().unwrap();
        assert_eq!(db.get("gone").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

/// Two doctors on call: each may leave only if the other stays. With reads for update, one of them stays.
#[test]
fn write_skew_is_prevented_by_reads_for_update() {
    for options in kinds() {
        for shared in [false, true] {
            let (_dir, db) = fresh();
            db.put("ada", "on").unwrap();
            db.put("bob", "on").unwrap();
            scope(|scope| {
                for (me, other) in [("ada", "bob"), ("bob", "ada")] {
                    let db = &db;
                    scope.spawn(move || {
                        db.transaction_with(options, |t| {
                            let read =
                                |key| if shared { t.get_for_share(key) } else { t.get_for_update(key) };
                            let (mine, theirs) = (read(me)?, read(other)?);
                            if mine.as_deref() == Some(b"on") && theirs.as_deref() == Some(b"on") {
                                t.put(me, "off")?;
                            }
                            Ok(())
                        })
                        .unwrap();
                    });
                }
            });
            let on = ["ada", "bob"].map(|who| db.get(who).unwrap().as_deref() == Some(b"on"));
            assert_eq!(on.iter().filter(|on| **on).count(), 1, "{options:?} {on:?}");
        }
    }
}

/// Random transactions with savepoints beside a model of the database, one at a time.
#[test]
fn reads_writes_and_savepoints_agree_with_the_model() {
    for options in kinds() {
        let dir = tempfile::tempdir().unwrap();
        let (db, families) = open_families(dir.path());
        let mut rng = Rng::new(21);
        let mut models = vec![BTreeMap::new(); families.len()];
        for round in 0..30 {
            if round % 5 == 0 {
                db.flush().unwrap();
            }
            let t = db.begin_with(options.snapshot(round % 2 == 0)).unwrap();
            let (mut pending, mut saved) = (models.clone(), Vec::new());
            for _ in 0..14 {
                match rng.below(8) {
                    0 => {
                        t.set_savepoint().unwrap();
                        saved.push((pending.clone(), t.len(), t.tracked_keys()));
                    }
                    1 if !saved.is_empty() => {
                        t.rollback_to_savepoint().unwrap();
                        let (models, len, keys) = saved.pop().unwrap();
                        assert_eq!((t.len(), t.tracked_keys()), (len, keys));
                        pending = models;
                    }
                    2 if !saved.is_empty() => {
                        t.pop_savepoint().unwrap();
                        saved.pop();
                    }
                    3 => operate(&mut rng, &t.family(&families[0].0).untracked(), &mut pending[0]),
                    _ => {
                        for (at, (family, _)) in families.iter().enumerate() {
                            operate(&mut rng, &t.family(family), &mut pending[at]);
                        }
                    }
                }
            }
            for (at, (family, order)) in families.iter().enumerate() {
                compare(&mut rng, &t.family(family), &pending[at], order);
                compare(&mut rng, family, &models[at], order);
            }
            if round % 3 == 0 {
                t.rollback().unwrap();
            } else {
                t.commit().unwrap();
                models = pending;
            }
            for (at, (family, order)) in families.iter().enumerate() {
                compare(&mut rng, family, &models[at], order);
            }
        }
    }
}

/// A transaction reads its snapshot with its own changes over it; others read neither.
#[test]
fn a_snapshot_holds_still_beneath_the_changes() {
    for options in kinds() {
        let (_dir, db) = fresh();
        db.put("a", "1").unwrap();
        let t = db.begin_with(options.snapshot(true)).unwrap();
        db.put("b", "2").unwrap();
        t.put("c", "3").unwrap();
        let keys = |from: &dyn Fn() -> Vec<(Vec<u8>, Vec<u8>)>| -> Vec<u8> {
            from().into_iter().flat_map(|(key, _)| key).collect()
        };
        assert_eq!(keys(&|| listing(t.scan(..))), b"ac");
        assert_eq!(keys(&|| listing(t.scan(..).rev())), b"ca");
        assert_eq!(keys(&|| listing(t.reading(ReadOptions::new().fill_cache(false)).scan(..))), b"ac");
        assert_eq!(
            t.multi_get(["a", "b", "c"]).unwrap().iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert_eq!(t.explain_get("b").unwrap().value_bytes(), None);
        assert!(t.snapshot().unwrap().get("b").unwrap().is_none());
        t.clear_snapshot().unwrap();
        assert_eq!(keys(&|| listing(t.scan(..))), b"abc");
        assert!(t.snapshot().is_none());
        assert_eq!(keys(&|| listing(db.scan(..))), b"ab");
        t.commit().unwrap();
        assert_eq!(keys(&|| listing(db.scan(..))), b"abc");
    }
}

/// Regression: a rollback to a savepoint returns to a snapshot that is older than the one kept for the check.
#[test]
fn a_key_tracked_at_a_snapshot_of_a_savepoint_is_checked_from_there() {
    let (_dir, db) = fresh();
    db.put("k", "old").unwrap();
    let t = db.begin_with(TransactionOptions::optimistic().snapshot(true)).unwrap();
    t.set_savepoint().unwrap();
    db.put("k", "new").unwrap();
    t.set_snapshot().unwrap();
    t.put("first", "").unwrap();
    t.rollback_to_savepoint().unwrap();
    assert_eq!(t.get_for_update("k").unwrap().as_deref(), Some(&b"old"[..]));
    t.put("k", "mine").unwrap();
    t.clear_snapshot().unwrap();
    // Without a snapshot before it, the newer write loses its sequence number here.
    db.compact().unwrap();
    assert_eq!(kind(t.commit()), CONFLICT);
}

/// A transaction that only reads is checked too: what it read for update was all there at one moment.
#[test]
fn reads_alone_are_of_one_moment_or_a_conflict() {
    for options in kinds() {
        let (_dir, db) = fresh();
        db.put("a", "1").unwrap();
        db.put("b", "1").unwrap();
        let t = db.begin_with(options).unwrap();
        t.get_for_share("a").unwrap();
        t.get_for_share("b").unwrap();
        t.commit().unwrap();
        let t = db.begin_with(options).unwrap();
        t.get_for_share("a").unwrap();
        db.put("a", "2").unwrap();
        db.put("b", "2").unwrap();
        t.get_for_share("b").unwrap();
        assert_eq!(kind(t.commit()), CONFLICT);
    }
}

/// Merges of transactions and of plain writes on one counter: a merge is tracked, and adds to what it was tracked at.
#[test]
fn merges_count_once_each() {
    for options in kinds() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let counters = db.create_family_with("c", |f| f.merge_operator(Arc::new(UInt64Add))).unwrap();
        let one = 1u64.to_le_bytes();
        scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        db.transaction_with(options.attempts(1000), |t| {
                            let of = t.family(&counters);
                            of.merge("n", one)?;
                            let inside = of.get("n")?.map(|v| v.to_vec());
                            of.merge("n", one)?;
                            of.put("last", inside.unwrap_or_default())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(counters.get("n").unwrap().as_deref(), Some(&240u64.to_le_bytes()[..]));
        assert_eq!(counters.get("last").unwrap().as_deref(), Some(&239u64.to_le_bytes()[..]));
    }
}

/// A scan shows the moment of its making: a commit in between is not seen, and operands do not count twice.
#[test]
fn a_scan_outlives_the_commit_and_shows_what_was_before() {
    for options in kinds() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let sums = db.create_family_with("c", |f| f.merge_operator(Arc::new(UInt64Add))).unwrap();
        let (one, two) = (1u64.to_le_bytes(), 2u64.to_le_bytes());
        sums.merge("n", one).unwrap();
        let t = db.begin_with(options).unwrap();
        t.family(&sums).merge("n", one).unwrap();
        let (scan, mut cursor) = (t.family(&sums).scan(..), t.family(&sums).scan(..).cursor().unwrap());
        t.commit().unwrap();
        sums.put("later", one).unwrap();
        assert_eq!(listing(scan), [(b"n".to_vec(), two.to_vec())]);
        assert_eq!(cursor.next().unwrap(), Some((&b"n"[..], &two[..])));
        assert_eq!(cursor.next().unwrap(), None);
        let batch = db.indexed_batch();
        batch.family(&sums).merge("n", one).unwrap();
        let scan = batch.family(&sums).scan(..);
        batch.write().unwrap();
        assert_eq!(listing(scan)[1], (b"n".to_vec(), 3u64.to_le_bytes().to_vec()));
    }
}

/// A synced commit survives; one that skips the WAL is gone after a kill.
#[test]
fn a_commit_writes_with_its_options() {
    let (dir, db) = fresh();
    let with = |options| db.begin_with(TransactionOptions::new().write_options(options)).unwrap();
    let t = with(WriteOptions::synced());
    t.put("synced", "1").unwrap();
    t.commit().unwrap();
    assert_eq!(db.durable_sequence(), db.sequence());
    let t = with(WriteOptions::synced().disable_wal(true));
    t.put("both", "1").unwrap();
    assert_eq!(kind(t.commit()), ErrorKind::InvalidArgument);
    assert!(t.is_active() && db.get("both").unwrap().is_none());
    let copy = Db::open_read_only(dir.path().join("db")).unwrap();
    assert_eq!(copy.get("synced").unwrap().as_deref(), Some(&b"1"[..]));
    // A transaction of a database that is open for reading reads, and cannot commit.
    let t = copy.begin().unwrap();
    t.put("k", "v").unwrap();
    assert_eq!(t.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(kind(t.commit()), ErrorKind::NotSupported);
    // One that has only read may: its keys were as it saw them.
    let t = copy.begin().unwrap();
    assert!(t.get_for_update("synced").unwrap().is_some());
    t.commit().unwrap();
    copy.begin().unwrap().commit().unwrap();
}

/// RocksDB reads what transactions and indexed batches have committed, from the WAL of a database that was not closed and
/// from its tables.
#[test]
fn rocksdb_reads_what_was_committed() {
    judged().unwrap_or_else(|skip| skip.announce("rocksdb_reads_what_was_committed"));
}

fn judged() -> Result<(), ashlar_testkit::Skip> {
    let mut judges = crate::judge::Judges::start()?;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::builder(&path).format_level(ashlardb::FormatLevel::V7_8).open().unwrap();
    let family = db.create_family("f").unwrap();
    for round in 0..3 {
        for options in kinds() {
            let t = db.begin_with(options).unwrap();
            for n in 0..30 {
                t.put(format!("{round}/{n}"), "in a transaction").unwrap();
                t.family(&family).put(format!("{n}"), format!("{round}")).unwrap();
            }
            t.set_savepoint().unwrap();
            t.put("never", "committed").unwrap();
            t.rollback_to_savepoint().unwrap();
            t.delete(format!("{round}/7")).unwrap();
            t.commit().unwrap();
        }
        let batch = db.indexed_batch();
        batch.put(format!("{round}/batch"), "indexed").unwrap();
        batch.family(&family).delete("3").unwrap();
        batch.write().unwrap();
        let state = crate::store::state_of(&db);
        judges.read(&path, ashlardb::FormatLevel::V7_8, &state, &format!("round {round}"));
        db.flush().unwrap();
    }
    assert!(db.get("never").unwrap().is_none() && db.get("1/8").unwrap().is_some());
    Ok(())
}

/// What a child process does: transactions that write the same number to every key, until it is killed.
pub fn steps(dir: &Path) {
    let db = Db::open(dir).unwrap();
    let family = db.family("f").or_else(|_| db.create_family("f")).unwrap();
    for n in 1u64.. {
        let options = if n % 2 == 0 { TransactionOptions::optimistic() } else { TransactionOptions::new() };
        db.transaction_with(options, |t| {
            for key in 0..20 {
                t.put(format!("{key}"), n.to_string())?;
                t.family(&family).put(format!("{key}"), n.to_string())?;
            }
            Ok(())
        })
        .unwrap();
        if n % 50 == 0 {
            db.flush().unwrap();
        }
    }
}

#[test]
fn a_commit_is_whole_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut last = 0;
    for round in 0..4u64 {
        let mut child = crate::child::transactions(&path);
        while !path.join("CURRENT").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(200 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let db = Db::open(&path).unwrap();
        let mut seen: Vec<u64> = db.scan(..).map(|entry| number(Some(entry.unwrap().1))).collect();
        if let Ok(family) = db.family("f") {
            seen.extend(family.scan(..).map(|entry| number(Some(entry.unwrap().1))));
        }
        assert!(seen.is_empty() || seen.len() == 40 && seen.iter().all(|n| *n == seen[0]), "{seen:?}");
        last = last.max(seen.first().copied().unwrap_or_default());
        db.close().unwrap();
    }
    assert!(last > 0, "no round committed anything");
}

/// With `read_newest`, reads see the newest state, named snapshots are read, and the own one still finds conflicts.
#[test]
fn reads_of_the_newest_state_keep_the_check_of_the_snapshot() {
    let (_dir, db) = fresh();
    db.put("k", "old").unwrap();
    let options = TransactionOptions::new().snapshot(true).read_newest(true);
    let t = db.begin_with(options).unwrap();
    db.put("k", "new").unwrap();
    db.put("later", "1").unwrap();
    t.put("mine", "1").unwrap();
    let own = t.snapshot().unwrap();
    let seen = |reader: Reader<'_>| {
        let scanned: Vec<_> = listing(reader.scan(..)).into_iter().map(|(key, _)| key).collect();
        (reader.get("k").unwrap().unwrap().to_vec(), scanned)
    };
    let keys = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(seen(t.reading(ReadOptions::new())), (b"new".to_vec(), keys(&["k", "later", "mine"])));
    assert_eq!(seen(t.over(&own)), (b"old".to_vec(), keys(&["k", "mine"])));
    assert_eq!(kind(t.get_for_update("k")), CONFLICT, "written after the snapshot");
    t.commit().unwrap();
    // A transaction that reads its snapshot may still name another one.
    let (old, t) = (db.snapshot().unwrap(), db.begin_with(TransactionOptions::new().snapshot(true)).unwrap());
    db.put("k", "newest").unwrap();
    assert_eq!(t.get("k").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(t.over(&old).get("k").unwrap().as_deref(), Some(&b"new"[..]));
    let other = db.snapshot().unwrap();
    assert_eq!(t.over(&other).get("k").unwrap().as_deref(), Some(&b"newest"[..]));
    let (_other_dir, foreign) = fresh();
    let foreign = foreign.snapshot().unwrap();
    assert_eq!(kind(t.over(&foreign).get("k")), ErrorKind::InvalidArgument);
}

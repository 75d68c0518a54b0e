//! Locks of transactions: they wait, time out, are refused in a circle, and are released on every path.

use crate::store::listing;
use crate::transactions::{CONFLICT, fresh, kind, kinds, number};
use ashlar_testkit::Rng;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, ErrorKind, LockMode, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::scope;
use std::time::Duration;

const DEADLOCK: ErrorKind = ErrorKind::Busy(BusyKind::Deadlock);

/// Lets another thread come to its wait for a lock.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn a_deadlock_is_refused_and_names_its_circle() {
    for size in [2, 3] {
        let (_dir, db) = fresh();
        let family = db.create_family("f").unwrap();
        let key = |n: usize| format!("key{}", n % size);
        let transactions: Vec<_> =
            (0..size).map(|_| db.begin_with(TransactionOptions::new().no_lock_timeout()).unwrap()).collect();
        for (n, t) in transactions.iter().enumerate() {
            t.family(&family).put(key(n), "mine").unwrap();
        }
        let ids: Vec<u64> = transactions.iter().map(Transaction::id).collect();
        // Each waits for the next one; the one that comes last is refused.
        let refused = scope(|scope| {
            let asks = transactions.into_iter().enumerate().map(|(n, t)| {
                let family = &family;
                scope.spawn(move || {
                    let asked = t.family(family).get_for_share(key(n + 1));
                    if asked.is_ok() {
                        t.commit().unwrap()
                    } else {
                        t.rollback().unwrap()
                    }
                    asked.map(drop)
                })
            });
            let asks: Vec<_> = asks.collect();
            let asked = asks.into_iter().map(|ask| ask.join().unwrap()).enumerate();
            asked.filter_map(|(n, asked)| asked.err().map(|e| (n, e))).collect::<Vec<_>>()
        });
        let [(victim, e)] = refused.as_slice() else { panic!("{refused:?}") };
        assert_eq!(e.kind(), DEADLOCK);
        for (n, id) in ids.iter().enumerate() {
            let wait = format!("transaction {id} waits for key '{}' of family \"f\"", key(n + 1));
            assert!(e.to_string().contains(&wait), "{e}");
        }
        let found = db.deadlocks().unwrap();
        assert_eq!((found.len(), found[0].waits.len()), (1, size));
        let first = &found[0].waits[0];
        assert_eq!((first.transaction, first.mode), (ids[*victim], LockMode::Shared));
        for n in 0..size {
            let committed = family.get(key(n)).unwrap().is_some();
            assert_eq!(committed, n != *victim, "key {n}, rolled back: {victim}");
        }
    }
    // The closure form rolls back, waits and runs again.
    let (_dir, db) = fresh();
    // Without detection, the timeout ends the circle.
    let blind = TransactionOptions::new().deadlock_detect(false).lock_timeout(Duration::from_millis(80));
    let (one, two) = (db.begin_with(blind).unwrap(), db.begin_with(blind).unwrap());
    one.put("a", "1").unwrap();
    two.put("b", "1").unwrap();
    let refused = scope(|scope| {
        let waits = scope.spawn(move || one.put("b", "1").map_err(|e| e.kind()));
        a_moment();
        let mine = two.put("a", "1").map_err(|e| e.kind());
        drop(two);
        [mine, waits.join().unwrap()].into_iter().filter(|put| *put == Err(ErrorKind::TimedOut)).count()
    });
    assert!(refused >= 1 && db.deadlocks().unwrap().is_empty());
    scope(|scope| {
        for keys in [["a", "b"], ["b", "a"]] {
            let db = &db;
            scope.spawn(move || {
                for _ in 0..50 {
                    db.transaction(|t| {
                        for key in keys {
                            let n = number(t.get_for_update(key)?);
                            t.put(key, (n + 1).to_string())?;
                        }
                        Ok(())
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!((number(db.get("a").unwrap()), number(db.get("b").unwrap())), (100, 100));
}

#[test]
fn locks_time_out_and_are_released_on_every_path() {
    let (_dir, db) = fresh();
    let no_wait = TransactionOptions::new().lock_timeout(Duration::ZERO);
    let is_free = || {
        let t = db.begin_with(no_wait).unwrap();
        match t.put("k", "x").map_err(|e| e.kind()) {
            Ok(()) => true,
            Err(ErrorKind::TimedOut) => false,
            Err(e) => panic!("{e:?}"),
        }
    };
    let holder = db.begin().unwrap();
    holder.get_for_update("k").unwrap();
    assert!(!is_free());
    let waiter = db.begin_with(TransactionOptions::new().lock_timeout(Duration::from_millis(30))).unwrap();
    let e = waiter.put("k", "x").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TimedOut);
    assert!(e.to_string().contains(&format!("within 30ms: transaction {} holds it", holder.id())), "{e}");
    assert!(waiter.is_empty(), "what has no lock is not in the transaction");
    waiter.untracked().put("k", "no lock needed").unwrap();
    holder.commit().unwrap();
    assert!(is_free(), "a commit of reads releases");

    type End = fn(Transaction);
    let ends: [(&str, End); 4] = [
        ("commit", |t| t.commit().unwrap()),
        ("rollback", |t| t.rollback().unwrap()),
        ("drop", drop),
        ("drop during a panic", |t| {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _t = t;
                std::panic::resume_unwind(Box::new(()));
            }));
            assert!(panicked.is_err());
        }),
    ];
    for (name, end) in ends {
        let t = db.begin().unwrap();
        t.put("k", "mine").unwrap();
        assert!(!is_free(), "{name}");
        end(t);
        assert!(is_free(), "{name}");
    }
    // A failed commit keeps the locks until the transaction ends.
    let t = db.begin().unwrap();
    t.put("k", "mine").unwrap();
    db.put("k", "theirs").unwrap();
    assert_eq!(kind(t.commit()), CONFLICT);
    assert!(!is_free());
    drop(t);
    assert!(is_free());
    // With a snapshot, the conflict is found before anything else, and leaves no lock.
    let t = db.begin_with(TransactionOptions::new().snapshot(true)).unwrap();
    db.put("k", "newer").unwrap();
    assert_eq!(kind(t.get_for_update("k")), CONFLICT);
    assert_eq!((t.tracked_keys(), is_free()), (0, true));
    t.clear_snapshot().unwrap();
    assert_eq!(t.get_for_update("k").unwrap().as_deref(), Some(&b"newer"[..]));
}

/// A waiting transaction goes on when the holder ends, and sees what the holder committed.
#[test]
fn a_waiter_sees_what_the_holder_wrote() {
    let (_dir, db) = fresh();
    let holder = db.begin().unwrap();
    holder.put("k", "1").unwrap();
    let (said, heard) = channel();
    scope(|scope| {
        scope.spawn(|| {
            let t = db.begin_with(TransactionOptions::new().no_lock_timeout()).unwrap();
            t.set_snapshot_on_next_operation().unwrap();
            said.send(t.get_for_share("k").map(number).map_err(|e| e.kind())).unwrap();
        });
        a_moment();
        assert!(heard.try_recv().is_err(), "it waits");
        holder.commit().unwrap();
        // The snapshot was taken after the wait for the lock, so the write came before it.
        assert_eq!(heard.recv().unwrap(), Ok(1));
        scope.spawn(|| {
            let t = db.begin().unwrap();
            said.send(t.get_for_share("k").map(number).map_err(|e| e.kind())).unwrap();
        });
        assert_eq!(heard.recv().unwrap(), Ok(1));
    });
}

/// A rollback to a savepoint releases the locks taken since, and turns upgraded ones back.
#[test]
fn a_savepoint_gives_locks_back() {
    let (_dir, db) = fresh();
    let no_wait = TransactionOptions::new().lock_timeout(Duration::ZERO);
    let t = db.begin().unwrap();
    t.put("first", "1").unwrap();
    t.get_for_share("shared").unwrap();
    t.set_savepoint().unwrap();
    t.put("first", "2").unwrap();
    t.put("second", "2").unwrap();
    t.put("shared", "2").unwrap();
    let other = db.begin_with(no_wait).unwrap();
    let locked = |key| other.get_for_share(key).is_err();
    assert_eq!([locked("first"), locked("second"), locked("shared")], [true; 3]);
    t.rollback_to_savepoint().unwrap();
    assert_eq!([locked("first"), locked("second"), locked("shared")], [true, false, false]);
    assert_eq!(kind(other.put("shared", "x")), ErrorKind::TimedOut, "it is still held shared");
    assert_eq!(t.get("first").unwrap().as_deref(), Some(&b"1"[..]));
    other.rollback().unwrap();
    t.commit().unwrap();
    assert_eq!(listing(db.scan(..)), [(b"first".to_vec(), b"1".to_vec())]);
}

#[test]
fn the_lock_limit_and_the_attempts_are_kept() {
    for options in kinds() {
        let (_dir, db) = fresh();
        let t = db.begin_with(options.max_locks(2)).unwrap();
        t.put("a", "1").unwrap();
        t.put("a", "2").unwrap();
        t.get_for_share("b").unwrap();
        assert_eq!(kind(t.put("c", "1")), ErrorKind::Busy(BusyKind::LockLimit));
        t.put("b", "1").unwrap();
        t.commit().unwrap();
        // The work itself writes what it has read: a conflict each time.
        let runs = AtomicUsize::new(0);
        let answer = db.transaction_with(options.attempts(3), |t| {
            runs.fetch_add(1, Ordering::Relaxed);
            t.get_for_update("k")?;
            db.put("k", "by myself")?;
            t.put("k", "mine")
        });
        assert_eq!((kind(answer), runs.load(Ordering::Relaxed)), (CONFLICT, 3));
        assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"by myself"[..]));
        // Other errors are not tried again.
        let answer: Result<()> = db.transaction_with(options, |t| {
            runs.fetch_add(1, Ordering::Relaxed);
            t.put("x", "1")?;
            Err(ashlardb::Error::new(ErrorKind::Aborted, "on purpose"))
        });
        assert_eq!((kind(answer), runs.load(Ordering::Relaxed)), (ErrorKind::Aborted, 4));
        assert_eq!(db.get("x").unwrap(), None);
    }
}

/// Many keys are locked in one order, so transactions that lock them at once have no deadlock.
#[test]
fn many_keys_are_read_for_update_in_one_order() {
    let (_dir, db) = fresh();
    let family = db.create_family("f").unwrap();
    scope(|scope| {
        for thread in 0..3 {
            let (db, family) = (&db, &family);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for _ in 0..60 {
                    let mut keys = ["a", "b", "c", "d"];
                    keys.rotate_left(rng.below(4));
                    db.transaction(|t| {
                        let of = t.family(family);
                        let values = of.multi_get_for_update(&keys[..3])?;
                        for (key, value) in keys.iter().zip(values) {
                            of.put(key, (number(value) + 1).to_string())?;
                        }
                        Ok(())
                    })
                    .unwrap();
                }
            });
        }
    });
    let sum: u64 = family.scan(..).map(|entry| number(Some(entry.unwrap().1))).sum();
    assert_eq!((sum, db.deadlocks().unwrap().len()), (3 * 60 * 3, 0));
    let t = db.begin().unwrap();
    t.put("x", "1").unwrap();
    let values = t.multi_get_for_update(["y", "x", "y"]).unwrap();
    assert_eq!(values.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(t.tracked_keys(), 2);
}

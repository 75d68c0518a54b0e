//! Range locks of transactions: nothing appears in a locked range, and every end of a transaction releases it.

use crate::transactions::{fresh, kind};
use ashlar_testkit::within;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, ErrorKind, ShutdownKind};
use std::ops::Bound;
use std::thread::scope;
use std::time::Duration;

const TIMED_OUT: ErrorKind = ErrorKind::TimedOut;

/// Whether another transaction can lock the key.
fn is_free(db: &Db, key: &str) -> bool {
    let t = db.begin_with(TransactionOptions::new().lock_timeout(Duration::ZERO)).unwrap();
    match t.get_for_update(key) {
        Ok(_) => true,
        Err(e) if e.kind() == TIMED_OUT => false,
        Err(e) => panic!("{key}: {e}"),
    }
}

#[test]
fn nothing_appears_in_a_locked_range() {
    let (_dir, db) = fresh();
    const SEATS: usize = 5;
    // Each books if it counts a free seat. Without the range, two would count the same bookings.
    let booked: usize = scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let db = &db;
                scope.spawn(move || {
                    let mut booked = 0;
                    for n in 0..10 {
                        let options = TransactionOptions::new().no_lock_timeout();
                        booked += db
                            .transaction_with(options, |t| {
                                t.lock_range("booking/".."booking0")?;
                                if t.prefix("booking/").count() == SEATS {
                                    return Ok(0);
                                }
                                std::thread::yield_now();
                                t.put(format!("booking/{thread} {n}"), "")?;
                                Ok(1)
                            })
                            .unwrap();
                    }
                    booked
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((booked, db.prefix("booking/").count()), (SEATS, SEATS));
}

#[test]
fn every_form_of_a_range_locks_its_keys() {
    let (_dir, db) = fresh();
    let out = |keys: &[&str]| {
        let free: Vec<_> = keys.iter().filter(|key| is_free(&db, key)).copied().collect();
        free.join(" ")
    };
    let all = ["a", "b", "bb", "c", "d"];
    let t = db.begin().unwrap();
    let check = |free: &str| {
        assert_eq!(out(&all), free);
        t.rollback_to_savepoint().unwrap();
        t.set_savepoint().unwrap();
        assert_eq!(out(&all), "a b bb c d", "the savepoint has released the range");
    };
    t.set_savepoint().unwrap();
    t.lock_range("b".."c").unwrap();
    check("a c d");
    t.lock_range("b"..="c").unwrap();
    check("a d");
    t.lock_range("b"..).unwrap();
    check("a");
    t.lock_range(..).unwrap();
    check("");
    t.lock_range((Bound::Excluded("b"), Bound::<&str>::Unbounded)).unwrap();
    check("a b");
    t.lock_range("b".."b").unwrap();
    check("a b bb c d");
    assert_eq!(kind(t.lock_range("c".."b")), ErrorKind::InvalidArgument);
    t.lock_range_shared("b".."c").unwrap();
    let other = db.begin_with(TransactionOptions::new().lock_timeout(Duration::ZERO)).unwrap();
    other.get_for_share("b").unwrap();
    other.lock_range_shared("a".."c").unwrap();
    assert_eq!((kind(other.put("bb", "")), kind(t.put("b", ""))), (TIMED_OUT, TIMED_OUT));
}

/// In a family that sorts descending, a range begins at its largest key.
#[test]
fn ranges_follow_the_order_of_their_family() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let down = db.create_family_with("down", |f| f.reverse_order()).unwrap();
    let t = db.begin().unwrap();
    t.family(&down).lock_range("m".."d").unwrap();
    assert_eq!(kind(t.family(&down).lock_range("d".."m")), ErrorKind::InvalidArgument);
    let other = db.begin_with(TransactionOptions::new().lock_timeout(Duration::ZERO)).unwrap();
    let of = other.family(&down);
    let locked = ["n", "m", "e", "d"].map(|key| of.put(key, "").err().map(|e| e.kind()));
    assert_eq!(locked, [None, Some(TIMED_OUT), Some(TIMED_OUT), None]);
    other.put("m", "").unwrap();
}

#[test]
fn a_prepared_transaction_keeps_its_range_until_the_close_and_its_keys_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let t = db.begin().unwrap();
    t.set_name("x").unwrap();
    t.lock_range("a".."m").unwrap();
    t.put("k", "1").unwrap();
    t.prepare().unwrap();
    assert_eq!(kind(t.lock_range("x".."y")), ErrorKind::InvalidArgument, "no locks behind the prepare");
    drop(t);
    let taken = db.transaction_by_name("x").unwrap().unwrap();
    assert!(!is_free(&db, "b") && !is_free(&db, "k") && is_free(&db, "m"));
    taken.rollback().unwrap();
    assert!(is_free(&db, "b") && is_free(&db, "k"));
    let t = db.begin().unwrap();
    t.set_name("y").unwrap();
    t.lock_range("a".."m").unwrap();
    t.put("k", "1").unwrap();
    t.prepare().unwrap();
    drop(t);
    db.close().unwrap();
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert!(is_free(&db, "b"), "a range is in memory only");
    assert!(!is_free(&db, "k"), "the WAL has the key");
    db.transaction_by_name("y").unwrap().unwrap().commit().unwrap();
    assert!(is_free(&db, "k"));
}

#[test]
fn every_end_releases_the_range() {
    let (_dir, db) = fresh();
    let locked = || {
        let t = db.begin().unwrap();
        t.lock_range("a".."m").unwrap();
        t.put("b", "1").unwrap();
        assert!(!is_free(&db, "c"));
        t
    };
    locked().commit().unwrap();
    assert!(is_free(&db, "c") && is_free(&db, "b"));
    locked().rollback().unwrap();
    assert!(is_free(&db, "c"));
    drop(locked());
    assert!(is_free(&db, "c"));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _t = locked();
        panic!("in the middle");
    }));
    assert!(panics.is_err() && is_free(&db, "c"));
    let t = locked();
    t.set_savepoint().unwrap();
    t.lock_range("p".."q").unwrap();
    t.pop_savepoint().unwrap();
    assert!(!is_free(&db, "p1"), "a popped savepoint keeps the locks");
}

#[test]
fn limits_and_misuse_are_refused() {
    let ((_dir, db), (_other_dir, other)) = (fresh(), fresh());
    let t = db.begin_with(TransactionOptions::new().max_locks(2)).unwrap();
    t.lock_range("a".."b").unwrap();
    t.put("x", "").unwrap();
    let limit = ErrorKind::Busy(BusyKind::LockLimit);
    assert_eq!((kind(t.lock_range("c".."d")), kind(t.put("y", ""))), (limit, limit));
    let optimistic = db.begin_with(TransactionOptions::optimistic()).unwrap();
    assert_eq!(kind(optimistic.lock_range("a".."b")), ErrorKind::NotSupported);
    let foreign = other.create_family("f").unwrap();
    assert_eq!(kind(t.family(&foreign).lock_range("a".."b")), ErrorKind::InvalidArgument);
    t.commit().unwrap();
    assert_eq!(kind(t.lock_range("a".."b")), ErrorKind::InvalidArgument);
}

/// A plain write neither waits for a range nor makes a conflict with it; one with locks waits. A range deletion locks its range.
#[test]
fn writes_with_locks_wait_for_ranges() {
    let (_dir, db) = fresh();
    let t = db.begin().unwrap();
    t.lock_range("a".."m").unwrap();
    db.put("b", "plain").unwrap();
    let locking = db.locking(TransactionOptions::new().lock_timeout(Duration::ZERO));
    assert_eq!((kind(locking.put("c", "")), kind(locking.delete_range("k", "z"))), (TIMED_OUT, TIMED_OUT));
    locking.delete_range("m", "z").unwrap();
    t.put("n", "1").unwrap();
    assert_eq!(kind(locking.delete_range("m", "z")), TIMED_OUT, "t holds a key of it");
    t.commit().unwrap();
    locking.delete_range("a", "z").unwrap();
    assert_eq!(db.scan(..).count(), 0);
}

#[test]
fn a_deadlock_names_the_range() {
    let (_dir, db) = fresh();
    let (a, b) = (db.begin().unwrap(), db.begin_with(TransactionOptions::new().no_lock_timeout()).unwrap());
    a.lock_range("a".."c").unwrap();
    b.put("x", "").unwrap();
    scope(|scope| {
        let waits = scope.spawn(move || b.lock_range("b"..).map(|()| b));
        std::thread::sleep(Duration::from_millis(50));
        let e = a.put("x", "").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock));
        assert!(e.to_string().contains("waits for keys 'b'.. of family \"default\""), "{e}");
        a.rollback().unwrap();
        waits.join().unwrap().unwrap().commit().unwrap();
    });
    let found = db.deadlocks().unwrap();
    assert!(found[0].waits.iter().any(|wait| wait.range.is_some()), "{found:?}");
}

#[test]
fn a_close_ends_the_waits_for_locks() {
    let (_dir, db) = fresh();
    let patient = || TransactionOptions::new().no_lock_timeout();
    let holder = db.begin().unwrap();
    holder.put("k", "held").unwrap();
    let answers = within(60, "the waits end", {
        let db = db.clone();
        move || {
            scope(|scope| {
                let key = scope.spawn(|| db.begin_with(patient()).unwrap().put("k", "v"));
                let range = scope.spawn(|| db.begin_with(patient()).unwrap().lock_range("a".."z"));
                let plain = scope.spawn(|| db.locking(patient()).put("k", "v"));
                // A wait that begins after the close ends too.
                std::thread::sleep(Duration::from_millis(50));
                db.close().unwrap();
                [key, range, plain].map(|thread| thread.join().unwrap())
            })
        }
    });
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Shutdown(ShutdownKind::Closed));
    }
    assert_eq!(holder.commit().unwrap_err().kind(), ErrorKind::Shutdown(ShutdownKind::Closed));
}

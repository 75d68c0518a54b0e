//! Plain writes that take locks: they wait for transactions, overwrite nothing that is prepared, and are no conflict.

use crate::store::listing;
use crate::transactions::{CONFLICT, fresh, kind};
use ashlardb::prelude::*;
use ashlardb::{BusyKind, ErrorKind};
use std::thread::scope;
use std::time::Duration;

fn soon() -> TransactionOptions {
    TransactionOptions::new().lock_timeout(Duration::from_millis(20))
}

#[test]
fn a_write_to_a_locked_key_waits_or_times_out() {
    let (_dir, db) = fresh();
    let family = db.create_family("f").unwrap();
    let t = db.begin().unwrap();
    t.put("k", "t").unwrap();
    t.family(&family).get_for_share("s").unwrap();
    let locking = db.locking(soon());
    let refused = [
        locking.put("k", "x"),
        locking.delete("k"),
        locking.single_delete("k"),
        locking.put_entity("k", &[("c", "v")]),
        locking.family(&family).put("s", "x"),
    ];
    for e in refused {
        let e = e.unwrap_err();
        let named = format!("transaction {} holds it", t.id());
        assert!(e.kind() == ErrorKind::TimedOut && e.to_string().contains(&named), "{e}");
    }
    locking.put("s", "other family").unwrap();
    locking.family(&family).put("k", "other family").unwrap();
    scope(|scope| {
        let waits = scope.spawn(|| db.locking(TransactionOptions::new().no_lock_timeout()).put("k", "later"));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waits.is_finished());
        t.commit().unwrap();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"later"[..]));
}

#[test]
fn nothing_prepared_is_overwritten() {
    let (_dir, db) = fresh();
    let t = db.begin().unwrap();
    t.set_name("x").unwrap();
    t.put("k", "prepared").unwrap();
    t.prepare().unwrap();
    drop(t);
    let locking = db.locking(soon());
    assert_eq!(kind(locking.put("k", "lost")), ErrorKind::TimedOut);
    let batch = WriteBatch::new();
    batch.put("free", "1").unwrap();
    batch.put("k", "lost").unwrap();
    assert_eq!(kind(locking.write(&batch)), ErrorKind::TimedOut);
    assert_eq!((db.get("free").unwrap(), batch.len()), (None, 2), "all of the batch, or nothing");
    db.transaction_by_name("x").unwrap().unwrap().commit().unwrap();
    locking.write(&batch).unwrap();
    assert!(batch.is_empty());
    assert_eq!(listing(db.scan(..)), [(b"free".to_vec(), b"1".to_vec()), (b"k".to_vec(), b"lost".to_vec())]);
}

/// A transaction that begins after the write does not fail for it, and an older one does.
#[test]
fn the_next_holder_sees_the_write_and_an_older_snapshot_does_not() {
    let (_dir, db) = fresh();
    let old = db.begin_with(TransactionOptions::new().snapshot(true)).unwrap();
    let optimistic = db.begin_with(TransactionOptions::optimistic()).unwrap();
    optimistic.get_for_update("k").unwrap();
    optimistic.put("k", "optimistic").unwrap();
    db.locking(soon()).put("k", "1").unwrap();
    let t = db.begin().unwrap();
    assert_eq!(t.get_for_update("k").unwrap().as_deref(), Some(&b"1"[..]));
    t.put("k", "2").unwrap();
    t.commit().unwrap();
    assert_eq!((kind(optimistic.commit()), kind(old.put("k", "3"))), (CONFLICT, CONFLICT));
}

#[test]
fn misuse_is_refused() {
    let ((_dir, db), (_other_dir, other)) = (fresh(), fresh());
    let e = db.locking(TransactionOptions::optimistic()).put("k", "v").unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("optimistic"), "{e}");
    let foreign = other.create_family("f").unwrap();
    assert_eq!(kind(db.locking(soon()).family(&foreign).put("k", "v")), ErrorKind::InvalidArgument);
    let batch = WriteBatch::new();
    ["a", "b", "a"].iter().for_each(|key| batch.put(key, "v").unwrap());
    let few = db.locking(soon().max_locks(1)).write(&batch);
    assert_eq!(kind(few), ErrorKind::Busy(BusyKind::LockLimit));
    db.locking(soon().max_locks(2)).write(&batch).unwrap();
    db.close().unwrap();
    assert!(matches!(kind(db.locking(soon()).put("k", "v")), ErrorKind::Shutdown(_)));
}

fn number(value: &[u8]) -> usize {
    usize::from_le_bytes(value.try_into().unwrap())
}

/// Batches of two accounts in both orders, locking writes and transactions: no circle among the writes, no lost update.
#[test]
fn writers_and_transactions_keep_each_others_updates() {
    let (_dir, db) = fresh();
    const ROUNDS: usize = 200;
    scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                let patient = TransactionOptions::new().no_lock_timeout();
                for n in 0..ROUNDS {
                    if thread % 2 == 0 {
                        let batch = WriteBatch::new();
                        let keys = if thread == 0 { ["a", "b"] } else { ["b", "a"] };
                        keys.iter().for_each(|key| batch.put(key, [0]).unwrap());
                        batch.put(format!("batch {thread} {n}"), "").unwrap();
                        db.locking(patient).write(&batch).unwrap();
                    } else {
                        // A locked key is written by its holder alone: the commit has no conflict.
                        let t = db.begin_with(patient).unwrap();
                        t.put("a", [1]).unwrap();
                        let before = t.get_for_update("sum").unwrap().map_or(0, |v| number(&v));
                        t.put("sum", (before + 1).to_le_bytes()).unwrap();
                        t.put(format!("transaction {thread} {n}"), "").unwrap();
                        t.commit().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(number(&db.get("sum").unwrap().unwrap()), 2 * ROUNDS);
    assert_eq!(db.scan(..).count(), 4 * ROUNDS + 3);
    assert_eq!(db.deadlocks().unwrap().len(), 0);
}

//! Every order in which transactions can meet at their locks, explored by loom (`cargo xtask loom`).
//!
//! No time passes in a model: a wait ends when it is served, or the model hangs, which loom reports.

use super::*;
use ashlar_sync::loom::{self, thread};

fn lock(table: &LockTable, transaction: TransactionId, name: &str, mode: Mode) -> Result<Acquired> {
    let key: LockKey = name.as_bytes().into();
    let shown = (name.as_bytes(), "default");
    let request = Request { transaction, key: &key, shown, mode, timeout: None, detect: true };
    table.acquire_with(&request, &|| Signal::new(None), &|| Duration::ZERO)
}

fn release(table: &LockTable, transaction: TransactionId, name: &str) {
    table.release(transaction, &name.as_bytes().into());
}

fn is_deadlock(e: &Error) -> bool {
    e.kind() == ErrorKind::Busy(BusyKind::Deadlock)
}

use Mode::{Exclusive, Shared};

/// One transaction at a time has the key, and each gets it.
#[test]
fn an_exclusive_lock_excludes_and_every_waiter_is_served() {
    loom::model(|| {
        let shared = Arc::new((LockTable::new(), AtomicU64::new(0)));
        let work = |shared: &(LockTable, AtomicU64), transaction| {
            let (table, inside) = shared;
            lock(table, transaction, "k", Exclusive).expect("no circle");
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two hold the key");
            inside.fetch_sub(1, Ordering::Relaxed);
            release(table, transaction, "k");
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || work(&shared, 2))
        };
        work(&shared, 1);
        other.join().expect("no panic");
        assert_eq!(shared.0.held(), 0);
    });
}

/// Two transactions that take two keys in opposite orders: both get them one after the other, or one is refused.
#[test]
fn a_circle_never_closes() {
    loom::model(|| {
        let table = Arc::new(LockTable::new());
        let work = |table: &LockTable, transaction, keys: [&str; 2]| {
            let mut held = 0;
            let done = keys.iter().try_for_each(|key| {
                lock(table, transaction, key, Exclusive)?;
                held += 1;
                Ok(())
            });
            keys.iter().take(held).for_each(|key| release(table, transaction, key));
            done
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || work(&table, 2, ["b", "a"]))
        };
        let mine = work(&table, 1, ["a", "b"]);
        let theirs = other.join().expect("no panic");
        let refused: Vec<_> = [mine, theirs].into_iter().filter_map(Result::err).collect();
        assert!(refused.len() <= 1 && refused.iter().all(is_deadlock), "{refused:?}");
        assert_eq!((table.held(), table.deadlocks().len()), (0, refused.len()));
    });
}

/// A holder of a shared lock that wants it exclusive, beside another holder and a reader that comes.
#[test]
fn an_upgrade_waits_for_the_other_holder_alone() {
    loom::model(|| {
        let table = Arc::new(LockTable::new());
        lock(&table, 1, "k", Shared).expect("free");
        lock(&table, 2, "k", Shared).expect("shared");
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                release(&table, 2, "k");
                lock(&table, 3, "k", Shared).expect("no circle");
                release(&table, 3, "k");
            })
        };
        assert_eq!(lock(&table, 1, "k", Exclusive).expect("no circle"), Acquired::Upgraded);
        release(&table, 1, "k");
        other.join().expect("no panic");
        assert_eq!(table.held(), 0);
    });
}

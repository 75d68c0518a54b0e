//! Every order in which transactions can meet at their locks, explored by loom (`cargo xtask loom`).
//!
//! No time passes in a model: a wait ends when it is served, or the model hangs, which loom reports.

use super::*;
use ashlar_base::{FamilyId, Order};
use ashlar_read::iter::KeyBounds;
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

/// A key of the family 0.
fn in_family(name: &str) -> LockKey {
    [&[0; 4][..], name.as_bytes()].concat().into()
}

fn lock_key(table: &LockTable, transaction: TransactionId, name: &str) -> Result<Acquired> {
    let shown = (name.as_bytes(), "default");
    let key = in_family(name);
    let request = Request { transaction, key: &key, shown, mode: Exclusive, timeout: None, detect: true };
    table.acquire_with(&request, &|| Signal::new(None), &|| Duration::ZERO)
}

/// Locks all keys.
fn lock_all(table: &LockTable, transaction: TransactionId) -> Result<RangeId> {
    let span = Span::new(FamilyId::DEFAULT, Order::Bytewise, KeyBounds::default());
    let family = "default";
    let request =
        RangeRequest { transaction, span: &span, family, mode: Exclusive, timeout: None, detect: true };
    let id = table.acquire_range_with(&request, &|| Signal::new(None), &|| Duration::ZERO)?;
    Ok(id.expect("no range is held"))
}

/// A range and a key in it are never held at once, and both requests are served.
#[test]
fn a_range_excludes_a_key_and_both_are_served() {
    loom::model(|| {
        let shared = Arc::new((LockTable::new(), AtomicU64::new(0)));
        let alone = |inside: &AtomicU64| {
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two hold the key");
            inside.fetch_sub(1, Ordering::Relaxed);
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (table, inside) = &*shared;
                lock_key(table, 2, "k").expect("no circle");
                alone(inside);
                table.release(2, &in_family("k"));
            })
        };
        let (table, inside) = &*shared;
        let id = lock_all(table, 1).expect("no circle");
        alone(inside);
        table.release_range(id);
        other.join().expect("no panic");
        assert!(table.held() == 0 && !table.ranges.is_used());
    });
}

/// Two transactions that each hold a key and want all keys: one is refused, or they come one after the other.
#[test]
fn a_circle_of_ranges_never_closes() {
    loom::model(|| {
        let table = Arc::new(LockTable::new());
        let work = |table: &LockTable, transaction, name: &str| {
            lock_key(table, transaction, name)?;
            let all = lock_all(table, transaction).map(|id| table.release_range(id));
            table.release(transaction, &in_family(name));
            all
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || work(&table, 2, "b"))
        };
        let mine = work(&table, 1, "a");
        let theirs = other.join().expect("no panic");
        let refused: Vec<_> = [mine, theirs].into_iter().filter_map(Result::err).collect();
        assert!(refused.len() <= 1 && refused.iter().all(is_deadlock), "{refused:?}");
        assert!(table.held() == 0 && !table.ranges.is_used());
    });
}

//! Locks of several threads: order, upgrades, timeouts, circles.

#![allow(
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "threads and small numbers of a test"
)]

use super::*;
use ashlar_base::FamilyId;
use ashlar_sync::atomic::AtomicUsize;
use std::thread::scope;

pub(super) const LONG: Duration = Duration::from_secs(60);
pub(super) const SHORT: Duration = Duration::from_millis(30);
pub(super) const FAMILY: FamilyId = FamilyId(7);

/// A table of locks, and its callers.
pub(super) struct Rig {
    pub(super) table: LockTable,
    pub(super) env: Env,
}

pub(super) fn lock_key(family: FamilyId, key: &str) -> LockKey {
    [&family.0.to_le_bytes()[..], key.as_bytes()].concat().into()
}

impl Rig {
    pub(super) fn new() -> Rig {
        Rig { table: LockTable::new(), env: Env::mem() }
    }

    pub(super) fn lock_for(
        &self,
        transaction: u64,
        key: &str,
        mode: Mode,
        timeout: Duration,
    ) -> Result<Acquired> {
        let lock_key = lock_key(FAMILY, key);
        let request = Request {
            transaction,
            key: &lock_key,
            shown: (key.as_bytes(), "default"),
            mode,
            timeout: Some(timeout),
            detect: true,
        };
        self.table.acquire(&request, &self.env)
    }

    pub(super) fn lock(&self, transaction: u64, key: &str, mode: Mode) -> Result<Acquired> {
        self.lock_for(transaction, key, mode, LONG)
    }

    pub(super) fn try_lock(&self, transaction: u64, key: &str, mode: Mode) -> Option<ErrorKind> {
        self.lock_for(transaction, key, mode, Duration::ZERO).err().map(|e| e.kind())
    }

    pub(super) fn release(&self, transaction: u64, key: &str) {
        self.table.release(transaction, &lock_key(FAMILY, key));
    }

    /// Waits until `count` transactions wait.
    pub(super) fn until_waiting(&self, count: usize) {
        while self.table.waits.lock().len() < count {
            std::thread::yield_now();
        }
    }
}

use Mode::{Exclusive, Shared};

#[test]
fn shared_locks_go_together_and_exclusive_ones_alone() {
    let rig = Rig::new();
    assert_eq!(rig.lock(1, "k", Shared).unwrap(), Acquired::New);
    assert_eq!(rig.lock(2, "k", Shared).unwrap(), Acquired::New);
    assert_eq!(rig.lock(2, "k", Shared).unwrap(), Acquired::Held);
    assert_eq!(rig.try_lock(3, "k", Exclusive), Some(ErrorKind::TimedOut));
    assert_eq!(rig.try_lock(2, "k", Exclusive), Some(ErrorKind::TimedOut), "1 holds it too");
    rig.release(1, "k");
    assert_eq!(rig.lock(2, "k", Exclusive).unwrap(), Acquired::Upgraded);
    assert_eq!(rig.lock(2, "k", Shared).unwrap(), Acquired::Held);
    assert_eq!(rig.try_lock(3, "k", Shared), Some(ErrorKind::TimedOut));
    rig.table.downgrade(2, &lock_key(FAMILY, "k"));
    assert_eq!(rig.lock(3, "k", Shared).unwrap(), Acquired::New);
    rig.release(2, "k");
    rig.release(3, "k");
    rig.release(3, "k");
    assert_eq!(rig.table.held(), 0, "nothing is left of free keys");
}

#[test]
fn a_wait_ends_by_its_timeout_and_names_key_and_holder() {
    let rig = Rig::new();
    rig.lock(7, "k", Exclusive).unwrap();
    let e = rig.lock_for(8, "k", Shared, SHORT).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TimedOut);
    assert!(e.to_string().contains("key 'k' of family \"default\" within 30ms: transaction 7"), "{e}");
    assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (1, 0));
}

/// A shared request does not overtake a waiting exclusive one; when that one gives up, the shared one is served.
#[test]
fn requests_are_served_in_the_order_of_their_coming() {
    let rig = Rig::new();
    rig.lock(1, "k", Shared).unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    scope(|scope| {
        for (at, (id, mode)) in
            [(2, Exclusive), (3, Shared), (4, Shared), (5, Exclusive)].into_iter().enumerate()
        {
            let (rig, order) = (&rig, &order);
            scope.spawn(move || {
                rig.lock(id, "k", mode).unwrap();
                order.lock().unwrap().push(id);
                if mode == Exclusive {
                    rig.release(id, "k");
                }
            });
            rig.until_waiting(at + 1);
        }
        assert_eq!(rig.try_lock(9, "k", Shared), Some(ErrorKind::TimedOut), "not past those that wait");
        rig.release(1, "k");
        while order.lock().unwrap().len() < 3 {
            std::thread::yield_now();
        }
        rig.release(3, "k");
        rig.release(4, "k");
    });
    let order = order.into_inner().unwrap();
    assert_eq!((order[0], order[3]), (2, 5), "{order:?}");
    assert_eq!(rig.table.held(), 0);

    rig.lock(1, "k", Shared).unwrap();
    scope(|scope| {
        scope.spawn(|| assert!(rig.lock_for(2, "k", Exclusive, SHORT).is_err()));
        rig.until_waiting(1);
        assert_eq!(rig.lock(3, "k", Shared).unwrap(), Acquired::New, "once the exclusive request gave up");
    });
}

#[test]
fn an_upgrade_goes_before_other_requests() {
    let rig = Rig::new();
    rig.lock(1, "k", Shared).unwrap();
    rig.lock(2, "k", Shared).unwrap();
    let done = AtomicUsize::new(0);
    scope(|scope| {
        scope.spawn(|| {
            rig.lock(3, "k", Exclusive).unwrap();
            assert_eq!(done.fetch_add(1, Ordering::SeqCst), 1);
        });
        rig.until_waiting(1);
        scope.spawn(|| {
            assert_eq!(rig.lock(1, "k", Exclusive).unwrap(), Acquired::Upgraded);
            assert_eq!(done.fetch_add(1, Ordering::SeqCst), 0);
            rig.release(1, "k");
        });
        rig.until_waiting(2);
        rig.release(2, "k");
    });
    rig.release(3, "k");
    assert_eq!(rig.table.held(), 0);
}

#[test]
fn two_upgrades_of_one_key_are_a_deadlock() {
    let rig = Rig::new();
    rig.lock(1, "k", Shared).unwrap();
    rig.lock(2, "k", Shared).unwrap();
    scope(|scope| {
        scope.spawn(|| rig.lock(1, "k", Exclusive).unwrap());
        rig.until_waiting(1);
        let e = rig.lock(2, "k", Exclusive).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock));
        rig.release(2, "k");
    });
}

/// Circles of two to five transactions: the last request closes the circle, and the error names it whole.
#[test]
fn a_circle_is_found_by_the_request_that_closes_it() {
    for size in 2..=5u64 {
        let rig = Rig::new();
        let key = |n: u64| format!("key{}", n % size);
        (0..size).for_each(|n| assert_eq!(rig.lock(n + 1, &key(n), Exclusive).unwrap(), Acquired::New));
        scope(|scope| {
            for n in 0..size - 1 {
                let (rig, key) = (&rig, &key);
                scope.spawn(move || {
                    rig.lock(n + 1, &key(n + 1), Shared).unwrap();
                    rig.release(n + 1, &key(n + 1));
                    rig.release(n + 1, &key(n));
                });
                rig.until_waiting(n as usize + 1);
            }
            let e = rig.lock(size, &key(0), Exclusive).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock));
            let text = e.to_string();
            for n in 0..size {
                assert!(
                    text.contains(&format!("transaction {} waits for key '{}'", n + 1, key(n + 1))),
                    "{text}"
                );
            }
            rig.release(size, &key(size - 1));
        });
        assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (0, 0));
        let [found] = rig.table.deadlocks().try_into().unwrap();
        assert_eq!(found.waits.len(), size as usize);
        assert_eq!((found.waits[0].transaction, &found.waits[0].key[..]), (size, &b"key0"[..]));
    }
}

/// A lock that was released early, by a rollback to a savepoint, is no part of a circle.
#[test]
fn a_released_lock_closes_no_circle() {
    let rig = Rig::new();
    rig.lock(1, "a", Shared).unwrap();
    rig.lock(2, "a", Shared).unwrap();
    rig.lock(3, "b", Exclusive).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            rig.lock(3, "a", Exclusive).unwrap();
            rig.release(3, "a");
            rig.release(3, "b");
        });
        rig.until_waiting(1);
        rig.release(1, "a");
        scope.spawn(|| rig.lock(1, "b", Exclusive).unwrap());
        rig.until_waiting(2);
        rig.release(2, "a");
    });
}

/// Threads add to counters under exclusive locks and read them under shared ones, in random order with upgrades.
#[test]
fn no_update_is_lost_under_exclusive_locks() {
    const KEYS: usize = 4;
    let rig = Rig::new();
    let counters: Vec<_> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let (added, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    scope(|scope| {
        for thread in 0..4u64 {
            let (rig, counters, added, refused) = (&rig, &counters, &added, &refused);
            scope.spawn(move || {
                let mut seed = thread;
                for round in 0..300 {
                    let id = thread * 1000 + round + 1;
                    let mut held = Vec::new();
                    for _ in 0..2 {
                        let at = ashlar_base::splitmix::next(&mut seed) as usize % KEYS;
                        let key = at.to_string();
                        let locked = rig.lock(id, &key, Shared).and_then(|_| {
                            held.push(key.clone());
                            rig.lock(id, &key, Exclusive)
                        });
                        if let Err(e) = locked {
                            assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock), "{e}");
                            refused.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        let before = counters[at].load(Ordering::Relaxed);
                        std::thread::yield_now();
                        counters[at].store(before + 1, Ordering::Relaxed);
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                    held.iter().for_each(|key| rig.release(id, key));
                }
            });
        }
    });
    let sum: usize = counters.iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, added.load(Ordering::Relaxed));
    assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (0, 0));
}

/// Where one thread does everything, a wait lets the time of the simulated clock pass, and ends.
#[test]
fn a_wait_without_other_threads_ends() {
    let env = ashlar_env::sim::SimEnv::new(1).env();
    let rig = Rig { table: LockTable::new(), env };
    rig.lock(1, "k", Exclusive).unwrap();
    let before = rig.env.clock.now();
    assert_eq!(rig.lock(2, "k", Shared).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(rig.env.clock.now() >= before + LONG);
    let key = lock_key(FAMILY, "k");
    let for_ever = Request {
        transaction: 3,
        key: &key,
        shown: (b"k", "default"),
        mode: Shared,
        timeout: None,
        detect: true,
    };
    assert_eq!(rig.table.acquire(&for_ever, &rig.env).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (1, 0));
}

/// A circle through the queue of a key: a request waits for the one ahead, which waits for the holder.
#[test]
fn a_circle_through_a_queue_is_found() {
    let rig = Rig::new();
    rig.lock(1, "k", Exclusive).unwrap();
    rig.lock(3, "other", Exclusive).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            rig.lock(2, "k", Exclusive).unwrap();
            rig.release(2, "k");
        });
        rig.until_waiting(1);
        scope.spawn(|| {
            rig.lock(3, "k", Shared).unwrap();
            rig.release(3, "k");
            rig.release(3, "other");
        });
        rig.until_waiting(2);
        let e = rig.lock(1, "other", Shared).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock));
        let [found] = rig.table.deadlocks().try_into().unwrap();
        let ids: Vec<_> = found.waits.iter().map(|wait| wait.transaction).collect();
        assert_eq!(ids, [1, 3, 2], "{e}");
        rig.release(1, "k");
    });
    assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (0, 0));
}

/// Waiters that give up in the middle of a queue leave the others where they are, and what they waited for is forgotten.
#[test]
fn a_queue_closes_behind_a_waiter_that_gives_up() {
    let rig = Rig::new();
    rig.lock(1, "k", Exclusive).unwrap();
    rig.lock(4, "other", Exclusive).unwrap();
    scope(|scope| {
        let late = scope.spawn(|| rig.lock_for(2, "k", Exclusive, Duration::from_millis(60)).is_err());
        rig.until_waiting(1);
        scope.spawn(|| {
            rig.lock(3, "k", Exclusive).unwrap();
            rig.release(3, "k");
        });
        rig.until_waiting(2);
        assert!(late.join().unwrap());
        // 3 no longer waits behind 2, so 2 may wait for what 4 holds, and 4 for what 3 waits for.
        scope.spawn(|| {
            rig.lock(2, "other", Exclusive).unwrap();
            rig.release(2, "other");
        });
        rig.until_waiting(2);
        scope.spawn(|| {
            rig.lock(4, "k", Shared).unwrap();
            rig.release(4, "k");
            rig.release(4, "other");
        });
        rig.until_waiting(3);
        rig.release(1, "k");
    });
    assert_eq!((rig.table.held(), rig.table.waits.lock().len()), (0, 0));
    assert!(rig.table.deadlocks().is_empty());
}

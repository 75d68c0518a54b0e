//! Locks on ranges beside locks on keys: exclusion, order, circles; random histories beside an oracle.

#![allow(
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "threads and small numbers of a test"
)]

use super::tests::{FAMILY, LONG, Rig, SHORT, lock_key};
use super::*;
use ashlar_base::{FamilyId, Order, splitmix};
use ashlar_read::iter::KeyBounds;
use std::thread::scope;

use Mode::{Exclusive, Shared};

/// `from..to`; an empty word is no bound.
fn span(from: &str, to: &str) -> Span {
    let bound = |word: &str| (!word.is_empty()).then(|| word.as_bytes().to_vec());
    Span::new(
        FAMILY,
        Order::Bytewise,
        KeyBounds { lower: bound(from), upper: bound(to), ..KeyBounds::default() },
    )
}

impl Rig {
    fn range_for(
        &self,
        transaction: u64,
        span: &Span,
        mode: Mode,
        timeout: Duration,
    ) -> Result<Option<RangeId>> {
        let request =
            RangeRequest { transaction, span, family: "default", mode, timeout: Some(timeout), detect: true };
        self.table.acquire_range(&request, &self.env)
    }

    fn range(&self, transaction: u64, from: &str, to: &str, mode: Mode) -> Result<Option<RangeId>> {
        self.range_for(transaction, &span(from, to), mode, LONG)
    }

    fn try_key(&self, transaction: u64, key: &str, mode: Mode) -> bool {
        self.try_lock(transaction, key, mode).is_none()
    }

    fn try_range(&self, transaction: u64, from: &str, to: &str, mode: Mode) -> bool {
        self.range_for(transaction, &span(from, to), mode, Duration::ZERO).is_ok()
    }

    fn is_empty(&self) -> bool {
        (self.table.held(), self.table.waits.lock().len()) == (0, 0) && !self.table.ranges.is_used()
    }
}

#[test]
fn a_range_excludes_its_keys_and_ranges_that_meet_it() {
    let rig = Rig::new();
    let id = rig.range(1, "c", "f", Exclusive).unwrap().unwrap();
    for (key, free) in [("b", true), ("c", false), ("e", false), ("ezz", false), ("f", true), ("", true)] {
        assert_eq!(rig.try_key(2, key, Shared), free, "{key}");
    }
    for (from, to, free) in [
        ("", "c", true),
        ("", "c1", false),
        ("d", "e", false),
        ("f", "", true),
        ("e", "", false),
        ("", "", false),
    ] {
        assert_eq!(rig.try_range(3, from, to, Shared), free, "{from}..{to}");
    }
    // The same keys in another family are free.
    let other = lock_key(FamilyId(8), "d");
    let request = Request {
        transaction: 2,
        key: &other,
        shown: (b"d", "g"),
        mode: Exclusive,
        timeout: Some(Duration::ZERO),
        detect: true,
    };
    assert_eq!(rig.table.acquire(&request, &rig.env).unwrap(), Acquired::New);
    // The holder needs no lock of a key within its range, nor of a range.
    assert_eq!(rig.lock(1, "d", Exclusive).unwrap(), Acquired::Held);
    assert_eq!(rig.range(1, "d", "e", Exclusive).unwrap(), None);
    assert_eq!(rig.range(1, "x", "x", Exclusive).unwrap(), None, "an empty range");
    rig.table.release_range(id);
    assert!(rig.try_key(2, "d", Exclusive));
}

#[test]
fn keys_that_others_hold_are_in_the_way_of_a_range() {
    let rig = Rig::new();
    rig.lock(1, "d", Shared).unwrap();
    rig.lock(2, "d", Shared).unwrap();
    assert!(!rig.try_range(3, "a", "z", Exclusive));
    assert!(!rig.try_range(1, "a", "z", Exclusive), "2 holds a key");
    let shared = rig.range(3, "a", "z", Shared).unwrap().unwrap();
    assert!(
        !rig.try_key(1, "d", Exclusive) && rig.try_key(4, "e", Shared) && !rig.try_key(4, "e", Exclusive)
    );
    rig.table.release_range(shared);
    rig.release(2, "d");
    rig.release(4, "e");
    let own = rig.range(1, "a", "z", Exclusive).unwrap().unwrap();
    assert_eq!(rig.lock(1, "d", Exclusive).unwrap(), Acquired::Held);
    rig.table.release_range(own);
    rig.release(1, "d");
    assert!(rig.is_empty());
}

#[test]
fn a_wait_ends_by_its_timeout_and_names_range_and_holder() {
    let rig = Rig::new();
    let id = rig.range(7, "a", "m", Exclusive).unwrap().unwrap();
    let e = rig.lock_for(8, "k", Shared, SHORT).unwrap_err();
    assert!(
        e.to_string()
            .contains("no lock on key 'k' of family \"default\" within 30ms: transaction 7 holds it"),
        "{e}"
    );
    let e = rig.range_for(8, &span("k", ""), Shared, SHORT).unwrap_err();
    assert!(
        e.to_string()
            .contains("no lock on keys 'k'.. of family \"default\" within 30ms: transaction 7 holds it"),
        "{e}"
    );
    assert_eq!((e.kind(), rig.table.waits.lock().len()), (ErrorKind::TimedOut, 0));
    rig.table.release_range(id);
    rig.lock(9, "k", Exclusive).unwrap();
    let e = rig.range_for(8, &span("k", "l"), Shared, SHORT).unwrap_err();
    assert!(
        e.to_string().contains("keys 'k'..'l' of family \"default\" within 30ms: transaction 9 holds it"),
        "{e}"
    );
    rig.release(9, "k");
    assert!(rig.is_empty());
}

/// A range waits for the keys that are held; requests behind it wait for the range, in their order, and all are served.
#[test]
fn requests_are_served_in_the_order_of_their_coming() {
    let rig = Rig::new();
    rig.lock(1, "c", Exclusive).unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    scope(|scope| {
        let (rig, order) = (&rig, &order);
        scope.spawn(move || {
            let id = rig.range(2, "a", "f", Exclusive).unwrap().unwrap();
            order.lock().unwrap().push(2);
            rig.table.release_range(id);
        });
        rig.until_waiting(1);
        assert!(!rig.try_key(9, "b", Shared), "not past the range that waits");
        assert!(rig.try_key(9, "x", Exclusive), "outside of it");
        for (at, id) in [3, 4].into_iter().enumerate() {
            scope.spawn(move || {
                rig.lock(id, "b", Exclusive).unwrap();
                order.lock().unwrap().push(id);
                rig.release(id, "b");
            });
            rig.until_waiting(at + 2);
        }
        scope.spawn(move || {
            let id = rig.range(5, "b", "c", Shared).unwrap().unwrap();
            order.lock().unwrap().push(5);
            rig.table.release_range(id);
        });
        rig.until_waiting(4);
        rig.release(1, "c");
    });
    rig.release(9, "x");
    assert_eq!(order.into_inner().unwrap(), [2, 3, 4, 5]);
    assert!(rig.is_empty());
}

/// The holder of a key that a waiting range waits for takes more keys of that range without a wait, and the range waits for these
/// too.
#[test]
fn a_holder_passes_the_range_that_waits_for_it() {
    let rig = Rig::new();
    rig.lock(1, "c", Shared).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            let id = rig.range(2, "a", "f", Exclusive).unwrap().unwrap();
            rig.table.release_range(id);
        });
        rig.until_waiting(1);
        assert_eq!(rig.lock(1, "d", Exclusive).unwrap(), Acquired::New);
        assert_eq!(rig.lock(1, "c", Exclusive).unwrap(), Acquired::Upgraded);
        let id = rig.range(1, "b", "e", Exclusive).unwrap().unwrap();
        rig.release(1, "c");
        rig.table.release_range(id);
        assert_eq!(rig.table.waits.lock().len(), 1, "d is still held");
        rig.release(1, "d");
    });
    assert!(rig.is_empty());
}

#[test]
fn a_circle_through_ranges_is_found_and_named() {
    let rig = Rig::new();
    let a = rig.range(1, "a", "c", Exclusive).unwrap().unwrap();
    rig.lock(2, "x", Exclusive).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            let id = rig.range(2, "b", "d", Shared).unwrap().unwrap();
            rig.table.release_range(id);
            rig.release(2, "x");
        });
        rig.until_waiting(1);
        let e = rig.range(1, "w", "z", Exclusive).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock));
        for part in [
            "transaction 1 waits for keys 'w'..'z' of family \"default\" behind transaction 2",
            "transaction 2 waits for keys 'b'..'d' of family \"default\" behind transaction 1",
        ] {
            assert!(e.to_string().contains(part), "{e}");
        }
        let e = rig.lock(1, "x", Shared).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock), "through a key too");
        rig.table.release_range(a);
    });
    let [_, first] = rig.table.deadlocks().try_into().unwrap();
    assert_eq!((&first.waits[0].key[..], first.waits[0].range.is_some()), (&b"w"[..], true));
    assert!(rig.is_empty());
}

/// Two holders of one shared range that want keys of it exclusive: one is refused.
#[test]
fn two_upgrades_within_a_shared_range_are_a_deadlock() {
    let rig = Rig::new();
    let ids = [1, 2].map(|t| rig.range(t, "a", "z", Shared).unwrap().unwrap());
    scope(|scope| {
        scope.spawn(|| {
            rig.lock(1, "k", Exclusive).unwrap();
            rig.release(1, "k");
        });
        rig.until_waiting(1);
        assert_eq!(rig.lock(2, "l", Exclusive).unwrap_err().kind(), ErrorKind::Busy(BusyKind::Deadlock));
        rig.table.release_range(ids[1]);
    });
    rig.table.release_range(ids[0]);
    assert!(rig.is_empty());
}

/// What the oracle knows of a lock: its transaction, its mode, and the keys from the first number up to the second.
type Oracle = (u64, Mode, u8, u8);

fn name(n: u8) -> String {
    format!("{n:03}")
}

fn clash(held: &[Oracle], own: &Oracle) -> bool {
    held.iter().any(|other| {
        other.0 != own.0 && other.1.max(own.1) == Exclusive && other.2 < own.3 && own.2 < other.3
    })
}

/// What a transaction of a history holds.
enum Own {
    Key(u8),
    Range(RangeId),
}

/// One thread, many transactions, no waits: each request is granted exactly when the oracle says so.
#[test]
fn random_requests_without_waits_agree_with_an_oracle() {
    for seed in 0..40 {
        let (rig, mut seed) = (Rig::new(), seed);
        let mut draw = |n: u64| splitmix::next(&mut seed) % n;
        let mut held: Vec<(Oracle, Own)> = Vec::new();
        for step in 0..400 {
            let (t, mode) = (1 + draw(4), if draw(2) == 0 { Shared } else { Exclusive });
            if draw(3) == 0 {
                let Some(at) = held.iter().rposition(|(oracle, _)| oracle.0 == t) else { continue };
                // The newest lock first, as savepoints release.
                match held.remove(at).1 {
                    Own::Key(key) => rig.release(t, &name(key)),
                    Own::Range(id) => rig.table.release_range(id),
                }
                continue;
            }
            let known: Vec<Oracle> = held.iter().map(|(oracle, _)| *oracle).collect();
            let from = draw(12) as u8;
            if draw(2) == 0 {
                let own = (t, mode, from, from + 1);
                let got = rig.lock_for(t, &name(from), mode, Duration::ZERO);
                assert_eq!(got.is_ok(), !clash(&known, &own), "step {step}: {own:?} beside {known:?}");
                match got {
                    Ok(Acquired::New) => held.push((own, Own::Key(from))),
                    Ok(Acquired::Upgraded) => {
                        let upgraded = held.iter_mut().find(|(oracle, own)| {
                            oracle.0 == t && matches!(own, Own::Key(key) if *key == from)
                        });
                        upgraded.expect("held before").0.1 = Exclusive;
                    }
                    _ => {}
                }
            } else {
                let to = from + 1 + draw(6) as u8;
                let own = (t, mode, from, to);
                let got = rig.range_for(t, &span(&name(from), &name(to)), mode, Duration::ZERO);
                assert_eq!(got.is_ok(), !clash(&known, &own), "step {step}: {own:?} beside {known:?}");
                held.extend(got.ok().flatten().map(|id| (own, Own::Range(id))));
            }
        }
        for ((t, ..), own) in held.into_iter().rev() {
            match own {
                Own::Key(key) => rig.release(t, &name(key)),
                Own::Range(id) => rig.table.release_range(id),
            }
        }
        assert!(rig.is_empty());
    }
}

/// Threads whose transactions take several locks and wait for them: what is granted never clashes with what others hold, every
/// request is granted or refused for a circle, and nothing is left.
#[test]
fn random_histories_of_threads_never_clash() {
    let rig = Rig::new();
    let held = std::sync::Mutex::new(Vec::<Oracle>::new());
    let refused = AtomicU64::new(0);
    scope(|scope| {
        for thread in 0..4_u64 {
            let (rig, held, refused) = (&rig, &held, &refused);
            scope.spawn(move || {
                let mut seed = thread;
                let mut draw = move |n: u64| splitmix::next(&mut seed) % n;
                for round in 0..400 {
                    let t = thread * 10_000 + round + 1;
                    let (mut keys, mut ranges) = (Vec::new(), Vec::new());
                    for _ in 0..1 + draw(4) {
                        let mode = if draw(3) == 0 { Shared } else { Exclusive };
                        let (from, ranged) = (draw(10) as u8, draw(2) == 0);
                        let to = from + 1 + if ranged { draw(5) as u8 } else { 0 };
                        let got = if ranged {
                            let got = rig.range(t, &name(from), &name(to), mode);
                            got.map(|id| ranges.extend(id))
                        } else {
                            rig.lock(t, &name(from), mode).map(|_| keys.push(from))
                        };
                        if let Err(e) = got {
                            assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Deadlock), "{e}");
                            refused.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        let own = (t, mode, from, to);
                        let mut held = held.lock().unwrap();
                        assert!(!clash(&held, &own), "{own:?} beside {held:?}");
                        held.push(own);
                    }
                    if draw(4) == 0 {
                        std::thread::yield_now();
                    }
                    held.lock().unwrap().retain(|(other, ..)| *other != t);
                    ranges.iter().for_each(|id| rig.table.release_range(*id));
                    keys.iter().for_each(|key| rig.release(t, &name(*key)));
                }
            });
        }
    });
    assert!(refused.load(Ordering::Relaxed) < 1600, "some got their locks");
    assert!(rig.is_empty());
}

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Tells when it is dropped.
struct Canary(u64, Arc<AtomicU64>);

impl Drop for Canary {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn canary(n: u64, dropped: &Arc<AtomicU64>) -> Arc<Canary> {
    Arc::new(Canary(n, Arc::clone(dropped)))
}

#[test]
fn comes_and_goes_under_readers() {
    let rounds: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let dropped = Arc::new(AtomicU64::new(0));
    let (slot, done) = (LeaseSlot::<Canary>::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::SeqCst) {
                    if let Some(seen) = slot.lease() {
                        assert!(seen.0 >= last, "went back from {last} to {}", seen.0);
                        last = seen.0;
                        assert!(dropped.load(Ordering::SeqCst) <= last, "ended under a lease");
                    }
                }
            });
        }
        for n in 0..rounds {
            assert!(slot.fill(canary(n, &dropped)).1, "no other thread fills");
            while slot.take_unused().is_none() {
                yield_now();
            }
            assert_eq!(dropped.load(Ordering::SeqCst), n + 1, "the taker is the only owner");
        }
        done.store(true, Ordering::SeqCst);
    });
    assert!(slot.lease().is_none());
}

/// Regression: each of them looked into the slot while the others tried to write, so that none could.
#[test]
fn many_fill_at_once() {
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let slot = LeaseSlot::new();
        let gate = std::sync::Barrier::new(64);
        let answers: Vec<_> = thread::scope(|scope| {
            let fill = |n| {
                let (slot, gate) = (&slot, &gate);
                scope.spawn(move || {
                    gate.wait();
                    let (value, ours) = slot.fill(Arc::new(n));
                    (*value, ours)
                })
            };
            let threads: Vec<_> = (0..64).map(fill).collect();
            threads.into_iter().map(|t| t.join().expect("fills")).collect()
        });
        assert!(answers.iter().all(|(value, _)| *value == answers[0].0), "round {round}: {answers:?}");
        assert_eq!(answers.iter().filter(|(_, ours)| *ours).count(), 1, "round {round}: {answers:?}");
    }
}

#[test]
fn the_first_of_many_stays() {
    let dropped = Arc::new(AtomicU64::new(0));
    let slot = LeaseSlot::default();
    let ours = thread::scope(|scope| {
        let fill = |n| slot.fill(canary(n, &dropped)).1;
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || fill(n))).collect();
        threads.into_iter().map(|t| t.join().expect("fills")).filter(|ours| *ours).count()
    });
    assert_eq!((ours, dropped.load(Ordering::SeqCst)), (1, 3));
    drop(slot);
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
}

#[test]
fn what_is_used_stays() {
    let slot = LeaseSlot::<u32>::new();
    assert!(slot.take_unused().is_none() && slot.get().is_none());
    slot.fill(Arc::new(7));
    let lease = slot.lease().expect("full");
    assert!(slot.take_unused().is_none(), "leased");
    let shared = lease.share();
    drop(lease);
    assert!(slot.take_unused().is_none(), "counted");
    assert_eq!((*shared, slot.get().as_deref()), (7, Some(&7)));
    drop(shared);
    assert_eq!(slot.take_unused().as_deref(), Some(&7));
    assert_eq!(format!("{slot:?}"), "LeaseSlot(empty)");
}

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

/// Tells when it is dropped, and is visibly broken afterwards.
struct Canary {
    a: u64,
    b: u64,
    dropped: Arc<AtomicU64>,
}

impl Canary {
    fn new(n: u64, dropped: &Arc<AtomicU64>) -> Arc<Canary> {
        Arc::new(Canary { a: n, b: !n, dropped: Arc::clone(dropped) })
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        assert_eq!(self.a, !self.b);
        self.b = self.a;
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Frees what is left; other tests of this process may pin for a while.
fn settle_until(dropped: &AtomicU64, n: u64) {
    for _ in 0..1_000_000 {
        if dropped.load(Ordering::SeqCst) == n {
            return;
        }
        ReadPin::settle();
        thread::yield_now();
    }
    panic!("{} of {n} dropped", dropped.load(Ordering::SeqCst));
}

#[test]
fn swaps_under_readers() {
    let rounds: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let dropped = Arc::new(AtomicU64::new(0));
    let cell = EpochCell::new(Canary::new(0, &dropped));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::SeqCst) {
                    let pin = ReadPin::enter();
                    let seen = cell.load(&pin);
                    assert_eq!(seen.a, !seen.b);
                    assert!(seen.a >= last, "went back from {last} to {}", seen.a);
                    last = seen.a;
                    let kept = Arc::clone(seen);
                    drop(pin);
                    assert_eq!(kept.a, !kept.b);
                    assert!(cell.get().a >= last);
                }
            });
        }
        for n in 1..=rounds {
            cell.set(Canary::new(n, &dropped));
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(cell.get().a, rounds);
    drop(cell);
    settle_until(&dropped, rounds + 1);
}

#[test]
fn drops_each_value_once() {
    let dropped = Arc::new(AtomicU64::new(0));
    let cell = EpochCell::new(Canary::new(1, &dropped));
    let pin = ReadPin::enter();
    let first = cell.load(&pin);
    cell.set(Canary::new(2, &dropped));
    assert_eq!(dropped.load(Ordering::SeqCst), 0, "freed under a pin");
    assert_eq!((first.a, cell.load(&pin).a), (1, 2));
    let second = cell.load(&pin);
    drop(cell);
    assert_eq!((first.a, second.a, second.b), (1, 2, !2), "the pin outlives the cell");
    drop(pin);
    settle_until(&dropped, 2);
}

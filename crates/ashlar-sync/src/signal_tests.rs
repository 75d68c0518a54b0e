use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

#[test]
fn a_notify_between_look_and_wait_is_not_lost() {
    let s = Signal::new(None);
    let seen = s.seen();
    s.notify();
    assert_eq!(s.wait(seen, None), Waited::Notified);
    assert_eq!(s.wait(s.seen(), Some(Duration::from_millis(1))), Waited::TimedOut);
}

#[test]
fn ping_pong_without_timeouts_never_hangs() {
    let s = Arc::new(Signal::new(None));
    let turn = Arc::new(AtomicU64::new(0));
    const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let play = |mine: u64| {
        let (s, turn) = (Arc::clone(&s), Arc::clone(&turn));
        move || {
            for round in 0..ROUNDS {
                loop {
                    let seen = s.seen();
                    if turn.load(Ordering::SeqCst) == 2 * round + mine {
                        break;
                    }
                    assert_eq!(s.wait(seen, None), Waited::Notified);
                }
                turn.fetch_add(1, Ordering::SeqCst);
                s.notify();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(play(0));
        scope.spawn(play(1));
    });
    assert_eq!(turn.load(Ordering::SeqCst), 2 * ROUNDS);
    assert_eq!(s.waiting.load(Ordering::SeqCst), 0);
}

#[test]
fn one_notify_wakes_all() {
    let s = Signal::new(None);
    let go = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let seen = s.seen();
                        if go.load(Ordering::SeqCst) {
                            return;
                        }
                        s.wait(seen, None);
                    }
                })
            })
            .collect();
        while s.waiting.load(Ordering::SeqCst) < 4 {
            thread::yield_now();
        }
        go.store(true, Ordering::SeqCst);
        s.notify();
        waiters.into_iter().for_each(|w| w.join().unwrap());
    });
}

/// Counts down; at zero it notifies, or has nothing to do.
struct Countdown {
    left: AtomicU64,
    nanos: AtomicU64,
    target: Mutex<Option<Arc<Signal>>>,
}

impl WaitHook for Countdown {
    fn pass(&self, timeout: Option<Duration>) -> bool {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
            if self.left.load(Ordering::SeqCst) == 0
                && let Some(s) = self.target.lock().unwrap().as_ref()
            {
                s.notify();
            }
            return true;
        }
        let Some(t) = timeout else { return false };
        self.nanos.fetch_add(u64::try_from(t.as_nanos()).unwrap(), Ordering::SeqCst);
        true
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}

#[test]
fn a_hook_is_driven_until_it_notifies_times_out_or_is_stuck() {
    let hook =
        Arc::new(Countdown { left: AtomicU64::new(5), nanos: AtomicU64::new(0), target: Mutex::new(None) });
    let s = Arc::new(Signal::new(Some(Arc::clone(&hook) as _)));
    *hook.target.lock().unwrap() = Some(Arc::clone(&s));
    assert_eq!(s.wait(s.seen(), None), Waited::Notified);
    assert_eq!(hook.left.load(Ordering::SeqCst), 0);
    assert_eq!(s.wait(s.seen(), None), Waited::Stuck);
    let hour = Duration::from_secs(3600);
    assert_eq!(s.wait(s.seen(), Some(hour)), Waited::TimedOut);
    assert_eq!(hook.now(), hour);
}

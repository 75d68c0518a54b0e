//! The types of this crate in every order of steps of a few threads, under loom (`cargo xtask loom`).

use crate::primitive::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::{EpochCell, Lead, LeadCell, LeaseSlot, Mutex, Rank, ReadPin, Signal, Waited};
use loom::thread;
use std::sync::Arc;

/// Two wait for a state that a third brings about: none of them sleeps for ever.
#[test]
fn a_signal_loses_no_wake_up() {
    loom::model(|| {
        let shared = Arc::new((Signal::new(None), AtomicBool::new(false)));
        let wait = |shared: &(Signal, AtomicBool)| {
            loop {
                let seen = shared.0.seen();
                if shared.1.load(Ordering::Acquire) {
                    return;
                }
                assert_eq!(shared.0.wait(seen, None), Waited::Notified);
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || wait(&shared))
        };
        let notifier = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(true, Ordering::Release);
                shared.0.notify();
            })
        };
        wait(&shared);
        other.join().expect("waits");
        notifier.join().expect("notifies");
    });
}

/// A value that notes its end. What is noted is no part of the model: each step of it happens at once.
struct Mortal(Arc<std::sync::atomic::AtomicBool>);

impl Drop for Mortal {
    fn drop(&mut self) {
        assert!(!self.0.swap(true, Ordering::SeqCst), "dropped twice");
    }
}

fn mortal() -> (Arc<Mortal>, Arc<std::sync::atomic::AtomicBool>) {
    let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
    (Arc::new(Mortal(Arc::clone(&gone))), gone)
}

/// The switch of a version under a reader: what was loaded under a pin lives as long as the pin. The epochs themselves are
/// in the model, so that one preemption makes as many orders as can be tried in half a minute.
#[test]
fn what_is_pinned_outlives_its_replacement() {
    let mut orders = loom::model::Builder::new();
    orders.preemption_bound = Some(1);
    orders.check(|| {
        let (first, _) = mortal();
        let (second, _) = mortal();
        let cell = Arc::new(EpochCell::new(first));
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let pin = ReadPin::enter();
                let value = cell.load(&pin);
                assert!(!value.0.load(Ordering::SeqCst));
                thread::yield_now();
                assert!(!value.0.load(Ordering::SeqCst), "freed under the pin");
            })
        };
        cell.set(second);
        reader.join().expect("reads");
        assert!(!cell.get().0.load(Ordering::SeqCst));
    });
}

/// A lease and a taker: a value that is taken has no lease.
#[test]
fn a_value_that_is_taken_has_no_lease() {
    loom::model(|| {
        let slot = Arc::new(LeaseSlot::new());
        slot.fill(Arc::new(AtomicU32::new(0)));
        let reader = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if let Some(lease) = slot.lease() {
                    // Only the sole owner may set the value to one.
                    assert_eq!(lease.load(Ordering::Relaxed), 0);
                    thread::yield_now();
                    assert_eq!(lease.load(Ordering::Relaxed), 0);
                }
            })
        };
        if let Some(value) = slot.take_unused() {
            value.store(1, Ordering::Relaxed);
        }
        reader.join().expect("reads");
    });
}

/// Two fill one slot: one value stands there, and both know which.
#[test]
fn two_fill_a_slot_and_agree() {
    loom::model(|| {
        let slot = Arc::new(LeaseSlot::new());
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || slot.fill(Arc::new(1)))
        };
        let (here, mine) = slot.fill(Arc::new(2));
        let (there, theirs) = other.join().expect("fills");
        assert!(Arc::ptr_eq(&here, &there) && mine != theirs);
    });
}

/// A lead, and how many wait for it.
struct Led {
    lead: LeadCell<loom::cell::Cell<u32>>,
    waiting: Mutex<u32>,
    handed: Signal,
    /// The lead is left open instead of handed over.
    opens: bool,
}

impl Led {
    fn end(&self, lead: Lead<'_, loom::cell::Cell<u32>>) {
        // Loom panics if another thread reads or writes the cell at the same time.
        lead.set(lead.get() + 1);
        let Err(mut lead) = lead.release() else { return };
        let mut waiting = self.waiting.lock();
        match *waiting {
            0 => return lead.free(),
            _ if self.opens => lead.open(),
            left => {
                if left == 1 {
                    lead.settle();
                }
                assert_eq!(lead.is_awaited(), left > 1);
                *waiting -= 1;
                lead.hand_over();
            }
        }
        drop(waiting);
        self.handed.notify();
    }

    fn take_open(&self) -> Option<Lead<'_, loom::cell::Cell<u32>>> {
        let mut waiting = self.waiting.lock();
        self.lead.take_open().inspect(|_| *waiting -= 1)
    }

    fn add(&self) {
        let taken = self.lead.try_take().or_else(|| {
            let mut waiting = self.waiting.lock();
            let taken = self.lead.take_or_await();
            *waiting += u32::from(taken.is_none());
            taken
        });
        let lead = taken.unwrap_or_else(|| {
            loop {
                let seen = self.handed.seen();
                match self.lead.accept().or_else(|| self.take_open()) {
                    Some(lead) => break lead,
                    None => {
                        self.handed.wait(seen, None);
                    }
                }
            }
        });
        self.end(lead);
    }
}

/// Three threads add to the data of a lead, in turn.
fn three_add(opens: bool) {
    loom::model(move || {
        let lead = LeadCell::new(loom::cell::Cell::new(0));
        let (waiting, handed) = (Mutex::new(Rank::Inner, 0), Signal::new(None));
        let shared = Arc::new(Led { lead, waiting, handed, opens });
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.add())
            })
            .collect();
        shared.add();
        for other in others {
            other.join().expect("adds");
        }
        let lead = shared.lead.try_take().expect("free in the end");
        assert_eq!(lead.get(), 3);
    });
}

#[test]
fn the_lead_has_one_leader_at_a_time() {
    three_add(false);
}

#[test]
fn an_open_lead_has_one_leader_at_a_time() {
    three_add(true);
}

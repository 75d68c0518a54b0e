//! Every order in which writers can meet in the queue, tried by loom (`cargo xtask loom`).

use super::queue::{Queue, Receipt, Turn, Waiter};
use crate::options::WriteOptions;
use ashlar_base::SeqNum;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_sync::Signal;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::loom::{self, thread};
use std::sync::Arc;

#[derive(Default)]
struct Writers {
    /// Somebody leads now.
    leads: AtomicBool,
    committed: AtomicU64,
}

/// Leads: commits the own batch and those that wait, hands over.
fn lead(queue: &Queue, writers: &Writers) {
    assert!(!writers.leads.swap(true, Ordering::AcqRel), "two lead at once");
    let group = queue.take_group(1 << 20);
    for follower in &group {
        drop(follower.take_batch());
        let last = SeqNum::new(writers.committed.fetch_add(1, Ordering::Relaxed) + 1).expect("few");
        follower.give(Turn::Done(Ok(Receipt { last, log_end: None })));
    }
    writers.committed.fetch_add(1, Ordering::Relaxed);
    assert!(writers.leads.swap(false, Ordering::AcqRel));
    queue.hand_over();
}

/// As a commit does it; `alone`: as a switch of memtables does.
fn write(queue: &Queue, writers: &Writers, alone: bool) {
    if queue.try_lead() {
        return lead(queue, writers);
    }
    let work = (!alone).then(|| (BatchEncoder::new(), WriteOptions::default()));
    let waiter = Waiter::new(work, Signal::new(None));
    if queue.enqueue(&waiter) {
        return lead(queue, writers);
    }
    match waiter.wait() {
        Turn::Done(outcome) => assert!(outcome.is_ok() && !alone),
        Turn::Lead => lead(queue, writers),
    }
}

fn meet(alone: [bool; 2]) {
    loom::model(move || {
        let shared = Arc::new((Queue::new(), Writers::default()));
        let others: Vec<_> = alone
            .into_iter()
            .map(|alone| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || write(&shared.0, &shared.1, alone))
            })
            .collect();
        write(&shared.0, &shared.1, false);
        for other in others {
            other.join().expect("writes");
        }
        assert_eq!(shared.1.committed.load(Ordering::Relaxed), 3, "each once");
        assert!(shared.0.try_lead(), "the lead is free in the end");
    });
}

#[test]
fn each_writer_is_committed_once_and_nobody_waits_for_ever() {
    meet([false, false]);
}

#[test]
fn who_leads_alone_gets_the_lead() {
    meet([true, false]);
}

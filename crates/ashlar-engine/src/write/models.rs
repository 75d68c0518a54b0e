//! Every order in which writers can meet in the queue and in the rounds of syncs, explored by loom (`cargo xtask loom`).

use super::queue::{Ended, Lead, Limit, Place, Queue, Receipt, Waiter};
use super::refusal::stalled;
use super::rounds::{Part, Rounds};
use ashlar_base::{Error, ErrorKind, FileNumber, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_options::WriteOptions;
use ashlar_sync::Signal;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::loom::{self, thread};
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
struct Writers {
    /// A writer leads at this moment.
    leads: AtomicBool,
    committed: AtomicU64,
    /// Writers whose leader panicked, that leader included.
    given_up: AtomicU64,
}

fn receipt(last: u64) -> Receipt {
    Receipt { last: SeqNum::new(last).expect("few"), log_end: (FileNumber(1), last) }
}

/// The number of leaders so far, as the leader's state.
type LedQueue = Queue<u64>;

/// Leads: commits its own batch and the waiting ones, and hands over. `panics`: ends as a panicking leader does.
fn lead(lead: Lead<'_, u64>, writers: &Writers, panics: bool) {
    assert!(!writers.leads.swap(true, Ordering::AcqRel), "two lead at once");
    let given_up = || Error::new(ErrorKind::Aborted, "the leader panicked");
    let mut group = lead.group(1 << 20, &given_up);
    let next = || writers.committed.fetch_add(1, Ordering::Relaxed) + 1;
    let (followers, leaders) = group.parts();
    *leaders += 1;
    assert!(writers.leads.swap(false, Ordering::AcqRel));
    if panics {
        writers.given_up.fetch_add(followers.len() as u64 + 1, Ordering::Relaxed);
        return;
    }
    next();
    for follower in followers {
        follower.outcome = Some(Ok(receipt(next())));
    }
}

/// What a writer does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Commits.
    Commits,
    /// Commits, and panics if it leads.
    Panics,
    /// Leads alone, as a switch of memtables does.
    Alone,
}

fn write(queue: &LedQueue, writers: &Writers, kind: Kind) {
    let panics = kind == Kind::Panics;
    if let Some(taken) = queue.try_lead() {
        return lead(taken, writers, panics);
    }
    let waiter = match kind {
        Kind::Alone => Waiter::alone(true, Signal::new(None)),
        _ => Waiter::new(BatchEncoder::new(), WriteOptions::default(), Signal::new(None)),
    };
    let soon = match queue.enqueue(&waiter) {
        Place::Leads(taken) => return lead(taken, writers, panics),
        Place::Waits { soon } => soon,
    };
    match queue.wait(&waiter, soon, None) {
        Ended::Done(_) => {
            assert!(kind != Kind::Alone);
            assert!(waiter.take_batch().is_some(), "the batch is back");
        }
        Ended::Left => panic!("it has no limit"),
        Ended::Leads(taken) => lead(taken, writers, panics),
    }
}

fn meet(kinds: [Kind; 2]) {
    loom::model(move || {
        let shared = Arc::new((LedQueue::new(0), Writers::default()));
        let others: Vec<_> = kinds
            .into_iter()
            .map(|kind| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || write(&shared.0, &shared.1, kind))
            })
            .collect();
        write(&shared.0, &shared.1, Kind::Commits);
        for other in others {
            other.join().expect("writes");
        }
        let [committed, given_up] =
            [&shared.1.committed, &shared.1.given_up].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(committed + given_up, 3, "each once");
        assert!(given_up == 0 || kinds.contains(&Kind::Panics));
        let leaders = *shared.0.try_lead().expect("the lead is free in the end");
        assert!((1..=3).contains(&leaders));
    });
}

#[test]
fn each_writer_is_committed_once_and_none_waits_for_ever() {
    meet([Kind::Commits, Kind::Commits]);
}

#[test]
fn a_writer_that_leads_alone_gets_the_lead() {
    meet([Kind::Alone, Kind::Commits]);
}

#[test]
fn each_writer_that_leads_alone_gets_the_lead() {
    meet([Kind::Alone, Kind::Alone]);
}

#[test]
fn a_leader_that_panics_answers_its_group_and_hands_over() {
    meet([Kind::Panics, Kind::Commits]);
}

#[test]
fn a_leader_that_panics_lets_a_switch_go_on() {
    meet([Kind::Panics, Kind::Alone]);
}

/// The leader begins to wait for background work at any moment of the other writer's wait.
#[test]
fn an_overdue_writer_leaves_before_the_leader_has_waited() {
    loom::model(|| {
        let shared = Arc::new((LedQueue::new(0), AtomicBool::new(false)));
        let lead = shared.0.try_lead().expect("the first");
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let waiter = Waiter::alone_with(WriteOptions::default(), Signal::new(None));
                let Place::Waits { soon } = shared.0.enqueue(&waiter) else { panic!("two lead at once") };
                let is_held = || shared.1.load(Ordering::Relaxed);
                let limit = Limit { left: &|| Duration::ZERO, is_held: &is_held };
                assert!(matches!(shared.0.wait(&waiter, soon, Some(&limit)), Ended::Left));
            })
        };
        shared.1.store(true, Ordering::Relaxed);
        shared.0.refuse_hurried(&stalled());
        // The leader waits for as long as the other writer does.
        other.join().expect("leaves");
        drop(lead);
        drop(shared.0.try_lead().expect("the lead is free in the end"));
    });
}

/// A log whose records are numbers.
#[derive(Default)]
struct Log {
    written: AtomicU64,
    durable: AtomicU64,
    syncs: AtomicBool,
}

/// Writes a record and has it synced. `panics`: ends as a panicking leader does, if it leads.
fn write_synced(rounds: &Rounds, log: &Log, panics: bool) {
    let record = log.written.fetch_add(1, Ordering::AcqRel) + 1;
    match rounds.join(receipt(record)) {
        Part::Served(Err(e)) => assert_eq!(e.kind(), ErrorKind::Indeterminate),
        Part::Served(Ok(())) => assert!(log.durable.load(Ordering::Acquire) >= record),
        Part::Leads(lead) if panics => drop(lead),
        Part::Leads(lead) => {
            assert!(!log.syncs.swap(true, Ordering::AcqRel), "two sync at once");
            let written = log.written.load(Ordering::Acquire);
            assert!(written >= lead.furthest().last.get());
            log.durable.fetch_max(written, Ordering::AcqRel);
            assert!(log.syncs.swap(false, Ordering::AcqRel));
            lead.end(Ok(()), Duration::ZERO);
        }
    }
}

fn meet_in_a_sync(panics: bool) {
    loom::model(move || {
        let shared = Arc::new((Rounds::new(), Log::default()));
        let others: Vec<_> = [panics, false]
            .into_iter()
            .map(|panics| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || write_synced(&shared.0, &shared.1, panics))
            })
            .collect();
        write_synced(&shared.0, &shared.1, false);
        for other in others {
            other.join().expect("syncs");
        }
        assert!(matches!(shared.0.join(receipt(4)), Part::Leads(_)), "the lead is free in the end");
    });
}

#[test]
fn a_sync_serves_each_writer_that_waits_for_it() {
    meet_in_a_sync(false);
}

#[test]
fn a_leader_of_a_sync_that_panics_releases_its_members() {
    meet_in_a_sync(true);
}

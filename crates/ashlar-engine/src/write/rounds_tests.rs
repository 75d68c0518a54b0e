#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use super::*;
use ashlar_base::{FileNumber, SeqNum};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool as Flag, AtomicU64, Ordering::SeqCst};

fn receipt(last: u64) -> Receipt {
    Receipt { last: SeqNum::new(last).unwrap(), log_end: (FileNumber(1), last) }
}

/// The writers that have joined the round that gathers.
fn gathered(rounds: &Rounds) -> usize {
    // The queue holds a count, each member another.
    rounds.state.lock().next.as_ref().map_or(0, |next| Arc::strong_count(&next.round) - 1)
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// A log whose records are numbers.
#[derive(Default)]
struct Log {
    written: AtomicU64,
    durable: AtomicU64,
    syncs: AtomicU64,
    syncing: Flag,
    /// Threads that have not written all their records.
    writers: AtomicU64,
}

impl Log {
    /// Syncs as the WAL does, but slowly: returns when each writer is in this round or in the next.
    fn sync(&self, rounds: &Rounds, lead: &Lead<'_>) {
        assert!(!self.syncing.swap(true, SeqCst), "two syncs at once");
        if self.durable.load(SeqCst) < lead.furthest().last.get() {
            let target = self.written.load(SeqCst);
            self.syncs.fetch_add(1, SeqCst);
            wait_until(|| {
                let members = Arc::strong_count(&lead.round) + gathered(rounds);
                members as u64 >= self.writers.load(SeqCst)
            });
            self.durable.store(target, SeqCst);
        }
        self.syncing.store(false, SeqCst);
    }

    fn write(&self, rounds: &Rounds, records: u64) {
        for left in (0..records).rev() {
            let record = self.written.fetch_add(1, SeqCst) + 1;
            match rounds.join(receipt(record)) {
                Part::Served(outcome) => outcome.unwrap(),
                Part::Leads(lead) => {
                    self.sync(rounds, &lead);
                    lead.end(Ok(()));
                }
            }
            assert!(self.durable.load(SeqCst) >= record, "acknowledged before it was durable");
            if left == 0 {
                self.writers.fetch_sub(1, SeqCst);
            }
        }
    }
}

#[test]
fn two_syncs_serve_a_write_of_every_writer() {
    for (threads, records) in [(8, 50), (32, 50)] {
        let (rounds, log) = (Rounds::new(), Log::default());
        log.writers.store(threads, SeqCst);
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| drop(scope.spawn(|| log.write(&rounds, records))));
        });
        assert_eq!(log.durable.load(SeqCst), threads * records);
        let syncs = log.syncs.load(SeqCst);
        // When a sync ends, each writer is in its round or in the next.
        assert!(
            syncs <= 2 * records + 2,
            "{syncs} syncs for {} writes of {threads} threads",
            threads * records
        );
        assert!(!rounds.state.lock().running);
    }
}

fn led(part: Part<'_>) -> Lead<'_> {
    match part {
        Part::Leads(lead) => lead,
        Part::Served(outcome) => panic!("served: {outcome:?}"),
    }
}

#[test]
fn a_writer_that_comes_back_does_not_overtake_the_waiting_ones() {
    let (rounds, order) = (Rounds::new(), StdMutex::new(Vec::new()));
    let first = led(rounds.join(receipt(1)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let lead = led(rounds.join(receipt(2)));
            order.lock().unwrap().push("waiting");
            lead.end(Ok(()));
        });
        wait_until(|| gathered(&rounds) == 1);
        first.end(Ok(()));
        let again = rounds.join(receipt(3));
        order.lock().unwrap().push("again");
        if let Part::Leads(lead) = again {
            lead.end(Ok(()));
        }
    });
    assert_eq!(*order.lock().unwrap(), ["waiting", "again"]);
}

/// One writer syncs while three gather; the leader of the three ends its round with `end`. Returns what the members got.
fn outcomes(rounds: &Rounds, end: impl Fn(Lead<'_>) -> Result<()> + Sync) -> Vec<Result<()>> {
    let first = led(rounds.join(receipt(1)));
    std::thread::scope(|scope| {
        let join = |last| match rounds.join(receipt(last)) {
            Part::Served(outcome) => outcome,
            Part::Leads(lead) => {
                assert_eq!(lead.furthest().last.get(), 9);
                end(lead)
            }
        };
        let members = [5, 9, 7].map(|last| scope.spawn(move || join(last)));
        wait_until(|| gathered(rounds) == 3);
        first.end(Ok(()));
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn a_failure_reaches_each_member_of_the_round_and_no_other() {
    let rounds = Rounds::new();
    let failed = outcomes(&rounds, |lead| {
        let outcome = Err(Error::new(ErrorKind::Indeterminate, "on purpose"));
        lead.end(outcome.clone());
        outcome
    });
    assert!(failed.iter().all(|outcome| outcome.as_ref().is_err_and(|e| e.message() == "on purpose")));
    led(rounds.join(receipt(10))).end(Ok(()));
}

#[test]
fn a_leader_that_panics_gives_its_members_an_error_and_hands_over() {
    let rounds = Rounds::new();
    let given_up = outcomes(&rounds, |lead| {
        drop(lead);
        Ok(())
    });
    assert_eq!(given_up.iter().filter(|outcome| outcome.is_ok()).count(), 1, "the leader itself");
    led(rounds.join(receipt(10))).end(Ok(()));
}

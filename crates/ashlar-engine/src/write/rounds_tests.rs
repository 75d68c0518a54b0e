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
                    lead.end(Ok(()), Duration::ZERO);
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
            lead.end(Ok(()), Duration::ZERO);
        });
        wait_until(|| gathered(&rounds) == 1);
        first.end(Ok(()), Duration::ZERO);
        let again = rounds.join(receipt(3));
        order.lock().unwrap().push("again");
        if let Part::Leads(lead) = again {
            lead.end(Ok(()), Duration::ZERO);
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
        first.end(Ok(()), Duration::ZERO);
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn a_failure_reaches_each_member_of_the_round_and_no_other() {
    let rounds = Rounds::new();
    let failed = outcomes(&rounds, |lead| {
        let outcome = Err(Error::new(ErrorKind::Indeterminate, "on purpose"));
        lead.end(outcome.clone(), Duration::ZERO);
        outcome
    });
    assert!(failed.iter().all(|outcome| outcome.as_ref().is_err_and(|e| e.message() == "on purpose")));
    led(rounds.join(receipt(10))).end(Ok(()), Duration::ZERO);
}

#[test]
fn a_leader_that_panics_gives_its_members_an_error_and_hands_over() {
    let rounds = Rounds::new();
    let given_up = outcomes(&rounds, |lead| {
        drop(lead);
        Ok(())
    });
    assert_eq!(given_up.iter().filter(|outcome| outcome.is_ok()).count(), 1, "the leader itself");
    led(rounds.join(receipt(10))).end(Ok(()), Duration::ZERO);
}

/// A round of one member ends after a sync of `took`, while two gather. Returns whether a write of that member, which comes
/// after `pause`, is served by the round of the two.
#[allow(clippy::disallowed_methods, reason = "the writer does something else meanwhile")]
fn comes_back_in_time(rounds: &Rounds, took: Duration, pause: Duration) -> bool {
    let first = led(rounds.join(receipt(1)));
    rounds.state.lock().patience.time = took / 2;
    std::thread::scope(|scope| {
        let join = |last| match rounds.join(receipt(last)) {
            Part::Served(outcome) => outcome.map(|()| 0),
            Part::Leads(lead) => {
                let members = lead.members;
                lead.end(Ok(()), took);
                Ok(members)
            }
        };
        let members = [2, 3].map(|last| scope.spawn(move || join(last)));
        wait_until(|| gathered(rounds) == 2);
        first.end(Ok(()), took);
        std::thread::sleep(pause);
        let own = join(4).unwrap();
        let others = members.into_iter().map(|member| member.join().unwrap().unwrap()).sum::<usize>();
        assert_eq!(own + others, 3, "each is in one round");
        own == 0 && others == 3
    })
}

#[test]
fn a_leader_waits_for_the_members_of_the_last_round() {
    let hour = Duration::from_secs(3600);
    assert!(comes_back_in_time(&Rounds::new(), hour, Duration::from_millis(5)));
    let microseconds = Duration::from_micros(12);
    assert!(
        !comes_back_in_time(&Rounds::new(), microseconds, Duration::from_millis(50)),
        "too short to wait"
    );
    // The leader of the two gives up before the third comes back.
    assert!(!comes_back_in_time(&Rounds::new(), Duration::from_millis(2), Duration::from_millis(200)));
}

#[test]
fn waits_that_do_not_pay_become_rare() {
    let mut patience = Patience { time: Duration::from_millis(1), wanted: 8, ..Patience::default() };
    let mut waits = 0;
    for _ in 0..1000 {
        if patience.wait(4).is_some() {
            waits += 1;
            patience.waited(4, 5);
        }
    }
    assert!((10..30).contains(&waits), "{waits}");
    while patience.wait(4).is_none() {}
    patience.waited(4, 6);
    assert!(patience.wait(4).is_some() && patience.wait(4).is_some(), "half of them came");
    assert_eq!(patience.wait(8), None, "all are there");
    patience.synced(Duration::from_micros(18));
    assert_eq!(patience.wait(4), None, "the sync is fast");
    patience.synced(Duration::from_secs(10));
    assert_eq!(patience.wait(4), Some(2 * SHORTEST_WAIT), "slow by chance");
}

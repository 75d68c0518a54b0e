//! Rounds of syncs: one sync of the WAL serves all writers that wait for one.
//!
//! A writer that needs a sync joins the round that has not begun, or begins one. One member leads the round: it takes
//! the record that ends last, syncs up to there, and gives the result to all members. While a sync runs, the next round
//! gathers. Its first member leads it when the running sync has ended.
//!
//! The members of a round mostly write again at once. Without a pause they would come just too late for the next sync, and each
//! sync would serve half of the writers. So the leader of a round waits for them before it begins the sync ([`Patience`]).
//!
//! 1. A writer joins after its record is in the WAL, and a round takes no member once its sync has begun. So a sync
//!    begins after the records of all its members were written.
//! 2. Rounds follow each other, one at a time. A writer waits for the running sync and for the next one. It
//!    never waits for a third, however many writers join.
//! 3. Each member gets the result of its round's sync. If the leader panics, the other members get an error.
//! 4. A leader waits for members for half the time of a sync at most. If fewer than half of the expected ones come, the
//!    leaders of some rounds do not wait: after each such failure of twice as many rounds, up to [`MOST_SKIPPED`].
//! 5. Writers that request no sync never wait here. No lock is held over a sync: leading is a role.

use super::queue::Receipt;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_sync::atomic::{AtomicBool, Ordering};
use ashlar_sync::{Mutex, Rank, Signal};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the members of a round share. The signals have no hook: the thread that a member waits for is in a sync, which
/// ends without any background job.
struct Round {
    /// The sync before this round's has ended: its first member leads.
    begins: AtomicBool,
    begin: Signal,
    outcome: OnceLock<Result<()>>,
    /// `outcome` is set.
    ended: AtomicBool,
    end: Signal,
}

impl Round {
    fn new() -> Arc<Round> {
        let (begin, end) = (Signal::new(None), Signal::new(None));
        let (begins, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Round { begins, begin, outcome: OnceLock::new(), ended, end })
    }

    fn wait_to_begin(&self) {
        loop {
            let seen = self.begin.seen();
            if self.begins.load(Ordering::Acquire) {
                return;
            }
            self.begin.wait(seen, None);
        }
    }

    fn wait_for_outcome(&self) -> Result<()> {
        loop {
            let seen = self.end.seen();
            if self.ended.load(Ordering::Acquire)
                && let Some(outcome) = self.outcome.get()
            {
                return outcome.clone();
            }
            self.end.wait(seen, None);
        }
    }
}

/// A round that takes members.
struct Gathering {
    round: Arc<Round>,
    /// The record among those of the members that ends last.
    furthest: Receipt,
    members: usize,
}

/// The most rounds in a row whose leaders do not wait for members.
const MOST_SKIPPED: u32 = 64;
/// A shorter wait is not worth the calls.
const SHORTEST_WAIT: Duration = Duration::from_micros(10);

/// How long a leader waits for the members of the last round.
#[derive(Default)]
struct Patience {
    /// Half the time that the last sync took, but at most twice the value before it.
    time: Duration,
    /// The number of members to wait for: those that gathered during the last sync, and those that it served.
    wanted: usize,
    /// The rounds that begin without a wait before the next attempt.
    skipped: u32,
    /// The number of attempts in a row that did not pay.
    misses: u32,
}

impl Patience {
    /// The time to wait for more than these members.
    fn wait(&mut self, members: usize) -> Option<Duration> {
        if members >= self.wanted || self.time < SHORTEST_WAIT {
            return None;
        }
        self.skipped = self.skipped.saturating_sub(1);
        (self.skipped == 0).then_some(self.time)
    }

    /// Learns how long a sync took. One that was slow by chance changes little.
    fn synced(&mut self, took: Duration) {
        self.time = (took / 2).min(2 * self.time.max(SHORTEST_WAIT));
    }

    /// Learns from a wait that began with `before` members and ended with `after`.
    fn waited(&mut self, before: usize, after: usize) {
        let paid = 2 * (after - before) >= self.wanted.saturating_sub(before);
        self.misses = if paid { 0 } else { self.misses.saturating_add(1) };
        self.skipped = 1_u32.checked_shl(self.misses).unwrap_or(MOST_SKIPPED).min(MOST_SKIPPED);
    }
}

#[derive(Default)]
struct State {
    /// A sync runs, or its leader is about to begin it.
    running: bool,
    /// The round after the running one; `None` while it has no member.
    next: Option<Gathering>,
    patience: Patience,
}

impl State {
    /// Adds a member to the round that gathers, or begins one. Returns the round, and the number of its members.
    fn add(&mut self, receipt: Receipt) -> (Arc<Round>, usize) {
        if let Some(next) = &mut self.next {
            next.members += 1;
            if receipt.last > next.furthest.last {
                next.furthest = receipt;
            }
            return (Arc::clone(&next.round), next.members);
        }
        let round = Round::new();
        self.next = Some(Gathering { round: Arc::clone(&round), furthest: receipt, members: 1 });
        (round, 1)
    }

    fn members(&self) -> usize {
        self.next.as_ref().map_or(0, |next| next.members)
    }
}

/// The rounds of a database. The lock is held for a few instructions only.
pub(super) struct Rounds {
    state: Mutex<State>,
}

/// The part of a writer in its round.
pub(super) enum Part<'a> {
    /// The writer must sync for the round, and call [`Lead::end`].
    Leads(Lead<'a>),
    /// The round's sync has ended so.
    Served(Result<()>),
}

/// The lead of a round, which takes no more members. Dropping it hands the lead over to the next round; without
/// [`Lead::end`] before, as after a panic, the other members get an error.
pub(super) struct Lead<'a> {
    rounds: &'a Rounds,
    round: Arc<Round>,
    furthest: Receipt,
    members: usize,
}

impl Rounds {
    pub(super) fn new() -> Self {
        Rounds { state: Mutex::new(Rank::Writers, State::default()) }
    }

    /// Joins a round for a record that is in the WAL. Returns when the round is served, or when the caller must lead it.
    pub(super) fn join(&self, receipt: Receipt) -> Part<'_> {
        let (round, members, wanted, runs) = {
            let mut s = self.state.lock();
            let runs = std::mem::replace(&mut s.running, true);
            let (round, members) = s.add(receipt);
            (round, members, s.patience.wanted, runs)
        };
        if members > 1 {
            if members == wanted {
                round.begin.notify();
            }
            return Part::Served(round.wait_for_outcome());
        }
        if runs {
            round.wait_to_begin();
        }
        let gathered = self.gathered(&round);
        // Always `Some`: only the first member of a round takes it out.
        let (furthest, members) = gathered.map_or((receipt, 1), |g| (g.furthest, g.members));
        Part::Leads(Lead { rounds: self, round, furthest, members })
    }

    /// Ends the gathering of the round that the caller leads, after a wait for the members of the last round.
    fn gathered(&self, round: &Round) -> Option<Gathering> {
        // Read before the members are counted: the last one of them may join from then on.
        let seen = round.begin.seen();
        let mut s = self.state.lock();
        let before = s.members();
        let Some(time) = s.patience.wait(before) else { return s.next.take() };
        drop(s);
        round.begin.wait(seen, Some(time));
        let mut s = self.state.lock();
        let after = s.members();
        s.patience.waited(before, after);
        s.next.take()
    }
}

impl Lead<'_> {
    /// The record among those of the members that ends last.
    pub(super) fn furthest(&self) -> &Receipt {
        &self.furthest
    }

    /// Gives the members the result of the sync, which took so long, and hands the lead over.
    pub(super) fn end(self, outcome: Result<()>, took: Duration) {
        self.rounds.state.lock().patience.synced(took);
        let _ = self.round.outcome.set(outcome);
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if self.round.outcome.get().is_none() {
            let _ = self.round.outcome.set(Err(given_up()));
        }
        let next = {
            let mut s = self.rounds.state.lock();
            s.running = s.next.is_some();
            s.patience.wanted = s.members() + self.members;
            s.next.as_ref().map(|next| Arc::clone(&next.round))
        };
        if let Some(next) = next {
            next.begins.store(true, Ordering::Release);
            next.begin.notify();
        }
        self.round.ended.store(true, Ordering::Release);
        self.round.end.notify();
    }
}

/// The error for the members of a round whose leader panicked.
#[cold]
fn given_up() -> Error {
    Error::new(ErrorKind::Indeterminate, "the writer that synced the WAL for this write panicked")
        .hint("The write is in the WAL, but a power cut may lose it: sync again, or write it again")
}

#[cfg(all(test, not(loom)))]
#[path = "rounds_tests.rs"]
mod tests;

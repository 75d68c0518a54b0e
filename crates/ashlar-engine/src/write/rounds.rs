//! Rounds of syncs: one sync of the WAL serves all writers that wait for one.
//!
//! A writer that needs a sync joins the round that has not begun, or begins one. One member leads the round: it takes
//! the record that ends last, syncs up to there, and gives the result to all members. While a sync runs, the next round
//! gathers. Its first member leads it as soon as the running sync ends.
//!
//! 1. A writer joins after its record is in the WAL, and a round takes no member once its sync has begun. So a sync
//!    begins after the records of all its members were written.
//! 2. Rounds follow each other, one at a time. A writer waits for the running sync and for the next one. It
//!    never waits for a third, however many writers join.
//! 3. Each member gets the result of its round's sync. If the leader panics, the other members get an error.
//! 4. Writers that request no sync never wait here. No lock is held over a sync: leading is a role.

use super::queue::Receipt;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_sync::atomic::{AtomicBool, Ordering};
use ashlar_sync::{Mutex, Rank, Signal};
use std::sync::{Arc, OnceLock};

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
}

#[derive(Default)]
struct State {
    /// A sync runs, or its leader is about to begin it.
    running: bool,
    /// The round after the running one; `None` while it has no member.
    next: Option<Gathering>,
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
}

impl Rounds {
    pub(super) fn new() -> Self {
        Rounds { state: Mutex::new(Rank::Writers, State::default()) }
    }

    /// Joins a round for a record that is in the WAL. Returns when the round is served, or when the caller must lead it.
    pub(super) fn join(&self, receipt: Receipt) -> Part<'_> {
        let (round, first) = {
            let mut s = self.state.lock();
            if !std::mem::replace(&mut s.running, true) {
                return Part::Leads(Lead { rounds: self, round: Round::new(), furthest: receipt });
            }
            match &mut s.next {
                Some(next) => {
                    if receipt.last > next.furthest.last {
                        next.furthest = receipt;
                    }
                    (Arc::clone(&next.round), false)
                }
                None => {
                    let round = Round::new();
                    s.next = Some(Gathering { round: Arc::clone(&round), furthest: receipt });
                    (round, true)
                }
            }
        };
        if !first {
            return Part::Served(round.wait_for_outcome());
        }
        round.wait_to_begin();
        let gathered = self.state.lock().next.take();
        // Always `Some`: only the first member of a round takes it out.
        let furthest = gathered.map_or(receipt, |g| g.furthest);
        Part::Leads(Lead { rounds: self, round, furthest })
    }
}

impl Lead<'_> {
    /// The record among those of the members that ends last.
    pub(super) fn furthest(&self) -> &Receipt {
        &self.furthest
    }

    /// Gives the members the result of the sync, and hands the lead over.
    pub(super) fn end(self, outcome: Result<()>) {
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

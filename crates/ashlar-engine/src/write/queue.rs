//! The writers' queue: the leader and the waiting writers.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FileNumber, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_memtable::WriterSlot;
use ashlar_options::WriteOptions;
use ashlar_sync::{Mutex, Rank, Signal};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// The result of a committed write: its last sequence, and the number of the WAL file and the offset in it where its
/// record ends.
#[derive(Clone, Copy)]
pub(super) struct Receipt {
    pub(super) last: SeqNum,
    pub(super) log_end: (FileNumber, u64),
}

/// How a wait ends.
pub(super) enum Turn {
    /// A leader committed the batch, or refused the waiter.
    Done(Result<Receipt>),
    /// The lead was handed to this waiter.
    Lead,
}

/// A writer in the queue.
pub(super) struct Waiter {
    /// `None`: the waiter has no batch and wants to lead alone.
    pub(super) work: Option<(Mutex<BatchEncoder>, WriteOptions)>,
    /// [`Queue::refuse_waiting`] does not refuse this waiter.
    patient: bool,
    turn: OnceLock<Turn>,
    signal: Signal,
}

impl Waiter {
    pub(super) fn new(batch: BatchEncoder, options: WriteOptions, signal: Signal) -> Arc<Waiter> {
        let work = Some((Mutex::new(Rank::Statistics, batch), options));
        Arc::new(Waiter { work, patient: true, turn: OnceLock::new(), signal })
    }

    /// A waiter that wants to lead alone. Unless `patient`, it can be refused while it waits.
    pub(super) fn alone(patient: bool, signal: Signal) -> Arc<Waiter> {
        Arc::new(Waiter { work: None, patient, turn: OnceLock::new(), signal })
    }

    /// Takes the batch out, to commit it.
    pub(super) fn take_batch(&self) -> BatchEncoder {
        self.work.as_ref().map(|(batch, _)| std::mem::take(&mut *batch.lock())).unwrap_or_default()
    }

    pub(super) fn give(&self, turn: Turn) {
        let _ = self.turn.set(turn);
        self.signal.notify();
    }

    /// Waits until the batch is committed, the lead is handed over, or the waiter is refused.
    pub(super) fn wait(&self) -> &Turn {
        loop {
            let mut seen = self.signal.seen();
            if let Some(turn) = self.turn.get() {
                return turn;
            }
            if planted(Bug::WakeUpLost) {
                seen = self.signal.seen();
            }
            if let ashlar_sync::Waited::Stuck = self.signal.wait(seen, None) {
                self.give(Turn::Done(Err(Error::new(
                    ashlar_base::ErrorKind::Aborted,
                    "a writer waits for a leader that can never finish",
                ))));
            }
        }
    }
}

/// Memory that leaders pass from group to group, so that it is allocated once.
#[derive(Default)]
pub(super) struct Scratch {
    /// Write hints, one per family of the set.
    pub(super) slots: Vec<WriterSlot>,
}

struct State {
    busy: bool,
    waiting: VecDeque<Arc<Waiter>>,
    scratch: Option<Box<Scratch>>,
}

/// The queue. Its lock is held for a few instructions only.
pub(super) struct Queue {
    state: Mutex<State>,
}

impl Queue {
    pub(super) fn new() -> Self {
        let state = State { busy: false, waiting: VecDeque::new(), scratch: Some(Box::default()) };
        Queue { state: Mutex::new(Rank::Switch, state) }
    }

    /// Takes the lead if it is free.
    pub(super) fn try_lead(&self) -> bool {
        let mut s = self.state.lock();
        !std::mem::replace(&mut s.busy, true)
    }

    /// Adds a waiter to the queue. True when the lead was free: then the waiter leads and is not queued.
    pub(super) fn enqueue(&self, waiter: &Arc<Waiter>) -> bool {
        let mut s = self.state.lock();
        if !std::mem::replace(&mut s.busy, true) {
            return true;
        }
        s.waiting.push_back(Arc::clone(waiter));
        false
    }

    /// Begins a group: the leader, and the writers behind it as [`Queue::take_group`] chooses them. The caller holds
    /// the lead. `given_up` makes the error for the followers if the leader panics.
    pub(super) fn lead<F: Fn() -> Error>(&self, limit_bytes: usize, given_up: F) -> Group<'_, F> {
        Group { queue: self, followers: self.take_group(limit_bytes), given_up }
    }

    /// Refuses the waiters that want to lead alone, except patient ones.
    pub(super) fn refuse_waiting(&self, cause: &Error) {
        let refused: Vec<_> = {
            let mut s = self.state.lock();
            let (refused, rest) =
                s.waiting.drain(..).partition::<VecDeque<_>, _>(|w| w.work.is_none() && !w.patient);
            s.waiting = rest;
            refused.into()
        };
        for waiter in refused {
            waiter.give(Turn::Done(Err(cause.clone())));
        }
    }

    /// The writers behind the leader, up to `limit_bytes` of payload, and up to the first that wants to lead alone.
    fn take_group(&self, limit_bytes: usize) -> Vec<Arc<Waiter>> {
        let mut s = self.state.lock();
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some(next) = s.waiting.front() {
            let Some((batch, _)) = &next.work else { break };
            bytes += batch.lock().byte_len();
            if bytes > limit_bytes {
                break;
            }
            group.extend(s.waiting.pop_front());
        }
        group
    }

    pub(super) fn take_scratch(&self) -> Box<Scratch> {
        self.state.lock().scratch.take().unwrap_or_default()
    }

    pub(super) fn return_scratch(&self, scratch: Box<Scratch>) {
        self.state.lock().scratch = Some(scratch);
    }

    /// Hands the lead to the next waiter, or frees it if none waits.
    pub(super) fn hand_over(&self) {
        let next = {
            let mut s = self.state.lock();
            let next = s.waiting.pop_front();
            s.busy = next.is_some();
            next
        };
        if let Some(next) = next {
            next.give(Turn::Lead);
        }
    }
}

/// The lead of a group of writers. Dropping it hands the lead over. If the leader panics before [`Group::answer`], the
/// drop also answers the followers, so no writer waits for a leader that is gone.
pub(super) struct Group<'a, F: Fn() -> Error> {
    queue: &'a Queue,
    followers: Vec<Arc<Waiter>>,
    given_up: F,
}

impl<F: Fn() -> Error> Group<'_, F> {
    /// The writers that wait for the leader.
    pub(super) fn followers(&self) -> &[Arc<Waiter>] {
        &self.followers
    }

    /// Gives the followers the outcomes of their batches, and hands the lead over.
    pub(super) fn answer(mut self, outcomes: impl Iterator<Item = Result<Receipt>>) {
        for (follower, outcome) in self.followers.drain(..).zip(outcomes) {
            follower.give(Turn::Done(outcome));
        }
    }
}

impl<F: Fn() -> Error> Drop for Group<'_, F> {
    fn drop(&mut self) {
        for follower in self.followers.drain(..) {
            follower.give(Turn::Done(Err((self.given_up)())));
        }
        self.queue.hand_over();
    }
}

//! The writers' queue: who leads, who waits.

use crate::wal::Wal;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_memtable::WriterSlot;
use ashlar_options::WriteOptions;
use ashlar_sync::{Mutex, Rank, Signal};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// What a committed writer needs to know: its last sequence, and where its record ends in which log.
#[derive(Clone)]
pub(super) struct Receipt {
    pub(super) last: SeqNum,
    pub(super) log_end: Option<(Arc<Wal>, u64)>,
}

/// What comes of waiting.
pub(super) enum Turn {
    /// A leader did the work.
    Done(Result<Receipt>),
    /// The lead was handed over.
    Lead,
}

/// A writer in the queue.
pub(super) struct Waiter {
    /// `None`: it does not want to write but to lead alone.
    pub(super) work: Option<(Mutex<BatchEncoder>, WriteOptions)>,
    /// It waits for the lead whatever happens, see [`Queue::refuse_waiting`].
    patient: bool,
    turn: OnceLock<Turn>,
    signal: Signal,
}

impl Waiter {
    pub(super) fn new(batch: BatchEncoder, options: WriteOptions, signal: Signal) -> Arc<Waiter> {
        let work = Some((Mutex::new(Rank::Statistics, batch), options));
        Arc::new(Waiter { work, patient: true, turn: OnceLock::new(), signal })
    }

    /// Wants to lead alone. Unless it is `patient` it can be refused while it waits.
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

    /// Waits for the turn.
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

/// What a leader carries from group to group, so that it is allocated once.
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

    /// Takes the lead if nobody has it.
    pub(super) fn try_lead(&self) -> bool {
        let mut s = self.state.lock();
        !std::mem::replace(&mut s.busy, true)
    }

    /// Queues up. True when the lead became free meanwhile: then the waiter leads and is not queued.
    pub(super) fn enqueue(&self, waiter: &Arc<Waiter>) -> bool {
        let mut s = self.state.lock();
        if !std::mem::replace(&mut s.busy, true) {
            return true;
        }
        s.waiting.push_back(Arc::clone(waiter));
        false
    }

    /// Leads a group: the leader, and the writers behind it as [`Queue::take_group`] has it. The lead must be held.
    /// `given_up` is what the followers are answered if the leader panics.
    pub(super) fn lead<F: Fn() -> Error>(&self, limit_bytes: usize, given_up: F) -> Group<'_, F> {
        Group { queue: self, followers: self.take_group(limit_bytes), given_up }
    }

    /// Refuses those that wait to lead alone, unless they are patient.
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

    /// The writers behind the leader, up to `limit_bytes` of payload and to the first that wants to lead alone.
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

    /// Ends the lead: hands it to the next writer, if one waits.
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

/// The lead of a group of writers. It is handed over when this is dropped. If that is before [`Group::answer`], because the
/// leader panics, the followers are answered too: a writer never waits for a leader that is gone.
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

    /// Tells the followers what became of their batches, and hands the lead over.
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

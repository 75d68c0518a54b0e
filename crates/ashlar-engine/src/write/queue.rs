//! The writers' queue: the leader and the waiting writers.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, FileNumber, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_memtable::{Prepared, WriterSlot};
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

/// How often a writer looks before it sleeps: for 3 to 10 µs, about the cost of a sleep and a wake-up. A group of small
/// writes takes as long.
const SPINS: u32 = 200;

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
    work: Option<Work>,
    /// [`Queue::refuse_waiting`] does not refuse this waiter.
    patient: bool,
    turn: OnceLock<Turn>,
    signal: Signal,
}

/// What a writer wants to have written.
struct Work {
    /// `None` while a leader has it.
    batch: Mutex<Option<BatchEncoder>>,
    bytes: usize,
    options: WriteOptions,
}

impl Waiter {
    /// A writer that lends its batch: [`Waiter::take_batch`] returns it after the wait.
    pub(super) fn new(batch: BatchEncoder, options: WriteOptions, signal: Signal) -> Arc<Waiter> {
        let bytes = batch.byte_len();
        let work = Work { batch: Mutex::new(Rank::Leaf, Some(batch)), bytes, options };
        Arc::new(Waiter { work: Some(work), patient: true, turn: OnceLock::new(), signal })
    }

    /// A waiter that wants to lead alone. Unless `patient`, it can be refused while it waits.
    pub(super) fn alone(patient: bool, signal: Signal) -> Arc<Waiter> {
        Arc::new(Waiter { work: None, patient, turn: OnceLock::new(), signal })
    }

    /// Takes the batch out.
    pub(super) fn take_batch(&self) -> Option<BatchEncoder> {
        self.work.as_ref()?.batch.lock().take()
    }

    pub(super) fn give(&self, turn: Turn) {
        let _ = self.turn.set(turn);
        self.signal.notify();
    }

    /// Waits until the batch is committed, the lead is handed over, or the waiter is refused. `soon`: looks for some
    /// microseconds before it sleeps.
    pub(super) fn wait(&self, soon: bool) -> &Turn {
        let looks = if soon { SPINS } else { 0 };
        let _ = (0..looks).any(|_| {
            std::hint::spin_loop();
            self.turn.get().is_some()
        });
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
    /// The families of one batch.
    pub(super) families: Vec<FamilyId>,
    /// The prepared entries of a group: the index of the batch in the group, that of the family in the write set.
    pub(super) prepared: Vec<(usize, usize, Prepared)>,
}

struct State {
    busy: bool,
    /// Empty while the lead is free.
    waiting: VecDeque<Arc<Waiter>>,
    scratch: Option<Box<Scratch>>,
}

/// The queue. Its lock is held for a few instructions only: a writer that meets no other takes it twice.
pub(super) struct Queue {
    state: Mutex<State>,
    processors: usize,
}

/// What becomes of a writer that meets others.
pub(super) enum Place {
    /// The lead was free: the writer leads and is not queued.
    Leads,
    /// The writer waits. `soon`: there is a processor for it beside the leader and the writers ahead, so that a look
    /// takes time from none of them.
    Waits { soon: bool },
}

impl Queue {
    pub(super) fn new() -> Self {
        let state = State { busy: false, waiting: VecDeque::new(), scratch: None };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Queue { state: Mutex::new(Rank::Writers, state), processors }
    }

    /// Takes the lead if it is free.
    pub(super) fn try_lead(&self) -> bool {
        let mut s = self.state.lock();
        !std::mem::replace(&mut s.busy, true)
    }

    /// Begins a group of the caller alone if the lead is free. `given_up` as for [`Queue::lead`].
    pub(super) fn try_lead_group<'a>(&'a self, given_up: &'a dyn Fn() -> Error) -> Option<Group<'a>> {
        let mut s = self.state.lock();
        if std::mem::replace(&mut s.busy, true) {
            return None;
        }
        Some(Group { queue: self, followers: Vec::new(), scratch: s.scratch.take(), given_up })
    }

    /// Adds a waiter to the queue, unless the lead is free.
    pub(super) fn enqueue(&self, waiter: &Arc<Waiter>) -> Place {
        let mut s = self.state.lock();
        if !std::mem::replace(&mut s.busy, true) {
            return Place::Leads;
        }
        let ahead = s.waiting.len();
        s.waiting.push_back(Arc::clone(waiter));
        // The leader, the writers ahead and this one.
        Place::Waits { soon: ahead + 2 <= self.processors }
    }

    /// Begins a group: the leader and the writers that wait first in the queue, up to `limit_bytes` of payload, and up to the first that
    /// wants to lead alone. The caller holds the lead. `given_up` makes the error for the followers if the leader
    /// panics.
    pub(super) fn lead<'a>(&'a self, limit_bytes: usize, given_up: &'a dyn Fn() -> Error) -> Group<'a> {
        let mut s = self.state.lock();
        let mut group = Group { queue: self, followers: Vec::new(), scratch: s.scratch.take(), given_up };
        let mut bytes = 0;
        while let Some(work) = s.waiting.front().and_then(|next| next.work.as_ref()) {
            bytes += work.bytes;
            if bytes > limit_bytes {
                break;
            }
            let next = s.waiting.pop_front();
            group.followers.extend(next.and_then(Follower::of));
        }
        group
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

    /// Hands the lead to the next waiter, or frees it if none waits.
    pub(super) fn hand_over(&self) {
        self.pass_on(None);
    }

    fn pass_on(&self, scratch: Option<Box<Scratch>>) {
        let next = {
            let mut s = self.state.lock();
            if scratch.is_some() {
                s.scratch = scratch;
            }
            let next = s.waiting.pop_front();
            s.busy = next.is_some();
            next
        };
        if let Some(next) = next {
            next.give(Turn::Lead);
        }
    }
}

/// A writer that waits for the leader, and its batch, which the leader has until the group ends.
pub(super) struct Follower {
    waiter: Arc<Waiter>,
    pub(super) batch: BatchEncoder,
    pub(super) options: WriteOptions,
    pub(super) outcome: Option<Result<Receipt>>,
}

impl Follower {
    /// `None`: the waiter gave up, and has its batch back.
    fn of(waiter: Arc<Waiter>) -> Option<Follower> {
        let (batch, options) = (waiter.take_batch()?, waiter.work.as_ref()?.options);
        Some(Follower { waiter, batch, options, outcome: None })
    }

    /// Returns the batch and gives the outcome.
    fn answer(self, given_up: impl Fn() -> Error) {
        if let Some(work) = &self.waiter.work {
            *work.batch.lock() = Some(self.batch);
        }
        self.waiter.give(Turn::Done(self.outcome.unwrap_or_else(|| Err(given_up()))));
    }
}

/// The lead of a group of writers. Dropping it hands the lead over and answers the followers: with an error, if the
/// leader panicked before it set their outcomes. So no writer waits for a leader that is gone.
pub(super) struct Group<'a> {
    queue: &'a Queue,
    followers: Vec<Follower>,
    scratch: Option<Box<Scratch>>,
    given_up: &'a dyn Fn() -> Error,
}

impl Group<'_> {
    /// The writers that wait for the leader, and the leader's memory.
    pub(super) fn parts(&mut self) -> (&mut [Follower], &mut Scratch) {
        (&mut self.followers, self.scratch.get_or_insert_default())
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // The next leader begins while this one still answers.
        self.queue.pass_on(self.scratch.take());
        for follower in self.followers.drain(..) {
            follower.answer(self.given_up);
        }
    }
}

//! The writers' queue: the leader and the waiting writers.
//!
//! A writer that meets no other takes the lead with one atomic operation and frees it with another. Only writers that
//! meet others take the lock of the queue.
//!
//! 1. The lead is free only while no writer waits. A writer that finds it led marks it as awaited and enters the queue, in
//!    one critical section. A leader whose lead is awaited hands it to the first writer of the queue, if that one is awake.
//! 2. If the first writer sleeps, the leader wakes it and leaves the lead *open*, because a wake-up takes longer than a group.
//!    A running writer may take the open lead meanwhile, and its group takes the batches of sleeping writers along. So
//!    running writers do not sleep behind one that wakes up, which would make each commit wait for a wake-up.
//! 3. The first writer stays in the queue while the lead is open, and has been *called*. One that came too late to
//!    [`TOO_LATE`] open leads has the next one handed over.
//! 4. The scheduler may keep a called writer behind the leader on one processor for a whole time slice, while another
//!    processor is idle. Writers that lead alone (transactions) are not taken along meanwhile. So each leader that finds
//!    them called calls the next one, up to one for each processor.
//! 5. A [`Lead`] that is dropped, also by a panic, is passed on. So no writer waits for a leader that is gone.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FileNumber, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_options::WriteOptions;
use ashlar_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ashlar_sync::{CachePadded, LeadCell, Mutex, Rank, Signal, Waited};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The result of a committed write: its last sequence, and the number of the WAL file and the offset in it where its
/// record ends.
#[derive(Clone, Copy)]
pub(super) struct Receipt {
    pub(super) last: SeqNum,
    pub(super) log_end: (FileNumber, u64),
}

/// How often a writer looks before it sleeps: for 3 to 10 µs, about the cost of a sleep and a wake-up. A group of small
/// writes takes as long.
const SPINS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

/// To how many open leads a waiter may come too late.
const TOO_LATE: u32 = 8;

/// How a wait ends, as another thread sets it.
enum Turn {
    /// A leader committed the batch, or refused the waiter.
    Done(Result<Receipt>),
    /// The lead is handed to this waiter.
    Lead,
    /// The waiter was overdue when a leader began to wait for background work.
    Left,
}

/// How a wait ends.
pub(super) enum Ended<'a, S> {
    /// A leader committed the batch, or refused the waiter.
    Done(Result<Receipt>),
    /// The waiter leads.
    Leads(Lead<'a, S>),
    /// The waiter left the queue: its time is over, and a leader waits for background work.
    Left,
}

/// How long a waiter stays in the queue while leaders wait for background work.
pub(super) struct Limit<'a> {
    /// The time that is left.
    pub(super) left: &'a dyn Fn() -> Duration,
    /// Whether a leader waits for background work. A leader that begins to wait makes this true first, and then calls
    /// [`Queue::refuse_hurried`]. Called under the lock of the queue.
    pub(super) is_held: &'a dyn Fn() -> bool,
}

/// A writer in the queue.
pub(super) struct Waiter {
    /// `None`: the waiter has no batch and wants to lead alone.
    work: Option<Work>,
    /// The waiter stays when others that want to lead alone are refused.
    patient: bool,
    /// The waiter must not wait for background work.
    hurried: bool,
    /// The waiter's time is over. Set under the lock of the queue.
    overdue: AtomicBool,
    turn: OnceLock<Turn>,
    signal: Signal,
    /// The waiter blocks its thread, or is about to.
    asleep: AtomicBool,
    /// The lead was left open for the waiter, and the waiter has not tried to take it since.
    called: AtomicBool,
    /// To how many open leads the waiter came too late.
    missed: AtomicU32,
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
        Waiter::with(Some(work), (true, options.no_slowdown), signal)
    }

    /// A waiter that wants to lead alone. Unless `patient`, it can be refused while it waits.
    pub(super) fn alone(patient: bool, signal: Signal) -> Arc<Waiter> {
        Waiter::with(None, (patient, false), signal)
    }

    /// A writer that wants to lead alone, with these options.
    pub(super) fn alone_with(options: WriteOptions, signal: Signal) -> Arc<Waiter> {
        Waiter::with(None, (true, options.no_slowdown), signal)
    }

    fn with(work: Option<Work>, (patient, hurried): (bool, bool), signal: Signal) -> Arc<Waiter> {
        let [overdue, asleep, called] = [const { false }; 3].map(AtomicBool::new);
        let (turn, missed) = (OnceLock::new(), AtomicU32::new(0));
        Arc::new(Waiter { work, patient, hurried, overdue, turn, signal, asleep, called, missed })
    }

    /// Whether the waiter wants to lead alone, and may be refused.
    pub(super) fn is_impatient(&self) -> bool {
        self.work.is_none() && !self.patient
    }

    /// Whether the writer must not wait for background work.
    pub(super) fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// Whether the waiter may be refused while it waits, before any deadline.
    pub(super) fn may_be_refused(&self) -> bool {
        self.is_hurried() || self.is_impatient()
    }

    /// Takes the batch out.
    pub(super) fn take_batch(&self) -> Option<BatchEncoder> {
        self.work.as_ref()?.batch.lock().take()
    }

    /// Refuses the writer while a leader has its batch, which returns to the writer.
    pub(super) fn refuse(&self, batch: &mut BatchEncoder, cause: Error) {
        if let Some(work) = &self.work {
            *work.batch.lock() = Some(batch.lend());
        }
        self.give(Turn::Done(Err(cause)));
    }

    /// Ends the wait. False: it has ended already.
    fn give(&self, turn: Turn) -> bool {
        let given = self.turn.set(turn).is_ok();
        self.signal.notify();
        given
    }

    /// Whether the lead is to be left open for the waiter: it sleeps, and has not come too late too often.
    fn may_be_overtaken(&self) -> bool {
        self.turn.get().is_none()
            && self.asleep.load(Ordering::SeqCst)
            && self.missed.load(Ordering::Relaxed) < TOO_LATE
    }

    /// Wakes the waiter to take the open lead.
    fn call(&self) {
        // One wake-up is enough until the waiter has tried.
        if !planted(Bug::OpenLeadUntold) && !self.called.swap(true, Ordering::SeqCst) {
            self.signal.notify();
        }
    }

    /// Blocks until the signal has changed since `seen`, or for the time `longest`.
    fn sleep(&self, seen: u64, longest: Option<Duration>) {
        // A thread that runs jobs while it waits does not sleep.
        let blocks = !self.signal.has_hook();
        self.asleep.store(blocks, Ordering::SeqCst);
        let waited = self.signal.wait(seen, longest);
        self.asleep.store(false, Ordering::SeqCst);
        if waited == Waited::Stuck {
            let stuck = "a writer waits for a leader that can never finish";
            self.give(Turn::Done(Err(Error::new(ashlar_base::ErrorKind::Aborted, stuck))));
        }
    }
}

/// The queue, with the state `S` that belongs to the leader.
pub(super) struct Queue<S> {
    /// Every writer writes here: away from what readers load.
    lead: CachePadded<LeadCell<S>>,
    /// Empty while the lead is free. Held for a few instructions only.
    waiting: Mutex<VecDeque<Arc<Waiter>>>,
    processors: usize,
}

/// What becomes of a writer that meets others.
pub(super) enum Place<'a, S> {
    /// The lead was free: the writer leads and is not queued.
    Leads(Lead<'a, S>),
    /// The writer waits. `soon`: there is a processor for it beside the leader and the writers ahead, so that a look
    /// takes time from none of them.
    Waits { soon: bool },
}

impl<S> Queue<S> {
    pub(super) fn new(state: S) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let waiting = Mutex::new(Rank::Writers, VecDeque::new());
        Queue { lead: CachePadded::new(LeadCell::new(state)), waiting, processors }
    }

    /// Takes the lead if it is free.
    #[inline]
    pub(super) fn try_lead(&self) -> Option<Lead<'_, S>> {
        self.lead.try_take().map(|held| self.lead(held))
    }

    /// Adds a waiter to the queue, unless the lead is free.
    pub(super) fn enqueue(&self, waiter: &Arc<Waiter>) -> Place<'_, S> {
        let mut waiting = self.waiting.lock();
        if let Some(held) = self.lead.take_or_await() {
            return Place::Leads(self.lead(held));
        }
        let ahead = waiting.len();
        waiting.push_back(Arc::clone(waiter));
        // The leader, the writers ahead and this one.
        Place::Waits { soon: ahead + 2 <= self.processors }
    }

    /// Waits until the batch is committed, the waiter leads, it is refused, or it leaves by its `limit`. `soon`: looks for
    /// some microseconds before it sleeps.
    #[inline(never)]
    pub(super) fn wait(&self, waiter: &Arc<Waiter>, soon: bool, limit: Option<&Limit<'_>>) -> Ended<'_, S> {
        let looks = if soon { SPINS } else { 0 };
        let _ = (0..looks).any(|_| {
            std::hint::spin_loop();
            waiter.turn.get().is_some()
        });
        loop {
            let mut seen = waiter.signal.seen();
            match waiter.turn.get() {
                Some(Turn::Done(outcome)) => return Ended::Done(outcome.clone()),
                Some(Turn::Left) => return Ended::Left,
                Some(Turn::Lead) => {
                    return match self.lead.accept() {
                        Some(held) => Ended::Leads(self.lead(held)),
                        None => Ended::Done(Err(not_handed())),
                    };
                }
                None => {}
            }
            if waiter.called.swap(false, Ordering::SeqCst)
                && let Some(lead) = self.answer_call(waiter)
            {
                return Ended::Leads(lead);
            }
            if planted(Bug::WakeUpLost) {
                seen = waiter.signal.seen();
            }
            let mut longest = None;
            if let Some(limit) = limit
                && !waiter.overdue.load(Ordering::Relaxed)
            {
                let left = (limit.left)();
                if left.is_zero() && self.leave(waiter, limit.is_held) {
                    return Ended::Left;
                }
                longest = Some(left).filter(|left| !left.is_zero());
            }
            waiter.sleep(seen, longest);
        }
    }

    /// Takes a waiter whose time is over out of the queue, if a leader waits for background work. False: the waiter stays, and
    /// the next leader that begins such a wait releases it. Or another thread has taken it out of the queue.
    #[cold]
    fn leave(&self, waiter: &Arc<Waiter>, is_held: &dyn Fn() -> bool) -> bool {
        let mut waiting = self.waiting.lock();
        waiter.overdue.store(true, Ordering::Relaxed);
        let Some(at) = waiting.iter().position(|queued| Arc::ptr_eq(queued, waiter)) else { return false };
        if !is_held() {
            return false;
        }
        waiting.remove(at);
        // The lead may be open for this waiter.
        waiting.iter().take(1).for_each(|first| first.call());
        true
    }

    /// Takes the open lead for a waiter that was called. A running writer is often faster, and leaves the lead open again
    /// a few microseconds later: the waiter looks that long. `None`: the waiter came too late, or its wait has ended.
    fn answer_call(&self, waiter: &Arc<Waiter>) -> Option<Lead<'_, S>> {
        let looks = if self.processors > 1 { SPINS } else { 0 };
        let mut lead = self.take_open(waiter);
        for _ in 0..looks {
            if lead.is_some() || waiter.turn.get().is_some() {
                break;
            }
            std::hint::spin_loop();
            if self.lead.is_open() {
                lead = self.take_open(waiter);
            }
        }
        lead
    }

    /// Takes the open lead for a waiter of the queue. `None`: another writer was faster.
    fn take_open(&self, waiter: &Arc<Waiter>) -> Option<Lead<'_, S>> {
        let mut waiting = self.waiting.lock();
        // A writer that leads has the waiter in its group.
        let at = waiting.iter().position(|queued| Arc::ptr_eq(queued, waiter))?;
        let Some(held) = self.lead.take_open() else {
            waiter.missed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        waiting.remove(at);
        Some(self.lead(held))
    }

    /// Passes an awaited lead to the first waiter. A waiter that gave up passes it to the next one.
    #[cold]
    fn pass_on(&self, lead: ashlar_sync::Lead<'_, S>) {
        let mut awaited = Some(lead);
        while let Some(lead) = awaited {
            let next = {
                let mut waiting = self.waiting.lock();
                let Some(next) = waiting.pop_front() else { return lead.free() };
                if next.may_be_overtaken() {
                    waiting.push_front(next);
                    lead.open();
                    let called = self.next_to_call(&waiting);
                    drop(waiting);
                    return called.iter().for_each(|waiter| waiter.call());
                }
                lead.hand_over();
                next
            };
            awaited = if next.give(Turn::Lead) { None } else { self.lead.accept() };
        }
    }

    /// The waiter to call to the open lead: the first one. If that one leads alone and has been called before, the one behind
    /// it, and so on, up to one for each processor. `None`: all have been called.
    fn next_to_call(&self, waiting: &VecDeque<Arc<Waiter>>) -> Option<Arc<Waiter>> {
        let mut first = waiting.iter().take(self.processors);
        first.find(|waiter| waiter.work.is_some() || !waiter.called.load(Ordering::SeqCst)).cloned()
    }

    fn lead<'a>(&'a self, held: ashlar_sync::Lead<'a, S>) -> Lead<'a, S> {
        Lead { queue: self, held: Some(held) }
    }

    /// Refuses the waiters for which `is_refused`.
    pub(super) fn refuse(&self, cause: &Error, is_refused: impl Fn(&Waiter) -> bool) {
        self.end_waits(|waiter| is_refused(waiter).then(|| Turn::Done(Err(cause.clone()))));
    }

    /// Refuses the waiters that must not wait for background work, and lets those leave whose time is over. Called by a leader
    /// that begins to wait for background work.
    pub(super) fn refuse_hurried(&self, cause: &Error) {
        self.end_waits(|waiter| match waiter.is_hurried() {
            true => Some(Turn::Done(Err(cause.clone()))),
            false => waiter.overdue.load(Ordering::Relaxed).then_some(Turn::Left),
        });
    }

    /// Ends the waits for which `turn_of` has an end.
    fn end_waits(&self, turn_of: impl Fn(&Waiter) -> Option<Turn>) {
        let mut ended = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            waiting.retain(|waiter| match turn_of(waiter) {
                Some(turn) => {
                    ended.push((Arc::clone(waiter), turn));
                    false
                }
                None => true,
            });
            if !ended.is_empty() {
                // The lead may be open for a waiter that leaves.
                waiting.iter().take(1).for_each(|first| first.call());
            }
        }
        for (waiter, turn) in ended {
            waiter.give(turn);
        }
    }
}

#[cold]
pub(super) fn not_handed() -> Error {
    Error::new(ashlar_base::ErrorKind::Aborted, "a writer was to lead, but the lead was not handed to it")
}

/// The lead, and access to the leader's state. Dropping it passes the lead to the first writer of the queue, or frees it.
pub(super) struct Lead<'a, S> {
    queue: &'a Queue<S>,
    /// `None` once it was passed on.
    held: Option<ashlar_sync::Lead<'a, S>>,
}

impl<'a, S> Lead<'a, S> {
    /// Begins a group of the leader and the writers that are first in the queue: up to `limit_bytes` of their payload,
    /// and up to the first that wants to lead alone. `given_up` makes the error for the followers if the leader panics.
    #[inline]
    pub(super) fn group(mut self, limit_bytes: usize, given_up: &'a dyn Fn() -> Error) -> Group<'a, S> {
        let followers = if self.is_awaited() { self.followers(limit_bytes) } else { Vec::new() };
        Group { lead: self, followers, given_up }
    }

    fn is_awaited(&self) -> bool {
        self.held.as_ref().is_some_and(ashlar_sync::Lead::is_awaited)
    }

    fn followers(&mut self, limit_bytes: usize) -> Vec<Follower> {
        let mut waiting = self.queue.waiting.lock();
        let (mut followers, mut bytes) = (Vec::with_capacity(waiting.len()), 0);
        while let Some(work) = waiting.front().and_then(|next| next.work.as_ref()) {
            bytes += work.bytes;
            if bytes > limit_bytes {
                break;
            }
            followers.extend(waiting.pop_front().and_then(Follower::of));
        }
        if waiting.is_empty()
            && let Some(held) = &mut self.held
        {
            held.settle();
        }
        followers
    }

    #[inline]
    fn pass_on(&mut self) {
        if let Some(Err(held)) = self.held.take().map(ashlar_sync::Lead::release) {
            self.queue.pass_on(held);
        }
    }
}

impl<S> Drop for Lead<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.pass_on();
    }
}

impl<S> Deref for Lead<'_, S> {
    type Target = S;

    #[expect(clippy::expect_used, reason = "the lead is passed on when it is dropped")]
    fn deref(&self) -> &S {
        self.held.as_ref().expect("a lead that was not passed on")
    }
}

impl<S> DerefMut for Lead<'_, S> {
    #[expect(clippy::expect_used, reason = "the lead is passed on when it is dropped")]
    fn deref_mut(&mut self) -> &mut S {
        self.held.as_mut().expect("a lead that was not passed on")
    }
}

/// A writer that waits for the leader, and its batch, which the leader has until the group ends.
pub(super) struct Follower {
    pub(super) waiter: Arc<Waiter>,
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
        if self.waiter.turn.get().is_some() {
            return; // Refused before the leader waited.
        }
        if let Some(work) = &self.waiter.work {
            *work.batch.lock() = Some(self.batch);
        }
        self.waiter.give(Turn::Done(self.outcome.unwrap_or_else(|| Err(given_up()))));
    }
}

/// The lead of a group of writers. Dropping it passes the lead on and answers the followers: with an error, if the
/// leader panicked before it set their outcomes. So no writer waits for a leader that is gone.
pub(super) struct Group<'a, S> {
    lead: Lead<'a, S>,
    followers: Vec<Follower>,
    given_up: &'a dyn Fn() -> Error,
}

impl<S> Group<'_, S> {
    /// The writers that wait for the leader, and the leader's state.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut [Follower], &mut S) {
        (&mut self.followers, &mut self.lead)
    }
}

impl<S> Drop for Group<'_, S> {
    #[inline]
    fn drop(&mut self) {
        // The next leader begins while this one still answers.
        self.lead.pass_on();
        for follower in self.followers.drain(..) {
            follower.answer(self.given_up);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::refusal::stalled;
    use super::*;

    fn waiting(queue: &Queue<u32>, waiter: &Arc<Waiter>) {
        assert!(matches!(queue.enqueue(waiter), Place::Waits { .. }));
    }

    /// The lead that ends the wait.
    fn led<'a>(queue: &'a Queue<u32>, waiter: &Arc<Waiter>) -> Lead<'a, u32> {
        match queue.wait(waiter, false, None) {
            Ended::Leads(lead) => lead,
            Ended::Done(outcome) => panic!("{:?}", outcome.err()),
            Ended::Left => panic!("it has no limit"),
        }
    }

    fn done(queue: &Queue<u32>, waiter: &Arc<Waiter>) -> Result<Receipt> {
        match queue.wait(waiter, false, None) {
            Ended::Leads(_) => panic!("leads"),
            Ended::Done(outcome) => outcome,
            Ended::Left => panic!("it has no limit"),
        }
    }

    fn writer(key: &[u8]) -> Arc<Waiter> {
        let mut batch = BatchEncoder::new();
        assert!(batch.put(ashlar_base::FamilyId::DEFAULT, key, b"").is_ok());
        Waiter::new(batch, WriteOptions::default(), Signal::new(None))
    }

    #[test]
    fn a_waiter_that_gave_up_is_passed_over() {
        let queue = Queue::new(0);
        let lead = queue.try_lead().unwrap();
        let [gone, next] = [0, 1].map(|_| Waiter::alone(true, Signal::new(None)));
        waiting(&queue, &gone);
        waiting(&queue, &next);
        assert!(gone.give(Turn::Done(Err(Error::closed()))));
        drop(lead);
        assert!(queue.try_lead().is_none());
        drop(led(&queue, &next));
        assert!(queue.lead.accept().is_none());
        drop(queue.try_lead().unwrap());
    }

    /// Until the first writer wakes up, others may lead, and take its batch along. It is not passed over for ever.
    #[test]
    fn the_lead_is_open_while_the_first_writer_sleeps() {
        let queue = Queue::new(0);
        let given_up = || Error::invalid("given up");
        let asleep = |waiter: &Waiter| waiter.asleep.store(true, Ordering::SeqCst);
        let (alone, a) = (Waiter::alone(false, Signal::new(None)), writer(b"a"));
        let lead = queue.try_lead().unwrap();
        waiting(&queue, &alone);
        waiting(&queue, &a);
        asleep(&alone);
        drop(lead);
        assert!(alone.called.load(Ordering::SeqCst), "woken");
        for _ in 0..TOO_LATE {
            let mut group = queue.try_lead().unwrap().group(1000, &given_up);
            assert!(group.parts().0.is_empty(), "behind one that leads alone");
            assert!(queue.take_open(&alone).is_none(), "too late");
            drop(group);
        }
        assert!(queue.try_lead().is_none(), "handed over");
        let lead = led(&queue, &alone);
        asleep(&a);
        drop(lead);
        let mut group = queue.try_lead().unwrap().group(1000, &given_up);
        assert_eq!(group.parts().0.len(), 1, "taken along");
        drop(group);
        assert!(done(&queue, &a).is_err(), "answered");
        drop(queue.try_lead().unwrap());
    }

    /// Regression: only the first writer was called. While it waited for a processor, those behind it slept beside an idle one.
    #[test]
    fn each_leader_calls_another_writer_that_leads_alone() {
        let queue = Queue { processors: 2, ..Queue::new(0) };
        let lead = queue.try_lead().unwrap();
        let waiters = [0, 1, 2].map(|_| Waiter::alone(true, Signal::new(None)));
        for waiter in &waiters {
            waiting(&queue, waiter);
            waiter.asleep.store(true, Ordering::SeqCst);
        }
        let called = || waiters.each_ref().map(|waiter| waiter.called.load(Ordering::SeqCst));
        drop(lead);
        assert_eq!(called(), [true, false, false]);
        drop(queue.try_lead().unwrap());
        assert_eq!(called(), [true, true, false]);
        drop(queue.try_lead().unwrap());
        assert_eq!(called(), [true, true, false], "no more than there are processors");
        drop(led(&queue, &waiters[1]));
        assert_eq!(called(), [true, false, true]);
        drop(led(&queue, &waiters[2]));
        drop(led(&queue, &waiters[0]));
        drop(queue.try_lead().unwrap());
    }

    /// The lead was left open for a writer that is refused.
    #[test]
    fn a_refused_writer_leaves_the_open_lead_to_the_next() {
        let queue = Queue::new(0);
        let [refused, next] = [false, true].map(|patient| Waiter::alone(patient, Signal::new(None)));
        let lead = queue.try_lead().unwrap();
        waiting(&queue, &refused);
        waiting(&queue, &next);
        refused.asleep.store(true, Ordering::SeqCst);
        drop(lead);
        queue.refuse(&Error::closed(), Waiter::is_impatient);
        assert!(done(&queue, &refused).is_err());
        drop(led(&queue, &next));
        drop(queue.try_lead().unwrap());
    }

    /// A writer whose time is over leaves only while a leader waits for background work. Then it leaves the open lead to the next.
    #[test]
    fn an_overdue_writer_leaves_while_a_leader_holds() {
        let queue = Queue::new(0);
        let writers = || [0, 1].map(|_| Waiter::alone_with(WriteOptions::default(), Signal::new(None)));
        let [timed, next] = writers();
        let held = AtomicBool::new(false);
        let is_held = || held.load(Ordering::Relaxed);
        let over = Limit { left: &|| Duration::ZERO, is_held: &is_held };
        let lead = queue.try_lead().unwrap();
        waiting(&queue, &timed);
        waiting(&queue, &next);
        timed.asleep.store(true, Ordering::SeqCst);
        drop(lead);
        held.store(true, Ordering::Relaxed);
        assert!(matches!(queue.wait(&timed, false, Some(&over)), Ended::Leads(_)), "the lead was open");
        drop(led(&queue, &next));
        // Without a leader that holds, an overdue writer waits for the lead.
        let [timed, next] = writers();
        let lead = queue.try_lead().unwrap();
        waiting(&queue, &timed);
        waiting(&queue, &next);
        held.store(false, Ordering::Relaxed);
        assert!(!queue.leave(&timed, &is_held));
        queue.refuse_hurried(&stalled());
        assert!(matches!(queue.wait(&timed, false, Some(&over)), Ended::Left), "released");
        // A leader that holds meanwhile.
        let [late, _] = writers();
        waiting(&queue, &late);
        held.store(true, Ordering::Relaxed);
        assert!(matches!(queue.wait(&late, false, Some(&over)), Ended::Left));
        drop(lead);
        drop(led(&queue, &next));
        drop(queue.try_lead().unwrap());
    }

    /// A group takes the writers up to the first that leads alone, and up to its limit.
    #[test]
    fn a_group_takes_the_first_writers_of_the_queue() {
        let queue = Queue::new(7);
        let lead = queue.try_lead().unwrap();
        let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|key| writer(key));
        let alone = Waiter::alone(false, Signal::new(None));
        for waiter in [&a, &b, &alone, &c, &d] {
            waiting(&queue, waiter);
        }
        let given_up = || Error::invalid("given up");
        let bytes = |waiter: &Waiter| waiter.work.as_ref().unwrap().bytes;
        let mut group = lead.group(bytes(&a) + bytes(&b), &given_up);
        let (followers, state) = group.parts();
        assert_eq!((followers.len(), *state), (2, 7));
        *state += 1;
        let receipt = Receipt { last: SeqNum::ZERO, log_end: (FileNumber(1), 1) };
        followers[0].outcome = Some(Ok(receipt));
        drop(group);
        assert!(done(&queue, &a).is_ok(), "answered");
        assert!(done(&queue, &b).is_err(), "given up");
        assert!(a.take_batch().is_some_and(|batch| batch.count() == 1), "the batch is back");
        assert_eq!(*led(&queue, &alone), 8);
        let group = led(&queue, &c).group(bytes(&d) - 1, &given_up);
        assert_eq!(group.followers.len(), 0, "over the limit");
        drop(group);
        let group = led(&queue, &d).group(1000, &given_up);
        assert!(!group.lead.is_awaited(), "no writer is left");
        drop(group);
        drop(queue.try_lead().unwrap());
    }
}

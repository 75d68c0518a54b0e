//! Range locks, and requests that wait because of them.
//!
//! 1. A request excludes another one if both are of different transactions, meet in some key, and one of them is exclusive. A
//!    request is granted when it excludes no lock that is held, and no request that came earlier and waits. One exception: it
//!    passes a waiting request that waits for its own transaction, because that one cannot go first.
//! 2. Point locks stay in the stripes. A range request is *announced* in the queue here before it visits the stripes, one at a
//!    time. So a point lock is either there at the visit, or its request meets the announced range. The keys of the range that
//!    others hold or want are the request's *obstacles*. Each change of such a key updates them, until there are none.
//! 3. A request for a key that a range excludes waits here first, and then at the key. It stays in this queue until it has
//!    entered the key, so no later range comes between.
//! 4. While no range is held or wanted, a point lock pays one load for all this.
//! 5. A range is one lock, however many keys are in it. It is neither split nor merged, nor do point locks become ranges.
//! 6. The graph of waiters has, for each request in the queue, all transactions for which it waits.
//!
//! A stripe is locked before the ranges, and the ranges before the graph. Source: RocksDB
//! `utilities/transactions/lock/range/` for what a range lock is.

use super::key::{Lock, Waiter};
use super::span::{Span, What};
use super::waits::Waits;
use super::{LockKey, Mode, TransactionId};
use ashlar_base::planted::{Bug, planted};
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank, Signal};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of a range lock; no two of a database have the same.
pub type RangeId = u64;

/// Why a request waits that was not granted.
pub(super) struct Refused {
    /// A transaction that holds a lock in the way.
    pub(super) holder: Option<TransactionId>,
}

/// What a request for a key finds.
pub(super) enum Pass {
    /// The transaction holds a range with the key.
    Held,
    /// No range is in the way.
    Free,
    /// A range is.
    Wait(Arc<Waiter>),
}

/// The ranges of one database.
pub(super) struct Ranges {
    state: Mutex<State>,
    /// How many ranges are held, and how many requests wait here.
    used: AtomicUsize,
}

#[derive(Default)]
struct State {
    held: Vec<HeldRange>,
    /// In the order of their coming.
    queue: Vec<Pending>,
    last: RangeId,
}

struct HeldRange {
    id: RangeId,
    transaction: TransactionId,
    mode: Mode,
    span: Span,
}

/// A request that waits.
struct Pending {
    id: RangeId,
    what: What,
    waiter: Arc<Waiter>,
    /// Its visit to the stripes is over. A request for a key makes none.
    visited: bool,
    /// The keys in its range for which it waits, and the transactions that hold or want them.
    obstacles: HashMap<LockKey, Vec<TransactionId>>,
    /// The transactions for which it waits.
    blockers: Vec<TransactionId>,
}

/// Whether two requests exclude each other where they meet.
fn excludes(a: (TransactionId, Mode), b: (TransactionId, Mode)) -> bool {
    a.0 != b.0 && a.1.max(b.1) == Mode::Exclusive
}

fn meet(a: &What, b: &What) -> bool {
    match (a, b) {
        (What::Range(range), other) | (other, What::Range(range)) => range.meets(other),
        (What::Key(a), What::Key(b)) => a == b,
    }
}

impl Pending {
    fn of(&self) -> (TransactionId, Mode) {
        (self.waiter.transaction, self.waiter.mode)
    }

    /// Notes the transactions that hold or want `key`, if it is in the range.
    fn note(&mut self, key: &LockKey, lock: &Lock) {
        let What::Range(span) = &self.what else { return };
        if !span.holds(key) {
            return;
        }
        let in_the_way = if planted(Bug::RangeOverPoints) { Vec::new() } else { lock.excluded_by(self.of()) };
        if in_the_way.is_empty() {
            self.obstacles.remove(key);
        } else {
            self.obstacles.insert(Arc::clone(key), in_the_way);
        }
    }
}

impl State {
    /// The held ranges that the request excludes.
    fn holders<'a>(
        &'a self,
        of: (TransactionId, Mode),
        what: &'a What,
    ) -> impl Iterator<Item = TransactionId> + 'a {
        let in_the_way =
            move |held: &&HeldRange| excludes(of, (held.transaction, held.mode)) && held.span.meets(what);
        let held = if planted(Bug::PointsInRanges) { &[][..] } else { &self.held[..] };
        held.iter().filter(in_the_way).map(|held| held.transaction)
    }

    /// The transactions for which a request waits that comes behind the first `ahead` of the queue.
    fn blockers(&self, of: (TransactionId, Mode), what: &What, ahead: usize) -> Vec<TransactionId> {
        let earlier = self.queue.iter().take(ahead).filter(|pending| {
            excludes(of, pending.of()) && meet(what, &pending.what) && !pending.blockers.contains(&of.0)
        });
        let earlier = earlier.map(|pending| pending.waiter.transaction);
        let mut all: Vec<TransactionId> = self.holders(of, what).chain(earlier).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A transaction that holds a lock in the way of the request.
    fn holder(&self, pending: &Pending) -> Option<TransactionId> {
        let range = self.holders(pending.of(), &pending.what).next();
        range.or_else(|| pending.obstacles.values().flatten().next().copied())
    }

    fn place(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        self.queue.iter().position(|pending| Arc::ptr_eq(&pending.waiter, waiter))
    }

    fn holds(&self, of: (TransactionId, Mode), what: &What) -> bool {
        let own = self.held.iter().filter(|held| held.transaction == of.0 && held.mode >= of.1);
        own.into_iter().any(|held| held.span.covers(what))
    }

    fn enqueue(&mut self, what: What, waiter: &Arc<Waiter>, visited: bool) -> RangeId {
        self.last += 1;
        self.queue.push(Pending {
            id: self.last,
            what,
            waiter: Arc::clone(waiter),
            visited,
            obstacles: HashMap::new(),
            blockers: Vec::new(),
        });
        self.last
    }

    /// Grants what nothing blocks, in the order of coming, and notes the blockers of the others. Returns the waiters to wake up.
    fn settle(&mut self, waits: &Mutex<Waits>) -> Vec<Arc<Waiter>> {
        let mut granted = Vec::new();
        let mut at = 0;
        while let Some(pending) = self.queue.get(at) {
            let of = pending.of();
            let mut blockers = self.blockers(of, &pending.what, at);
            blockers.extend(pending.obstacles.values().flatten());
            blockers.sort_unstable();
            blockers.dedup();
            let free = blockers.is_empty() && pending.visited;
            let Some(pending) = self.queue.get_mut(at) else { break };
            if blockers != pending.blockers {
                waits.lock().wait_for(of.0, blockers.clone());
                pending.blockers = blockers;
            }
            if free && !pending.waiter.served.swap(true, Ordering::AcqRel) {
                waits.lock().leave(of.0);
                granted.push(Arc::clone(&pending.waiter));
            }
            if free && let What::Range(_) = pending.what {
                let Pending { id, what, .. } = self.queue.remove(at);
                if let What::Range(span) = what {
                    self.held.push(HeldRange { id, transaction: of.0, mode: of.1, span });
                }
                continue;
            }
            at += 1;
        }
        granted
    }
}

impl Ranges {
    pub(super) fn new() -> Ranges {
        Ranges { state: Mutex::new(Rank::Inner, State::default()), used: AtomicUsize::new(0) }
    }

    /// Whether some range is held or wanted. Asked under the lock of a stripe, whose visits order the answer.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        // Relaxed: a range is announced before its request locks the stripe to visit it. If this thread has locked the stripe
        // after that visit, it sees the announcement; if before, the visit sees what this thread does.
        self.used.load(Ordering::Relaxed) != 0
    }

    /// Called after each change, under the lock of the state.
    fn count(&self, state: &State) {
        self.used.store(state.held.len() + state.queue.len(), Ordering::Relaxed);
    }

    /// Changes the state, settles the queue, and wakes up.
    fn with<T>(&self, waits: &Mutex<Waits>, act: impl FnOnce(&mut State) -> T) -> T {
        let (result, granted) = {
            let mut state = self.state.lock();
            let result = act(&mut state);
            let granted = state.settle(waits);
            self.count(&state);
            (result, granted)
        };
        granted.iter().for_each(|waiter| waiter.signal.notify());
        result
    }

    /// Whether a request for a key may go on to the key. `waiter`: its place in the queue, if it was here before. Called under the
    /// lock of the key's stripe. `enter`: adds the wait to the graph, or refuses it.
    pub(super) fn pass<E>(
        &self,
        (of, key): ((TransactionId, Mode), &LockKey),
        waiter: Option<&Arc<Waiter>>,
        signal: &dyn Fn() -> Signal,
        enter: impl FnOnce(Vec<TransactionId>, Refused) -> Result<(), E>,
    ) -> Result<Pass, E> {
        let mut state = self.state.lock();
        let what = What::Key(Arc::clone(key));
        let place = waiter.and_then(|waiter| state.place(waiter));
        if place.is_none() && state.holds(of, &what) {
            return Ok(Pass::Held);
        }
        let blockers = state.blockers(of, &what, place.unwrap_or(state.queue.len()));
        if blockers.is_empty() {
            return Ok(Pass::Free);
        }
        let holder = state.holders(of, &what).next();
        let waiter = match waiter {
            Some(waiter) => Arc::clone(waiter),
            None => Arc::new(Waiter::new(of, false, signal())),
        };
        waiter.served.store(false, Ordering::Release);
        enter(blockers.clone(), Refused { holder })?;
        let place = match place {
            Some(place) => place,
            None => {
                state.enqueue(what, &waiter, true);
                state.queue.len() - 1
            }
        };
        if let Some(pending) = state.queue.get_mut(place) {
            pending.blockers = blockers;
        }
        self.count(&state);
        Ok(Pass::Wait(waiter))
    }

    /// A key has other holders or waiters than before. `entered`: the request that has come from this queue to the key. Called
    /// under the lock of the key's stripe.
    pub(super) fn key_changed(
        &self,
        key: &LockKey,
        lock: &Lock,
        entered: Option<&Arc<Waiter>>,
        waits: &Mutex<Waits>,
    ) {
        self.with(waits, |state| {
            if let Some(place) = entered.and_then(|waiter| state.place(waiter)) {
                state.queue.remove(place);
            }
            state.queue.iter_mut().for_each(|pending| pending.note(key, lock));
        });
    }

    /// Announces a request for a range. `None`: the transaction holds a range that covers it.
    pub(super) fn announce(&self, span: &Span, waiter: &Arc<Waiter>) -> Option<RangeId> {
        let mut state = self.state.lock();
        let (of, what) = ((waiter.transaction, waiter.mode), What::Range(span.clone()));
        if state.holds(of, &what) {
            return None;
        }
        let id = state.enqueue(what, waiter, false);
        self.count(&state);
        Some(id)
    }

    /// Notes the keys of a stripe for an announced request. Called under the lock of the stripe.
    pub(super) fn visit<'a>(
        &self,
        waiter: &Arc<Waiter>,
        keys: impl Iterator<Item = (&'a LockKey, &'a Lock)>,
    ) {
        let mut state = self.state.lock();
        let place = state.place(waiter);
        if let Some(pending) = place.and_then(|place| state.queue.get_mut(place)) {
            keys.for_each(|(key, lock)| pending.note(key, lock));
        }
    }

    /// The request has visited all stripes. Grants it, or lets it wait; `enter` as for [`Ranges::pass`]. If the wait is refused,
    /// the request leaves.
    pub(super) fn visited<E>(
        &self,
        waiter: &Arc<Waiter>,
        waits: &Mutex<Waits>,
        enter: impl FnOnce(Vec<TransactionId>, Refused) -> Result<(), E>,
    ) -> Result<(), E> {
        self.with(waits, |state| {
            let Some(place) = state.place(waiter) else { return Ok(()) };
            if let Some(pending) = state.queue.get_mut(place) {
                pending.visited = true;
            }
            let granted = state.settle(waits);
            granted.iter().for_each(|waiter| waiter.signal.notify());
            let Some(place) = state.place(waiter) else { return Ok(()) };
            let Some(pending) = state.queue.get(place) else { return Ok(()) };
            let refused = Refused { holder: state.holder(pending) };
            let entered = enter(pending.blockers.clone(), refused);
            if entered.is_err() {
                state.queue.remove(place);
            }
            entered
        })
    }

    /// Takes a waiting request out of the queue. `None`: it was granted just before.
    pub(super) fn give_up(&self, waiter: &Arc<Waiter>, waits: &Mutex<Waits>) -> Option<Refused> {
        self.with(waits, |state| {
            let place = state.place(waiter).filter(|_| !waiter.served.load(Ordering::Acquire))?;
            let pending = state.queue.remove(place);
            waits.lock().leave(waiter.transaction);
            Some(Refused { holder: state.holder(&pending) })
        })
    }

    /// Releases a range that the transaction holds.
    pub(super) fn release(&self, id: RangeId, waits: &Mutex<Waits>) {
        self.with(waits, |state| {
            state.held.retain(|held| held.id != id);
        });
    }

    /// The number of ranges that are held.
    pub(super) fn held(&self) -> usize {
        self.state.lock().held.len()
    }
}

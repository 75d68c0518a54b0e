//! Locks on keys and on ranges of keys: which transaction holds which, and which transactions wait for it.
//!
//! 1. Keys are spread over stripes, each under a lock of its own, so that transactions on different keys rarely meet.
//! 2. A key is held by one transaction (exclusive), or by any number (shared). Requests are served in the order of their
//!    coming: a request waits behind every earlier one, also if it is compatible with the holders. One exception: a holder
//!    that wants its shared lock exclusive goes first, because the others cannot get the key before it is done.
//! 3. A release serves the requests that follow, under the lock of the stripe, and wakes them up afterwards.
//! 4. A transaction that must wait enters the graph of waiters (`waits`) before it sleeps. The first in the queue of a key
//!    waits for the holders, each other one for the request ahead. If a circle would close, the request is refused, and the
//!    error names the circle. Only a new wait closes a circle: a release or a served request adds no transaction for which
//!    another waits.
//! 5. A stripe is locked before the ranges, and these before the graph; never two stripes at once.
//! 6. A range of keys is locked beside the stripes (`ranges`). A request for a key looks there only while there is a range.
//!
//! A lock never expires: it is released when its transaction ends. Source: RocksDB
//! `utilities/transactions/lock/point/point_lock_manager.cc`.

mod key;
mod ranges;
mod span;
mod waits;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod range_tests;
#[cfg(all(test, not(loom)))]
mod tests;

pub use ranges::RangeId;
pub use span::Span;
pub use waits::{Deadlock, DeadlockWait};

use ashlar_base::error::{BusyKind, Reason};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Env;
use ashlar_sync::atomic::{AtomicU64, Ordering};
use ashlar_sync::{CachePadded, Mutex, Rank, Signal, Waited};
use key::{Lock, Waiter};
use ranges::{Pass, Ranges, Refused};
use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;
use waits::{Wait, Waits};

/// The number of stripes. A model has one, because keys go to random stripes and a model must repeat.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// An empty stripe with memory for more keys than this frees it.
const KEEP_KEYS: usize = 1024;

/// How often a request looks before it sleeps: for 3 to 10 µs, in which a short transaction ends. A request that sleeps holds
/// the key from the moment it is served, and others wait for its wake-up.
const SPINS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 200 };

/// The number of a transaction; no two of a database have the same.
pub type TransactionId = u64;

/// A key of a family, as the locks know it: the number of the family, and the bytes of the key.
pub type LockKey = Arc<[u8]>;

/// How a key is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Several transactions may hold the key like this. None of them may write it.
    Shared,
    /// One transaction alone holds the key.
    Exclusive,
}

/// What a transaction asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The transaction.
    pub transaction: TransactionId,
    /// The key.
    pub key: &'a LockKey,
    /// The user key and the family's name, for messages.
    pub shown: (&'a [u8], &'a str),
    /// How it is to be locked.
    pub mode: Mode,
    /// How long to wait; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Whether to look for deadlocks before the wait.
    pub detect: bool,
}

/// What a transaction asks for to lock a range.
#[derive(Clone, Copy, Debug)]
pub struct RangeRequest<'a> {
    /// The transaction.
    pub transaction: TransactionId,
    /// The range.
    pub span: &'a Span,
    /// The family's name, for messages.
    pub family: &'a str,
    /// How it is to be locked.
    pub mode: Mode,
    /// How long to wait; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Whether to look for deadlocks before the wait.
    pub detect: bool,
}

/// What a request changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// Nothing: the transaction held the key already.
    Held,
    /// The transaction holds the key now.
    New,
    /// The transaction held the key shared, and holds it exclusive now.
    Upgraded,
}

/// The locks of one database.
pub struct LockTable {
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    spread: RandomState,
    ranges: Ranges,
    waits: Mutex<Waits>,
    sleepers: Mutex<Sleepers>,
    last_transaction: AtomicU64,
}

/// The requests that sleep. A transaction sleeps for one at a time.
#[derive(Default)]
struct Sleepers {
    waiters: BTreeMap<TransactionId, Arc<Waiter>>,
    /// The database is closed: no request waits.
    closed: bool,
}

type Stripe = HashMap<LockKey, Lock>;

impl LockTable {
    /// A table without locks.
    pub fn new() -> LockTable {
        let stripe = || CachePadded::new(Mutex::new(Rank::Keys, Stripe::new()));
        LockTable {
            stripes: (0..STRIPES).map(|_| stripe()).collect(),
            spread: RandomState::new(),
            ranges: Ranges::new(),
            waits: Mutex::new(Rank::Leaf, Waits::default()),
            sleepers: Mutex::new(Rank::Leaf, Sleepers::default()),
            last_transaction: AtomicU64::new(0),
        }
    }

    /// The number of a new transaction.
    pub fn next_transaction(&self) -> TransactionId {
        // Relaxed: the counter orders no other memory access.
        self.last_transaction.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last deadlocks that were found, newest first.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.waits.lock().deadlocks()
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "the index is below the length"
    )]
    fn stripe(&self, key: &LockKey) -> &Mutex<Stripe> {
        &self.stripes[self.spread.hash_one(key) as usize % STRIPES]
    }

    /// Locks a key, and waits for it if others hold it.
    ///
    /// # Errors
    /// `TimedOut`: others held the key for too long. `Busy(Deadlock)`: the wait would close a circle of waiting transactions,
    /// which the text names.
    pub fn acquire(&self, request: &Request<'_>, env: &Env) -> Result<Acquired> {
        self.acquire_with(request, &|| env.jobs.signal(), &|| env.clock.now())
    }

    /// [`LockTable::acquire`] with signals and a clock.
    fn acquire_with(
        &self,
        request: &Request<'_>,
        signal: &dyn Fn() -> Signal,
        now: &dyn Fn() -> Duration,
    ) -> Result<Acquired> {
        {
            let mut stripe = self.stripe(request.key).lock();
            if !self.ranges.is_used() {
                let lock = stripe.entry(Arc::clone(request.key)).or_default();
                if let Some(acquired) = lock.take(request.transaction, request.mode) {
                    return Ok(acquired);
                }
            }
        }
        self.acquire_slowly(request, signal, now)
    }

    /// [`LockTable::acquire_with`] where a range may be in the way, or the key is not free.
    #[cold]
    fn acquire_slowly(
        &self,
        request: &Request<'_>,
        signal: &dyn Fn() -> Signal,
        now: &dyn Fn() -> Duration,
    ) -> Result<Acquired> {
        let (mut deadline, mut passing) = (None, None);
        loop {
            let waiter = match self.try_acquire(request, passing.as_ref(), signal)? {
                Step::Done(acquired) => return Ok(acquired),
                Step::WaitFor(waiter) => waiter,
                Step::Pass(waiter) => Arc::clone(passing.insert(waiter)),
            };
            let deadline =
                *deadline.get_or_insert_with(|| request.timeout.map(|timeout| now().saturating_add(timeout)));
            let at_key = passing.as_ref().is_none_or(|passing| !Arc::ptr_eq(passing, &waiter));
            let served = self.sleep(&waiter, deadline, now);
            if !at_key {
                if !served && let Some(refused) = self.ranges.give_up(&waiter, &self.waits) {
                    return Err(self.not_served(&request.text(), request.timeout, refused.holder));
                }
                continue;
            }
            let acquired = if waiter.upgrade { Acquired::Upgraded } else { Acquired::New };
            let late = if served { None } else { self.give_up(request, &waiter) };
            return late.map_or(Ok(acquired), Err);
        }
    }

    /// Takes the key, or waits for a range or for the key. `passing`: the request's place in the queue of the ranges.
    fn try_acquire(
        &self,
        request: &Request<'_>,
        passing: Option<&Arc<Waiter>>,
        signal: &dyn Fn() -> Signal,
    ) -> Result<Step> {
        let mut stripe = self.stripe(request.key).lock();
        let of = (request.transaction, request.mode);
        let ranged = self.ranges.is_used();
        if ranged {
            let enter = |blockers, refused: Refused| {
                if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
                    return Err(timed_out(&request.text(), request.timeout, refused.holder));
                }
                let wait = Wait { blockers, shown: request.shown_wait() };
                self.waits.lock().enter(wait, request.detect).map_err(|deadlock| refuse(&deadlock))
            };
            match self.ranges.pass((of, request.key), passing, signal, enter) {
                Ok(Pass::Held) => return Ok(Step::Done(Acquired::Held)),
                Ok(Pass::Free) => {}
                Ok(Pass::Wait(waiter)) => return Ok(Step::Pass(waiter)),
                Err(e) => {
                    if let Some(passing) = passing {
                        self.ranges.give_up(passing, &self.waits);
                    }
                    return Err(e);
                }
            }
        }
        let lock = stripe.entry(Arc::clone(request.key)).or_default();
        let step = self.take_or_wait(request, lock, signal);
        if ranged {
            self.ranges.key_changed(request.key, lock, passing, &self.waits);
        }
        step
    }

    fn take_or_wait(
        &self,
        request: &Request<'_>,
        lock: &mut Lock,
        signal: &dyn Fn() -> Signal,
    ) -> Result<Step> {
        if let Some(acquired) = lock.take(request.transaction, request.mode) {
            return Ok(Step::Done(acquired));
        }
        if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(timed_out(&request.text(), request.timeout, lock.holders.first().copied()));
        }
        let upgrade = lock.holders.contains(&request.transaction);
        let waiter = Arc::new(Waiter::new((request.transaction, request.mode), upgrade, signal()));
        let at = lock.enqueue(&waiter);
        let wait = Wait { blockers: lock.blockers(at), shown: request.shown_wait() };
        let entered = self.waits.lock().enter(wait, request.detect);
        if entered.is_err() {
            lock.leave(&waiter);
        }
        // The request behind an upgrade waited for the holders before.
        self.note_waits(lock, at + usize::from(entered.is_ok()));
        match entered {
            Ok(()) => Ok(Step::WaitFor(waiter)),
            Err(deadlock) => Err(refuse(&deadlock)),
        }
    }

    /// Takes a waiter out of the queue; `None`: it was served just before.
    fn give_up(&self, request: &Request<'_>, waiter: &Arc<Waiter>) -> Option<Error> {
        let mut served = Vec::new();
        let error = {
            let mut stripe = self.stripe(request.key).lock();
            if waiter.served.load(Ordering::Acquire) {
                return None;
            }
            self.waits.lock().leave(request.transaction);
            let mut holder = None;
            if let Some(lock) = stripe.get_mut(request.key) {
                holder = lock.holders.iter().copied().find(|holder| *holder != request.transaction);
                let at = lock.leave(waiter);
                self.serve(lock, at, &mut served);
                if self.ranges.is_used() {
                    self.ranges.key_changed(request.key, lock, None, &self.waits);
                }
            }
            self.not_served(&request.text(), request.timeout, holder)
        };
        wake(&served);
        Some(error)
    }

    /// Locks a range, and waits for it if others hold keys of it, or ranges that it meets. `None`: the range is empty, or the
    /// transaction holds a range that covers it.
    ///
    /// # Errors
    /// As [`LockTable::acquire`].
    /// # Cost
    /// A look at every lock of the database. While a range is held or wanted, each lock of a key passes one mutex.
    pub fn acquire_range(&self, request: &RangeRequest<'_>, env: &Env) -> Result<Option<RangeId>> {
        self.acquire_range_with(request, &|| env.jobs.signal(), &|| env.clock.now())
    }

    fn acquire_range_with(
        &self,
        request: &RangeRequest<'_>,
        signal: &dyn Fn() -> Signal,
        now: &dyn Fn() -> Duration,
    ) -> Result<Option<RangeId>> {
        if request.span.is_empty() {
            return Ok(None);
        }
        let waiter = Arc::new(Waiter::new((request.transaction, request.mode), false, signal()));
        let Some(id) = self.ranges.announce(request.span, &waiter) else { return Ok(None) };
        for stripe in &self.stripes {
            self.ranges.visit(&waiter, stripe.lock().iter());
        }
        let zero = request.timeout.is_some_and(|timeout| timeout.is_zero());
        self.ranges.visited(&waiter, &self.waits, |blockers, refused| {
            if zero {
                return Err(timed_out(&request.text(), request.timeout, refused.holder));
            }
            let wait = Wait { blockers, shown: request.shown_wait() };
            self.waits.lock().enter(wait, request.detect).map_err(|deadlock| refuse(&deadlock))
        })?;
        let deadline = request.timeout.map(|timeout| now().saturating_add(timeout));
        if self.sleep(&waiter, deadline, now) {
            return Ok(Some(id));
        }
        match self.ranges.give_up(&waiter, &self.waits) {
            None => Ok(Some(id)),
            Some(refused) => Err(self.not_served(&request.text(), request.timeout, refused.holder)),
        }
    }

    /// Wakes all requests that wait, and lets no request wait from here on: the database is closed. They answer `Shutdown`.
    pub fn close(&self) {
        let waiters = {
            let mut sleepers = self.sleepers.lock();
            sleepers.closed = true;
            std::mem::take(&mut sleepers.waiters)
        };
        waiters.into_values().for_each(|waiter| waiter.signal.notify());
    }

    /// Sleeps until the waiter is served. False: the time is over, or the database is closed.
    fn sleep(&self, waiter: &Arc<Waiter>, deadline: Option<Duration>, now: &dyn Fn() -> Duration) -> bool {
        for _ in 0..SPINS {
            if waiter.served.load(Ordering::Acquire) {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleepers.lock().waiters.insert(waiter.transaction, Arc::clone(waiter));
        let served = loop {
            let seen = waiter.signal.seen();
            if waiter.served.load(Ordering::Acquire) {
                break true;
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(now()));
            if left.is_some_and(|left| left.is_zero())
                || self.sleepers.lock().closed
                || waiter.signal.wait(seen, left) == Waited::Stuck
            {
                break false;
            }
        };
        self.sleepers.lock().waiters.remove(&waiter.transaction);
        served
    }

    /// The error of a request that was not served before its wait ended.
    #[cold]
    fn not_served(&self, what: &str, waited: Option<Duration>, holder: Option<TransactionId>) -> Error {
        match self.sleepers.lock().closed {
            true => Error::closed(),
            false => timed_out(what, waited, holder),
        }
    }

    /// Releases a range that a transaction holds.
    pub fn release_range(&self, id: RangeId) {
        self.ranges.release(id, &self.waits);
    }

    /// Releases a key that the transaction holds.
    pub fn release(&self, transaction: TransactionId, key: &LockKey) {
        self.change(key, |lock| lock.holders.retain(|holder| *holder != transaction));
    }

    /// Turns an exclusive lock into a shared one.
    pub fn downgrade(&self, transaction: TransactionId, key: &LockKey) {
        self.change(key, |lock| lock.downgrade(transaction));
    }

    fn change(&self, key: &LockKey, change: impl FnOnce(&mut Lock)) {
        let mut served = Vec::new();
        {
            let mut stripe = self.stripe(key).lock();
            let Entry::Occupied(mut entry) = stripe.entry(Arc::clone(key)) else { return };
            let lock = entry.get_mut();
            change(lock);
            self.serve(lock, 0, &mut served);
            if self.ranges.is_used() {
                self.ranges.key_changed(key, lock, None, &self.waits);
            }
            if lock.holders.is_empty() {
                entry.remove();
                if stripe.is_empty() && stripe.capacity() > KEEP_KEYS {
                    stripe.shrink_to_fit();
                }
            }
        }
        wake(&served);
    }

    /// Serves the waiters of a key. The one at the place `at` has another one ahead than before.
    fn serve(&self, lock: &mut Lock, at: usize, served: &mut Vec<Arc<Waiter>>) {
        if lock.queue.is_empty() {
            return;
        }
        lock.serve(served);
        if !served.is_empty() {
            let mut waits = self.waits.lock();
            served.iter().for_each(|waiter| waits.leave(waiter.transaction));
        }
        self.note_waits(lock, at);
    }

    /// Notes for which transactions the first waiter waits, and the one at the place `at`.
    fn note_waits(&self, lock: &Lock, at: usize) {
        let mut waits = self.waits.lock();
        for at in [0, at] {
            if let Some(waiter) = lock.queue.get(at) {
                waits.wait_for(waiter.transaction, lock.blockers(at));
            }
        }
    }

    /// The number of keys and ranges that are held.
    pub fn held(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.lock().len()).sum::<usize>() + self.ranges.held()
    }
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

/// What a request comes to.
enum Step {
    Done(Acquired),
    /// It waits for the key.
    WaitFor(Arc<Waiter>),
    /// It waits until no range is in the way, and tries again.
    Pass(Arc<Waiter>),
}

impl Request<'_> {
    fn text(&self) -> String {
        let (key, family) = self.shown;
        format!("key '{}' of family {family:?}", key.escape_ascii())
    }

    fn shown_wait(&self) -> DeadlockWait {
        let (key, family) = self.shown;
        let (family, key) = (family.to_owned(), key.to_vec());
        DeadlockWait { transaction: self.transaction, family, key, range: None, mode: self.mode }
    }
}

impl RangeRequest<'_> {
    fn text(&self) -> String {
        format!("keys {} of family {:?}", self.span, self.family)
    }

    fn shown_wait(&self) -> DeadlockWait {
        let bounds = self.span.bounds();
        DeadlockWait {
            transaction: self.transaction,
            family: self.family.to_owned(),
            key: bounds.lower.clone().unwrap_or_default(),
            range: Some(bounds.clone()),
            mode: self.mode,
        }
    }
}

fn wake(served: &[Arc<Waiter>]) {
    served.iter().for_each(|waiter| waiter.signal.notify());
}

#[cold]
fn refuse(deadlock: &Deadlock) -> Error {
    Error::new(ErrorKind::Busy(BusyKind::Deadlock), deadlock.to_string())
        .hint("Roll the transaction back, and run it again")
}

#[cold]
fn timed_out(what: &str, waited: Option<Duration>, holder: Option<TransactionId>) -> Error {
    let by =
        holder.map_or_else(|| "others wait for it".to_owned(), |id| format!("transaction {id} holds it"));
    let waited = waited.unwrap_or_default();
    Error::new(ErrorKind::TimedOut, format!("no lock on {what} within {waited:?}: {by}"))
        .about(Reason::LockTimeout)
        .hint("Roll the transaction back and run it again, or give it a longer lock_timeout")
}

#[cold]
pub(crate) fn too_many_locks(most: usize) -> Error {
    Error::new(
        ErrorKind::Busy(BusyKind::LockLimit),
        format!("the transaction has locked {most} keys, as many as it may"),
    )
    .hint("Commit in smaller transactions, or raise max_locks")
}

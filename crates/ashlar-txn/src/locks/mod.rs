//! Point locks: which transaction holds which key, and which transactions wait for it.
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
//! 5. A stripe is locked before the graph; never two stripes at once.
//!
//! A lock never expires: it is released when its transaction ends. Source: RocksDB
//! `utilities/transactions/lock/point/point_lock_manager.cc`.

mod waits;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

pub use waits::{Deadlock, DeadlockWait};

use ashlar_base::error::BusyKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Env;
use ashlar_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ashlar_sync::{CachePadded, Mutex, Rank, Signal, Waited};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;
use waits::{Wait, Waits};

/// The number of stripes. A model has one, because keys go to random stripes and a model must repeat.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// An empty stripe with memory for more keys than this frees it.
const KEEP_KEYS: usize = 1024;

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
    waits: Mutex<Waits>,
    last_transaction: AtomicU64,
}

type Stripe = HashMap<LockKey, Lock>;

/// A key that is held or waited for.
#[derive(Default)]
struct Lock {
    holders: Vec<TransactionId>,
    /// The one holder holds it exclusive.
    exclusive: bool,
    queue: VecDeque<Arc<Waiter>>,
}

/// A request that waits.
struct Waiter {
    transaction: TransactionId,
    mode: Mode,
    /// The transaction holds the key shared.
    upgrade: bool,
    /// Set under the lock of the stripe.
    served: AtomicBool,
    signal: Signal,
}

impl Lock {
    /// Gives the key to a request, if it need not wait.
    fn take(&mut self, transaction: TransactionId, mode: Mode) -> Option<Acquired> {
        if self.holders.contains(&transaction) {
            if self.exclusive || mode == Mode::Shared {
                return Some(Acquired::Held);
            }
            if self.holders.len() == 1 || planted(Bug::UpgradeBesideOthers) {
                self.exclusive = true;
                return Some(Acquired::Upgraded);
            }
            return None;
        }
        let shares = !self.exclusive || planted(Bug::SharedBesideExclusive);
        let free = self.holders.is_empty() || mode == Mode::Shared && shares;
        if !free || !self.queue.is_empty() {
            return None;
        }
        self.holders.push(transaction);
        self.exclusive = mode == Mode::Exclusive;
        Some(Acquired::New)
    }

    /// Adds a waiter to the queue. Returns its place.
    fn enqueue(&mut self, waiter: &Arc<Waiter>) -> usize {
        let at = match waiter.upgrade {
            true => self.queue.iter().take_while(|other| other.upgrade).count(),
            false => self.queue.len(),
        };
        self.queue.insert(at, Arc::clone(waiter));
        at
    }

    /// Removes a waiter that was not served. Returns the place that it had.
    fn leave(&mut self, waiter: &Arc<Waiter>) -> usize {
        let at = self.queue.iter().position(|other| Arc::ptr_eq(other, waiter));
        at.inspect(|at| drop(self.queue.remove(*at))).unwrap_or_default()
    }

    /// The transactions for which the waiter at this place waits.
    fn blockers(&self, at: usize) -> Vec<TransactionId> {
        let ahead = at.checked_sub(1).and_then(|ahead| self.queue.get(ahead));
        let own = self.queue.get(at).map(|waiter| waiter.transaction);
        match ahead {
            Some(ahead) => vec![ahead.transaction],
            None => self.holders.iter().copied().filter(|holder| Some(*holder) != own).collect(),
        }
    }

    /// Serves the first waiters as far as the holders allow.
    fn serve(&mut self, served: &mut Vec<Arc<Waiter>>) {
        while let Some(first) = self.queue.front() {
            let alone = self.holders.iter().all(|holder| *holder == first.transaction);
            let fits = alone || first.mode == Mode::Shared && !self.exclusive;
            if !fits {
                return;
            }
            if !first.upgrade {
                self.holders.push(first.transaction);
            }
            self.exclusive = first.mode == Mode::Exclusive;
            first.served.store(true, Ordering::Release);
            served.extend(self.queue.pop_front());
        }
    }
}

impl LockTable {
    /// A table without locks.
    pub fn new() -> LockTable {
        let stripe = || CachePadded::new(Mutex::new(Rank::Inner, Stripe::new()));
        LockTable {
            stripes: (0..STRIPES).map(|_| stripe()).collect(),
            spread: RandomState::new(),
            waits: Mutex::new(Rank::Leaf, Waits::default()),
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
        let waiter = {
            let mut stripe = self.stripe(request.key).lock();
            let lock = stripe.entry(Arc::clone(request.key)).or_default();
            if let Some(acquired) = lock.take(request.transaction, request.mode) {
                return Ok(acquired);
            }
            if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Err(timed_out(request, lock.holders.first().copied()));
            }
            let waiter = Arc::new(Waiter {
                transaction: request.transaction,
                mode: request.mode,
                upgrade: lock.holders.contains(&request.transaction),
                served: AtomicBool::new(false),
                signal: signal(),
            });
            let at = lock.enqueue(&waiter);
            let (key, family) = request.shown;
            let wait = Wait {
                blockers: lock.blockers(at),
                shown: DeadlockWait {
                    transaction: request.transaction,
                    family: family.to_owned(),
                    key: key.to_vec(),
                    mode: request.mode,
                },
            };
            let entered = self.waits.lock().enter(wait, request.detect);
            if entered.is_err() {
                lock.leave(&waiter);
            }
            // The request behind an upgrade waited for the holders before.
            self.note_waits(lock, at + usize::from(entered.is_ok()));
            if let Err(deadlock) = entered {
                return Err(Error::new(ErrorKind::Busy(BusyKind::Deadlock), deadlock.to_string())
                    .hint("Roll the transaction back, and run it again"));
            }
            waiter
        };
        let acquired = if waiter.upgrade { Acquired::Upgraded } else { Acquired::New };
        if sleep(&waiter, request.timeout, now) {
            return Ok(acquired);
        }
        self.give_up(request, &waiter).map_or(Ok(acquired), Err)
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
            }
            timed_out(request, holder)
        };
        wake(&served);
        Some(error)
    }

    /// Releases a key that the transaction holds.
    pub fn release(&self, transaction: TransactionId, key: &LockKey) {
        self.change(key, |lock| lock.holders.retain(|holder| *holder != transaction));
    }

    /// Turns an exclusive lock into a shared one.
    pub fn downgrade(&self, transaction: TransactionId, key: &LockKey) {
        self.change(key, |lock| {
            if lock.holders.first() == Some(&transaction) {
                lock.exclusive = false;
            }
        });
    }

    fn change(&self, key: &LockKey, change: impl FnOnce(&mut Lock)) {
        let mut served = Vec::new();
        {
            let mut stripe = self.stripe(key).lock();
            let Entry::Occupied(mut entry) = stripe.entry(Arc::clone(key)) else { return };
            let lock = entry.get_mut();
            change(lock);
            self.serve(lock, 0, &mut served);
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

    /// The number of keys that are held.
    pub fn held(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.lock().len()).sum()
    }
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

/// Sleeps until the waiter is served. False: the time is over.
fn sleep(waiter: &Waiter, timeout: Option<Duration>, now: &dyn Fn() -> Duration) -> bool {
    let deadline = timeout.map(|timeout| now().saturating_add(timeout));
    loop {
        let seen = waiter.signal.seen();
        if waiter.served.load(Ordering::Acquire) {
            return true;
        }
        let left = deadline.map(|deadline| deadline.saturating_sub(now()));
        if left.is_some_and(|left| left.is_zero()) || waiter.signal.wait(seen, left) == Waited::Stuck {
            return false;
        }
    }
}

fn wake(served: &[Arc<Waiter>]) {
    served.iter().for_each(|waiter| waiter.signal.notify());
}

#[cold]
fn timed_out(request: &Request<'_>, holder: Option<TransactionId>) -> Error {
    let (key, family) = request.shown;
    let by =
        holder.map_or_else(|| "others wait for it".to_owned(), |id| format!("transaction {id} holds it"));
    let waited = request.timeout.unwrap_or_default();
    Error::new(
        ErrorKind::TimedOut,
        format!("no lock on key '{}' of family {family:?} within {waited:?}: {by}", key.escape_ascii()),
    )
    .hint("Roll the transaction back and run it again, or give it a longer lock_timeout")
}

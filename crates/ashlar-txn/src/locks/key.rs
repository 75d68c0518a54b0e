//! One key: its holders, and the requests that wait for it.

use super::{Acquired, Mode, TransactionId};
use ashlar_base::planted::{Bug, planted};
use ashlar_sync::Signal;
use ashlar_sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

/// A key that is held or waited for.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) holders: Vec<TransactionId>,
    /// The one holder holds it exclusive.
    exclusive: bool,
    pub(super) queue: VecDeque<Arc<Waiter>>,
}

/// A request that waits.
pub(super) struct Waiter {
    pub(super) transaction: TransactionId,
    pub(super) mode: Mode,
    /// The transaction holds the key shared.
    pub(super) upgrade: bool,
    /// Set under the lock of the stripe, or of the ranges.
    pub(super) served: AtomicBool,
    pub(super) signal: Signal,
}

impl Waiter {
    pub(super) fn new((transaction, mode): (TransactionId, Mode), upgrade: bool, signal: Signal) -> Waiter {
        Waiter { transaction, mode, upgrade, served: AtomicBool::new(false), signal }
    }
}

impl Lock {
    /// Gives the key to a request, if it need not wait.
    #[inline]
    pub(super) fn take(&mut self, transaction: TransactionId, mode: Mode) -> Option<Acquired> {
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
    pub(super) fn enqueue(&mut self, waiter: &Arc<Waiter>) -> usize {
        let at = match waiter.upgrade {
            true => self.queue.iter().take_while(|other| other.upgrade).count(),
            false => self.queue.len(),
        };
        self.queue.insert(at, Arc::clone(waiter));
        at
    }

    /// Removes a waiter that was not served. Returns the place that it had.
    pub(super) fn leave(&mut self, waiter: &Arc<Waiter>) -> usize {
        let at = self.queue.iter().position(|other| Arc::ptr_eq(other, waiter));
        at.inspect(|at| drop(self.queue.remove(*at))).unwrap_or_default()
    }

    /// The transactions for which the waiter at this place waits.
    pub(super) fn blockers(&self, at: usize) -> Vec<TransactionId> {
        let ahead = at.checked_sub(1).and_then(|ahead| self.queue.get(ahead));
        let own = self.queue.get(at).map(|waiter| waiter.transaction);
        match ahead {
            Some(ahead) => vec![ahead.transaction],
            None => self.holders.iter().copied().filter(|holder| Some(*holder) != own).collect(),
        }
    }

    /// Serves the first waiters as far as the holders allow.
    pub(super) fn serve(&mut self, served: &mut Vec<Arc<Waiter>>) {
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

    /// Turns the lock of its one exclusive holder into a shared one.
    pub(super) fn downgrade(&mut self, transaction: TransactionId) {
        if self.holders.first() == Some(&transaction) {
            self.exclusive = false;
        }
    }

    /// The transactions that hold or want the key in a way that excludes a range with it. Where the transaction of the range
    /// holds the key as the range would, the waiters wait for it, and do not count.
    pub(super) fn excluded_by(&self, (transaction, mode): (TransactionId, Mode)) -> Vec<TransactionId> {
        let held = if self.exclusive { Mode::Exclusive } else { Mode::Shared };
        let own = held >= mode && self.holders.contains(&transaction);
        let holders = self.holders.iter().filter(|_| held.max(mode) == Mode::Exclusive).copied();
        let queue = self.queue.iter().filter(|waiter| !own && waiter.mode.max(mode) == Mode::Exclusive);
        let all = holders.chain(queue.map(|waiter| waiter.transaction));
        all.filter(|other| *other != transaction).collect()
    }
}

//! An event count: wait for "something changed" without losing a wake-up.
//!
//! A waiter reads [`Signal::seen`], then the state. If the state is not the awaited one, the waiter calls [`Signal::wait`] with
//! the number that was read *before* the state. A thread that changes the state calls [`Signal::notify`] afterwards.
//!
//! 1. No lost wake-up: a notify after `seen` was read ends the wait, however the two interleave.
//! 2. A notify without a waiter is one atomic addition and one load.
//! 3. With a hook (inline executor) nothing blocks: waiting runs background work, step by step, in the caller.

use crate::primitive::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::primitive::{Condvar, Mutex, one_order};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Runs background work in a caller that waits: the inline executor's side of a [`Signal`].
pub trait WaitHook: Send + Sync {
    /// Runs one step of background work in the caller. When nothing is runnable, lets time pass: to the next moment for
    /// which a job waits, and at most by `timeout`. False when neither is possible: nothing is runnable, no job waits
    /// for the clock, and there is no timeout.
    fn pass(&self, timeout: Option<Duration>) -> bool;

    /// The clock that timeouts are measured on.
    fn now(&self) -> Duration;
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// `notify` was called after `seen` was read.
    Notified,
    /// The timeout has passed.
    TimedOut,
    /// With a hook only: no job can ever call `notify`. This is a deadlock in the caller's design, reported instead of
    /// waiting for ever.
    Stuck,
}

/// An event count; see the module.
pub struct Signal {
    count: AtomicU64,
    waiting: AtomicU32,
    lock: Mutex<()>,
    wake: Condvar,
    hook: Option<Arc<dyn WaitHook>>,
}

impl Signal {
    /// A signal; with a hook, waiting drives that hook's work instead of blocking the thread.
    pub fn new(hook: Option<Arc<dyn WaitHook>>) -> Signal {
        Signal {
            count: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            hook,
        }
    }

    /// Whether a wait runs background work instead of blocking the thread.
    pub fn has_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// The number of notifications so far. Call this before you read the state that you wait for.
    pub fn seen(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Wakes all waiters. Call this after the state has changed. Cheap without waiters.
    pub fn notify(&self) {
        // SeqCst on both sides: either we see the waiter counted in `wait`, or the waiter sees our addition.
        self.count.fetch_add(1, Ordering::SeqCst);
        one_order();
        if self.waiting.load(Ordering::SeqCst) != 0 {
            // The empty critical section orders us after a waiter's load of `count`, and before or after its sleep.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.wake.notify_all();
        }
    }

    /// Returns when `notify` was called after `seen` was read, or when `timeout` is over. No lock may be held: with a
    /// hook, whole background jobs run in here.
    pub fn wait(&self, seen: u64, timeout: Option<Duration>) -> Waited {
        if self.seen() != seen {
            return Waited::Notified;
        }
        match &self.hook {
            Some(hook) => self.drive(hook.as_ref(), seen, timeout),
            None => self.block(seen, timeout),
        }
    }

    fn drive(&self, hook: &dyn WaitHook, seen: u64, timeout: Option<Duration>) -> Waited {
        let deadline = timeout.map(|t| hook.now().saturating_add(t));
        loop {
            let left = deadline.map(|d| d.saturating_sub(hook.now()));
            if left.is_some_and(|l| l.is_zero()) {
                return Waited::TimedOut;
            }
            let passed = hook.pass(left);
            if self.seen() != seen {
                return Waited::Notified;
            }
            if !passed {
                return Waited::Stuck;
            }
        }
    }

    fn block(&self, seen: u64, timeout: Option<Duration>) -> Waited {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        one_order();
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = |(): &mut ()| self.seen() == seen;
        match timeout {
            Some(t) => {
                drop(
                    self.wake.wait_timeout_while(guard, t, unchanged).unwrap_or_else(PoisonError::into_inner),
                );
            }
            None => drop(self.wake.wait_while(guard, unchanged).unwrap_or_else(PoisonError::into_inner)),
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if self.seen() == seen { Waited::TimedOut } else { Waited::Notified }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("seen", &self.seen()).field("hooked", &self.hook.is_some()).finish()
    }
}

#[cfg(test)]
#[path = "signal_tests.rs"]
mod tests;

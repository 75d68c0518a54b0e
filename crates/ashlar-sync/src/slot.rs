//! The lease slot: a shared value that readers borrow without a lock, and that can be removed when no reader holds it.
//!
//! 1. No thread waits for a lease, which may last over I/O and user code, and may be taken while other leases are held. A lease has no
//!    rank. A thread that empties the slot gives up if there is one. A thread that fills the slot waits while others look into the empty
//!    slot, which takes them a moment.
//! 2. A value leaves the slot only when there is no lease and no other reference to the value, so the thread that takes
//!    it is the only owner.
//! 3. One thread fills at a time, and the others sleep. The value is written while no other thread looks into the slot. If the others
//!    looked again and again instead, such a moment might never come.

use crate::primitive::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, yield_now};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, TryLockError};

/// A slot that holds a value or is empty.
pub struct LeaseSlot<T> {
    // Written for the move of a pointer only, after a `try_write`.
    value: RwLock<Option<Arc<T>>>,
    /// Held by the thread that fills the slot.
    filling: Mutex<()>,
}

/// The value in a slot. It stays in the slot until this lease is dropped.
pub struct Lease<'a, T> {
    slot: RwLockReadGuard<'a, Option<Arc<T>>>,
}

impl<T> Lease<'_, T> {
    #[expect(clippy::expect_used, reason = "a lease is made of a full slot only, and keeps it full")]
    fn value(&self) -> &Arc<T> {
        self.slot.as_ref().expect("a lease of a full slot")
    }

    /// A counted reference, which may outlive the lease.
    pub fn share(&self) -> Arc<T> {
        Arc::clone(self.value())
    }
}

impl<T> Deref for Lease<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value()
    }
}

impl<T> LeaseSlot<T> {
    /// An empty slot.
    pub fn new() -> Self {
        LeaseSlot { value: RwLock::new(None), filling: Mutex::new(()) }
    }

    /// The value, if there is one.
    ///
    /// # Cost
    /// Two atomic operations on the slot's own word, the second one when the lease ends.
    #[inline]
    pub fn lease(&self) -> Option<Lease<'_, T>> {
        let slot = self.value.read().unwrap_or_else(PoisonError::into_inner);
        slot.is_some().then(|| Lease { slot })
    }

    /// A counted reference to the value.
    pub fn get(&self) -> Option<Arc<T>> {
        self.lease().map(|lease| lease.share())
    }

    /// Puts `value` into the slot if it is empty. Returns the value that is then in the slot, and whether it is
    /// `value`.
    pub fn fill(&self, value: Arc<T>) -> (Arc<T>, bool) {
        let _filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(there) = self.get() {
                return (there, false);
            }
            match self.try_write() {
                Some(mut slot) if slot.is_none() => {
                    *slot = Some(Arc::clone(&value));
                    return (value, true);
                }
                // Another thread looks into the empty slot at this moment.
                _ => yield_now(),
            }
        }
    }

    /// Empties the slot, unless the value is in use.
    pub fn take_unused(&self) -> Option<Arc<T>> {
        // No thread can take a reference to the value while the slot is held for writing.
        self.try_write()?.take_if(|value| Arc::strong_count(value) == 1)
    }

    fn try_write(&self) -> Option<RwLockWriteGuard<'_, Option<Arc<T>>>> {
        match self.value.try_write() {
            Ok(slot) => Some(slot),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> Default for LeaseSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for LeaseSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lease().is_some() { "LeaseSlot(full)" } else { "LeaseSlot(empty)" })
    }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;

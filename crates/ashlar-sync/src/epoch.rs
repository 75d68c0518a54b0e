//! The epoch: readers pin it. A value that a reader may still use is freed only after the reader has dropped its pin.
//!
//! One domain per process (crossbeam-epoch's). A pin costs two uncontended stores and writes no shared cache line.
//!
//! 1. Under a pin there is no I/O, no lock, no sleep and no user code, because a pin delays all freeing.
//! 2. Any thread may drop the old value of a cell: inside [`ReadPin::enter`], [`EpochCell::set`] or the drop of a cell,
//!    possibly while that thread holds a lock. So the value's `Drop` takes only locks from `Rank::Inner` on, and does no
//!    I/O; it may notify a signal. The `Drop` of user code in options must therefore call no database. A thread that may
//!    enter or replace holds no lock from `Rank::Inner` on.

use crate::primitive::pin;
use crossbeam_epoch::{Atomic, Guard, Owned};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A pinned epoch: references read under it stay valid until it is dropped. Not `Send`.
pub struct ReadPin {
    guard: Guard,
}

impl ReadPin {
    /// Pins the current thread. May be nested; the outermost pin counts.
    #[inline]
    pub fn enter() -> ReadPin {
        ReadPin { guard: pin() }
    }

    /// Tries to free all values that were replaced before. Succeeds at once when no thread is pinned; never blocks, and
    /// promises nothing while a thread is pinned.
    pub fn settle() {
        // Two steps of the epoch separate the last possible reader from the freeing; one round seals our own bag.
        for _ in 0..4 {
            pin().flush();
        }
    }
}

impl fmt::Debug for ReadPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadPin")
    }
}

/// A shared pointer that readers follow without counting, and writers replace.
pub struct EpochCell<T: Send + Sync + 'static> {
    // Never null: every constructor and `set` stores an allocation.
    inner: Atomic<Arc<T>>,
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    pub fn new(value: Arc<T>) -> Self {
        EpochCell { inner: Atomic::new(value) }
    }

    /// The value of the cell, without a change of its count. One acquiring load.
    #[inline]
    pub fn load<'g>(&self, pin: &'g ReadPin) -> &'g Arc<T> {
        let shared = self.inner.load(Ordering::Acquire, &pin.guard);
        // SAFETY: bounds, initialised: the pointer is never null and was stored (Release) by `new` or `set` as a whole
        // `Arc<T>`; this Acquire load sees that write. Aliasing: no thread mutates the `Arc` behind it, `set` swaps the
        // pointer. Lifetime: the thread that unlinks it (`set`, `drop`) defers its destruction past every pin taken before
        // the unlinking, ours included, so it lives for `'g`. Checked by: `swaps_under_readers` (and Miri).
        unsafe { shared.deref() }
    }

    /// A counted reference to the value of the cell.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(self.load(&ReadPin::enter()))
    }

    /// Replaces the value, and frees the former one when no reader can see it: at once when no thread is pinned, else
    /// at a later pin or `set`.
    pub fn set(&self, value: Arc<T>) {
        {
            let guard = pin();
            let old = self.inner.swap(Owned::new(value), Ordering::AcqRel, &guard);
            // SAFETY: `old` is not null and was just unlinked by our swap, so no later pin can reach it and no other
            // swap returns it again: destroyed exactly once. `T: Send + Sync + 'static` lets any thread drop it at
            // any later time. Checked by: `swaps_under_readers`, `drops_each_value_once`.
            unsafe { guard.defer_destroy(old) };
        }
        ReadPin::settle();
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let guard = pin();
        let old = self.inner.swap(crossbeam_epoch::Shared::null(), Ordering::AcqRel, &guard);
        // SAFETY: as in `set`: unlinked by us, exactly once. Deferred although `&mut self` excludes new loads, because
        // a reference from `load` is bound to its pin, not to the cell. Checked by: `drops_each_value_once`.
        unsafe { guard.defer_destroy(old) };
        drop(guard);
        // Otherwise the last values of a closed database, and its open files, would wait for the pins of other threads.
        ReadPin::settle();
    }
}

impl<T: Send + Sync + 'static + fmt::Debug> fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochCell").field(&self.get()).finish()
    }
}

#[cfg(test)]
#[path = "epoch_tests.rs"]
mod tests;

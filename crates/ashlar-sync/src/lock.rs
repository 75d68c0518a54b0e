//! A mutex and a reader-writer lock that know their rank.
//!
//! 1. Debug builds check the order of [`Rank`]s before they block, so a wrong order panics instead of deadlocking.
//! 2. Poison is ignored: code under a lock is free of panics, and a panicking test must not hide its reason behind a
//!    second one.

use crate::primitive;
use crate::rank::{Held, Rank};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

/// A mutual exclusion lock with a rank.
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    inner: primitive::Mutex<T>,
}

/// Access to the value that a [`Mutex`] guards.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    // Released before the rank is given back.
    guard: primitive::MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Mutex<T> {
    /// A lock of `rank` around `value`.
    pub fn new(rank: Rank, value: T) -> Self {
        Mutex { rank, inner: primitive::Mutex::new(value) }
    }

    /// Returns the guarded value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// # Panics
    /// Debug builds: when this thread holds a lock of the same or a later rank.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = Held::take(self.rank);
        MutexGuard { guard: self.inner.lock().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Takes the lock if it is free. The order of ranks holds here too.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = Held::take(self.rank);
        let guard = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { guard, _held: held })
    }

    /// The guarded value. Needs no locking: the borrow is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("rank", &self.rank).field("inner", &&self.inner).finish()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Many readers or one writer, with a rank. A reader counts as a holder of the rank, as a writer does.
pub struct RwLock<T> {
    rank: Rank,
    inner: primitive::RwLock<T>,
}

/// Read access to the value that a [`RwLock`] guards.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T> {
    guard: primitive::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// Write access to the value that a [`RwLock`] guards.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T> {
    guard: primitive::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T> RwLock<T> {
    /// A lock of `rank` around `value`.
    pub fn new(rank: Rank, value: T) -> Self {
        RwLock { rank, inner: primitive::RwLock::new(value) }
    }

    /// Waits until no writer holds the lock.
    ///
    /// # Panics
    /// Debug builds: when this thread holds a lock of the same or a later rank.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let held = Held::take(self.rank);
        RwLockReadGuard { guard: self.inner.read().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Waits until no other thread holds the lock.
    ///
    /// # Panics
    /// As [`RwLock::read`].
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let held = Held::take(self.rank);
        RwLockWriteGuard { guard: self.inner.write().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// The guarded value. Needs no locking: the borrow is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("rank", &self.rank).field("inner", &&self.inner).finish()
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn ranks_in_order_and_again_after_release() {
        let (a, b) = (Mutex::new(Rank::State, 1), RwLock::new(Rank::Inner, 2));
        for _ in 0..2 {
            let x = a.lock();
            let y = b.read();
            assert_eq!(*x + *y, 3);
        }
        *b.write() += 1;
        assert_eq!(*b.read(), 3);
    }

    #[test]
    fn guards_may_be_dropped_in_any_order() {
        let (a, b) = (Mutex::new(Rank::State, ()), Mutex::new(Rank::Inner, ()));
        let x = a.lock();
        let y = b.lock();
        drop(x);
        drop(y);
        drop((a.lock(), b.lock()));
    }

    #[test]
    #[cfg(debug_assertions)]
    fn wrong_order_and_same_rank_panic() {
        let (a, b) = (Mutex::new(Rank::State, ()), Mutex::new(Rank::Inner, ()));
        let same = RwLock::new(Rank::Inner, ());
        for wrong in [
            &(|| drop((b.lock(), a.lock()))) as &dyn Fn(),
            &|| drop((b.lock(), same.read())),
            &|| drop((same.read(), same.read())),
            &|| drop((same.write(), b.try_lock())),
        ] {
            assert!(catch_unwind(AssertUnwindSafe(wrong)).is_err());
            // The failed attempt leaves no rank behind.
            drop((a.lock(), b.lock()));
        }
    }

    #[test]
    fn a_panic_under_the_lock_does_not_poison() {
        let m = Mutex::new(Rank::State, 7);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _g = m.lock();
            panic!("on purpose");
        }));
        assert_eq!(*m.lock(), 7);
        assert_eq!(m.try_lock().map(|g| *g), Some(7));
        assert_eq!(m.into_inner(), 7);
    }
}

//! An object that takes one call at a time.
//!
//! 1. Calls of several threads wait for each other.
//! 2. A callback of a call (a comparator, a merge operator) may call the object again on the same thread. Waiting there would never
//!    end, so that call fails.
//! 3. A call that panicked leaves the object usable. What the call was changing is the business of the object.

use ashlardb::{Error, Result};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Something that takes one call at a time.
#[derive(Debug, Default)]
pub struct Turn<T> {
    /// The thread whose call runs; 0: none. A thread needs to see only its own stores, so the order of others does not matter.
    owner: AtomicUsize,
    content: Mutex<T>,
}

/// The content during a call.
#[derive(Debug)]
pub struct Taken<'a, T> {
    owner: &'a AtomicUsize,
    content: MutexGuard<'a, T>,
}

/// A number of this thread, which no other running thread has.
fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

impl<T> Turn<T> {
    /// With this content.
    pub fn new(content: T) -> Turn<T> {
        Turn { owner: AtomicUsize::new(0), content: Mutex::new(content) }
    }

    /// Waits for the calls of other threads.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call of this thread makes this call.
    #[inline]
    pub fn take(&self) -> Result<Taken<'_, T>> {
        let own = this_thread();
        if self.owner.load(Relaxed) == own {
            return Err(in_use());
        }
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        self.owner.store(own, Relaxed);
        Ok(Taken { owner: &self.owner, content })
    }

    /// Whether no call runs.
    pub fn is_free(&self) -> bool {
        !matches!(self.content.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// The content of an object that has no other user.
    pub fn get_mut(&mut self) -> &mut T {
        self.content.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Before the lock is released, so that no other thread's number is overwritten.
        self.owner.store(0, Relaxed);
    }
}

#[cold]
fn in_use() -> Error {
    Error::invalid("the object is in the middle of another call of this thread")
        .hint("Use another object in callbacks of its calls")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_the_turn_gets_an_error_and_others_wait() {
        let turn = Turn::new(1);
        let mut taken = turn.take().unwrap();
        assert!(turn.take().unwrap_err().message().contains("of this thread"));
        assert!(!turn.is_free() && Turn::new(1).is_free());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *turn.take().unwrap());
            *taken = 2;
            drop(taken);
            assert_eq!(other.join().unwrap(), 2);
        });
    }

    #[test]
    fn a_call_that_panics_ends_its_turn() {
        let turn = Turn::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _taken = turn.take().unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && turn.is_free());
        assert_eq!(*turn.take().unwrap(), 1);
    }
}

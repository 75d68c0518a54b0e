//! What locks, signals and atomics are made of: the standard library, or the model checker loom.
//!
//! Under `--cfg loom` (`cargo xtask loom`) every step here is a place where loom may go on with another thread, and every
//! load may answer all that the memory model allows: a test in `loom::model` runs in all orders.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
};

#[cfg(loom)]
pub(crate) use {
    loom::hint::spin_loop,
    loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    modelled::Condvar,
};

/// Puts `SeqCst` accesses of all threads before and behind it into one order. They are in one without it; but loom takes
/// them for acquire and release, and knows such an order of fences only.
#[inline(always)]
pub(crate) fn one_order() {
    #[cfg(loom)]
    atomic::fence(atomic::Ordering::SeqCst);
}

#[cfg(loom)]
mod modelled {
    use super::MutexGuard;
    use std::sync::LockResult;
    use std::time::Duration;

    /// Loom's, with the loops of the standard one. No time passes in a model: a wait with a timeout never times out.
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            mut blocked: impl FnMut(&mut T) -> bool,
        ) -> LockResult<MutexGuard<'a, T>> {
            while blocked(&mut guard) {
                guard = self.0.wait(guard)?;
            }
            Ok(guard)
        }

        pub(crate) fn wait_timeout_while<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _: Duration,
            blocked: impl FnMut(&mut T) -> bool,
        ) -> LockResult<MutexGuard<'a, T>> {
            self.wait_while(guard, blocked)
        }
    }
}

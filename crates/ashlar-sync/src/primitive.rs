//! What locks, signals, atomics, threads and epochs are made of: the standard library and crossbeam, the model checker loom,
//! or the scheduler shuttle.
//!
//! Under `--cfg loom` (`cargo xtask loom`) every step here is a place where loom may go on with another thread, and every
//! load may answer all that the memory model allows: a test in `loom::model` runs in all orders.
//!
//! Under `--cfg shuttle` (`cargo xtask rel shuttle`) every step here is a place where another thread may go on too, but memory is
//! sequentially consistent and the order is drawn: a whole engine runs in as many orders as there is time for. All threads
//! of a run are one thread of the machine. So nothing that blocks it, a lock of the standard library or the first use of a
//! `OnceLock`, may be held over a step.

#[cfg(not(any(loom, shuttle)))]
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

#[cfg(shuttle)]
pub(crate) use {
    crate::schedule::{Condvar, pin},
    shuttle::hint::spin_loop,
    shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    shuttle::thread,
};

#[cfg(not(shuttle))]
pub(crate) use {crossbeam_epoch::pin, std::thread};

/// What a thread knows of itself: the ranks it holds, the databases it is at work for.
#[cfg(not(shuttle))]
pub use std::thread_local;

#[cfg(shuttle)]
pub use shuttle::thread_local;

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

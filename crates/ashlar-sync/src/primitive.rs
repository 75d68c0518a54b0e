//! The primitives below locks, signals, atomics, threads and epochs: the standard library and crossbeam, or the model
//! checker loom, or the scheduler shuttle.
//!
//! Under `--cfg loom` (`cargo xtask loom`), loom may switch threads at every step here, and a load may return any value
//! that the memory model allows. A test in `loom::model` runs in all orders.
//!
//! Under `--cfg shuttle` (`cargo xtask rel shuttle`), shuttle may switch threads at every step here too. Memory is
//! sequentially consistent, and the order is random, so a whole engine runs in as many orders as the time allows. All
//! threads of a run are one thread of the machine. So a run must not hold anything that blocks this thread over a step:
//! no lock of the standard library, and no first use of a `OnceLock`.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use {
    loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    loom::thread::yield_now,
    modelled::Condvar,
};

#[cfg(shuttle)]
pub(crate) use {
    crate::schedule::{Condvar, pin},
    shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    shuttle::thread::{self, yield_now},
};

#[cfg(not(shuttle))]
pub(crate) use {crossbeam_epoch::pin, std::thread};

/// The data of a thread: the ranks it holds, and the databases it works for.
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

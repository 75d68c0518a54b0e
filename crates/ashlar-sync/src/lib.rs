//! All synchronisation of threads: ranked locks, signals, the lead cell, the epoch cell and the lease slot.
//!
//! It is in one crate so that a model checker can replace the primitives below it, and so that the order of locks is
//! checked.

mod epoch;
mod lead;
mod lock;
#[cfg(all(test, loom))]
mod models;
mod primitive;
mod rank;
#[cfg(shuttle)]
pub mod schedule;
mod signal;
mod slot;

/// A value on cache lines of its own, so that its writers do not slow readers of the values beside it.
pub use crossbeam_utils::CachePadded;
pub use epoch::{EpochCell, ReadPin};
pub use lead::{Lead, LeadCell};
pub use lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
/// A variable of each thread that the scheduler runs: that of the standard library otherwise.
pub use primitive::thread_local;
pub use rank::{Rank, holds_no_lock};
pub use signal::{Signal, WaitHook, Waited};
pub use slot::{Lease, LeaseSlot};

/// Atomics that the model checker can be put under: those of the standard library otherwise.
pub mod atomic {
    pub use crate::primitive::atomic::*;
}

/// Threads that the scheduler can run: those of the standard library otherwise.
pub mod thread {
    pub use crate::primitive::thread::{Builder, JoinHandle, current};
}

/// The model checker, for the models of the crates above.
#[cfg(loom)]
pub use loom;

/// The scheduler, for tests that run an engine under it.
#[cfg(shuttle)]
pub use shuttle;

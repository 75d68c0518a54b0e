//! Ranked locks, signals and the epoch cell: everything that makes threads meet.
//!
//! One place, so that a model checker can be put under all of it and so that the order of locks is a checked fact.

mod epoch;
mod lock;
mod rank;
mod signal;

pub use epoch::{EpochCell, ReadPin};
pub use lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use rank::{Rank, holds_no_lock};
pub use signal::{Signal, WaitHook, Waited};

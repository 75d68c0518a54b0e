//! Which open database a handle belongs to, in which process, and for which databases a thread works.
//!
//! A forked child has copies of its parent's handles without a working engine: the background threads do not exist in
//! the child, a lock held by another thread stays locked, and files are shared with the parent. So every call through
//! such a handle is refused before it takes a lock, and dropping a handle frees nothing.
//!
//! Listeners, comparators and merge operators run in the middle of the engine's work. A call of the same database from
//! such code could wait for the work that it interrupts. So each thread notes the databases it works for, and calls
//! that change something or wait are refused inside that work.

use crate::Process;
use ashlar_base::{Error, Result};
use ashlar_sync::thread_local;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
// Always the real atomics, never loom's: the counter belongs to the process, not to a model.
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One open of one database. No two opens in a process have the same id, not even of the same directory.
#[derive(Clone, Copy)]
pub struct DatabaseId {
    number: u64,
    process: Process,
}

impl PartialEq for DatabaseId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for DatabaseId {}

impl DatabaseId {
    /// An id that no other open of the process has.
    pub fn fresh() -> Self {
        // Relaxed: the counter orders no other memory access.
        DatabaseId { number: NEXT.fetch_add(1, Ordering::Relaxed), process: Process::current() }
    }

    /// The number of the open: no two in a process have the same.
    pub fn number(self) -> u64 {
        self.number
    }

    /// Whether this process is a forked child of the one that opened the database.
    #[inline]
    pub fn is_inherited(self) -> bool {
        !self.process.is_current()
    }

    /// # Errors
    /// `Shutdown(Forked)`: the database was opened before a fork, by the parent.
    #[inline]
    pub fn check_process(self) -> Result<()> {
        if self.is_inherited() { Err(Error::forked()) } else { Ok(()) }
    }

    /// Notes that this thread works for the database, until the guard is dropped.
    #[inline]
    pub fn enter(self) -> Inside {
        Inside::push(Work { database: self, executor: 0 })
    }

    /// [`DatabaseId::enter`] for a step of a job; `executor` is the address of the executor. During the step the
    /// executor may have no thread for the jobs of other databases.
    pub fn enter_job(self, executor: usize) -> Inside {
        Inside::push(Work { database: self, executor })
    }

    /// Whether this thread works for the database, or runs a job on a thread of the same executor.
    #[inline]
    pub fn is_entered(self, executor: usize) -> bool {
        let concerns = |work: &Work| work.database == self || work.executor == executor;
        INSIDE.try_with(|inside| inside.borrow().iter().any(concerns)).unwrap_or(false)
    }

    /// # Errors
    /// `InvalidArgument`: this thread works for the database, or runs a job of the same executor. `Shutdown(Forked)`.
    #[inline]
    pub fn check_outside(self, executor: usize, call: &str) -> Result<()> {
        self.check_process()?;
        if self.is_entered(executor) { Err(from_a_callback(call)) } else { Ok(()) }
    }
}

#[cold]
fn from_a_callback(call: &str) -> Error {
    let of = "a listener, merge operator, comparator or compaction filter";
    Error::invalid(format!("{call} inside {of} that the database called"))
        .hint("Make the call on a thread of your own")
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database {}", self.number)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Work {
    database: DatabaseId,
    /// 0: the work is not a job.
    executor: usize,
}

thread_local! {
    static INSIDE: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
}

/// Marks that a thread works for a database. Dropped on the same thread.
#[must_use]
pub struct Inside {
    work: Work,
    _this_thread: PhantomData<*const ()>,
}

impl Inside {
    #[inline]
    fn push(work: Work) -> Inside {
        // A thread that is ending calls no user code.
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push(work));
        Inside { work, _this_thread: PhantomData }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| {
            let mut inside = inside.borrow_mut();
            match inside.last() == Some(&self.work) {
                true => drop(inside.pop()),
                false => remove(&mut inside, self.work),
            }
        });
    }
}

/// For guards that are not dropped in the reverse order of their making.
#[cold]
fn remove(inside: &mut Vec<Work>, work: Work) {
    if let Some(at) = inside.iter().rposition(|other| *other == work) {
        inside.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_what_it_entered_until_the_guard_goes() {
        let (a, b) = (DatabaseId::fresh(), DatabaseId::fresh());
        let outer = a.enter();
        let inner = a.enter_job(7);
        assert!(a.is_entered(1) && b.is_entered(7) && !b.is_entered(1));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!a.is_entered(7)));
        });
        drop(outer);
        assert!(a.is_entered(1));
        drop(inner);
        assert!(!a.is_entered(7) && a.check_outside(7, "flush()").is_ok());
    }
}

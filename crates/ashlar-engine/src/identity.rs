//! Which open database a handle belongs to, in which process, and for which ones a thread is at work.
//!
//! A child of a fork has copies of its parent's handles, and nothing behind them: the threads that do background work are
//! gone, a lock that another thread held stays locked, and files are shared with the parent. So every call through such a
//! handle is refused before it takes a lock, and dropping a handle leaves what it holds as it is.
//!
//! User code runs in the middle of the engine's work: listeners, comparators, merge operators. A call of the same database
//! from there could wait for the work that it interrupts. So a thread notes the databases it is at work for, and calls that
//! change something or wait are refused inside.

use ashlar_base::{Error, Result};
use ashlar_env::Process;
use ashlar_sync::thread_local;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
// Of the process, not of a model: never loom's.
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// One open of one database. Two opens in a process never have the same, not even of the same directory.
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
    /// An id that no open database of the process has.
    pub(crate) fn fresh() -> Self {
        // Relaxed: the counter orders nothing but itself.
        DatabaseId { number: NEXT.fetch_add(1, Ordering::Relaxed), process: Process::current() }
    }

    /// Whether this process is a child, forked off the one that opened the database.
    #[inline]
    pub(crate) fn is_inherited(self) -> bool {
        !self.process.is_current()
    }

    /// # Errors
    /// `Shutdown(Forked)`: the database was opened before a fork, by the parent.
    #[inline]
    pub(crate) fn check_process(self) -> Result<()> {
        if self.is_inherited() { Err(Error::forked()) } else { Ok(()) }
    }

    /// Notes that this thread is at work for the database, until the guard is dropped.
    pub(crate) fn enter(self) -> Inside {
        Inside::push(Work { database: self, executor: 0 })
    }

    /// [`DatabaseId::enter`] for a step of a job; `executor` is the address of what runs it. While the step lasts the
    /// executor may have no thread for the jobs of other databases.
    pub(crate) fn enter_job(self, executor: usize) -> Inside {
        Inside::push(Work { database: self, executor })
    }

    /// Whether this thread is at work for the database, or in a job that keeps a thread of its executor busy.
    pub(crate) fn is_entered(self, executor: usize) -> bool {
        let concerns = |work: &Work| work.database == self || work.executor == executor;
        INSIDE.try_with(|inside| inside.borrow().iter().any(concerns)).unwrap_or(false)
    }

    /// # Errors
    /// `InvalidArgument`: this thread is at work for the database, or in a job of the same executor. `Shutdown(Forked)`.
    pub(crate) fn check_outside(self, executor: usize, call: &str) -> Result<()> {
        self.check_process()?;
        match self.is_entered(executor) {
            false => Ok(()),
            true => Err(Error::invalid(format!(
                "{call} inside a listener, merge operator or comparator that the database called"
            ))
            .hint("Make the call on a thread of your own")),
        }
    }
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

/// The note that a thread is at work for a database. Ends on the same thread.
pub(crate) struct Inside {
    work: Work,
    _this_thread: PhantomData<*const ()>,
}

impl Inside {
    fn push(work: Work) -> Inside {
        // A thread that ends calls no user code any more.
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push(work));
        Inside { work, _this_thread: PhantomData }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| {
            let mut inside = inside.borrow_mut();
            if let Some(at) = inside.iter().rposition(|work| *work == self.work) {
                inside.remove(at);
            }
        });
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

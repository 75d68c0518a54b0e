//! The lead: a role that one thread has at a time, and the data that belongs to it.
//!
//! A thread takes the lead if it is free, and otherwise marks it as awaited; it never blocks here. The leader releases
//! the lead. If a thread awaits the lead, the leader hands it over or leaves it open. The caller keeps the waiting threads,
//! in a queue with a lock of its own, and chooses the one that is to [`LeadCell::accept`] the lead.
//!
//! ```text
//!  FREE ──try_take──> LED ──take_or_await──> AWAITED ──hand_over──> HANDED ──accept──> AWAITED
//!    ^────release──────┘ <──────settle─────────┘ ├─────open───────> OPEN ──try_take, take_open──> AWAITED
//!                                                └─────free───────> FREE
//! ```
//! 1. At most one [`Lead`] of a cell exists. Each step to LED or AWAITED from another state is one compare-exchange.
//! 2. `release` fails while the lead is awaited, so a leader that does not look at the queue misses no waiting thread.
//!    An open lead is taken as an awaited one, so its next leader does not miss them either.
//! 3. A leader sees everything that earlier leaders did: the word is acquired with the lead and released with it.
//! 4. `take_or_await`, `settle`, `open` and `free` of one cell must be called under the lock of the caller's queue. Without that
//!    lock a waiting thread may be overlooked; the data stays sound.

use crate::primitive::atomic::{AtomicU32, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const LED: u32 = 1;
/// Led, and a thread waits for it.
const AWAITED: u32 = 2;
/// Between two leaders, the next of which is chosen.
const HANDED: u32 = 3;
/// Free while threads wait: for the first of them, or a thread that comes before it.
const OPEN: u32 = 4;

/// A value that belongs to the leader; see the module.
pub struct LeadCell<T> {
    word: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: races: a `&LeadCell<T>` gives access to the data through a `Lead` only, and at most one of those exists: it is
// made by a compare-exchange to LED or AWAITED from FREE, HANDED or OPEN, and no other state leads there but by the end of the
// `Lead`. The compare-exchange acquires what the end of the former `Lead` released. So the data moves between threads,
// which `T: Send` allows, and is never shared. Checked by: loom `the_lead_has_one_leader_at_a_time`, and Miri.
unsafe impl<T: Send> Sync for LeadCell<T> {}

/// The lead of a cell: exclusive access to its data. Dropping it frees the lead, whether a thread awaits it or not.
pub struct Lead<'a, T> {
    cell: &'a LeadCell<T>,
    // It is shared between threads, and sent, as a `&mut T` is.
    _data: PhantomData<&'a mut T>,
}

impl<T> LeadCell<T> {
    /// A free lead.
    pub fn new(data: T) -> Self {
        LeadCell { word: AtomicU32::new(FREE), data: UnsafeCell::new(data) }
    }

    /// Takes the lead if it is free or open.
    ///
    /// # Cost
    /// One atomic operation, if the lead is free.
    #[inline]
    pub fn try_take(&self) -> Option<Lead<'_, T>> {
        self.step(FREE, LED).or_else(|| self.take_open())
    }

    /// Whether the lead is open at this moment.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) == OPEN
    }

    /// Takes the lead if it is open. It counts as awaited.
    #[cold]
    pub fn take_open(&self) -> Option<Lead<'_, T>> {
        // A load first: an exchange that fails would take the word's cache line from the leader.
        if self.is_open() { self.step(OPEN, AWAITED) } else { None }
    }

    /// Takes the lead if it is free or open. `None`: it is awaited from here on, and the caller must enter the queue.
    pub fn take_or_await(&self) -> Option<Lead<'_, T>> {
        loop {
            if let Some(lead) = self.try_take() {
                return Some(lead);
            }
            // Relaxed: a thread that waits reads nothing of the leader's before the lead comes to it.
            match self.word.compare_exchange(LED, AWAITED, Ordering::Relaxed, Ordering::Relaxed) {
                // Freed meanwhile.
                Err(FREE | OPEN) => {}
                _ => return None,
            }
        }
    }

    /// Takes the lead that [`Lead::hand_over`] left. It counts as awaited. `None`: none was left.
    pub fn accept(&self) -> Option<Lead<'_, T>> {
        self.step(HANDED, AWAITED)
    }

    #[inline]
    fn step(&self, from: u32, to: u32) -> Option<Lead<'_, T>> {
        let taken = self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Lazily: a `Lead` that was not taken must not be dropped, because its drop frees the lead.
        taken.then(|| Lead { cell: self, _data: PhantomData })
    }
}

impl<T> Lead<'_, T> {
    /// Frees the lead, unless a thread awaits it: then the caller keeps the lead.
    ///
    /// # Cost
    /// One atomic operation.
    #[inline]
    pub fn release(self) -> Result<(), Self> {
        match self.cell.word.compare_exchange(LED, FREE, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => {
                std::mem::forget(self);
                Ok(())
            }
            Err(_) => Err(self),
        }
    }

    /// Leaves the lead to the thread that calls [`LeadCell::accept`] next.
    pub fn hand_over(self) {
        self.cell.word.store(HANDED, Ordering::Release);
        std::mem::forget(self);
    }

    /// Leaves the lead to the next thread that takes it. Threads wait.
    pub fn open(self) {
        self.cell.word.store(OPEN, Ordering::Release);
        std::mem::forget(self);
    }

    /// Frees the lead. No thread waits.
    pub fn free(self) {
        drop(self);
    }

    /// Whether a thread may wait for the lead.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.cell.word.load(Ordering::Relaxed) != LED
    }

    /// Notes that no thread waits.
    pub fn settle(&mut self) {
        self.cell.word.store(LED, Ordering::Relaxed);
    }
}

impl<T> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        self.cell.word.store(FREE, Ordering::Release);
    }
}

impl<T> Deref for Lead<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: bounds, alignment, initialised: the pointer is that of a whole `T` in a live cell. Aliasing, races: this
        // is the only `Lead` (see `Sync`), and it is borrowed, so no `&mut T` of it exists. Lifetime: the reference ends
        // before the `Lead`, which the cell outlives. Checked by: loom `the_lead_has_one_leader_at_a_time`, and Miri.
        unsafe { &*self.cell.data.get() }
    }
}

impl<T> DerefMut for Lead<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the only `Lead` is borrowed mutably, so no other reference to the data exists. Checked by:
        // loom `the_lead_has_one_leader_at_a_time`, and Miri.
        unsafe { &mut *self.cell.data.get() }
    }
}

impl<T> fmt::Debug for LeadCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeadCell").field("word", &self.word.load(Ordering::Relaxed)).finish()
    }
}

impl<T> fmt::Debug for Lead<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lead")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_leads_at_a_time_and_a_waiter_is_not_overlooked() {
        let cell = LeadCell::new(0);
        let mut lead = cell.try_take().unwrap();
        *lead += 1;
        assert!(cell.try_take().is_none() && cell.accept().is_none() && !lead.is_awaited());
        lead.release().unwrap();
        let lead = cell.take_or_await().unwrap();
        assert!(cell.take_or_await().is_none() && cell.take_or_await().is_none() && lead.is_awaited());
        lead.release().unwrap_err().hand_over();
        assert!(cell.try_take().is_none() && cell.take_or_await().is_none(), "between two leaders");
        let mut lead = cell.accept().unwrap();
        assert!(cell.accept().is_none() && lead.is_awaited());
        lead.settle();
        *lead += 1;
        lead.release().unwrap();
        drop(cell.try_take().unwrap());
        assert_eq!(*cell.try_take().unwrap(), 2);
    }

    #[test]
    fn the_data_of_leaders_is_never_shared() {
        let cell = LeadCell::new((0_u64, 0_u64));
        const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let count = || {
            for _ in 0..EACH {
                let mut lead = loop {
                    match cell.try_take() {
                        Some(lead) => break lead,
                        None => std::thread::yield_now(),
                    }
                };
                lead.0 += 1;
                lead.1 += lead.0;
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(count))));
        let all = 3 * EACH;
        assert_eq!(*cell.try_take().unwrap(), (all, all * (all + 1) / 2));
    }
}

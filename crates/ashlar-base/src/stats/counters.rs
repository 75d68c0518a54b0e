//! Counters that many threads add to at once without sharing a cache line.
//!
//! 1. The first [`OWN`] threads of the process have a stripe each, which no other thread writes. A count is then a load
//!    and a store, a third of the cost of an atomic addition. Later threads share [`SHARED`] stripes and add
//!    atomically. So no count is ever lost.
//! 2. The sum adds the stripes one by one. It is exact once the counting threads pause.
//! 3. A reset does not change the stripes. It records the present sums, and later sums are differences from these.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads with a stripe of their own.
const OWN: usize = 64;
/// Stripes of all other threads.
const SHARED: usize = 8;

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's stripe; not chosen yet: `usize::MAX`.
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The stripe of this thread.
#[inline]
pub(super) fn stripe() -> usize {
    let at = STRIPE.get();
    if at == usize::MAX { choose() } else { at }
}

#[cold]
fn choose() -> usize {
    let thread = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    let at = if thread < OWN { thread } else { OWN + thread % SHARED };
    STRIPE.set(at);
    at
}

/// One thread's share, on separate cache lines.
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

/// `N` counters. Relaxed throughout: they are counts, nothing is ordered by them.
pub struct Counters<const N: usize> {
    stripes: Box<[Stripe<N>]>,
    /// What is taken off every sum.
    since: [AtomicU64; N],
}

impl<const N: usize> Counters<N> {
    /// All at zero. Takes `72 * N` words.
    pub fn new() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Counters { stripes: (0..OWN + SHARED).map(|_| Stripe(zeros())).collect(), since: zeros() }
    }

    /// Adds to a counter; one that does not exist is not counted.
    #[inline]
    pub fn add(&self, counter: usize, n: u64) {
        self.add_all([(counter, n)]);
    }

    /// Adds to several counters: the thread's stripe is looked for once.
    #[inline]
    pub fn add_all<const M: usize>(&self, counts: [(usize, u64); M]) {
        let at = stripe();
        let Some(Stripe(cells)) = self.stripes.get(at) else { return };
        for (counter, n) in counts {
            let Some(cell) = cells.get(counter) else { continue };
            if at < OWN {
                cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
            } else {
                cell.fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// The sum since the last reset.
    pub fn sum(&self, counter: usize) -> u64 {
        let since = self.since.get(counter).map_or(0, |s| s.load(Ordering::Relaxed));
        self.total(counter).wrapping_sub(since)
    }

    /// Resets the sums to zero.
    pub fn reset(&self) {
        for (counter, since) in self.since.iter().enumerate() {
            since.store(self.total(counter), Ordering::Relaxed);
        }
    }

    fn total(&self, counter: usize) -> u64 {
        let cells = self.stripes.iter().filter_map(|stripe| stripe.0.get(counter));
        cells.fold(0, |sum: u64, cell| sum.wrapping_add(cell.load(Ordering::Relaxed)))
    }
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Counters<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..N).map(|counter| self.sum(counter))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More threads than stripes, so that both ways of counting are walked.
    #[test]
    fn no_count_is_lost() {
        let counters = Counters::<2>::new();
        std::thread::scope(|scope| {
            for _ in 0..OWN + 3 * SHARED {
                scope.spawn(|| (0..2500).for_each(|_| counters.add_all([(0, 3), (1, 2), (1, 1)])));
            }
        });
        let each = (OWN + 3 * SHARED) as u64 * 2500 * 3;
        assert_eq!((counters.sum(0), counters.sum(1), counters.sum(2)), (each, each, 0));
        counters.reset();
        counters.add(1, 5);
        counters.add(2, 5);
        assert_eq!((counters.sum(0), counters.sum(1)), (0, 5));
    }
}

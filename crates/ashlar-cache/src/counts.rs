//! Hit and miss counts, striped by thread so that counting does not make readers share a line.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 64;

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Two counters. Relaxed throughout: they are counts, nothing is ordered by them. A hit is counted by a load and a
/// store, a third of what an atomic addition costs; threads that share a stripe may lose some of each other's.
pub(crate) struct Counts([Stripe; STRIPES]);

impl Default for Counts {
    fn default() -> Self {
        Counts(std::array::from_fn(|_| Stripe::default()))
    }
}

impl Counts {
    #[inline]
    fn stripe(&self) -> Option<&Stripe> {
        // A thread that is being torn down has no stripe left and counts in the first.
        self.0.get(STRIPE.try_with(|at| *at).unwrap_or(0))
    }

    #[inline]
    pub(crate) fn hit(&self) {
        if let Some(stripe) = self.stripe() {
            stripe.hits.store(stripe.hits.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn miss(&self) {
        if let Some(stripe) = self.stripe() {
            stripe.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn hits(&self) -> u64 {
        self.0.iter().map(|s| s.hits.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn misses(&self) -> u64 {
        self.0.iter().map(|s| s.misses.load(Ordering::Relaxed)).sum()
    }
}

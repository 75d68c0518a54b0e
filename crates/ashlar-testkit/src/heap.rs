//! A heap that counts, and refuses: how much memory a piece of work takes at its worst, and what it does when it gets none.
//!
//! A program that wants to know installs it: `#[global_allocator] static HEAP: CountingHeap = CountingHeap;`. Counts of
//! bytes are per thread, so that tests beside each other do not mix; what another thread frees is not seen. Refusals hit
//! the whole process. Bytes that C code allocates by itself are not seen by either.

use crate::report;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

thread_local! {
    /// Bytes allocated and not freed by this thread since it began; below zero when it frees what others allocated.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Allocations of so many bytes are large: counted, and refused when it is their turn. At first none is.
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
static LARGE: AtomicU64 = AtomicU64::new(0);
static FIRST_REFUSED: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST_REFUSED: AtomicU64 = AtomicU64::new(u64::MAX);

/// From here on allocations of at least `bytes` are counted from 1, and those whose number is in `which` are refused, as if
/// the system had no memory. Always without effect in a program that has not installed [`CountingHeap`].
pub fn refuse(bytes: usize, which: RangeInclusive<u64>) {
    LARGE.store(0, Ordering::Relaxed);
    FIRST_REFUSED.store(*which.start(), Ordering::Relaxed);
    LAST_REFUSED.store(*which.end(), Ordering::Relaxed);
    LARGE_BYTES.store(bytes, Ordering::Relaxed);
}

/// Large allocations since [`refuse`].
pub fn large_allocations() -> u64 {
    LARGE.load(Ordering::Relaxed)
}

/// Whether one of them was refused.
pub fn has_refused() -> bool {
    large_allocations() >= FIRST_REFUSED.load(Ordering::Relaxed)
}

/// Zeroed bytes that are to be refused by their length. Untouched, they take address space only. `None`: there is not so much
/// of it, or an interpreter would fill it; then `test` is reported as skipped.
pub fn untouched(test: &str, len: usize) -> Option<Vec<u8>> {
    if cfg!(miri) || Vec::<u8>::new().try_reserve_exact(len).is_err() {
        report::skipped(test, &format!("no address space of {len} bytes"));
        return None;
    }
    Some(vec![0; len])
}

#[inline]
fn is_refused(bytes: usize) -> bool {
    bytes >= LARGE_BYTES.load(Ordering::Relaxed) && {
        let number = LARGE.fetch_add(1, Ordering::Relaxed) + 1;
        (FIRST_REFUSED.load(Ordering::Relaxed)..=LAST_REFUSED.load(Ordering::Relaxed)).contains(&number)
    }
}

/// The system's heap, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingHeap;

fn count(bytes: isize) {
    // Nothing here may allocate or panic; a thread that is ending counts no more.
    let _ = LIVE.try_with(|live| {
        let now = live.get().wrapping_add(bytes);
        live.set(now);
        PEAK.try_with(|peak| peak.set(peak.get().max(now)))
    });
}

fn size_of(layout: Layout) -> isize {
    isize::try_from(layout.size()).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to `System` with the arguments it came with, and its answer comes back unchanged, or it answers
// null and has done nothing, as any of them may; counting touches two thread-local cells and atomics, no memory of the heap.
// Checked by: the tests below, and every test of the fuzzer.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        count(size_of(layout));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is `System`'s. As above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        count(size_of(layout));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`, which is `System`'s. As above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_refused(new_size) {
            return null_mut();
        }
        count(isize::try_from(new_size).unwrap_or(isize::MAX).wrapping_sub(size_of(layout)));
        // SAFETY: `at` came from `System` through this type, with `layout`; the rest is the caller's. As above.
        unsafe { System.realloc(at, layout, new_size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(size_of(layout).wrapping_neg());
        // SAFETY: `at` came from `System` through this type, with `layout`. As above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `work` and tells how many bytes this thread held at most beyond what it held before. Always 0 in a program
/// that has not installed [`CountingHeap`].
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let done = work();
    (done, usize::try_from(PEAK.get().wrapping_sub(before)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static HEAP: CountingHeap = CountingHeap;

    #[test]
    fn the_peak_is_seen_and_what_was_before_is_not() {
        let before = vec![1_u8; 1 << 20];
        let (kept, peak) = peak_of(|| {
            drop(vec![0_u8; 3 << 20]);
            let mut grown = Vec::with_capacity(16);
            grown.resize(1 << 20, 7_u8);
            grown
        });
        assert!((3 << 20..(3 << 20) + 4096).contains(&peak), "{peak}");
        let (_, peak) = peak_of(|| drop((before, kept)));
        assert_eq!(peak, 0, "freeing takes nothing");
    }

    #[test]
    fn what_is_refused_is_told_and_the_rest_is_not() {
        let large = 64 << 20;
        let has_room = || Vec::<u8>::new().try_reserve_exact(large).is_ok();
        refuse(large, 2..=3);
        assert_eq!([(); 4].map(|()| has_room()), [true, false, false, true]);
        assert_eq!((large_allocations(), has_refused()), (4, true));
    }

    #[test]
    fn other_threads_are_not_counted() {
        let (_, peak) = peak_of(|| {
            std::thread::spawn(|| drop(vec![0_u8; 8 << 20])).join().unwrap();
        });
        assert!(peak < 1 << 20, "{peak}");
    }
}

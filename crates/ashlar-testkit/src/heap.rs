//! A heap that counts: how much memory a piece of work takes at its worst.
//!
//! A program that wants to know installs it: `#[global_allocator] static HEAP: CountingHeap = CountingHeap;`. Counts are
//! per thread, so that tests beside each other do not mix; what another thread frees is not seen. Bytes that C code
//! allocates by itself are not seen either.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes allocated and not freed by this thread since it began; below zero when it frees what others allocated.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
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

// SAFETY: every call goes to `System` with the arguments it came with, and its answer comes back unchanged; counting
// touches two thread-local cells and no memory of the heap. Checked by: the tests below, and every test of the fuzzer.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size_of(layout));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is `System`'s. As above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(size_of(layout));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`, which is `System`'s. As above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
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
    fn other_threads_are_not_counted() {
        let (_, peak) = peak_of(|| {
            std::thread::spawn(|| drop(vec![0_u8; 8 << 20])).join().unwrap();
        });
        assert!(peak < 1 << 20, "{peak}");
    }
}

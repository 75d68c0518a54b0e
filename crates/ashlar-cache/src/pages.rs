//! Slices that live as long as an open table. Long ones are in separate mapped pages.
//!
//! Indexes and filters are allocated and freed with their tables, between short-lived buffers of the threads that open
//! tables. On the heap, such a slice would keep freed memory around it from returning to the system. In separate pages,
//! its memory returns to the system as soon as it is freed.

use crate::frame::prefetch_lines;
use memmap2::{MmapMut, MmapRaw};
use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The length in bytes from which a slice has separate pages. Shorter slices are on the heap.
const SHORTEST: usize = 64 << 10;
/// The most slices with separate pages. The system limits the mappings of a process, to 65,530 by default.
const MOST: usize = 16 << 10;

static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A mapping that counts towards the limit.
struct Map(MmapRaw);

impl Map {
    fn new(bytes: usize) -> Option<Map> {
        if MAPPED.fetch_add(1, Ordering::Relaxed) >= MOST {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let map = MmapMut::map_anon(bytes);
        if map.is_err() {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
        }
        Some(Map(map.ok()?.into()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A slice that does not grow, made of a `Vec`.
pub struct Pages<T> {
    start: NonNull<T>,
    len: usize,
    /// The mapping; `None`: the slice is a boxed slice on the heap.
    map: Option<Map>,
}

// SAFETY: it owns its elements as a boxed slice does. Checked by: the compiler for `Box<[T]>`, whose rule this is.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: as above; shared, it gives out shared references only.
unsafe impl<T: Sync> Sync for Pages<T> {}

impl<T> From<Vec<T>> for Pages<T> {
    fn from(mut from: Vec<T>) -> Self {
        let bytes = size_of_val(&*from);
        // Pages are aligned to more than any type here asks for.
        let map = if bytes < SHORTEST || align_of::<T>() > 64 { None } else { Map::new(bytes) };
        let Some(map) = map else {
            let len = from.len();
            let boxed = NonNull::from(Box::leak(from.into_boxed_slice()));
            return Pages { start: boxed.cast(), len, map: None };
        };
        let start = map.0.as_mut_ptr().cast::<T>();
        let len = from.len();
        // SAFETY: both sides have room for `len` elements, aligned: the one is the vector's, the other `bytes` long and starts
        // with a page. They do not overlap, as the map is new. Checked by: `tests`, Miri.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, len) };
        // SAFETY: nothing is uninitialised below 0; the elements have moved and are dropped with the pages. Checked by: `tests`.
        unsafe { from.set_len(0) };
        // A mapping never starts at null.
        Pages { start: NonNull::new(start).unwrap_or(NonNull::dangling()), len, map: Some(map) }
    }
}

impl Pages<u8> {
    /// Prefetches the 64 bytes from `at` on, so that following reads of several slices wait for memory once and not one
    /// by one. Does nothing if they reach past the end.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        prefetch_lines(self.get(at..at.saturating_add(64)).unwrap_or_default());
    }
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages::from(Vec::new())
    }
}

impl<T> FromIterator<T> for Pages<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Pages::from(Vec::from_iter(items))
    }
}

impl<T> Deref for Pages<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements stand from `start` on, aligned and initialised, for as long as this lives; no thread changes them
        // meanwhile. Checked by: `tests`, Miri.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        let all = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len);
        if self.map.is_some() {
            // SAFETY: the elements are this slice's own and nothing refers to them any more; the map goes after them. Checked by:
            // `tests`, Miri.
            unsafe { ptr::drop_in_place(all) };
        } else {
            // SAFETY: `start` and `len` came from a leaked box of this type, which is taken back once. Checked by: `tests`, Miri.
            drop(unsafe { Box::from_raw(all) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn elements_are_moved_shared_and_dropped_once() {
        for len in [0, 1, 100, SHORTEST / size_of::<Arc<u8>>(), 20_000] {
            let shared = Arc::new(7_u8);
            let pages: Pages<Arc<u8>> = (0..len).map(|_| Arc::clone(&shared)).collect();
            assert_eq!((pages.len(), Arc::strong_count(&shared)), (len, len + 1));
            assert_eq!(pages.map.is_some(), len * size_of::<Arc<u8>>() >= SHORTEST);
            assert!(pages.iter().all(|one| **one == 7));
            drop(pages);
            assert_eq!(Arc::strong_count(&shared), 1);
        }
        assert!(Pages::<u64>::default().is_empty());
        let units: Pages<()> = Pages::from(vec![(); 1 << 20]);
        assert_eq!(units.len(), 1 << 20);

        let long = || Pages::from(vec![1_u8; SHORTEST]);
        MAPPED.fetch_add(MOST, Ordering::Relaxed);
        let in_heap = long();
        MAPPED.fetch_sub(MOST, Ordering::Relaxed);
        assert!(in_heap.map.is_none() && long().map.is_some() && *in_heap == *long());
    }
}

//! What the allocator of this process keeps.

/// Free bytes in the heap of glibc 2.33 and later; 0 without that library. An upper bound of what the freed memory still takes: pages
/// that were trimmed, or never touched, count too. A program with another allocator has a small heap of glibc beside it.
///
/// # Cost
/// Walks the lists of free pieces, under locks for which allocations wait: some microseconds, and 100 ms with millions of such pieces.
/// The answer of a walk is used again for a hundred times as long as the walk took.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn kept_by_allocator() -> u64 {
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;

    /// The last answer, and the time until which it counts.
    static LAST: Mutex<Option<(u64, Instant)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    match *last {
        Some((kept, until)) if begun < until => kept,
        _ => {
            let kept = kept_by_allocator_now();
            *last = Some((kept, begun + 100 * begun.elapsed()));
            kept
        }
    }
}

/// [`kept_by_allocator`] of this moment.
///
/// # Cost
/// Each call walks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn kept_by_allocator_now() -> u64 {
    use std::sync::OnceLock;

    type Ask = unsafe extern "C" fn() -> libc::mallinfo2;
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    let ask = ASK.get_or_init(|| {
        // A linked name would keep the library from loading beside an older glibc.
        // SAFETY: the name ends in NUL. Checked by: the test below.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        // SAFETY: glibc's `mallinfo2` has no parameters and returns this structure; a null pointer becomes `None`. Checked by: the
        // test below.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<Ask>>(found) }
    });
    // SAFETY: the function has no conditions. Checked by: the test below.
    ask.map_or(0, |ask| unsafe { ask() }.fordblks as u64)
}

/// 0: not known.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn kept_by_allocator() -> u64 {
    0
}

/// 0: not known.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn kept_by_allocator_now() -> u64 {
    0
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn freed_pieces_between_used_ones_are_kept() {
        let mut all: Vec<Vec<u8>> = (0..20_000).map(|_| vec![7; 1000]).collect();
        let before = kept_by_allocator_now();
        let mut at = 0;
        all.retain(|_| {
            at += 1;
            at % 2 == 0
        });
        let freed = kept_by_allocator_now().saturating_sub(before);
        assert!((8_000_000..20_000_000).contains(&freed), "{freed}");
    }
}

//! Instructions of the processor that safe Rust does not offer, each behind a safe function.

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Prefetches `lines` cache lines, the first of which holds the byte at `from`. Reads nothing that the program can see, so the
/// pointer may point anywhere.
///
/// # Cost
/// An instruction per line. Several prefetches wait for memory together, where loads that follow from each other wait one by
/// one. Nothing happens on processors other than x86-64, which have no stable prefetch function.
#[inline]
pub fn prefetch(from: *const u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in 0..lines {
            let at = from.wrapping_add(line * LINE).cast::<i8>();
            // SAFETY: a prefetch has no effect that the program can observe and cannot fault, wherever the pointer points.
            // Checked by: `nothing_changes_and_nothing_faults`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_and_nothing_faults() {
        let bytes: Vec<u8> = (0..=250).collect();
        prefetch(bytes.as_ptr(), 4);
        prefetch(bytes.as_ptr().wrapping_add(bytes.len()), 2);
        prefetch(std::ptr::null(), 1);
        assert!((0..=250).eq(bytes));
    }
}

//! Catches panics of callbacks.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `act`, which calls what others wrote. `None`: it panicked.
///
/// What a panic carries may itself panic when it is dropped. It is dropped in here, and what that second panic carries is
/// leaked, so that nothing unwinds the caller.
pub fn contained<T>(act: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(act));
    done.map_err(|carried| std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(carried))))).ok()
}

#[cfg(test)]
mod tests {
    use super::contained;
    use std::panic::panic_any;

    /// Panics whenever it is dropped.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            match self.0 {
                0 => panic!("on purpose"),
                left => panic_any(Bomb(left - 1)),
            }
        }
    }

    #[test]
    fn nothing_unwinds_the_caller() {
        assert_eq!(contained(|| 1), Some(1));
        assert_eq!(contained(|| -> u32 { panic!("on purpose") }), None);
        for depth in 0..3 {
            assert_eq!(contained(|| -> u32 { panic_any(Bomb(depth)) }), None);
        }
    }
}

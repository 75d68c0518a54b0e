//! Memory that each thread keeps from one call to the next, so that a call allocates nothing.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Runs `run` with the value that this thread keeps, as earlier calls left the value.
///
/// `run` gets a new value in two cases: a call of this thread that is still running has the kept one, or the thread is
/// ending and has destroyed its own. The first happens if a callback calls the database, and under the scheduler shuttle,
/// whose threads are one thread of the machine.
#[inline]
pub fn with_kept<T: Default, R>(kept: &'static LocalKey<RefCell<T>>, run: impl FnOnce(&mut T) -> R) -> R {
    let mut run = Some(run);
    let done = kept.try_with(|kept| {
        let mut value = kept.try_borrow_mut().ok()?;
        run.take().map(|run| run(&mut value))
    });
    match (done.ok().flatten(), run) {
        (Some(done), _) => done,
        (None, Some(run)) => run(&mut T::default()),
        (None, None) => unreachable!("a call that began has a result"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static CALLS: RefCell<u32> = const { RefCell::new(0) };
    }

    fn called() -> u32 {
        with_kept(&CALLS, |calls| {
            *calls += 1;
            *calls
        })
    }

    #[test]
    fn a_thread_keeps_the_value_and_a_call_within_a_call_has_its_own() {
        assert_eq!([called(), called()], [1, 2]);
        let inner = with_kept(&CALLS, |calls| {
            *calls = 7;
            called()
        });
        assert_eq!([inner, called()], [1, 8]);
    }
}

//! A time limit for calls that must return: a hang fails the test instead of stopping it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs `call` on a new thread and returns its result. After a panic in `call` the caller panics too.
///
/// # Panics
/// If `call` has not returned after `seconds`. Its thread keeps running.
#[track_caller]
pub fn within<T: Send + 'static>(seconds: u64, what: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = channel();
    let thread = thread::spawn(move || {
        let _ = done.send(call());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: no return within {seconds} seconds"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => panic!("{what}: no answer"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::within;
    use std::panic::catch_unwind;
    use std::sync::mpsc::channel;

    #[test]
    fn an_answer_a_panic_and_a_hang_are_told_apart() {
        assert_eq!(within(60, "an answer", || 7), 7);
        assert!(catch_unwind(|| within(60, "a panic", || panic!("on purpose"))).is_err());
        let (_keep, never) = channel::<()>();
        let hang = catch_unwind(std::panic::AssertUnwindSafe(|| within(0, "a hang", move || never.recv())));
        let text = *hang.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(text, "a hang: no return within 0 seconds");
    }
}

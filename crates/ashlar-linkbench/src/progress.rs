//! Lines of progress for phases that last longer than two seconds.

use ashlar_bench::say;
use ashlar_peers::process::PROGRESS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(2);

/// Does `work`, and every two seconds meanwhile says on standard error how far `done` is.
pub fn during<T>(what: &str, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let start = Instant::now();
            let mut before = 0;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = done.load(Ordering::Relaxed);
                let rate = now.saturating_sub(before) / EVERY.as_secs();
                let seconds = start.elapsed().as_secs_f64();
                say::line(&format!("{PROGRESS}{what}: {seconds:.0} s, {now} done, {rate} a second"));
                before = now;
            }
        });
        let result = work();
        drop(end);
        result
    })
}

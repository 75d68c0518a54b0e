//! Samples the written bytes, the memory and the directory once a second while a loop runs.
//!
//! A separate thread samples, so that the loop does not wait. Seconds and bytes count from the beginning of the loop, even if
//! the thread is late.

use crate::measure;
use crate::space::taken;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A sample at the end of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bytes given to write calls since the sample before.
    pub written: u64,
    /// Bytes of memory that are resident.
    pub rss: u64,
    /// Bytes of the files in the directory.
    pub du: u64,
}

/// Runs `work`, and samples `dir` and this process until it ends.
pub fn during<T>(dir: &Path, work: impl FnOnce() -> T) -> (T, Vec<Sample>) {
    let (end, ended) = channel::<()>();
    let (start, mut written) = (Instant::now(), measure::written());
    std::thread::scope(|scope| {
        let sampling = scope.spawn(move || {
            let mut samples = Vec::new();
            for second in 1.. {
                let due = start + Duration::from_secs(second);
                let left = due.saturating_duration_since(Instant::now());
                if ended.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                let now = measure::written();
                samples.push(Sample {
                    written: now.saturating_sub(written),
                    rss: measure::memory().rss.unwrap_or(0),
                    du: taken(dir).allocated,
                });
                written = now;
            }
            samples
        });
        let done = work();
        drop(end);
        (done, sampling.join().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_brings_a_sample() {
        let dir = tempfile::tempdir().unwrap();
        let (done, samples) = during(dir.path(), || {
            std::fs::write(dir.path().join("f"), vec![1_u8; 1 << 20]).unwrap();
            std::thread::sleep(Duration::from_millis(1500));
            7
        });
        assert_eq!((done, samples.len()), (7, 1), "{samples:?}");
        assert!(samples[0].written >= 1 << 20 && samples[0].du >= 1 << 20, "{samples:?}");
        assert!(samples[0].rss > 1 << 20, "{samples:?}");
        assert_eq!(during(dir.path(), || ()).1, []);
    }
}

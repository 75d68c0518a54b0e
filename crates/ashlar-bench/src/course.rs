//! Operations in each second of a benchmark, for its page.
//!
//! A thread reads a growing count from time to time. A late read spreads its operations evenly over the seconds since the
//! preceding read, so that it does not look like a stall.

use std::time::Duration;

/// Counts, second by second.
#[derive(Debug)]
pub(crate) struct Course {
    start: Duration,
    total: u64,
    seconds: Vec<u64>,
}

impl Course {
    /// Begins at `now`.
    pub(crate) fn begin(now: Duration) -> Course {
        Course { start: now, total: 0, seconds: Vec::new() }
    }

    /// The time until the current second ends.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        let next = self.start + Duration::from_secs(self.seconds.len() as u64 + 1);
        next.saturating_sub(now)
    }

    /// Records that `total` operations have been done so far.
    pub(crate) fn tell(&mut self, now: Duration, total: u64) {
        let over = now.saturating_sub(self.start).as_secs();
        let new = over.saturating_sub(self.seconds.len() as u64);
        if new == 0 {
            return;
        }
        let done = total.saturating_sub(self.total);
        self.total = total;
        self.seconds.extend((0..new).map(|i| done * (i + 1) / new - done * i / new));
    }

    /// The counts of the whole seconds. A part of a second at the end is left out.
    pub(crate) fn end(self) -> Vec<u64> {
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_looks_are_shared_out() {
        let at = |tenths: u64| Duration::from_millis(5000 + tenths * 100);
        let mut course = Course::begin(at(0));
        assert_eq!(course.left(at(4)), Duration::from_millis(600));
        course.tell(at(9), 80);
        course.tell(at(11), 100);
        course.tell(at(34), 107);
        course.tell(at(40), 107);
        assert_eq!(course.end(), [100, 3, 4, 0]);
    }
}

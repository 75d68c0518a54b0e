//! Estimates from the last memtables when level 0 gets its next table.
//!
//! Only memtables that writers filled count. A memtable flushed on request does not count, because no further request
//! may follow.

use std::time::Duration;

/// Writers that take longer than this to fill a memtable are not waited for.
const SLOWEST: Duration = Duration::from_secs(60);

/// A compaction that waits for the next table allows writers at least this pause, because threads pause on a busy
/// machine.
const PAUSE: Duration = Duration::from_secs(1);

/// When the last memtables of a family became full.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlushRate {
    last: Option<Duration>,
    interval: Option<Duration>,
}

impl FlushRate {
    /// Records that a memtable became full at `now`.
    pub fn note(&mut self, now: Duration) {
        self.interval = self.last.map(|last| now.saturating_sub(last));
        self.last = Some(now);
    }

    /// Estimates the seconds in which writers fill a memtable, of which the part `filled` (0 to 1) is full. It is the time since
    /// the last full one, plus the unfilled part at the last memtable's speed. Returns 0 if no memtable is expected to become full.
    pub fn fill_time(&self, now: Duration, filled: f64) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        let so_far = now.saturating_sub(last);
        if so_far > SLOWEST {
            return 0.0;
        }
        let (so_far, filled) = (so_far.as_secs_f64(), filled.clamp(0.0, 1.0));
        match self.interval.map(|interval| interval.as_secs_f64()) {
            Some(interval) => so_far + interval * (1.0 - filled),
            None if filled > 0.1 => so_far / filled,
            None => 0.0,
        }
    }

    /// The time until which another full memtable is expected: twice the time the last one took, but at least a second.
    /// `None`: none is expected.
    pub fn expected_until(&self) -> Option<Duration> {
        let interval = self.interval.filter(|interval| *interval <= SLOWEST)?;
        Some(self.last?.saturating_add(interval.saturating_mul(2).max(PAUSE)))
    }

    /// Whether another full memtable is expected at `now`.
    pub fn is_expected(&self, now: Duration) -> bool {
        self.expected_until().is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_is_expected_when_two_came_and_not_for_ever() {
        let at = Duration::from_secs;
        let mut flush_rate = FlushRate::default();
        assert!(!flush_rate.is_expected(at(0)));
        flush_rate.note(at(10));
        assert!(!flush_rate.is_expected(at(10)), "one does not say how long the next takes");
        flush_rate.note(at(13));
        assert!(flush_rate.is_expected(at(18)) && !flush_rate.is_expected(at(19)));
        flush_rate.note(at(13));
        assert!(flush_rate.is_expected(Duration::from_millis(13_999)) && !flush_rate.is_expected(at(14)));
        flush_rate.note(at(90));
        assert_eq!(flush_rate.expected_until(), None, "too slow");
    }
}

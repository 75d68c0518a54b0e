//! The measured rates of background work, and the rate that writers can sustain.
//!
//! 1. The *drain rate* is bytes compacted per second while compactions run; it is kept while there is nothing to
//!    compact. The *inflow* is bytes flushed per second.
//!    A job's bytes count when it ends, over the time since the last one ended in which some compaction ran.
//! 2. Both are averages over some seconds, updated when background work ends, so writers read no clock for them.
//! 3. Each flushed byte costs some bytes of compaction, the *amplification*, computed from the sums since the open.
//!    Writers can sustain the drain rate divided by the amplification.

use std::time::Duration;

/// The averaging period of the rates.
const MEMORY: Duration = Duration::from_secs(5);
/// The sustainable rate before the first measurement, and its minimum.
const UNKNOWN: f64 = 16.0 * 1024.0 * 1024.0;
const LEAST: f64 = 1024.0 * 1024.0;

/// The rates of a database. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    at: Duration,
    flushed: u64,
    drained: u64,
    /// A compaction ran at the last record.
    runs: bool,
    /// Seconds in which compactions ran since one last ended.
    busy: f64,
    /// Bytes per second; 0 before the first measurement.
    pub inflow: f64,
    /// Bytes per second; 0 before the first measurement.
    pub drain: f64,
}

impl Rates {
    /// Records the sums of bytes flushed and compacted up to `now`, and whether a compaction runs. Bytes are counted when a job
    /// ends; so the drain rate is measured over the time in which compactions ran, however often this is called.
    pub fn note(&mut self, now: Duration, (flushed, drained): (u64, u64), runs: bool) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        if passed < 0.01 {
            return;
        }
        let average = |old: f64, bytes: u64, seconds: f64| {
            let (new, weight) = (bytes as f64 / seconds, 1.0 - (-seconds / MEMORY.as_secs_f64()).exp());
            if old == 0.0 { new } else { old + (new - old) * weight }
        };
        self.inflow = average(self.inflow, flushed.saturating_sub(self.flushed), passed);
        let moved = drained.saturating_sub(self.drained);
        if self.runs || moved > 0 {
            self.busy += passed;
        }
        if moved > 0 {
            self.drain = average(self.drain, moved, self.busy);
            self.busy = 0.0;
        }
        (self.at, self.flushed, self.drained, self.runs) = (now, flushed, drained, runs);
    }

    /// Bytes of compaction per flushed byte.
    pub fn amplification(&self) -> f64 {
        if self.flushed == 0 { 1.0 } else { (self.drained as f64 / self.flushed as f64).max(1.0) }
    }

    /// Bytes per second that writers can sustain.
    pub fn sustained(&self) -> f64 {
        if self.drain == 0.0 { UNKNOWN } else { (self.drain / self.amplification()).max(LEAST) }
    }

    /// The time until debt has grown by `bytes` at its current growth; `None` when debt does not grow, or so slowly that it takes
    /// longer than `longest`.
    pub fn time_to(&self, bytes: f64, longest: Duration) -> Option<Duration> {
        let growth = self.inflow * self.amplification() - self.drain;
        let seconds = bytes / growth;
        (growth >= 1.0 && seconds <= longest.as_secs_f64()).then(|| Duration::from_secs_f64(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn measures_what_is_carried() {
        let mut rates = Rates::default();
        assert_eq!((rates.sustained(), rates.time_to(1.0, HOUR)), (UNKNOWN, None));
        // 10 MiB/s are flushed, 30 MiB/s are compacted, and each byte costs three.
        for second in 1..=60 {
            rates.note(Duration::from_secs(second), (second * 10 * MIB, second * 30 * MIB), true);
        }
        assert!((rates.sustained() / MIB as f64 - 10.0).abs() < 0.1, "{rates:?}");
        assert!(rates.time_to(MIB as f64, HOUR).is_none(), "debt stands still");
        // The inflow doubles: in ten seconds debt grows by about 300 MiB.
        for second in 61..=90 {
            let flushed = 600 + (second - 60) * 20;
            rates.note(Duration::from_secs(second), (flushed * MIB, second * 30 * MIB), false);
        }
        let time = rates.time_to(100.0 * MIB as f64, HOUR).expect("debt grows");
        assert!((2..20).contains(&time.as_secs()), "{time:?}");
        let before = rates.drain;
        rates.note(Duration::from_secs(1000), (1200 * MIB, 2700 * MIB), false);
        assert_eq!(rates.drain, before, "not forgotten without work");
        assert!(rates.inflow < 1.0 * MIB as f64);
    }

    #[test]
    fn a_caller_that_asks_often_changes_no_rate() {
        let (mut seldom, mut often) = (Rates::default(), Rates::default());
        // A compaction of 40 MiB ends every four seconds.
        for tick in 1..=4000_u64 {
            let (now, ends) = (Duration::from_millis(20 * tick), tick / 200);
            let sums = (ends * 10 * MIB, ends * 40 * MIB);
            often.note(now, sums, true);
            if tick % 200 == 0 {
                seldom.note(now, sums, true);
            }
        }
        for rates in [seldom, often] {
            assert!((rates.drain / MIB as f64 - 10.0).abs() < 0.2, "{rates:?}");
        }
    }
}
